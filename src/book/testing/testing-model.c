/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model's rules are those the library promises its users, written a second time and
 * independently of the writer. In case both agree by mistake, the tests of single rules in
 * writer-test.c have the numbers spelled out.
 */

#include "book/testing/testing-model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/testing/unit.h"
#include "book/write/index.h"

struct testing_model *testing_model_new(void)
{
	struct testing_model *model = calloc(1, sizeof(*model));

	assert(model);
	return model;
}

struct testing_model *testing_model_free(struct testing_model *model)
{
	if (model)
		free(model->rows);
	free(model);
	return NULL;
}

void testing_model_shapes(struct testing_model *model, struct writer *writer)
{
	static const struct book_shape shapes[TESTING_SHAPES - 1] = {
		{.size_per_bank = 2048, .banks = 12},
		{.size_per_bank = 64, .banks = 1, .flags = BOOK_SHAPE_SHARDED, .page_size = 32},
		{.size_per_bank = 64},                            /* how many banks? */
		{.banks = 3},                                     /* how much in each? */
		{.size_per_bank = UINT64_C(1) << 39, .banks = 2}, /* no card has that much */
	};

	for (uint32_t id = 1; id < TESTING_SHAPES; id++) {
		assert(!writer || intern_shape(writer, &shapes[id - 1]) == id);
		model->shapes[id] = shapes[id - 1];
	}
}

static uint32_t *testing_model_bucket(const struct testing_model *model, uint32_t device,
				      struct index_key key)
{
	uint64_t hash = hash_u64(key.address ^ (uint64_t)device << 56 ^ (uint64_t)key.type << 48 ^
				 (uint64_t)key.space << 36);

	return (uint32_t *)(uintptr_t)&model->buckets[hash % TESTING_MODEL_BUCKETS];
}

static uint32_t testing_model_space(const struct testing_row *row)
{
	return row->record.thread_space >> 22;
}

static struct index_key testing_model_key(const struct testing_row *row)
{
	return (struct index_key){row->record.address, book_meta_type(row->record.meta),
				  testing_model_space(row)};
}

static bool testing_model_row_is(const struct testing_row *row, uint32_t device,
				 struct index_key key)
{
	return row->device == device && row->record.address == key.address &&
	       book_meta_type(row->record.meta) == key.type &&
	       testing_model_space(row) == key.space;
}

struct testing_row *testing_model_find(const struct testing_model *model, uint32_t device,
				       struct index_key key)
{
	uint32_t link = *testing_model_bucket(model, device, key);

	while (link && !testing_model_row_is(&model->rows[link - 1], device, key))
		link = model->rows[link - 1].next;
	return link ? &model->rows[link - 1] : NULL;
}

struct testing_row *testing_model_row(const struct testing_model *model, uint32_t n)
{
	for (uint32_t i = 0; i < model->count; i++) {
		if (view_is_live(&model->rows[i].record) && n-- == 0)
			return &model->rows[i];
	}
	return NULL;
}

static void testing_model_add(struct testing_model *model, uint32_t device,
			      const struct book_record *record)
{
	uint32_t *bucket = testing_model_bucket(model, device,
						(struct index_key){record->address,
								   book_meta_type(record->meta),
								   record->thread_space >> 22});
	uint32_t link = model->free_row;

	if (link) {
		model->free_row = model->rows[link - 1].next;
	} else {
		if (model->count == model->capacity) {
			model->capacity = model->capacity ? 2 * model->capacity : 256;
			model->rows =
				reallocarray(model->rows, model->capacity, sizeof(*model->rows));
			assert(model->rows);
		}
		link = ++model->count;
	}
	model->rows[link - 1] = (struct testing_row){
		.record = *record, .device = device, .next = *bucket, .order = ++model->orders};
	*bucket = link;
	model->shards[device].live++;
}

static void testing_model_drop(struct testing_model *model, struct testing_row *row)
{
	uint32_t link = 1 + (uint32_t)(row - model->rows);
	uint32_t *at = testing_model_bucket(model, row->device, testing_model_key(row));

	while (*at != link)
		at = &model->rows[*at - 1].next;
	*at = row->next;
	model->shards[row->device].live--;
	*row = (struct testing_row){.next = model->free_row};
	model->free_row = link;
}

static uint64_t testing_model_bytes(const struct book_record *record)
{
	return record->meta & BOOK_META_ALIAS ? 0 : record->size;
}

/* What a buffer takes, and whether that is known. */
static bool testing_model_takes(const struct testing_model *model, const struct book_record *record,
				uint64_t *ret_bytes)
{
	const struct book_shape *shape =
		&model->shapes[record->shape < TESTING_SHAPES ? record->shape : 0];

	*ret_bytes = 0;
	if (record->meta & BOOK_META_ALIAS)
		return true;
	if (shape->size_per_bank == 0 || shape->banks == 0 ||
	    shape->size_per_bank * shape->banks >= UINT64_C(1) << 40)
		return false;
	*ret_bytes = shape->size_per_bank * shape->banks;
	return true;
}

/* The counters of an event's type, after the changes common to all events. */
static struct book_hot *testing_model_event(struct testing_shard *shard, uint32_t type,
					    uint64_t time)
{
	shard->exists = true;
	shard->number++;
	shard->hot[type].last = time;
	return &shard->hot[type];
}

static struct book_record testing_model_record(const struct shard_buffer *buffer, uint64_t time)
{
	return (struct book_record){
		.address = buffer->address,
		.size = buffer->size,
		.birth = time,
		.stack = buffer->stack,
		.name = buffer->name,
		.phase = buffer->phase,
		.thread_space = book_thread_space(buffer->thread, buffer->space),
		.meta = book_meta(buffer->type, buffer->flags, 1),
		.shape = buffer->shape,
	};
}

static void testing_model_begin(struct testing_model *model, uint32_t device,
				const struct testing_op *op, uint64_t time)
{
	struct testing_shard *shard = &model->shards[device];
	struct book_hot *hot = testing_model_event(shard, op->buffer.type, time);
	struct book_record record = testing_model_record(&op->buffer, time);

	uint64_t takes;

	testing_model_add(model, device, &record);
	shard->warm[op->buffer.type].known += testing_model_takes(model, &record, &takes);
	shard->warm[op->buffer.type].occupied += takes;
	hot->allocs++;
	hot->buffers++;
	hot->bytes += testing_model_bytes(&record);
	if (hot->bytes > hot->peak) {
		hot->peak = hot->bytes;
		hot->peak_time = time;
	}
}

/* The record ends; a size change adds no grave. */
static void testing_model_end_row(struct testing_model *model, struct testing_row *row,
				  uint64_t time)
{
	struct testing_shard *shard = &model->shards[row->device];
	uint32_t type = book_meta_type(row->record.meta);
	struct book_hot *hot = testing_model_event(shard, type, time);
	uint64_t takes;

	shard->warm[type].known -= testing_model_takes(model, &row->record, &takes);
	shard->warm[type].occupied -= takes;
	hot->frees++;
	hot->buffers--;
	hot->bytes -= testing_model_bytes(&row->record);
	testing_model_drop(model, row);
}

void testing_model_end(struct testing_model *model, struct testing_row *row, uint64_t time)
{
	struct testing_shard *shard = &model->shards[row->device];

	shard->graves[shard->grave_count++ % BOOK_GRAVES] = (struct testing_grave){
		row->record.address, book_meta_type(row->record.meta), testing_model_space(row)};
	testing_model_end_row(model, row, time);
}

static void testing_model_alloc(struct testing_model *model, uint32_t device,
				const struct testing_op *op, const struct testing_facts *facts)
{
	struct testing_shard *shard = &model->shards[device];
	uint32_t type = op->buffer.type;
	uint64_t time = facts->last[device][type];
	struct index_key key = {op->buffer.address, type, op->buffer.space};
	struct testing_row *row = testing_model_find(model, device, key);

	if (!row && facts->lost) {
		testing_model_event(shard, type, time)->allocs++;
		shard->inexact |= BOOK_INEXACT_LOW << type;
		return;
	}
	if (row && row->record.size == op->buffer.size) {
		testing_model_event(shard, type, time)->allocs++;
		shard->cold[type].realloc_live++;
		row->record.meta++; /* refs are the lowest bits */
	} else {
		if (row) {
			shard->cold[type].size_changes++;
			testing_model_end_row(model, row, time);
		}
		testing_model_begin(model, device, op, time);
	}
	if (op->owner)
		testing_model_find(model, device, key)->owners |= 1u << op->owner;
}

/* Whether the free means only its own space. */
static bool testing_model_is_told(const struct testing_op *op)
{
	return op->buffer.space != 0 || op->buffer.flags & SHARD_FREE_IN_SPACE;
}

/* The youngest record in @space that a free may mean; @ret_n says how many there are. */
static struct testing_row *testing_model_youngest(const struct testing_model *model,
						  uint32_t device, const struct testing_op *op,
						  uint32_t space, uint32_t *ret_n)
{
	struct testing_row *youngest = NULL;

	*ret_n = 0;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct testing_row *row = testing_model_find(
			model, device, (struct index_key){op->buffer.address, type, space});

		if (!row || (op->buffer.type != INDEX_ANY && op->buffer.type != type))
			continue;
		++*ret_n;
		if (!youngest || row->order > youngest->order)
			youngest = row;
	}
	return youngest;
}

/* How many spaces have something that the free may mean, and which of it that is. */
static uint32_t testing_model_meant(const struct testing_model *model, uint32_t device,
				    const struct testing_op *op, struct testing_row **ret_row,
				    uint32_t *ret_n)
{
	uint32_t spaces = 0;

	*ret_row = testing_model_youngest(model, device, op, op->buffer.space, ret_n);
	if (*ret_row || testing_model_is_told(op))
		return *ret_row != NULL;
	for (uint32_t space = 1; space < BOOK_SPACES; space++) {
		uint32_t n;
		struct testing_row *row = testing_model_youngest(model, device, op, space, &n);

		if (!row)
			continue;
		spaces++;
		*ret_row = row;
		*ret_n = n;
	}
	return spaces;
}

/* The youngest of the last 4096 frees that the free may mean. */
static const struct testing_grave *testing_model_grave(const struct testing_shard *shard,
						       const struct testing_op *op)
{
	uint64_t n = shard->grave_count < BOOK_GRAVES ? shard->grave_count : BOOK_GRAVES;

	for (uint64_t i = 1; i <= n; i++) {
		const struct testing_grave *grave =
			&shard->graves[(shard->grave_count - i) % BOOK_GRAVES];

		if (grave->address == op->buffer.address &&
		    (op->buffer.type == INDEX_ANY || grave->type == op->buffer.type) &&
		    (!testing_model_is_told(op) || grave->space == op->buffer.space))
			return grave;
	}
	return NULL;
}

/* @last: the time of the last event of each type. */
static void testing_model_free_nothing(struct testing_shard *shard, const struct testing_op *op,
				       const uint64_t *last)
{
	const struct testing_grave *grave = testing_model_grave(shard, op);
	uint32_t type = op->buffer.type == INDEX_ANY ? 0 : op->buffer.type;
	uint64_t low = op->buffer.type == INDEX_ANY ? 0xff : UINT64_C(1) << type;

	if (shard->inexact & low) {
		testing_model_event(shard, type, last[type])->frees++;
		shard->cold[type].overflow_frees++;
	} else if (grave) {
		testing_model_event(shard, grave->type, last[grave->type]);
		shard->cold[grave->type].double_frees++;
	} else {
		testing_model_event(shard, type, last[type]);
		shard->cold[type].unknown_frees++;
	}
}

/* One of several has ended, nobody knows which. */
static void testing_model_unplaced(struct testing_shard *shard, const struct testing_op *op,
				   const uint64_t *last)
{
	uint32_t type = op->buffer.type == INDEX_ANY ? 0 : op->buffer.type;

	testing_model_event(shard, type, last[type]);
	shard->warm[type].unplaced_frees++;
	shard->inexact |= op->buffer.type == INDEX_ANY
				  ? BOOK_INEXACT_HIGH * ((1u << BOOK_TYPES) - 1)
				  : BOOK_INEXACT_HIGH << type;
}

static void testing_model_release(struct testing_model *model, uint32_t device,
				  const struct testing_op *op, const struct testing_facts *facts)
{
	struct testing_shard *shard = &model->shards[device];
	struct testing_row *row;
	uint32_t type, n;

	switch (testing_model_meant(model, device, op, &row, &n)) {
	case 0:
		testing_model_free_nothing(shard, op, facts->last[device]);
		return;
	case 1:
		break;
	default:
		testing_model_unplaced(shard, op, facts->last[device]);
		return;
	}
	type = book_meta_type(row->record.meta);
	if (n > 1)
		shard->cold[type].ambiguous_frees++;
	if (book_meta_refs(row->record.meta) > 1) {
		testing_model_event(shard, type, facts->last[device][type])->frees++;
		row->record.meta--;
	} else {
		testing_model_end(model, row, facts->last[device][type]);
	}
}

bool testing_model_is_meant(const struct testing_row *row, const struct testing_op *op)
{
	if (op->kind == TESTING_END_SPACE)
		return view_is_live(&row->record) && row->device == op->device &&
		       testing_model_space(row) == op->buffer.space;
	return view_is_live(&row->record) && row->device == op->device &&
	       (!op->owner || row->owners >> op->owner & 1) &&
	       (op->buffer.type == INDEX_ANY ||
		op->buffer.type == book_meta_type(row->record.meta));
}

static void testing_model_free_all(struct testing_model *model, const struct testing_op *op,
				   const struct testing_facts *facts)
{
	for (uint32_t i = 0; i < model->count; i++) {
		struct testing_row *row = &model->rows[i];

		if (testing_model_is_meant(row, op))
			testing_model_end(
				model, row,
				facts->last[row->device][book_meta_type(row->record.meta)]);
	}
}

static void testing_model_reset_peak(struct testing_shard *shard, const struct testing_op *op,
				     const uint64_t *last)
{
	for (uint32_t type = 0; type < BOOK_TYPES && shard->exists; type++) {
		struct book_hot *hot;

		if (op->buffer.type != INDEX_ANY && op->buffer.type != type)
			continue;
		hot = testing_model_event(shard, type, last[type]);
		hot->peak = hot->bytes;
		hot->peak_time = hot->last;
	}
}

void testing_model_apply(struct testing_model *model, const struct testing_op *op,
			 const struct testing_facts *facts)
{
	uint32_t mask = op->mesh ? op->mesh : 1u << op->device;
	uint32_t type = op->buffer.type;

	for (uint32_t device = 0; device < TESTING_DEVICES; device++) {
		struct testing_shard *shard = &model->shards[device];

		if (!(mask >> device & 1))
			continue;
		if (op->kind == TESTING_ALLOC) {
			testing_model_alloc(model, device, op, facts);
		} else if (op->kind == TESTING_FREE) {
			testing_model_release(model, device, op, facts);
		} else if (op->kind == TESTING_FREE_ALL || op->kind == TESTING_END_SPACE) {
			testing_model_free_all(model, op, facts);
		} else if (op->kind == TESTING_RESET_PEAK) {
			testing_model_reset_peak(shard, op, facts->last[device]);
		} else {
			(void)testing_model_event(shard, type, facts->last[device][type]);
			shard->cold[type].hooked += op->kind == TESTING_HOOKED;
		}
	}
}

uint64_t testing_model_events(const struct testing_model *model, const struct testing_op *op)
{
	uint32_t device = testing_op_device(op);
	const struct testing_row *row;
	uint64_t n = 0;

	switch (op->kind) {
	case TESTING_ALLOC:
		row = testing_model_find(
			model, device,
			(struct index_key){op->buffer.address, op->buffer.type, op->buffer.space});
		return row && row->record.size != op->buffer.size ? 2 : 1;
	case TESTING_FREE_ALL:
	case TESTING_END_SPACE:
		for (uint32_t i = 0; i < model->count; i++)
			n += testing_model_is_meant(&model->rows[i], op);
		return n;
	case TESTING_RESET_PEAK:
		n = model->shards[device].exists;
		return op->buffer.type == INDEX_ANY ? n * BOOK_TYPES : n;
	case TESTING_FREE:
	case TESTING_HOOKED:
	case TESTING_FAILED:
	case TESTING_KINDS:
	default:
		return 1;
	}
}
