/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why two reads are enough: an owner publishes an event before it applies it, and the number in its
 * hot block is the last store of applying it. So a first read that finds event `head` in a hot
 * block has seen that event complete, and everything read afterwards is at least as new. If the
 * head is then still the same, nothing newer was begun before the second read ended.
 */

#include "book/read/idle-counters.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "book/read/log.h"
#include "kernel/block.h"

/*
 * All counters of a shard but the warm ones: copied whole, as two more cache lines cost less than a
 * call.
 */
#define IDLE_COUNTERS_FRONT offsetof(struct book_shard, checkpoint)

static int idle_counters_look(struct reader *reader, uint32_t device, struct book_shard *ret_front)
{
	int r = file_read(reader->file, book_shard_offset(device), ret_front, IDLE_COUNTERS_FRONT);

	if (r < 0)
		return r;
	if (ret_front->state != 1)
		return -ENOENT;
	return ret_front->head > LOG_NUMBER_MAX ? -EBADMSG : 0;
}

void idle_counters_choose_warm(const struct book_shard *page, struct book_warm *ret_warm)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_warm *warm = page->warm[type];

		ret_warm[type] = warm[block_current(warm[0].number, warm[1].number)];
	}
}

/* Most shards have none: then they are not read. */
static int idle_counters_warm(struct reader *reader, uint32_t device, struct book_shard *front,
			      struct book_warm *ret_warm)
{
	uint64_t offset = book_shard_offset(device) + offsetof(struct book_shard, warm);
	int r;

	memset(front->warm, 0, sizeof(front->warm));
	if (reader_has_warm(reader) && front->has_warm) {
		r = file_read(reader->file, offset, front->warm, sizeof(front->warm));
		if (r < 0)
			return r;
	}
	idle_counters_choose_warm(front, ret_warm);
	return 0;
}

void idle_counters_choose(const struct book_shard *page, struct book_hot *ret_hot,
			  struct book_cold *ret_cold)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *hot = page->hot[type];
		const struct book_cold *cold = page->cold[type];

		ret_hot[type] = hot[block_current(hot[0].number, hot[1].number)];
		ret_cold[type] = cold[block_current(cold[0].number, cold[1].number)];
	}
}

/* Whether the last published event has been applied completely. */
static bool idle_counters_is(const struct book_shard *front)
{
	uint64_t newest = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		newest = bits_max(newest, block_newest(front->hot[type][0].number,
						       front->hot[type][1].number));
	return newest == front->head;
}

int idle_counters_read(struct reader *reader, uint32_t device, struct idle_counters *known)
{
	struct book_warm warm[BOOK_TYPES];
	struct book_shard front;
	uint64_t head, again;
	int r;

	r = idle_counters_look(reader, device, &front);
	if (r < 0)
		return r;
	head = front.head;
	if (head == known->number && head > 0) {
		known->inexact = front.inexact;
		return 0;
	}
	if (!idle_counters_is(&front))
		return IDLE_COUNTERS_BUSY;
	/* Pairs with the release in shard_store_hot(): the second read sees all of `head`. */
	r = idle_counters_look(reader, device, &front);
	if (r == 0)
		r = idle_counters_warm(reader, device, &front, warm);
	/* Pairs with the barrier in shard_publish(): if that read saw newer data, so does this. */
	if (r == 0)
		r = log_head(reader, device, &again);
	if (r < 0)
		return r;
	if (front.head != head || again != head)
		return IDLE_COUNTERS_BUSY;
	known->number = head;
	known->inexact = front.inexact;
	idle_counters_choose(&front, known->hot, known->cold);
	memcpy(known->warm, warm, sizeof(warm));
	return 0;
}
