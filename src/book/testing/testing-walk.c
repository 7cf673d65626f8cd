/* SPDX-License-Identifier: Apache-2.0 */

/* Stepping through operations and checking the book at each step. */

#include "book/testing/testing-walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit.h"
#include "book/write/index.h"

#define WALK_OPS_MAX (1u << 18)

struct testing_walk *testing_walk_new(uint64_t size, uint32_t ring_events)
{
	struct testing_walk *walk = calloc(1, sizeof(*walk));

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

static void testing_walk_free(struct testing_walk *walk)
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

struct testing_walk_op *testing_walk_add(struct testing_walk *walk, const struct testing_op *op,
					 bool walked)
{
	assert(walk->count < WALK_OPS_MAX);
	walk->ops[walk->count] = (struct testing_walk_op){.op = *op, .walked = walked};
	return &walk->ops[walk->count++];
}

/* Action 0 makes the book, action i + 1 is operation i. */
static void walk_act(struct testing_stepper *stepper, uint32_t i)
{
	struct testing_walk *walk = stepper->context;

	if (i == 0) {
		testing_book_write(&walk->book);
		if (walk->has_shapes)
			testing_model_shapes(walk->model, walk->book.writer);
	} else {
		testing_op_do(walk->book.writer, &walk->ops[i - 1].op);
	}
}

static void walk_note(struct testing_stepper *stepper, uint32_t i)
{
	struct testing_walk *walk = stepper->context;

	if (i > 0)
		walk->facts[i - 1] = testing_facts_of(walk->book.writer, &walk->ops[i - 1].op);
}

static bool walk_is_walked(struct testing_stepper *stepper, uint32_t i)
{
	const struct testing_walk *walk = stepper->context;

	return i == 0 || walk->ops[i - 1].walked;
}

/* A shard that does not exist equals one without events. */
static void walk_read(struct testing_walk *walk, uint32_t device, enum view_owner owner,
		      struct view *view)
{
	int r = view_read(view, &walk->book.reader, device, owner);

	if (r == -ENOENT) {
		memset(view->hot, 0, sizeof(view->hot));
		memset(view->cold, 0, sizeof(view->cold));
		memset(view->warm, 0, sizeof(view->warm));
		view->number = 0;
		view->inexact = 0;
		view->segment_count = 0;
		view->rows_exact = true;
		r = 0;
	}
	if (r < 0)
		printf("device %u cannot be read: error %d\n", device, -r);
	assert(r == 0);
}

/* The one buffer that free_all has just freed: selected, and no longer in the view. */
static struct testing_row *walk_find_ended(struct testing_walk *walk, const struct testing_op *op)
{
	struct view_iterator it = {0};

	walk->model->stamp++;
	while (view_next(walk->dead, &it)) {
		struct testing_row *row =
			testing_model_find(walk->model, op->device, index_key_of(it.record));

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

/* The view of one device has changed: exactly the next event must have caused it. */
static void walk_advance(struct testing_walk *walk, uint32_t device,
			 const struct testing_walk_op *walked)
{
	struct testing_op op = walked->op;
	struct testing_facts facts = {.lost = walked->lost};
	uint64_t before = walk->model->shards[device].number;

	op.mesh = 0;
	op.device = device;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		facts.last[device][type] = walk->dead->hot[type].last;
		assert(facts.last[device][type] >= walk->model->shards[device].hot[type].last);
	}
	if (op.kind == TESTING_FREE_ALL || op.kind == TESTING_END_SPACE) {
		struct testing_row *row = walk_find_ended(walk, &op);

		assert(row);
		testing_model_end(walk->model, row,
				  facts.last[device][book_meta_type(row->record.meta)]);
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

/* A checkpoint is unchanged, or void, or a later one; its number never stands for a partial one. */
static void walk_check_checkpoints(struct testing_walk *walk, uint32_t device)
{
	static struct book_checkpoint checkpoints[BOOK_CHECKPOINTS];
	uint64_t offset = book_shard_offset(device) + offsetof(struct book_shard, checkpoint);

	assert(file_read(&walk->book.file.file, offset, checkpoints, sizeof(checkpoints)) == 0);
	for (uint32_t i = 0; i < BOOK_CHECKPOINTS; i++) {
		uint64_t *seen = walk->checkpoint[i];
		uint64_t digest = hash_bytes(&checkpoints[i], sizeof(checkpoints[i]));

		if (checkpoints[i].number == 0)
			continue;
		assert(checkpoints[i].number >= seen[0]);
		assert(checkpoints[i].number > seen[0] || digest == seen[1]);
		seen[0] = checkpoints[i].number;
		seen[1] = digest;
	}
}

/* The counters alone, for a new and for a returning reader: equal to those of the dead rule. */
static void walk_check_totals(struct testing_walk *walk, uint32_t device)
{
	struct idle_counters nothing = {0}, *known[] = {&nothing, &walk->known[device]};
	const struct view *dead = walk->dead;
	struct view *view = walk->living;

	for (size_t way = 0; way < ARRAY_SIZE(known); way++) {
		int r = view_read_totals_since(view, &walk->book.reader, device, known[way]);

		if (r == -ENOENT && dead->number == 0)
			continue;
		assert(r == 0 && view->number == dead->number && view->inexact == dead->inexact);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			assert(memcmp(&view->hot[type], &dead->hot[type],
				      offsetof(struct book_hot, number)) == 0);
			assert(memcmp(&view->cold[type], &dead->cold[type],
				      offsetof(struct book_cold, number)) == 0);
		}
	}
}

static void walk_check_device(struct testing_walk *walk, uint32_t device,
			      const struct testing_walk_op *op)
{
	uint64_t marks;

	walk_read(walk, device, VIEW_DEAD, walk->dead);
	if (testing_digest(walk->dead) != walk->digest[device])
		walk_advance(walk, device, op);
	/* Inexact marks are only added, and only the permitted ones. */
	marks = walk->model->shards[device].inexact;
	assert((marks & ~walk->dead->inexact) == 0);
	assert((walk->dead->inexact & ~marks & ~walk->model->shards[device].inexact_soon) == 0);

	walk_read(walk, device, VIEW_LIVING, walk->living);
	assert(walk->living->rows_exact && walk->living->retries == 0);
	assert(testing_digest(walk->living) == walk->digest[device]);
	assert(walk->living->inexact == walk->dead->inexact);
	walk_check_totals(walk, device);
	if (!op->op.mesh)
		walk_check_checkpoints(walk, device);
}

static void walk_check(struct testing_stepper *stepper, uint32_t i)
{
	struct testing_walk *walk = stepper->context;
	const struct testing_walk_op *op;
	uint32_t mask;

	if (i == 0) {
		/* First no book, and then a complete one. */
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
static void walk_prepare(struct testing_walk *walk, uint32_t i)
{
	const struct testing_walk_op *next = &walk->ops[i];
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
		walk->model->shards[device].inexact_soon = next->lost && op.buffer.type < BOOK_TYPES
								   ? BOOK_INEXACT_LOW
									     << op.buffer.type
								   : 0;
		if (op.kind == TESTING_FREE) /* perhaps of several spaces */
			walk->model->shards[device].inexact_soon =
				op.buffer.type == INDEX_ANY
					? BOOK_INEXACT_HIGH * ((1u << BOOK_TYPES) - 1)
					: BOOK_INEXACT_HIGH << op.buffer.type;
		if (walk->model->shards[device].exists)
			assert(testing_model_is(walk->model, device, &walk->book.reader,
						walk->dead));
	}
}

static void testing_walk_run(struct testing_walk *walk)
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
	if (walk->has_shapes)
		testing_model_shapes(walk->model, NULL);
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
}

struct testing_op testing_walk_make(enum testing_kind kind, uint32_t type, uint64_t address,
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

void testing_walk_end(struct testing_walk *walk)
{
	testing_walk_run(walk);
	testing_walk_free(walk);
}
