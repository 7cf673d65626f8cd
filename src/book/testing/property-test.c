/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random operations against the model: a process writes its book, and after every batch another
 * process reads it, both ways, and must see exactly the model. There are few keys, so that
 * everything that can happen to a key does. A failing sequence is shortened as long as it still
 * fails, then printed.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-model.h"
#include "book/write/index.h"

#define PROPERTY_OPS 3000u
#define PROPERTY_SHRINKS 2000u /* runs spent on making a failure shorter */

/* Parameters of a run, besides its operations. */
struct property {
	uint32_t devices;
	uint32_t addresses;
	uint32_t types;
	uint32_t ring_events;
	uint64_t room; /* 0 = unlimited */
	bool names;
	bool free_all;
	uint32_t spaces; /* 0 = none, and no shapes */
	bool coarse;     /* the clock ticks once in some hundred operations */
};

#define PROPERTY_TICK_NS 200000u

static bool property_coarse;

/* In front of libc's, for the clock that the writer uses where it knows no better one. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's begin with __ */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret_time);

	if (property_coarse)
		ret_time->tv_nsec -= ret_time->tv_nsec % PROPERTY_TICK_NS;
	return r;
}

/* Spaces far apart, as well as next to each other. A free often names none. */
static void property_place(const struct property *property, struct testing_rng *rng,
			   struct testing_op *op)
{
	if (!property->spaces)
		return;
	op->buffer.shape = testing_below(rng, TESTING_SHAPES + 1);
	op->buffer.space = testing_below(rng, property->spaces);
	if (op->buffer.space > 2)
		op->buffer.space = BOOK_SPACES - op->buffer.space;
	if (op->kind == TESTING_FREE && testing_below(rng, 3) == 0)
		op->buffer.space = 0;
	if (op->kind == TESTING_FREE && testing_below(rng, 3) == 0)
		op->buffer.flags |= SHARD_FREE_IN_SPACE;
}

static struct testing_op property_op(const struct property *property, struct testing_rng *rng)
{
	static const uint8_t kinds[] = {
		TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC,  TESTING_ALLOC,  TESTING_ALLOC,
		TESTING_ALLOC, TESTING_FREE,  TESTING_FREE,   TESTING_FREE,   TESTING_FREE,
		TESTING_FREE,  TESTING_FREE,  TESTING_HOOKED, TESTING_FAILED, TESTING_RESET_PEAK,
	};
	struct testing_op op = {
		.kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))],
		.device = testing_below(rng, property->devices),
		.owner = testing_below(rng, 4),
		.buffer = {.address = (uint64_t)testing_below(rng, property->addresses) * 64,
			   .size = 1 + testing_below(rng, 3),
			   .type = testing_below(rng, property->types),
			   .flags = testing_below(rng, 256),
			   .name = property->names ? testing_below(rng, TESTING_TEXTS) : 0,
			   .phase = testing_below(rng, 5),
			   .thread = testing_below(rng, 4),
			   .stack = (uint32_t)testing_random(rng),
			   .shape = testing_below(rng, 3)},
	};

	property_place(property, rng, &op);
	if ((op.kind == TESTING_FREE || op.kind == TESTING_RESET_PEAK) &&
	    testing_below(rng, 4) == 0)
		op.buffer.type = INDEX_ANY;
	if (property->free_all && testing_below(rng, 50) == 0) {
		op.kind = property->spaces && testing_below(rng, 2) == 0 ? TESTING_END_SPACE
									 : TESTING_FREE_ALL;
		if (testing_below(rng, 3) == 0)
			op.buffer.type = INDEX_ANY;
	}
	if (property->devices > 1 && op.kind <= TESTING_FREE && testing_below(rng, 8) == 0) {
		op.mesh = 1 + testing_below(rng, (1u << property->devices) - 1);
		op.owner = 0;
	}
	return op;
}

/* In another process: whether the book agrees with the model. */
static bool property_reader_agrees(struct testing_book *book, struct testing_model *model)
{
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (pid == 0) {
		testing_book_read(book);
		_exit(testing_model_is_book(model, &book->reader) ? 0 : 1);
	}
	assert(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* free_all may free its buffers in any order: the log has the order it chose. */
static void property_free_all(struct testing_model *model, const struct testing_op *op,
			      struct writer *writer)
{
	const struct shard *shard = writer->shards[op->device];
	uint64_t events = testing_model_events(model, op);

	if (!shard)
		return;
	assert(shard->head == model->shards[op->device].number + events);
	for (uint64_t n = shard->head - events + 1; n <= shard->head; n++) {
		const struct book_event *event = &shard->ring[n & shard->ring_mask];
		struct testing_row *row =
			testing_model_find(model, op->device, index_key_of(&event->record));

		assert(row && testing_model_is_meant(row, op));
		testing_model_end(model, row, event->time);
	}
}

static void property_do(struct testing_book *book, struct testing_model *model,
			const struct testing_op *op)
{
	struct testing_facts facts;

	testing_op_do(book->writer, op);
	facts = testing_facts_of(book->writer, op);
	if (op->kind == TESTING_FREE_ALL || op->kind == TESTING_END_SPACE)
		property_free_all(model, op, book->writer);
	else
		testing_model_apply(model, op, &facts);
}

/* Return: the number of operations until it failed; 0 = it did not. */
static uint32_t property_write(const struct property *property, const struct testing_op *ops,
			       uint32_t count, uint32_t batch)
{
	struct testing_model *model = testing_model_new();
	struct testing_book book;
	uint32_t failed = 0;

	testing_book_init(&book, TESTING_SIZE, property->ring_events);
	if (property->room)
		book.room = property->room;
	testing_book_write(&book);
	if (property->spaces)
		testing_model_shapes(model, book.writer);
	property_coarse = property->coarse;
	if (property_coarse)
		book.writer->clock = BOOK_CLOCK_MONOTONIC;
	for (uint32_t i = 0; i < count && !failed; i++) {
		property_do(&book, model, &ops[i]);
		if (((i + 1) % batch == 0 || i + 1 == count) &&
		    !property_reader_agrees(&book, model))
			failed = i + 1;
	}
	property_coarse = false;
	testing_book_deinit(&book);
	testing_model_free(model);
	return failed;
}

/* The same in a separate process, which may crash, and does not print. */
static bool property_fails(const struct property *property, const struct testing_op *ops,
			   uint32_t count, uint32_t batch)
{
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(0);
		_exit(property_write(property, ops, count, batch) ? 1 : 0);
	}
	assert(waitpid(pid, &status, 0) == pid);
	return status != 0;
}

/* Leaves out runs of operations, long ones first, as long as the rest still fails. */
static uint32_t property_shrink(const struct property *property, struct testing_op *ops,
				uint32_t count, uint32_t batch)
{
	struct testing_op *fewer = calloc(count, sizeof(*fewer));
	uint32_t runs = 0;

	assert(fewer);
	for (uint32_t length = count / 2; length > 0; length /= 2) {
		uint32_t at = 0;

		while (at + length <= count && runs++ < PROPERTY_SHRINKS) {
			memcpy(fewer, ops, at * sizeof(*ops));
			memcpy(fewer + at, ops + at + length, (count - at - length) * sizeof(*ops));
			if (property_fails(property, fewer, count - length, batch)) {
				count -= length;
				memcpy(ops, fewer, count * sizeof(*ops));
			} else {
				at += length;
			}
		}
	}
	free(fewer);
	return count;
}

static _Noreturn void property_report(const struct property *property, struct testing_op *ops,
				      uint32_t count, uint32_t batch)
{
	printf("%u operations failed; making them fewer\n", count);
	count = property_shrink(property, ops, count, batch);
	printf("batch %u, ring %u, room %" PRIu64 ", %u operations:\n", batch,
	       property->ring_events, property->room, count);
	for (uint32_t i = 0; i < count; i++)
		testing_op_print(&ops[i]);
	/* Once more, so that it prints what is wrong, or crashes here. */
	property_write(property, ops, count, batch);
	abort();
}

static void property_run(const struct property *property, struct testing_rng *rng, uint32_t count)
{
	struct testing_op *ops = calloc(count, sizeof(*ops));
	uint32_t batch = 1 + testing_below(rng, 100);

	assert(ops);
	for (uint32_t i = 0; i < count; i++)
		ops[i] = property_op(property, rng);
	if (property_fails(property, ops, count, batch))
		property_report(property, ops, count, batch);
	free(ops);
}

static uint32_t property_rounds(void)
{
	if (testing_soak())
		return 300;
	return testing_quick() ? 5 : 15;
}

UNIT_LONG(random_operations_match_a_model, 300)
{
	struct testing_rng rng = testing_rng_new();

	for (uint32_t round = 0; round < property_rounds(); round++) {
		const struct property property = {
			.devices = 1 + testing_below(&rng, TESTING_DEVICES),
			.addresses = 1 + testing_below(&rng, 24),
			.types = 1 + testing_below(&rng, BOOK_TYPES),
			.ring_events = BOOK_RING_MIN << testing_below(&rng, 3),
			.names = true,
			.free_all = true,
			.spaces = testing_below(&rng, 6),
			.coarse = round % 3 == 0,
		};

		property_run(&property, &rng, PROPERTY_OPS);
	}
}

/* More keys than buckets, and more frees than graves. */
UNIT_LONG(random_operations_on_many_keys_match_a_model, 300)
{
	struct testing_rng rng = testing_rng_new();

	for (uint32_t round = 0; round < property_rounds() / 5; round++) {
		const struct property property = {
			.devices = 1,
			.addresses = 1u << (6 + testing_below(&rng, 8)),
			.types = BOOK_TYPES,
			.ring_events = BOOK_RING_MAX >> 4,
			.names = true,
			.free_all = round % 2 == 0,
			.spaces = round % 2 == 0 ? 5 : 0,
		};

		property_run(&property, &rng, 10 * PROPERTY_OPS);
	}
}

/* Room for one page of records; names would need some of it, so there are none. */
UNIT_LONG(random_operations_without_room_match_a_model, 300)
{
	struct testing_rng rng = testing_rng_new();
	const uint64_t fixed = sizeof(struct book_shard) +
			       BOOK_RING_MIN * sizeof(struct book_event) +
			       BOOK_GRAVES * sizeof(struct book_grave);

	for (uint32_t round = 0; round < property_rounds() / 2; round++) {
		const struct property property = {
			.devices = 1,
			.addresses = 32,
			.types = BOOK_TYPES,
			.ring_events = BOOK_RING_MIN,
			.room = fixed + testing_below(&rng, 5) * BOOK_PAGE,
			.free_all = true,
		};

		property_run(&property, &rng, PROPERTY_OPS);
	}
}
