/* SPDX-License-Identifier: Apache-2.0 */

/* Packets of the link, each wrong in one thing. */

#include "wire/link.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/testing/unit.h"

static struct link_offer offer_make(void)
{
	struct link_offer offer = {.pid = 1};

	link_head_init(&offer.head, LINK_OFFER, sizeof(offer));
	return offer;
}

UNIT(a_packet_with_the_size_of_its_kind_is_accepted)
{
	struct link_offer offer = offer_make();
	struct link_state state = {.clients = 1};
	struct {
		struct link_book book;
		char text[5];
	} lines = {.text = "text"};

	assert(link_check(&offer, sizeof(offer)) == LINK_OFFER);
	link_head_init(&state.head, LINK_STATE, sizeof(state));
	assert(link_check(&state, sizeof(state)) == LINK_STATE);
	link_head_init(&lines.book.head, LINK_LINES, sizeof(lines.book) + 4);
	assert(link_check(&lines, sizeof(lines.book) + 4) == LINK_LINES);
}

UNIT(a_packet_that_is_cut_is_refused)
{
	struct link_offer offer = offer_make();

	assert(link_check(&offer, sizeof(struct link_head) - 1) == -EBADMSG);
	assert(link_check(&offer, sizeof(offer) - 1) == -EBADMSG);
	offer.head.size = sizeof(offer) - 1;
	assert(link_check(&offer, sizeof(offer) - 1) == -EBADMSG);
}

UNIT(the_size_in_the_head_must_be_the_size)
{
	struct link_offer offer = offer_make();

	offer.head.size++;
	assert(link_check(&offer, sizeof(offer)) == -EBADMSG);
}

UNIT(another_magic_or_version_is_refused)
{
	struct link_offer offer = offer_make();

	offer.head.magic++;
	assert(link_check(&offer, sizeof(offer)) == -EBADMSG);
	offer = offer_make();
	offer.head.version++;
	assert(link_check(&offer, sizeof(offer)) == -EPROTONOSUPPORT);
}

UNIT(a_kind_that_is_not_known_is_returned)
{
	struct link_head head;

	link_head_init(&head, 99, sizeof(head));
	assert(link_check(&head, sizeof(head)) == 99);
	head.kind = 0;
	assert(link_check(&head, sizeof(head)) == -EBADMSG);
	head.kind = UINT32_MAX;
	assert(link_check(&head, sizeof(head)) == -EBADMSG);
}
