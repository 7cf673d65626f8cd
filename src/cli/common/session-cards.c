/* SPDX-License-Identifier: Apache-2.0 */

/* Reads ttmem.cards/1. */

#include "cli/common/session-cards.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "answers/answers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "model/cards/condition.h"
#include "source/daemon-client/daemon-client.h"
#include "source/host/card-watch.h"

static uint64_t session_cards_id(const json_t *row, const char *key)
{
	const char *text = daemon_pages_text(row, key);
	uint64_t value;

	return text && text_parse_u64(text, &value) == 0 ? value : 0;
}

static uint32_t session_cards_state(const json_t *row)
{
	const char *text = daemon_pages_text(row, "state");

	for (uint32_t state = SNAPSHOT_PRESENT; text && state <= SNAPSHOT_GONE; state++) {
		if (strcmp(text, condition_state(state)) == 0)
			return state;
	}
	return SNAPSHOT_STATE_UNKNOWN;
}

static void session_cards_tell(struct card_watch *cards, const json_t *row)
{
	const struct snapshot_card card = {
		.number = (uint32_t)daemon_pages_number(row, "number"),
		.unique_id = session_cards_id(row, "uid"),
		.serial = session_cards_id(row, "serial"),
		.arch = daemon_pages_text(row, "arch"),
		.card = daemon_pages_text(row, "card"),
		.bus = daemon_pages_text(row, "bus"),
		.firmware = daemon_pages_text(row, "firmware"),
		.condition =
			{
				.state = session_cards_state(row),
				.has_heartbeat = json_is_integer(json_object_get(row, "heartbeat")),
				.heartbeat = (uint32_t)daemon_pages_number(row, "heartbeat"),
			},
	};

	/* Without a bus address it could be any card. */
	if (card.bus && card.condition.state != SNAPSHOT_STATE_UNKNOWN)
		card_watch_tell(cards, clock_ns(CLOCK_MONOTONIC), &card);
}

void session_ask_cards(struct daemon_client *remote, struct card_watch *cards)
{
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	CLEANUP_FREE char *text = NULL;
	const json_t *row;
	size_t length = 0, i;

	if (daemon_client_get(remote, answers[ANSWERS_CARDS].path, NULL, &text, &length) != 0)
		return;
	document = daemon_pages_load(text, length);
	json_array_foreach(json_object_get(document, "cards"), i, row)
		session_cards_tell(cards, row);
	json_array_foreach(json_object_get(document, "stale"), i, row)
	{
		const struct snapshot_card card = {.bus = daemon_pages_text(row, "bus")};
		const struct snapshot_left left = {
			.process.pid = (uint32_t)daemon_pages_number(row, "pid"),
			.process.start_ticks = daemon_pages_number(row, "start_ticks"),
			.device = (uint32_t)daemon_pages_number(row, "device"),
		};

		if (card.bus)
			card_watch_tell_left(cards, &card, &left);
	}
}
