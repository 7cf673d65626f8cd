/* SPDX-License-Identifier: Apache-2.0 */

/* What a view refuses: each time exactly one word of a valid book is wrong. */

#include "book/read/view.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/testing/unit.h"
#include "book/testing/testing-memory.h"

#define UNCHANGED UINT64_MAX

static struct view *view;

/* Reads device 0 of a filled book in which the u64 at @offset of the shard was replaced. */
static int view_with(uint64_t offset, uint64_t value, enum view_owner owner)
{
	struct testing_memory memory;
	struct reader reader;
	int64_t device;
	int r;

	testing_memory_init(&memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&memory, BOOK_RING_MIN);
	testing_memory_fill(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	device = reader_next_shard(&reader, 0);
	assert(device >= 0);
	if (offset != UNCHANGED)
		testing_memory_patch(&memory, book_shard_offset((uint32_t)device) + offset, &value,
				     sizeof(value));
	view = view ? view : calloc(1, sizeof(*view));
	assert(view);
	r = view_read(view, &reader, (uint32_t)device, owner);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
	return r;
}

static int view_both(uint64_t offset, uint64_t value)
{
	int dead = view_with(offset, value, VIEW_DEAD);

	assert(view_with(offset, value, VIEW_LIVING) == dead);
	return dead;
}

UNIT(a_valid_book_is_read)
{
	assert(view_both(UNCHANGED, 0) == 0);
	assert(view->rows_exact && view->adds_up && view->live > 0);
	view_deinit(view);
	free(view);
}

UNIT(records_in_a_hole_are_refused)
{
	uint64_t slots = offsetof(struct book_shard, slots);

	/* A whole segment, and all sixteen million: they do not exist, and must cost nothing. */
	assert(view_both(slots, BOOK_SEGMENT_SLOTS) == -EBADMSG);
	assert(view_both(slots, BOOK_SLOTS_MAX) == -EBADMSG);
	assert(view_both(slots, (uint64_t)BOOK_SLOTS_MAX + 1) == -EBADMSG);
	view_deinit(view);
	free(view);
}

UNIT(a_forged_head_is_refused)
{
	assert(view_both(offsetof(struct book_shard, head), UINT64_MAX) == -EBADMSG);
	view_deinit(view);
	free(view);
}

UNIT(a_forged_segment_directory_is_refused)
{
	/* Two entries at once; the first one matters here. */
	assert(view_both(offsetof(struct book_shard, directory), 0) == -EBADMSG);
	assert(view_both(offsetof(struct book_shard, directory), UINT32_MAX) == -EBADMSG);
	view_deinit(view);
	free(view);
}
