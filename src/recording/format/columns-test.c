/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever goes into columns comes out again, from a real writer's ring and from events that no
 * writer makes; bytes that were changed on the way are refused or give other events, no more.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/read/log.h"
#include "book/testing/book-testing.h"
#include "book/write/index.h"
#include "recording/format/columns.h"
#include "recording/format/layout.h"

#define TEST_BATCH 4000u

/* Both ends of the way, and events between them. */
struct way {
	struct columns_table from, to;
	uint8_t *bytes;
	struct book_event *events;
};

static void way_init(struct way *way, uint32_t count)
{
	*way = (struct way){
		.bytes = malloc(columns_bound(count)),
		.events = malloc(count * sizeof(*way->events)),
	};
	assert(way->bytes && way->events);
}

static void way_deinit(struct way *way)
{
	columns_table_deinit(&way->from);
	columns_table_deinit(&way->to);
	free(way->bytes);
	free(way->events);
}

static void assert_same_tables(const struct columns_table *a, const struct columns_table *b)
{
	assert(a->count == b->count);
	assert(a->count == 0 ||
	       memcmp(a->records, b->records, a->count * sizeof(*a->records)) == 0);
}

/* A reader that begins here, at a keyframe, must get what one gets that was there before. */
static void way_keyframe(struct way *way)
{
	uint8_t *bytes = malloc(columns_table_bound(&way->from));
	int64_t size;

	assert(bytes);
	size = columns_encode_table(&way->from, bytes);
	assert(size > 0 && (size_t)size <= columns_table_bound(&way->from));
	assert(columns_decode_table(&way->to, bytes, (size_t)size) == 0);
	assert_same_tables(&way->from, &way->to);
	free(bytes);
}

static int64_t way_go(struct way *way, const struct book_event *events, uint32_t count)
{
	int64_t size = columns_encode(&way->from, events, count, way->bytes);

	assert(size > 0 && (size_t)size <= columns_bound(count));
	assert(columns_decode(&way->to, way->bytes, (size_t)size, count, way->events) == 0);
	assert(memcmp(way->events, events, count * sizeof(*events)) == 0);
	assert_same_tables(&way->from, &way->to);
	return size;
}

static void random_op(struct testing_rng *rng, struct writer *writer)
{
	static const uint8_t kinds[] = {
		TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC,  TESTING_ALLOC,  TESTING_ALLOC,
		TESTING_FREE,  TESTING_FREE,  TESTING_FREE,   TESTING_FREE,   TESTING_HOOKED,
		TESTING_FREE,  TESTING_FREE,  TESTING_FAILED, TESTING_FAILED, TESTING_RESET_PEAK,
	};
	struct testing_op op = {
		.kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))],
		.owner = testing_below(rng, 4),
		.buffer = {.address = (uint64_t)testing_below(rng, 300) * 64,
			   .size = 1 + testing_below(rng, 3),
			   .type = testing_below(rng, BOOK_TYPES),
			   .flags = testing_below(rng, 256),
			   .name = testing_below(rng, TESTING_TEXTS),
			   .phase = testing_below(rng, 5),
			   .thread = testing_below(rng, 4),
			   .stack = testing_below(rng, 50),
			   .space = testing_below(rng, 3)},
	};

	if (op.kind == TESTING_FREE && testing_below(rng, 4) == 0)
		op.buffer.type = INDEX_ANY;
	if (testing_below(rng, 200) == 0)
		op.kind = testing_below(rng, 2) ? TESTING_END_SPACE : TESTING_FREE_ALL;
	testing_op_do(writer, &op);
}

/* Which ops were there, as bits; with modifiers in the upper half. */
static uint32_t seen_ops(const struct book_event *events, uint64_t count)
{
	uint32_t seen = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint32_t op = events[i].op_slot & 0xff;

		seen |= 1u << (op & BOOK_OP_MASK) | (op >> 5) << 16;
	}
	return seen;
}

/* New events of device 0 since @log's end. */
static void drain(struct log *log, struct reader *reader)
{
	struct book_shard page;
	struct log_place place;

	assert(file_read(reader->file, book_shard_offset(0), &page, sizeof(page)) == 0);
	assert(log_find(reader, &page, 0, &place) == 0);
	log_start(log, &place, log->first + log->count ? log->first + log->count : 1);
	assert(log_drain(log, reader) == 0);
}

UNIT(what_a_writer_did_comes_out_again)
{
	struct testing_rng rng = testing_rng_new();
	struct testing_book book;
	struct log log = {0};
	uint32_t seen = 0;
	struct way way;

	testing_book_init(&book, TESTING_SIZE, 65536);
	testing_book_write(&book);
	testing_book_read(&book);
	way_init(&way, RECORDING_EVENTS_MAX);
	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < TEST_BATCH; i++)
			random_op(&rng, book.writer);
		drain(&log, &book.reader);
		way_go(&way, log.events, (uint32_t)log.count);
		seen |= seen_ops(log.events, log.count);
		if (round % 7 == 3)
			way_keyframe(&way);
	}
	/* All but LOST_ALLOC and OVERFLOW_FREE, which need a full book; and every modifier. */
	assert((seen & 0x1fff) ==
	       (0x1ffe & ~(1u << BOOK_OP_LOST_ALLOC) & ~(1u << BOOK_OP_OVERFLOW_FREE)));
	assert(seen >> 16 == 7);
	log_deinit(&log);
	way_deinit(&way);
	testing_book_deinit(&book);
}

static void random_bytes(struct testing_rng *rng, void *to, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)to)[i] = (uint8_t)testing_random(rng);
}

/* A hostile book's ring may have any bytes; only slots must begin in order. */
static void random_event(struct testing_rng *rng, const struct columns_table *table,
			 struct book_event *ret_event)
{
	uint32_t slot = testing_below(rng, table->count + 1);

	random_bytes(rng, ret_event, sizeof(*ret_event));
	ret_event->op_slot = slot << 8 | (uint8_t)testing_random(rng);
	if (testing_below(rng, 2))
		ret_event->record.birth = ret_event->time;
	if (testing_below(rng, 2))
		ret_event->record.stack = ret_event->stack;
	if (slot < table->count && testing_below(rng, 2)) {
		ret_event->record = table->records[slot];
		ret_event->record.meta ^= testing_below(rng, 3);
	}
}

UNIT(events_that_no_writer_makes_come_out_again)
{
	struct testing_rng rng = testing_rng_new();
	struct columns_table ahead = {0};
	struct book_event *events = malloc(TEST_BATCH * sizeof(*events));
	struct way way;

	assert(events);
	way_init(&way, TEST_BATCH);
	for (uint32_t round = 0; round < 30; round++) {
		for (uint32_t i = 0; i < TEST_BATCH; i++) {
			random_event(&rng, &ahead, &events[i]);
			assert(columns_apply(&ahead, &events[i]) == 0);
		}
		way_go(&way, events, TEST_BATCH);
	}
	columns_table_deinit(&ahead);
	free(events);
	way_deinit(&way);
}

UNIT(no_events_are_no_problem)
{
	struct way way;

	way_init(&way, 1);
	assert(columns_encode(&way.from, NULL, 0, way.bytes) > 0);
	way_keyframe(&way);
	way_deinit(&way);
}

UNIT(a_slot_out_of_turn_is_refused)
{
	struct columns_table table = {0};
	struct book_event event = {.op_slot = 5u << 8 | BOOK_OP_ALLOC};
	uint8_t bytes[4096];

	assert(columns_bound(1) <= sizeof(bytes));
	assert(columns_apply(&table, &event) == -EBADMSG);
	assert(columns_encode(&table, &event, 1, bytes) == -EBADMSG);
	assert(columns_encode(&table, &event, RECORDING_EVENTS_MAX + 1, bytes) == -EINVAL);
	columns_table_deinit(&table);
}

/* A typical stream: a few call sites, buffers that come and go. */
static uint32_t some_events(struct testing_rng *rng, struct columns_table *table,
			    struct book_event *ret_events, uint32_t count)
{
	static const uint32_t op[] = {BOOK_OP_ALLOC, BOOK_OP_REF, BOOK_OP_UNREF, BOOK_OP_FREE};

	for (uint32_t i = 0; i < count; i++) {
		struct book_event *event = &ret_events[i];
		uint32_t slot = testing_below(rng, (uint32_t)bits_min(table->count + 1, 100));
		bool is_live = slot < table->count && table->records[slot].meta & BOOK_META_LIVE;
		uint32_t what = is_live ? 1 + testing_below(rng, 3) : 0;

		*event = (struct book_event){
			.time = 1000 * (uint64_t)i + testing_below(rng, 900),
			.op_slot = slot << 8 | op[what],
			.stack = testing_below(rng, 5),
		};
		event->record = (struct book_record){
			.address = slot * 4096ull,
			.size = 64,
			.birth = event->time,
			.stack = event->stack,
			.meta = book_meta(0, 0, 1),
		};
		if (is_live)
			event->record = table->records[slot];
		assert(columns_apply(table, event) == 0);
	}
	return count;
}

UNIT(damaged_bytes_are_refused_or_give_other_events)
{
	struct testing_rng rng = testing_rng_new();
	struct book_event events[500], out[500];
	struct columns_table ahead = {0};
	uint32_t refused = 0;
	struct way way;
	int64_t size;

	way_init(&way, ARRAY_SIZE(events));
	some_events(&rng, &ahead, events, ARRAY_SIZE(events));
	size = way_go(&way, events, ARRAY_SIZE(events));
	for (int64_t at = 0; at < size; at++) {
		struct columns_table table = {0};
		uint8_t old = way.bytes[at];
		int r;

		way.bytes[at] ^= (uint8_t)(1u << testing_below(&rng, 8));
		r = columns_decode(&table, way.bytes, (size_t)size, ARRAY_SIZE(events), out);
		assert(r == 0 || r == -EBADMSG);
		refused += r != 0;
		way.bytes[at] = old;
		columns_table_deinit(&table);
	}
	assert(refused > 0);
	columns_table_deinit(&ahead);
	way_deinit(&way);
}

/* A copy of its own, so that a sanitizer sees a read beyond it. */
static int decode_cut(const uint8_t *bytes, size_t size, uint32_t count, bool is_table)
{
	struct book_event *out = malloc((count + 1) * sizeof(*out));
	uint8_t *cut = malloc(size + 1);
	struct columns_table table = {0};
	int r;

	assert(out && cut);
	memcpy(cut + 1, bytes, size);
	r = is_table ? columns_decode_table(&table, cut + 1, size)
		     : columns_decode(&table, cut + 1, size, count, out);
	columns_table_deinit(&table);
	free(cut);
	free(out);
	return r;
}

UNIT(every_cut_is_refused)
{
	struct testing_rng rng = testing_rng_new();
	struct columns_table ahead = {0};
	struct book_event events[300];
	uint8_t *bytes;
	struct way way;
	int64_t size;

	way_init(&way, ARRAY_SIZE(events));
	some_events(&rng, &ahead, events, ARRAY_SIZE(events));
	size = way_go(&way, events, ARRAY_SIZE(events));
	assert(decode_cut(way.bytes, (size_t)size, ARRAY_SIZE(events), false) == 0);
	for (int64_t cut = 0; cut < size; cut++)
		assert(decode_cut(way.bytes, (size_t)cut, ARRAY_SIZE(events), false) == -EBADMSG);
	assert(decode_cut(way.bytes, (size_t)size, ARRAY_SIZE(events) - 1, false) == -EBADMSG);
	assert(decode_cut(way.bytes, (size_t)size, ARRAY_SIZE(events) + 1, false) == -EBADMSG);

	bytes = malloc(columns_table_bound(&way.from));
	assert(bytes);
	size = columns_encode_table(&way.from, bytes);
	for (int64_t cut = 0; cut < size; cut++)
		assert(decode_cut(bytes, (size_t)cut, 0, true) == -EBADMSG);
	for (int64_t at = 0; at < size; at++) {
		int r;

		bytes[at] ^= 0x41;
		r = decode_cut(bytes, (size_t)size, 0, true);
		assert(r == 0 || r == -EBADMSG);
		bytes[at] ^= 0x41;
	}
	free(bytes);
	columns_table_deinit(&ahead);
	way_deinit(&way);
}

UNIT(random_bytes_are_refused)
{
	struct testing_rng rng = testing_rng_new();
	uint8_t bytes[400];

	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t size = testing_below(&rng, sizeof(bytes));
		uint32_t length, count = 1 + testing_below(&rng, 10);

		random_bytes(&rng, bytes, sizeof(bytes));
		/* Lengths that fit, or nothing behind them is ever looked at. */
		memset(bytes, 0, 44);
		memcpy(bytes, &count, sizeof(count));
		memcpy(bytes + 4, &count, sizeof(count));
		for (uint32_t k = 2; k < 11 && size > 44 + 2 * count; k++) {
			length = k == 10 ? size - 44 - 2 * count
					 : testing_below(&rng, (size - 44 - 2 * count) / 9 + 1);
			memcpy(bytes + k * 4, &length, sizeof(length));
		}
		(void)decode_cut(bytes, size, count, false);
		(void)decode_cut(bytes, size, 0, true);
	}
}
