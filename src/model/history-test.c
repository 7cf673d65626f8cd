/* SPDX-License-Identifier: Apache-2.0 */

/* The history of an address from log, graves and records, each of which may be incomplete. */

#include "model/history.h"

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/timebase.h"

enum {
	DRAM = 0,
	L1 = 1,
};

static const struct timebase timebase = {
	.stamp_start = 1, .stamp_now = 1000001, .start = 1, .now = 1000001};

static struct history_logged logged(uint64_t number, uint32_t op, uint32_t type, uint64_t size,
				    uint32_t refs)
{
	return (struct history_logged){
		.number = number,
		.event =
			{
				.time = number * 10,
				.op_slot = op,
				.record = {.address = 0x1000,
					   .size = size,
					   .birth = 5,
					   .thread_space = 7,
					   .meta = book_meta(type, 0, refs)},
			},
	};
}

static struct history add(const struct history_shard *shard)
{
	struct history_shard full = *shard;
	struct history history = HISTORY_NULL;

	full.address = 0x1000;
	full.timebase = &timebase;
	assert(history_add_shard(&history, &full) == 0);
	return history;
}

static void is(const struct history_life *life, size_t at, uint32_t op, uint64_t size,
	       uint32_t refs, bool reused)
{
	assert(at < life->count);
	assert(life->events[at].op == op && life->events[at].size == size);
	assert(life->events[at].refs == refs && life->events[at].reused == reused);
}

UNIT(history_matches_the_example_of_the_old_guide)
{
	const struct history_logged events[] = {
		logged(1, BOOK_OP_ALLOC, DRAM, 524288, 1), logged(2, BOOK_OP_FREE, DRAM, 524288, 1),
		logged(3, BOOK_OP_ALLOC, DRAM, 262144, 1), logged(4, BOOK_OP_FREE, DRAM, 262144, 1),
		logged(5, BOOK_OP_ALLOC, DRAM, 131072, 1),
	};
	struct history history = add(&(struct history_shard){
		.events = events, .event_count = ARRAY_SIZE(events), .complete = true});
	const struct history_life *life = history.lives;

	assert(history.count == 1 && life->count == 5);
	assert(life->allocs == 3 && life->frees == 2 && life->live && life->complete);
	is(life, 0, BOOK_OP_ALLOC, 524288, 1, false);
	is(life, 1, BOOK_OP_FREE, 524288, 0, false);
	is(life, 2, BOOK_OP_ALLOC, 262144, 1, true);
	is(life, 3, BOOK_OP_FREE, 262144, 0, false);
	is(life, 4, BOOK_OP_ALLOC, 131072, 1, true);
	history_deinit(&history);
}

UNIT(types_live_apart)
{
	const struct history_logged events[] = {
		logged(1, BOOK_OP_ALLOC, DRAM, 10, 1),
		logged(2, BOOK_OP_ALLOC, L1, 20, 1),
		logged(3, BOOK_OP_FREE, DRAM, 10, 1),
	};
	struct history history =
		add(&(struct history_shard){.events = events, .event_count = ARRAY_SIZE(events)});

	assert(history.count == 2);
	assert(history.lives[0].type == DRAM && !history.lives[0].live);
	assert(history.lives[1].type == L1 && history.lives[1].live);
	history_deinit(&history);
}

UNIT(references_and_size_changes)
{
	const struct history_logged events[] = {
		logged(1, BOOK_OP_ALLOC, DRAM, 10, 1),
		logged(2, BOOK_OP_REF, DRAM, 10, 2),
		logged(3, BOOK_OP_UNREF, DRAM, 10, 1),
		logged(4, BOOK_OP_FREE | BOOK_OP_RESIZE, DRAM, 10, 1),
		logged(5, BOOK_OP_ALLOC, DRAM, 30, 1),
		logged(6, BOOK_OP_FREE, DRAM, 30, 1),
		logged(7, BOOK_OP_DOUBLE_FREE, DRAM, 30, 1),
	};
	struct history history =
		add(&(struct history_shard){.events = events, .event_count = ARRAY_SIZE(events)});
	const struct history_life *life = history.lives;

	assert(life->count == 7 && life->allocs == 3 && life->frees == 3 && !life->live);
	is(life, 1, BOOK_OP_REF, 10, 2, false);
	is(life, 2, BOOK_OP_UNREF, 10, 1, false);
	assert(life->events[3].size_change && life->events[4].size_change);
	assert(!life->events[4].reused);
	is(life, 6, BOOK_OP_DOUBLE_FREE, 30, 0, false);
	history_deinit(&history);
}

UNIT(a_birth_before_the_log_is_told_by_what_came_after)
{
	const struct history_logged events[] = {logged(100, BOOK_OP_FREE, DRAM, 10, 1)};
	const struct book_grave graves[] = {{.address = 0x1000,
					     .size = 10,
					     .birth = 5,
					     .death = 1000,
					     .birth_thread_space = 3,
					     .meta = book_meta(DRAM, 0, 1)}};
	struct history history = add(&(struct history_shard){
		.events = events, .event_count = 1, .graves = graves, .grave_count = 1});
	const struct history_life *life = history.lives;

	/* The grave is the same free as the one in the log. */
	assert(history.count == 1 && life->count == 2);
	is(life, 0, BOOK_OP_ALLOC, 10, 1, false);
	assert(life->events[0].number == 0 && life->events[0].time_ns == 5);
	assert(life->events[0].thread == 3 && life->events[1].thread == 7);
	assert(life->events[1].number == 100);
	history_deinit(&history);
}

UNIT(graves_reach_further_back)
{
	const struct history_logged events[] = {logged(100, BOOK_OP_ALLOC, DRAM, 99, 1)};
	const struct book_grave graves[] = {{.address = 0x1000,
					     .size = 10,
					     .birth = 50,
					     .death = 60,
					     .death_thread = 4,
					     .meta = book_meta(DRAM, 0, 1)}};
	struct history history = add(&(struct history_shard){
		.events = events, .event_count = 1, .graves = graves, .grave_count = 1});
	const struct history_life *life = history.lives;

	assert(life->count == 3 && life->allocs == 2 && life->frees == 1 && life->live);
	is(life, 1, BOOK_OP_FREE, 10, 0, false);
	assert(life->events[1].thread == 4);
	is(life, 2, BOOK_OP_ALLOC, 99, 1, true);
	history_deinit(&history);
}

UNIT(a_record_alone_is_a_life)
{
	const struct book_record records[] = {{.address = 0x1000,
					       .size = 10,
					       .birth = 50,
					       .thread_space = 9,
					       .meta = book_meta(L1, 0, 3)}};
	struct history history =
		add(&(struct history_shard){.records = records, .record_count = 1});

	assert(history.count == 1 && history.lives[0].live && history.lives[0].type == L1);
	is(&history.lives[0], 0, BOOK_OP_ALLOC, 10, 3, false);
	assert(history.lives[0].events[0].thread == 9);
	history_deinit(&history);
}

UNIT(the_log_has_the_last_word)
{
	/* The table was read before it was freed. */
	const struct history_logged events[] = {logged(9, BOOK_OP_FREE, DRAM, 10, 1)};
	const struct book_record records[] = {
		{.address = 0x1000, .size = 10, .birth = 5, .meta = book_meta(DRAM, 0, 1)}};
	struct history history = add(&(struct history_shard){
		.events = events, .event_count = 1, .records = records, .record_count = 1});

	assert(history.count == 1 && !history.lives[0].live && history.lives[0].count == 2);
	history_deinit(&history);
}

UNIT(nothing_known_is_no_life)
{
	struct history history = add(&(struct history_shard){0});

	assert(history.count == 0);
	history_deinit(&history);
}
