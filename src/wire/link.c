/* SPDX-License-Identifier: Apache-2.0 */

/* The heads of packets: what each kind must have. */

#include "wire/link.h"

#include <errno.h>
#include <string.h>

static size_t link_size(uint32_t kind)
{
	switch (kind) {
	case LINK_HELLO:
		return sizeof(struct link_hello);
	case LINK_OFFER:
		return sizeof(struct link_offer);
	case LINK_CLOSED:
	case LINK_ENDED:
	case LINK_LINES:
		return sizeof(struct link_book);
	case LINK_SYNC:
	case LINK_SYNCED:
	case LINK_REPORT:
	case LINK_ASK:
		return sizeof(struct link_sync);
	case LINK_STATE:
		return sizeof(struct link_state);
	case LINK_BOOK:
		return sizeof(struct link_process);
	default:
		return sizeof(struct link_head);
	}
}

void link_head_init(struct link_head *head, enum link_kind kind, size_t size)
{
	*head = (struct link_head){
		.magic = LINK_MAGIC,
		.version = LINK_VERSION,
		.kind = kind,
		.size = (uint32_t)size,
	};
}

int link_check(const void *bytes, size_t length)
{
	struct link_head head;

	if (length < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	if (head.magic != LINK_MAGIC || head.size != length || head.kind == 0 ||
	    head.kind > INT32_MAX)
		return -EBADMSG;
	if (head.version != LINK_VERSION)
		return -EPROTONOSUPPORT;
	/* Later versions may append to what they send; text follows LINK_LINES. */
	return length < link_size(head.kind) ? -EBADMSG : (int)head.kind;
}
