/* SPDX-License-Identifier: Apache-2.0 */

/* Reads ttmem.cards/1. */

#include "cli/common/session-cards.h"

#include <stddef.h>

#include "answers/document.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/common/daemon-pages.h"
#include "model/snapshot.h"
#include "source/daemon-client/daemon-client.h"
#include "source/host/card-watch.h"

void session_ask_cards(struct daemon_client *remote, struct card_watch *cards)
{
	CLEANUP(document_unload) json_t *document = NULL;
	struct snapshot_card card;
	struct snapshot_left left;

	if (daemon_pages_ask(remote, ANSWERS_CARDS, NULL, &document) != 0)
		return;
	for (size_t at = 0;
	     document_next(document, "cards", &at, cards_fields, &card, sizeof(card));) {
		/* Without a bus address it could be any card. */
		if (card.bus && card.condition.state <= SNAPSHOT_GONE)
			card_watch_tell(cards, clock_ns(CLOCK_MONOTONIC), &card);
	}
	for (size_t at = 0;
	     document_next(document, "stale", &at, cards_stale_fields, &left, sizeof(left));) {
		card = (struct snapshot_card){.bus = left.bus};
		left.bus = NULL; /* it is kept */
		if (card.bus)
			card_watch_tell_left(cards, &card, &left);
	}
}
