/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The protocol of a shard under a weak memory order, checked exhaustively; testing-order.h defines
 * the model. Here it is a shard of two records, a ring of four events and one checkpoint, made at
 * every other event, so that seven events wrap everything. All that an event writes is its number,
 * so that whatever a reader assembles can be compared with the true state.
 *
 * With all barriers no reader accepts anything wrong. Then each barrier is left out in turn, and
 * some reader must accept something wrong: a barrier that is never needed would mean that the model
 * does not cover it. The few spare ones, because another barrier does their work, are named.
 */

#include <stdio.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/testing-order.h"
#include "kernel/block.h"

#define ORDER_CHECKPOINT_EVERY 2u
#define ORDER_RING 4u
#define ORDER_AHEAD 2u /* LOG_AHEAD */

enum order_place {
	ORDER_HEAD,
	ORDER_SLOTS,
	ORDER_RING_0, /* event n lies at n % ORDER_RING */
	ORDER_RING_1,
	ORDER_RING_2,
	ORDER_RING_3,
	ORDER_RECORD_0,
	ORDER_RECORD_1,
	ORDER_HOT_0, /* a pair of blocks: the figures of each, then the number of each */
	ORDER_HOT_1,
	ORDER_HOT_NUMBER_0,
	ORDER_HOT_NUMBER_1,
	ORDER_COLD_0,
	ORDER_COLD_1,
	ORDER_COLD_NUMBER_0,
	ORDER_COLD_NUMBER_1,
	ORDER_CHECKPOINT,
	ORDER_CHECKPOINT_NUMBER,
	ORDER_MARK,
	ORDER_COMMIT,
	ORDER_END = TESTING_ORDER_PLACES,
};

/* The owner's barriers, named after their position. */
enum order_barrier {
	ORDER_PUBLISH_RELEASE,    /* of head, in shard_publish() */
	ORDER_PUBLISH_BARRIER,    /* after it */
	ORDER_HOT_RELEASE,        /* of the number, in shard_store_hot() */
	ORDER_COLD_RELEASE,       /* in shard_store_cold() */
	ORDER_CHECKPOINT_BARRIER, /* after the 0, in shard_checkpoint() */
	ORDER_CHECKPOINT_RELEASE, /* of the number there; spare, see the reader "living" */
	ORDER_MARK_BARRIER,       /* in writer_mark(); writer_declare() has the same form */
	ORDER_MARK_RELEASE,
	ORDER_BARRIERS,
};

static const char *const order_barriers[] = {
	"release of head",          "barrier behind head",     "release of a hot number",
	"release of a cold number", "barrier in a checkpoint", "release of a checkpoint",
	"barrier in a mark",        "release of a mark",
};

/* Events 3 and 4 are a size change: published together. Events 3 and 5 are rare ones. */
static uint8_t order_record_of(uint32_t event)
{
	return event == 2 || event == 5;
}

static bool order_is_rare(uint32_t event)
{
	return event == 3 || event == 5;
}

/* The true state after event @number. */
static uint8_t order_true_record(uint32_t number, uint8_t record)
{
	while (number > 0 && order_record_of(number) != record)
		number--;
	return (uint8_t)number;
}

static uint8_t order_true_cold(uint32_t number)
{
	return (uint8_t)((number >= 3) + (number >= 5));
}

/* Like shard_alloc() and the others: see the top of shard.c. */
static void order_event(struct testing_owner *owner, uint32_t first, uint32_t last)
{
	static uint8_t cold_side, hot_side;
	uint8_t n = (uint8_t)last;

	if (first == 1)
		cold_side = hot_side = 0;
	if (first <= 2) /* without its release: that of head is enough */
		testing_owner_store(owner, ORDER_SLOTS, n);
	for (uint32_t i = first; i <= last; i++)
		testing_owner_store(owner, (uint8_t)(ORDER_RING_0 + i % ORDER_RING), (uint8_t)i);
	testing_owner_release(owner, ORDER_HEAD, n, ORDER_PUBLISH_RELEASE);
	testing_owner_barrier(owner, ORDER_PUBLISH_BARRIER);

	testing_owner_store(owner, ORDER_RECORD_0 + order_record_of(n), n);
	if (order_is_rare(first)) {
		cold_side ^= 1;
		testing_owner_store(owner, ORDER_COLD_0 + cold_side, order_true_cold(n));
		testing_owner_release(owner, ORDER_COLD_NUMBER_0 + cold_side, n,
				      ORDER_COLD_RELEASE);
	}
	hot_side ^= 1;
	testing_owner_store(owner, ORDER_HOT_0 + hot_side, n);
	testing_owner_release(owner, ORDER_HOT_NUMBER_0 + hot_side, n, ORDER_HOT_RELEASE);

	if ((first - 1) / ORDER_CHECKPOINT_EVERY == last / ORDER_CHECKPOINT_EVERY)
		return;
	testing_owner_store(owner, ORDER_CHECKPOINT_NUMBER, 0);
	testing_owner_barrier(owner, ORDER_CHECKPOINT_BARRIER);
	testing_owner_store(owner, ORDER_CHECKPOINT, n);
	testing_owner_release(owner, ORDER_CHECKPOINT_NUMBER, n, ORDER_CHECKPOINT_RELEASE);
}

static void order_write(struct testing_owner *owner)
{
	order_event(owner, 1, 1);
	order_event(owner, 2, 2);
	order_event(owner, 3, 4);
	order_event(owner, 5, 5);
	order_event(owner, 6, 6);
	order_event(owner, 7, 7);
}

static void order_write_marks(struct testing_owner *owner)
{
	for (uint8_t n = 1; n <= 3; n++) {
		testing_owner_store(owner, ORDER_COMMIT, 0);
		testing_owner_barrier(owner, ORDER_MARK_BARRIER);
		testing_owner_store(owner, ORDER_MARK, n);
		testing_owner_release(owner, ORDER_COMMIT, n, ORDER_MARK_RELEASE);
	}
}

static enum testing_verdict order_verdict(bool is_right)
{
	return is_right ? TESTING_RIGHT : TESTING_WRONG;
}

/* block_read() in kernel/block.h. */
static enum testing_verdict order_block(uint32_t step, const uint8_t *v, uint8_t *r)
{
	switch (step) {
	case 0:
		r[0] = (uint8_t)block_newest(v[0], v[1]);
		r[1] = (uint8_t)block_current(v[0], v[1]);
		return TESTING_GO_ON;
	case 1:
		r[2] = v[r[1]];
		return TESTING_GO_ON;
	default:
		if (block_newest(v[0], v[1]) != r[0])
			return TESTING_REFUSED;
		return order_verdict(r[2] == r[0]);
	}
}

/* An earlier version of the module checked only the copied block's own number. */
static enum testing_verdict order_block_before(uint32_t step, const uint8_t *v, uint8_t *r)
{
	if (step < 2)
		return order_block(step, v, r);
	return v[r[1]] != r[0] ? TESTING_REFUSED : order_verdict(r[2] == r[0]);
}

/* idle_counters_read(). The figures of the two kinds of blocks are checked one kind at a time. */
static enum testing_verdict order_quiet(uint32_t step, const uint8_t *v, uint8_t *r)
{
	if (step == 0) {
		r[0] = v[0];
		return block_newest(v[1], v[2]) == v[0] ? TESTING_GO_ON : TESTING_REFUSED;
	}
	if (step == 1)
		r[1] = v[3 + block_current(v[1], v[2])];
	return v[0] == r[0] ? TESTING_GO_ON : TESTING_REFUSED;
}

static enum testing_verdict order_quiet_hot(uint32_t step, const uint8_t *v, uint8_t *r)
{
	enum testing_verdict verdict = order_quiet(step, v, r);

	return step < 2 || verdict ? verdict : order_verdict(r[1] == r[0]);
}

static enum testing_verdict order_quiet_cold(uint32_t step, const uint8_t *v, uint8_t *r)
{
	enum testing_verdict verdict = order_quiet(step, v, r);

	return step < 2 || verdict ? verdict : order_verdict(r[1] == order_true_cold(r[0]));
}

/* log_drain() from event r[0] on: r[0] advances, r[1] is set if a wrong event was copied. */
static enum testing_verdict order_drain(uint32_t step, const uint8_t *v, uint8_t *r, uint8_t ahead)
{
	switch (step) {
	case 0:
		r[2] = v[0];
		return v[0] >= r[0] + ORDER_RING ? TESTING_REFUSED : TESTING_GO_ON;
	case 1:
		for (uint32_t n = r[0]; n <= r[2]; n++)
			r[1] |= v[n % ORDER_RING] != n;
		return TESTING_GO_ON;
	default:
		if (r[2] >= r[0] && v[0] + ahead >= r[0] + ORDER_RING)
			return TESTING_REFUSED;
		r[0] = (uint8_t)bits_max(r[0], r[2] + 1u);
		return TESTING_GO_ON;
	}
}

/* debug_log_event(), and every other single read of the log. */
static enum testing_verdict order_log(uint32_t step, const uint8_t *v, uint8_t *r)
{
	enum testing_verdict verdict;

	if (step == 0)
		r[0] = v[0] > 1 ? v[0] - 1 : 1;
	verdict = order_drain(step, v, r, ORDER_AHEAD);
	return step < 2 || verdict != TESTING_GO_ON ? verdict : order_verdict(!r[1]);
}

static enum testing_verdict order_log_not_ahead(uint32_t step, const uint8_t *v, uint8_t *r)
{
	if (step < 2)
		return order_log(step, v, r);
	return order_drain(step, v, r, 0) ? TESTING_REFUSED : order_verdict(!r[1]);
}

/* Registers of view_try_living() after those of order_drain(). */
enum {
	ORDER_S0 = 3,
	ORDER_COVERED, /* slots */
	ORDER_FROM,    /* the checkpoint's number */
	ORDER_COPIED_0,
	ORDER_COPIED_1,
};

static enum testing_verdict order_checkpoint(uint32_t step, const uint8_t *v, uint8_t *r)
{
	switch (step) {
	case 1:
		r[ORDER_COVERED] = v[0];
		r[ORDER_FROM] = v[1] < r[ORDER_S0] ? v[1] : 0;
		r[0] = r[ORDER_FROM] + 1;
		return TESTING_GO_ON;
	case 2:
		r[1] = r[ORDER_FROM] && v[0] != r[ORDER_FROM];
		return TESTING_GO_ON;
	default:
		return r[ORDER_FROM] && v[0] != r[ORDER_FROM] ? TESTING_REFUSED : TESTING_GO_ON;
	}
}

/* Replays the log up to s1 into the copied records, from event @from on. */
static bool order_replay(const uint8_t *r, uint32_t from)
{
	uint32_t s1 = r[0] - 1u;
	bool is_right = !r[1];

	for (uint8_t i = 0; i < 2; i++) {
		uint8_t record = r[ORDER_COPIED_0 + i];

		for (uint64_t n = bits_max(from, r[ORDER_FROM] + 1u); n <= s1; n++)
			record = order_record_of((uint32_t)n) == i ? (uint8_t)n : record;
		is_right &= record == order_true_record(s1, i);
	}
	return is_right;
}

/* view_try_living(): head, page, checkpoint, its number again, log, records, log. */
static enum testing_verdict order_living(uint32_t step, const uint8_t *v, uint8_t *r)
{
	switch (step) {
	case 0:
		r[ORDER_S0] = v[0];
		return TESTING_GO_ON;
	case 1:
	case 2:
	case 3:
		return order_checkpoint(step, v, r);
	case 7:
		for (uint8_t i = 0; i < 2; i++)
			r[ORDER_COPIED_0 + i] = i < r[ORDER_COVERED] ? v[i] : 0;
		return TESTING_GO_ON;
	default:
		return order_drain(step < 7 ? step - 4 : step - 8, v, r, ORDER_AHEAD);
	}
}

static enum testing_verdict order_living_from(uint32_t step, const uint8_t *v, uint8_t *r,
					      uint32_t skip)
{
	enum testing_verdict verdict = order_living(step, v, r);

	if (step < 10 || verdict != TESTING_GO_ON)
		return verdict;
	return order_verdict(order_replay(r, r[ORDER_S0] + skip));
}

static enum testing_verdict order_living_all(uint32_t step, const uint8_t *v, uint8_t *r)
{
	return order_living_from(step, v, r, 0);
}

/* The obvious mistake: event s0 is assumed to be applied because it is published. */
static enum testing_verdict order_living_behind_s0(uint32_t step, const uint8_t *v, uint8_t *r)
{
	return order_living_from(step, v, r, 1);
}

/* view_read_dead(). */
static enum testing_verdict order_dead(const uint8_t *m)
{
	uint32_t hot = block_current(m[ORDER_HOT_NUMBER_0], m[ORDER_HOT_NUMBER_1]);
	uint32_t cold = block_current(m[ORDER_COLD_NUMBER_0], m[ORDER_COLD_NUMBER_1]);
	uint32_t head = m[ORDER_HEAD];
	uint32_t hot_figure = m[ORDER_HOT_0 + hot], cold_figure = m[ORDER_COLD_0 + cold];
	uint32_t records[2];
	bool is_right = true;

	for (uint32_t i = 0; i < 2; i++)
		records[i] = i < m[ORDER_SLOTS] ? m[ORDER_RECORD_0 + i] : 0;
	for (uint32_t n = head > 1 ? head - 1 : 1; n <= head; n++) {
		is_right &= m[ORDER_RING_0 + n % ORDER_RING] == n;
		records[order_record_of(n)] = n;
		hot_figure += n > m[ORDER_HOT_NUMBER_0 + hot];
		cold_figure += order_is_rare(n) && n > m[ORDER_COLD_NUMBER_0 + cold];
	}
	for (uint8_t i = 0; i < 2; i++)
		is_right &= records[i] == order_true_record(head, i);
	return order_verdict(is_right && hot_figure == head &&
			     cold_figure == order_true_cold(head));
}

/* reader_mark(). */
static enum testing_verdict order_mark(uint32_t step, const uint8_t *v, uint8_t *r)
{
	if (step < 2) {
		r[step] = v[0];
		return TESTING_GO_ON;
	}
	return v[0] == 0 || v[0] != r[0] ? TESTING_REFUSED : order_verdict(r[1] == r[0]);
}

/* The groups of loads: a reader makes all of them, because it cannot know yet which it needs. */
static const uint8_t order_head[] = {ORDER_HEAD, ORDER_END};
static const uint8_t order_ring[] = {ORDER_RING_0, ORDER_RING_1, ORDER_RING_2, ORDER_RING_3,
				     ORDER_END};
static const uint8_t order_records[] = {ORDER_RECORD_0, ORDER_RECORD_1, ORDER_END};
static const uint8_t order_hot[] = {ORDER_HOT_0, ORDER_HOT_1, ORDER_END};
static const uint8_t order_hot_numbers[] = {ORDER_HOT_NUMBER_0, ORDER_HOT_NUMBER_1, ORDER_END};
static const uint8_t order_front[] = {ORDER_HEAD, ORDER_HOT_NUMBER_0, ORDER_HOT_NUMBER_1,
				      ORDER_END};
static const uint8_t order_hot_front[] = {ORDER_HEAD,  ORDER_HOT_NUMBER_0, ORDER_HOT_NUMBER_1,
					  ORDER_HOT_0, ORDER_HOT_1,        ORDER_END};
static const uint8_t order_cold_front[] = {ORDER_HEAD,   ORDER_COLD_NUMBER_0, ORDER_COLD_NUMBER_1,
					   ORDER_COLD_0, ORDER_COLD_1,        ORDER_END};
static const uint8_t order_page[] = {ORDER_SLOTS, ORDER_CHECKPOINT_NUMBER, ORDER_END};
static const uint8_t order_body[] = {ORDER_CHECKPOINT, ORDER_END};
static const uint8_t order_number[] = {ORDER_CHECKPOINT_NUMBER, ORDER_END};
static const uint8_t order_commit[] = {ORDER_COMMIT, ORDER_END};
static const uint8_t order_mark_body[] = {ORDER_MARK, ORDER_END};

#define ORDER_READ_BLOCK                                        \
	3,                                                      \
	{                                                       \
		order_hot_numbers, order_hot, order_hot_numbers \
	}
#define ORDER_READ_LOG                             \
	3,                                         \
	{                                          \
		order_head, order_ring, order_head \
	}
#define ORDER_READ_LIVING                                                                 \
	11,                                                                               \
	{                                                                                 \
		order_head, order_page, order_body, order_number, order_head, order_ring, \
			order_head, order_records, order_head, order_ring, order_head     \
	}

/* A reader, and which of its barriers can be left out: bit n is the one after group n. */
struct order_case {
	struct testing_reader reader;
	uint32_t spare;
};

static const struct order_case order_cases[] = {
	{{"dead", order_write, .judge = order_dead}, 0},
	{{"block", order_write, ORDER_READ_BLOCK, order_block}, 0},
	{{"quiet", order_write, 3, {order_front, order_hot_front, order_head}, order_quiet_hot}, 0},
	{{"quiet, cold",
	  order_write,
	  3,
	  {order_front, order_cold_front, order_head},
	  order_quiet_cold},
	 0},
	{{"log", order_write, ORDER_READ_LOG, order_log}, 0},
	/*
	 * Spare: after the page, because a checkpoint below s0 was complete before s0 was
	 * published; after the second read of the checkpoint's number; and after the first log.
	 */
	{{"living", order_write, ORDER_READ_LIVING, order_living_all}, 1u << 1 | 1u << 3 | 1u << 6},
	{{"mark", order_write_marks, 3, {order_commit, order_mark_body, order_commit}, order_mark},
	 0},
};

UNIT(with_all_barriers_nothing_wrong_is_accepted)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(order_cases); i++) {
		struct testing_order all = testing_order_run(
			&order_cases[i].reader, TESTING_ORDER_NONE, TESTING_ORDER_NONE);

		printf("%s: %llu states, %llu right ends\n", order_cases[i].reader.name,
		       (unsigned long long)all.states, (unsigned long long)all.right);
		assert(!all.is_wrong && all.right > 0);
	}
}

UNIT(each_barrier_of_the_owner_is_missed_by_a_reader)
{
	for (int barrier = 0; barrier < ORDER_BARRIERS; barrier++) {
		uint32_t missed = 0;

		printf("without the %s wrong:", order_barriers[barrier]);
		for (uint32_t i = 0; i < ARRAY_SIZE(order_cases); i++) {
			const struct testing_reader *reader = &order_cases[i].reader;

			if (!testing_order_run(reader, barrier, TESTING_ORDER_NONE).is_wrong)
				continue;
			printf(" %s", reader->name);
			missed++;
		}
		printf("\n");
		(void)fflush(stdout); /* an assert does not flush */
		assert((missed > 0) == (barrier != ORDER_CHECKPOINT_RELEASE));
	}
}

UNIT(each_barrier_of_a_reader_is_missed)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(order_cases); i++) {
		const struct testing_reader *reader = &order_cases[i].reader;

		for (uint32_t step = 0; step + 1 < reader->steps; step++) {
			bool is_wrong =
				testing_order_run(reader, TESTING_ORDER_NONE, (int)step).is_wrong;

			printf("%s without its barrier %u: %s\n", reader->name, step,
			       is_wrong ? "wrong" : "right");
			(void)fflush(stdout);
			assert(is_wrong == !(order_cases[i].spare >> step & 1));
		}
	}
}

UNIT(wrong_rules_are_found)
{
	static const struct testing_reader readers[] = {
		{"block by its own number", order_write, ORDER_READ_BLOCK, order_block_before},
		{"log without the two ahead", order_write, ORDER_READ_LOG, order_log_not_ahead},
		{"living behind s0", order_write, ORDER_READ_LIVING, order_living_behind_s0},
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(readers); i++) {
		printf("%s\n", readers[i].name);
		assert(testing_order_run(&readers[i], TESTING_ORDER_NONE, TESTING_ORDER_NONE)
			       .is_wrong);
	}
}
