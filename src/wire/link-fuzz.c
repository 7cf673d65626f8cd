/* SPDX-License-Identifier: Apache-2.0 */

/* The check of a link's packets: what it accepts is at least as long as what its kind says, and says so itself. */

#include <stdint.h>
#include <string.h>

#include "base/testing/unit.h"
#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t fuzz_least(int kind)
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
		return sizeof(struct link_sync);
	case LINK_STATE:
		return sizeof(struct link_state);
	case LINK_BOOK:
		return sizeof(struct link_process);
	default:
		return sizeof(struct link_head);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int kind = link_check(data, size);
	struct link_head head;

	if (kind < 0)
		return 0;
	memcpy(&head, data, sizeof(head));
	assert(head.magic == LINK_MAGIC && head.version == LINK_VERSION && head.size == size);
	assert(kind > 0 && head.kind == (uint32_t)kind && size >= fuzz_least(kind));
	return 0;
}
