/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The proof of the rule for the dead: the writer is single-stepped, and after every instruction the
 * book must be exactly as before the operation or exactly as after it, in every row, every field and
 * every counter; once it is after, it stays so. An operation of several events (free_all, a mesh) is
 * looked at event by event.
 *
 * The rule for the living is checked at each of these points too: with the writer stopped it has to
 * give the same answer.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/unit.h"
#include "book/index.h"
#include "book/testing-model.h"
#include "book/testing-step.h"
#include "book/testing.h"

#define WALK_OPS_MAX (1u << 18)

struct walk_op {
	struct testing_op op;
	bool walked;
	bool lost; /* an allocation that must find no room */
};

struct walk {
	struct testing_stepper stepper;
	struct testing_book book;
	struct testing_model *model;
	struct view *dead;
	struct view *living;
	struct testing_facts *facts; /* of each operation, from the child */
	struct walk_op *ops;
	uint32_t count;
	uint32_t modelled; /* operations that the model has done */

	/* While an operation is walked. */
	uint64_t digest[TESTING_DEVICES];
	uint64_t left[TESTING_DEVICES]; /* events to come */
	uint64_t reset_type;
};

static struct walk *walk_new(uint64_t size, uint32_t ring_events)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	assert(walk);
	testing_book_init(&walk->book, size, ring_events);
	walk->model = testing_model_new();
	walk->dead = calloc(1, sizeof(*walk->dead));
	walk->living = calloc(1, sizeof(*walk->living));
	walk->ops = calloc(WALK_OPS_MAX, sizeof(*walk->ops));
	walk->facts = testing_stepper_share(WALK_OPS_MAX * sizeof(*walk->facts));
	assert(walk->dead && walk->living && walk->ops);
	return walk;
}

static void walk_free(struct walk *walk)
{
	testing_model_free(walk->model);
	view_deinit(walk->dead);
	view_deinit(walk->living);
	free(walk->dead);
	free(walk->living);
	free(walk->ops);
	munmap(walk->facts, WALK_OPS_MAX * sizeof(*walk->facts));
	testing_book_deinit(&walk->book);
	free(walk);
}

static struct walk_op *walk_add(struct walk *walk, const struct testing_op *op, bool walked)
{
	assert(walk->count < WALK_OPS_MAX);
	walk->ops[walk->count] = (struct walk_op){.op = *op, .walked = walked};
	return &walk->ops[walk->count++];
}

/* Action 0 makes the book, action i + 1 is operation i. */
static void walk_act(struct testing_stepper *stepper, uint32_t i)
{
	struct walk *walk = stepper->context;

	if (i == 0)
		testing_book_write(&walk->book);
	else
		testing_op_do(walk->book.writer, &walk->ops[i - 1].op);
}

static void walk_note(struct testing_stepper *stepper, uint32_t i)
{
	struct walk *walk = stepper->context;

	if (i > 0)
		walk->facts[i - 1] = testing_facts_of(walk->book.writer, &walk->ops[i - 1].op);
}

static bool walk_is_walked(struct testing_stepper *stepper, uint32_t i)
{
	const struct walk *walk = stepper->context;

	return i == 0 || walk->ops[i - 1].walked;
}

/* A shard that does not exist is as good as one without events. */
static void walk_read(struct walk *walk, uint32_t device, enum view_owner owner, struct view *view)
{
	int r = view_read(view, &walk->book.reader, device, owner);

	if (r == -ENOENT) {
		memset(view->hot, 0, sizeof(view->hot));
		memset(view->cold, 0, sizeof(view->cold));
		view->number = 0;
		view->inexact = 0;
		view->segment_count = 0;
		view->rows_exact = true;
		r = 0;
	}
	if (r < 0)
		printf("device %u cannot be read: %s\n", device, strerror(-r));
	assert(r == 0);
}

/* The one buffer that free_all has just ended: meant, and no longer in the view. */
static struct testing_row *walk_find_ended(struct walk *walk, const struct testing_op *op)
{
	struct view_iterator it = {0};

	walk->model->stamp++;
	while (view_next(walk->dead, &it)) {
		struct testing_row *row =
			testing_model_find(walk->model, op->device, it.record->address,
					   book_meta_type(it.record->meta));

		if (row)
			row->stamp = walk->model->stamp;
	}
	for (uint32_t i = 0; i < walk->model->count; i++) {
		struct testing_row *row = &walk->model->rows[i];

		if (testing_model_is_meant(row, op) && row->stamp != walk->model->stamp)
			return row;
	}
	return NULL;
}

/* The view of one device has changed: it must be by the one event that comes next. */
static void walk_advance(struct walk *walk, uint32_t device, const struct walk_op *walked)
{
	struct testing_op op = walked->op;
	struct testing_facts facts = {.lost = walked->lost};
	uint64_t before = walk->model->shards[device].number;

	op.mesh = 0;
	op.device = device;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		facts.last[type] = walk->dead->hot[type].last;
		assert(facts.last[type] >= walk->model->shards[device].hot[type].last);
	}
	if (op.kind == TESTING_FREE_ALL) {
		struct testing_row *row = walk_find_ended(walk, &op);

		assert(row);
		testing_model_end(walk->model, row, facts.last[book_meta_type(row->record.meta)]);
	} else if (op.kind == TESTING_RESET_PEAK && op.buffer.type == INDEX_ANY) {
		op.buffer.type = (uint32_t)walk->reset_type++;
		testing_model_apply(walk->model, &op, &facts);
	} else {
		testing_model_apply(walk->model, &op, &facts);
	}
	before = walk->model->shards[device].number - before;
	assert(walk->left[device] >= before);
	walk->left[device] -= before;
	assert(testing_model_is(walk->model, device, &walk->book.reader, walk->dead));
	walk->digest[device] = testing_digest(walk->dead);
}

static void walk_check_device(struct walk *walk, uint32_t device, const struct walk_op *op)
{
	uint64_t marks;

	walk_read(walk, device, VIEW_DEAD, walk->dead);
	if (testing_digest(walk->dead) != walk->digest[device])
		walk_advance(walk, device, op);
	/* Inexact marks only come, and only those that may. */
	marks = walk->model->shards[device].inexact;
	assert((marks & ~walk->dead->inexact) == 0);
	assert((walk->dead->inexact & ~marks & ~walk->model->shards[device].inexact_soon) == 0);

	walk_read(walk, device, VIEW_LIVING, walk->living);
	assert(walk->living->rows_exact && walk->living->retries == 0);
	assert(testing_digest(walk->living) == walk->digest[device]);
	assert(walk->living->inexact == walk->dead->inexact);
}

static void walk_check(struct testing_stepper *stepper, uint32_t i)
{
	struct walk *walk = stepper->context;
	const struct walk_op *op;
	uint32_t mask;

	if (i == 0) {
		/* No book, and then a whole one. */
		struct reader reader;
		int r;

		assert(file_fd_init(&walk->book.file, walk->book.fd) == 0);
		r = reader_init(&reader, &walk->book.file.file);
		assert(r == 0 || (r == READER_NOT_YET && !walk->book.has_reader));
		if (r == 0 && !walk->book.has_reader)
			testing_book_read(&walk->book);
		return;
	}
	op = &walk->ops[i - 1];
	mask = op->op.mesh ? op->op.mesh : 1u << op->op.device;
	for (uint32_t device = 0; device < TESTING_DEVICES; device++) {
		if (mask >> device & 1)
			walk_check_device(walk, device, op);
	}
}

/* Before the first instruction of operation @i: the model catches up and is the "before". */
static void walk_prepare(struct walk *walk, uint32_t i)
{
	const struct walk_op *next = &walk->ops[i];
	uint32_t mask = next->op.mesh ? next->op.mesh : 1u << next->op.device;

	for (; walk->modelled < i; walk->modelled++) {
		if (!walk->ops[walk->modelled].walked)
			testing_model_apply(walk->model, &walk->ops[walk->modelled].op,
					    &walk->facts[walk->modelled]);
	}
	walk->reset_type = 0;
	for (uint32_t device = 0; device < TESTING_DEVICES; device++) {
		struct testing_op op = next->op;

		if (!(mask >> device & 1))
			continue;
		op.mesh = 0;
		op.device = device;
		walk_read(walk, device, VIEW_DEAD, walk->dead);
		walk->digest[device] = testing_digest(walk->dead);
		walk->left[device] = testing_model_events(walk->model, &op);
		walk->model->shards[device].inexact_soon =
			next->lost ? BOOK_INEXACT_LOW << next->op.buffer.type : 0;
		if (walk->model->shards[device].exists)
			assert(testing_model_is(walk->model, device, &walk->book.reader,
						walk->dead));
	}
}

/* Does all operations and looks at those that are to be walked. Return: instructions. */
static uint64_t walk_run(struct walk *walk)
{
	static const struct testing_stepper_ops ops = {walk_act, walk_is_walked, walk_note,
						       walk_check};
	uint32_t walked = 0;
	uint32_t i;

	walk->stepper = (struct testing_stepper){
		.ops = &ops,
		.count = walk->count + 1,
		.context = walk,
	};
	testing_stepper_start(&walk->stepper);
	while (testing_stepper_next(&walk->stepper, &i)) {
		if (i > 0)
			walk_prepare(walk, i - 1);
		testing_stepper_walk(&walk->stepper);
		for (uint32_t device = 0; device < TESTING_DEVICES; device++) {
			if (walk->left[device] > 0)
				testing_op_print(&walk->ops[i - 1].op);
			assert(walk->left[device] == 0);
		}
		walked++;
	}
	printf("%" PRIu64 " instructions of %u operations\n", walk->stepper.steps, walked);
	return walk->stepper.steps;
}

static struct testing_op walk_op(enum testing_kind kind, uint32_t type, uint64_t address,
				 uint64_t size)
{
	return (struct testing_op){
		.kind = kind,
		.buffer = {.address = address,
			   .size = size,
			   .type = type,
			   .thread = 77,
			   .stack = 5,
			   .phase = 3,
			   .shape = 1},
	};
}

static void walk_over(struct walk *walk, enum testing_kind kind, uint32_t type, uint64_t address,
		      uint64_t size)
{
	struct testing_op op = walk_op(kind, type, address, size);

	walk_add(walk, &op, true);
}

/* Events that are not looked at, until the shard's number is @number. Each publishes one event. */
static void walk_fill(struct walk *walk, uint64_t *number, uint64_t until)
{
	for (; *number < until; ++*number) {
		struct testing_op op = walk_op(*number % 2 ? TESTING_FREE : TESTING_ALLOC, 1,
					       0x10000 + *number / 2 % 8 * 64, 64);

		walk_add(walk, &op, false);
	}
}

static void walk_end(struct walk *walk)
{
	walk_run(walk);
	walk_free(walk);
}

UNIT_LONG(each_operation, 300)
{
	struct walk *walk = walk_new(TESTING_SIZE, BOOK_RING_MIN);
	struct testing_op op;

	walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096); /* makes the shard */
	walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096); /* refs + 1 */
	walk_over(walk, TESTING_FREE, 0, 0x1000, 0);	 /* refs - 1 */
	walk_over(walk, TESTING_FREE, 0, 0x1000, 0);	 /* makes the graveyard */
	walk_over(walk, TESTING_ALLOC, 0, 0x2000, 4096); /* in the slot that became free */
	walk_over(walk, TESTING_ALLOC, 0, 0x2000, 8192); /* size changes, up and down */
	walk_over(walk, TESTING_ALLOC, 0, 0x2000, 100);
	walk_over(walk, TESTING_FREE, 0, 0x9000, 0);	/* unknown */
	walk_over(walk, TESTING_FREE, 0, 0x1000, 0);	/* double */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x1000, 0);
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x9000, 0);
	walk_over(walk, TESTING_HOOKED, 2, 0x3000, 64);
	walk_over(walk, TESTING_FAILED, 2, 0, UINT64_C(1) << 40);
	walk_over(walk, TESTING_ALLOC, 1, 0x2000, 50);
	walk_over(walk, TESTING_ALLOC, 3, 0x2000, 60);
	walk_over(walk, TESTING_ALLOC, 3, 0x2000, 60);
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x2000, 0); /* ambiguous: a reference less */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x2000, 0); /* ambiguous: the end */
	walk_over(walk, TESTING_RESET_PEAK, 1, 0, 0);
	walk_over(walk, TESTING_RESET_PEAK, INDEX_ANY, 0, 0);
	for (uint32_t i = 0; i < 6; i++) {
		op = walk_op(TESTING_ALLOC, i, 0x4000 + i * 64, 64);
		op.owner = 1 + i % 2;
		op.buffer.name = i;
		op.buffer.flags = i == 5 ? BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT : 0;
		walk_add(walk, &op, true);
	}
	op = walk_op(TESTING_FREE_ALL, INDEX_ANY, 0, 0);
	op.owner = 1;
	walk_add(walk, &op, true);
	walk_over(walk, TESTING_FREE_ALL, 3, 0, 0);
	walk_over(walk, TESTING_FREE_ALL, INDEX_ANY, 0, 0);
	op = walk_op(TESTING_ALLOC, 5, 0x5000, 4096);
	op.mesh = 0x87; /* two of these devices are new */
	walk_add(walk, &op, true);
	walk_add(walk, &op, true);
	op.kind = TESTING_FREE;
	walk_add(walk, &op, true);
	walk_add(walk, &op, true);
	walk_add(walk, &op, true);
	walk_end(walk);
}

/* Where the log needs memory, wraps, or a checkpoint is due; each with pairs in three positions. */
UNIT_LONG(boundaries_of_the_log, 300)
{
	static const uint64_t boundaries[] = {64, 256, 512, 768, 1024, 1280, 2048, 4096};

	for (uint64_t shift = 0; shift < 4; shift++) {
		struct walk *walk = walk_new(TESTING_SIZE, BOOK_RING_MIN);
		uint64_t number = 2;

		walk_over(walk, TESTING_ALLOC, 2, 0x1000, 4096);
		walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096);
		for (uint32_t i = 0; i < ARRAY_SIZE(boundaries); i++) {
			walk_fill(walk, &number, boundaries[i] - 4 + shift);
			walk_over(walk, TESTING_ALLOC, 0, 0x1000, 5000 + i);
			walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096);
			walk_over(walk, TESTING_ALLOC, 2, 0x1000, 4096);
			walk_over(walk, TESTING_FREE, 2, 0x1000, 0);
			number += 6;
		}
		walk_end(walk);
	}
}

/* A page of records, a unit of records, a bucket of the index, a part of it, a page of graves. */
UNIT_LONG(growth_in_steps, 300)
{
	static const uint32_t steps[] = {4096 / 48, 32 * 6, 33 * 6, 64 * 6, 65536 / 48};
	struct walk *walk = walk_new(TESTING_SIZE, 16384);
	uint32_t n = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(steps); i++) {
		for (; n < steps[i] + 3; n++) {
			struct testing_op op =
				walk_op(TESTING_ALLOC, n % BOOK_TYPES, 0x1000 + n / 2 * 64, 32);

			walk_add(walk, &op, n + 3 >= steps[i]);
		}
	}
	for (uint32_t i = 0; i < 1100; i++) {
		struct testing_op op =
			walk_op(TESTING_FREE, i % BOOK_TYPES, 0x1000 + i / 2 * 64, 0);

		walk_add(walk, &op, (i + 2 >= 64 && i < 67) || (i + 2 >= 1024 && i < 1027));
	}
	walk_end(walk);
}

UNIT_LONG(growth_into_a_new_segment, 300)
{
	struct walk *walk = walk_new(TESTING_SIZE, BOOK_RING_MIN);

	for (uint32_t n = 0; n < BOOK_SEGMENT_SLOTS + 2; n++) {
		struct testing_op op = walk_op(TESTING_ALLOC, 0, 0x1000 + (uint64_t)n * 64, 64);

		walk_add(walk, &op, n + 1 >= BOOK_SEGMENT_SLOTS);
	}
	walk_over(walk, TESTING_ALLOC, 0, 0x1000, 65);
	walk_over(walk, TESTING_FREE, 0, 0x1000 + BOOK_SEGMENT_SLOTS * 64, 0);
	walk_end(walk);
}

/* Room for a page of records and no more. */
UNIT_LONG(no_room, 300)
{
	struct walk *walk = walk_new(TESTING_SIZE, BOOK_RING_MIN);
	const uint64_t fixed = sizeof(struct book_shard) +
			       BOOK_RING_MIN * sizeof(struct book_event) +
			       BOOK_GRAVES * sizeof(struct book_grave);
	struct testing_op op;

	walk->book.room = fixed + BOOK_PAGE;
	for (uint32_t n = 0; n < 85; n++) {
		op = walk_op(TESTING_ALLOC, 1, 0x1000 + n * 64, 64);
		walk_add(walk, &op, n + 1 >= 85);
	}
	op = walk_op(TESTING_ALLOC, 1, 0x9000, 64);
	walk_add(walk, &op, true)->lost = true;
	op = walk_op(TESTING_ALLOC, 2, 0x9000, 64);
	walk_add(walk, &op, true)->lost = true;
	walk_over(walk, TESTING_FREE, 1, 0x9000, 0); /* overflow */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x9000, 0);
	walk_over(walk, TESTING_FREE, 3, 0x9000, 0);   /* unknown: this type lost nothing */
	walk_over(walk, TESTING_ALLOC, 1, 0x1000, 65); /* needs no room */
	walk_over(walk, TESTING_FREE, 1, 0x1000, 0);
	walk_over(walk, TESTING_ALLOC, 1, 0x9000, 64); /* in the slot that became free */
	walk_over(walk, TESTING_FREE_ALL, INDEX_ANY, 0, 0);
	walk_end(walk);
}

static struct testing_op walk_random(struct testing_rng *rng)
{
	static const uint8_t kinds[] = {
		TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC,  TESTING_ALLOC,  TESTING_ALLOC,
		TESTING_FREE,  TESTING_FREE,  TESTING_FREE,   TESTING_FREE,   TESTING_FREE,
		TESTING_FREE,  TESTING_FREE,  TESTING_HOOKED, TESTING_FAILED, TESTING_RESET_PEAK,
	};
	enum testing_kind kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))];
	struct testing_op op = walk_op(kind, testing_below(rng, 3), testing_below(rng, 12) * 64,
				       1 + testing_below(rng, 2));

	op.buffer.name = testing_below(rng, TESTING_TEXTS);
	op.buffer.flags = testing_below(rng, 8);
	op.owner = testing_below(rng, 3);
	if ((kind == TESTING_FREE || kind == TESTING_RESET_PEAK) && testing_below(rng, 4) == 0)
		op.buffer.type = INDEX_ANY;
	if (kind == TESTING_HOOKED && testing_below(rng, 2) == 0)
		op.kind = TESTING_FREE_ALL;
	return op;
}

UNIT_LONG(random_operations, 600)
{
	struct testing_rng rng = testing_rng_new();
	uint32_t rounds = testing_soak() ? 100 : 1;

	for (uint32_t round = 0; round < rounds; round++) {
		struct walk *walk = walk_new(TESTING_SIZE, BOOK_RING_MIN);

		for (uint32_t i = 0; i < 1200; i++) {
			struct testing_op op = walk_random(&rng);

			walk_add(walk, &op, true);
		}
		walk_end(walk);
	}
}
