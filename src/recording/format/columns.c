/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table that both directions keep, what they expect of the next event, and the table's own
 * columns.
 */

#include "recording/format/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "recording/format/columns-private.h"

#define TABLE_FIRST 4096u /* records; a multiple of what fills whole pages */

static size_t table_bytes(uint32_t capacity)
{
	return (size_t)capacity * sizeof(struct book_record);
}

void columns_table_deinit(struct columns_table *table)
{
	if (table->records)
		munmap(table->records, table_bytes(table->capacity));
	*table = (struct columns_table){0};
}

/*
 * Pages of their own: the kernel gives them zeroed and only when they are used, so that a large
 * table with few live records costs what its live records cost.
 */
static int table_room(struct columns_table *table, uint32_t count)
{
	uint32_t capacity = table->capacity ? table->capacity : TABLE_FIRST;
	void *records;

	if (count <= table->capacity)
		return 0;
	while (capacity < count)
		capacity *= 2;
	if (table->records)
		records = mremap(table->records, table_bytes(table->capacity),
				 table_bytes(capacity), MREMAP_MAYMOVE);
	else
		records = mmap(NULL, table_bytes(capacity), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (records == MAP_FAILED)
		return -ENOMEM;
	table->records = records;
	table->capacity = capacity;
	return 0;
}

int columns_table_copy(struct columns_table *to, const struct columns_table *from)
{
	int r;

	columns_table_deinit(to);
	r = table_room(to, from->count);
	if (r < 0)
		return r;
	to->count = from->count;
	/* What is not live is zeros there already, and costs nothing as long as it is not written. */
	for (uint32_t slot = 0; slot < from->count; slot++) {
		if (from->records[slot].meta & BOOK_META_LIVE)
			to->records[slot] = from->records[slot];
	}
	return 0;
}

int columns_table_grow(struct columns_table *table, uint64_t count)
{
	int r;

	if (count > BOOK_SLOTS_MAX)
		return -EBADMSG;
	r = table_room(table, (uint32_t)count);
	if (r == 0)
		table->count = (uint32_t)bits_max(table->count, count);
	return r;
}

int columns_apply(struct columns_table *table, const struct book_event *event)
{
	uint32_t op = event->op_slot & 0xff;
	uint32_t slot = event->op_slot >> 8;
	int r;

	if (!event_has_slot(op))
		return 0;
	if (slot > table->count || slot >= BOOK_SLOTS_MAX)
		return -EBADMSG;
	if (slot == table->count) {
		r = table_room(table, slot + 1);
		if (r < 0)
			return r;
		table->count++;
	}
	if ((op & BOOK_OP_MASK) == BOOK_OP_FREE)
		memset(&table->records[slot], 0, sizeof(table->records[slot]));
	else
		table->records[slot] = event->record;
	return 0;
}

int columns_model_init(struct columns_model *model, uint32_t count)
{
	*model = (struct columns_model){
		.kinds = malloc(count * sizeof(*model->kinds)),
		.calls = malloc(count * sizeof(*model->calls)),
		.freed = malloc(count * sizeof(*model->freed)),
	};
	return model->kinds && model->calls && model->freed ? 0 : -ENOMEM;
}

void columns_model_deinit(struct columns_model *model)
{
	free(model->kinds);
	free(model->calls);
	free(model->freed);
}

int columns_follow(struct columns_model *model, struct columns_table *table,
		   const struct book_event *event)
{
	uint32_t op = event->op_slot & BOOK_OP_MASK;
	uint32_t slot = event->op_slot >> 8;

	if (columns_op_is_known(op)) {
		model->slot = model->slot_live = slot;
		if (op == BOOK_OP_FREE)
			model->freed[model->freed_count++] = (struct columns_freed){
				.address = event->record.address, .slot = slot};
	} else {
		if (op == BOOK_OP_ALLOC)
			model->slot = slot;
		model->next = event->record.address + event->record.size;
	}
	return columns_apply(table, event);
}

/* The table: lengths of its columns, count and live records in front. */
enum table_column {
	TABLE_SLOT,
	TABLE_ADDRESS,
	TABLE_SIZE,
	TABLE_BIRTH,
	TABLE_STACK,
	TABLE_NAME,
	TABLE_PHASE,
	TABLE_THREAD_SPACE,
	TABLE_META,
	TABLE_SHAPE,
	TABLE_COLUMNS,
};

static void table_fields(const struct book_record *record, uint64_t slot,
			 uint64_t ret_fields[TABLE_COLUMNS])
{
	ret_fields[TABLE_SLOT] = slot;
	ret_fields[TABLE_ADDRESS] = record->address;
	ret_fields[TABLE_SIZE] = record->size;
	ret_fields[TABLE_BIRTH] = record->birth;
	ret_fields[TABLE_STACK] = record->stack;
	ret_fields[TABLE_NAME] = record->name;
	ret_fields[TABLE_PHASE] = record->phase;
	ret_fields[TABLE_THREAD_SPACE] = record->thread_space;
	ret_fields[TABLE_META] = record->meta;
	ret_fields[TABLE_SHAPE] = record->shape;
}

static uint64_t table_live(const struct columns_table *table)
{
	uint64_t live = 0;

	for (uint32_t slot = 0; slot < table->count; slot++)
		live += (table->records[slot].meta & BOOK_META_LIVE) != 0;
	return live;
}

size_t columns_table_bound(const struct columns_table *table)
{
	return (2 + TABLE_COLUMNS) * COLUMNS_VARINT_MAX +
	       table_live(table) * (4 * COLUMNS_VARINT_MAX + (TABLE_COLUMNS - 4) * 5);
}

static uint32_t table_length(uint64_t value)
{
	return value < 0x80 ? 1 : (64 - (uint32_t)__builtin_clzll(value) + 6) / 7;
}

/* How long each column becomes. Return: how many records live. */
static uint64_t table_measure(const struct columns_table *table,
			      uint64_t ret_lengths[TABLE_COLUMNS])
{
	uint64_t fields[TABLE_COLUMNS], before[TABLE_COLUMNS] = {0}, live = 0;

	memset(ret_lengths, 0, TABLE_COLUMNS * sizeof(*ret_lengths));
	for (uint32_t slot = 0; slot < table->count; slot++) {
		if (!(table->records[slot].meta & BOOK_META_LIVE))
			continue;
		live++;
		table_fields(&table->records[slot], slot, fields);
		for (uint32_t i = 0; i < TABLE_COLUMNS; i++) {
			ret_lengths[i] += table_length(columns_zigzag(fields[i] - before[i]));
			before[i] = fields[i];
		}
	}
	return live;
}

/* All columns at once: a large table is read only twice. */
int64_t columns_encode_table(const struct columns_table *table, uint8_t *ret_bytes)
{
	uint64_t fields[TABLE_COLUMNS], before[TABLE_COLUMNS] = {0}, lengths[TABLE_COLUMNS];
	uint64_t live = table_measure(table, lengths);
	uint8_t *to = columns_put(ret_bytes, table->count), *at[TABLE_COLUMNS];

	to = columns_put(to, live);
	for (uint32_t i = 0; i < TABLE_COLUMNS; i++)
		to = columns_put(to, lengths[i]);
	for (uint32_t i = 0; i < TABLE_COLUMNS; i++) {
		at[i] = to;
		to += lengths[i];
	}
	for (uint32_t slot = 0; slot < table->count; slot++) {
		if (!(table->records[slot].meta & BOOK_META_LIVE))
			continue;
		table_fields(&table->records[slot], slot, fields);
		for (uint32_t i = 0; i < TABLE_COLUMNS; i++) {
			at[i] = columns_put(at[i], columns_zigzag(fields[i] - before[i]));
			before[i] = fields[i];
		}
	}
	return to - ret_bytes;
}

static bool table_is_u32(uint32_t column)
{
	return column == TABLE_SLOT || column >= TABLE_STACK;
}

/* The next record; false if there is none that an encoder could have written. */
static bool table_get_record(struct columns_table *table, struct columns_cursor *columns,
			     uint64_t fields[TABLE_COLUMNS], bool is_first)
{
	uint64_t slot_before = fields[TABLE_SLOT];

	for (uint32_t column = 0; column < TABLE_COLUMNS; column++) {
		fields[column] += columns_unzigzag(columns_get(&columns[column]));
		if (columns[column].failed || (table_is_u32(column) && fields[column] > UINT32_MAX))
			return false;
	}
	if (fields[TABLE_SLOT] >= table->count ||
	    (!is_first && fields[TABLE_SLOT] <= slot_before) ||
	    !(fields[TABLE_META] & BOOK_META_LIVE))
		return false;
	table->records[fields[TABLE_SLOT]] = (struct book_record){
		.address = fields[TABLE_ADDRESS],
		.size = fields[TABLE_SIZE],
		.birth = fields[TABLE_BIRTH],
		.stack = (uint32_t)fields[TABLE_STACK],
		.name = (uint32_t)fields[TABLE_NAME],
		.phase = (uint32_t)fields[TABLE_PHASE],
		.thread_space = (uint32_t)fields[TABLE_THREAD_SPACE],
		.meta = (uint32_t)fields[TABLE_META],
		.shape = (uint32_t)fields[TABLE_SHAPE],
	};
	return true;
}

static bool table_get_records(struct columns_table *table, struct columns_cursor *all,
			      uint64_t live)
{
	struct columns_cursor columns[TABLE_COLUMNS];
	uint64_t lengths[TABLE_COLUMNS];
	uint64_t fields[TABLE_COLUMNS] = {0};

	for (uint32_t column = 0; column < TABLE_COLUMNS; column++)
		lengths[column] = columns_get(all);
	for (uint32_t column = 0; column < TABLE_COLUMNS; column++)
		columns[column] = columns_split(all, lengths[column]);
	if (all->failed || all->at != all->end)
		return false;
	for (uint64_t i = 0; i < live; i++) {
		if (!table_get_record(table, columns, fields, i == 0))
			return false;
	}
	for (uint32_t column = 0; column < TABLE_COLUMNS; column++) {
		if (columns[column].at != columns[column].end)
			return false;
	}
	return true;
}

int columns_decode_table(struct columns_table *table, const uint8_t *bytes, size_t size)
{
	struct columns_cursor all = {.at = bytes, .end = bytes + size};
	uint64_t count = columns_get(&all);
	uint64_t live = columns_get(&all);
	int r;

	columns_table_deinit(table);
	if (all.failed || count > BOOK_SLOTS_MAX || live > count)
		return -EBADMSG;
	r = table_room(table, (uint32_t)count);
	if (r < 0)
		return r;
	table->count = (uint32_t)count;
	return table_get_records(table, &all, live) ? 0 : -EBADMSG;
}
