/* SPDX-License-Identifier: Apache-2.0 */

/* The arenas and the private hash tables over them. */

#include "book/write/intern.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/process/private.h"
#include "book/write/writer.h"

#define INTERN_SEGMENT ((uint64_t)BOOK_ARENA_UNITS * BOOK_UNIT)

/* What an id counts, and therefore the alignment of everything in the arena. */
static const uint32_t intern_grain[BOOK_ARENA_COUNT] = {8, sizeof(struct book_shape), 16,
							sizeof(struct book_module)};

static size_t intern_table_size(uint32_t entries)
{
	return sizeof(struct intern_table) + (size_t)entries * sizeof(uint64_t);
}

void intern_init(struct intern *intern, struct writer *writer)
{
	for (uint32_t kind = 0; kind < BOOK_ARENA_COUNT; kind++) {
		struct intern_arena *arena = &intern->arenas[kind];

		arena->page =
			(struct book_arena *)(void *)(writer->base + BOOK_ARENAS_OFFSET) + kind;
		arena->kind = kind;
		arena->used = intern_grain[kind]; /* id 0 means none */
		arena->page->used = arena->used;
		arena->page->capacity = BOOK_ARENA_SEGMENTS * INTERN_SEGMENT;
	}
	intern->first =
		(struct intern_table){.entries = intern->first_entries, .mask = INTERN_FIRST - 1};
	intern->arenas[BOOK_ARENA_STRINGS].index.table = &intern->first;
}

void intern_deinit(struct intern *intern)
{
	for (uint32_t kind = 0; kind < BOOK_ARENA_COUNT; kind++) {
		struct intern_table *table = intern->arenas[kind].index.table;

		while (table) {
			struct intern_table *older = table->older;

			if (table != &intern->first)
				private_unmap(table, intern_table_size(table->mask + 1));
			table = older;
		}
	}
}

static uint8_t *intern_at(struct writer *writer, const struct intern_arena *arena, uint64_t offset)
{
	uint32_t unit = arena->page->directory[offset / INTERN_SEGMENT];

	return writer->base + book_unit_offset(unit) + offset % INTERN_SEGMENT;
}

/* Reserves up to @end, which lies in the same segment as the byte before it. */
static bool intern_grow(struct writer *writer, struct intern_arena *arena, uint64_t end)
{
	while (arena->room < end) {
		uint64_t segment = arena->room / INTERN_SEGMENT;
		uint64_t next = bits_align_up(arena->room + 1, BOOK_UNIT);
		uint32_t unit;

		if (segment >= BOOK_ARENA_SEGMENTS)
			return false;
		if (arena->room == 0)
			next = BOOK_PAGE;
		unit = arena->page->directory[segment];
		if (!unit) {
			unit = writer_claim(writer, BOOK_ARENA_UNITS, (uint16_t)arena->kind,
					    BOOK_SEGMENT_ARENA);
			if (!unit)
				return false;
			__atomic_store_n(&arena->page->directory[segment], unit, __ATOMIC_RELEASE);
		}
		if (writer_grow(writer, book_unit_offset(unit) + arena->room % INTERN_SEGMENT,
				next - arena->room) < 0)
			return false;
		arena->room = next;
	}
	return true;
}

/* Room for @length bytes at the arena's end; 0 if there is none. Nothing spans two segments. */
static uint64_t intern_place(struct writer *writer, struct intern_arena *arena, uint64_t length)
{
	uint64_t offset = arena->used;

	if (offset / INTERN_SEGMENT != (offset + length - 1) / INTERN_SEGMENT)
		offset = bits_align_up(offset, INTERN_SEGMENT);
	if (!intern_grow(writer, arena, offset + length)) {
		writer_reject(&arena->page->lost);
		return 0;
	}
	return offset;
}

static uint32_t intern_commit(struct intern_arena *arena, uint64_t offset, uint64_t length)
{
	uint32_t grain = intern_grain[arena->kind];

	arena->used = bits_align_up(offset + length, grain);
	/*
	 * Bytes before used, used before the event that names the id (published with release).
	 * Pairs with reader_arena(), after which the bytes are read.
	 */
	__atomic_store_n(&arena->page->used, arena->used, __ATOMIC_RELEASE);
	return (uint32_t)(offset / grain);
}

static struct intern_table *intern_table_new(uint32_t entries)
{
	struct intern_table *table = private_map(intern_table_size(entries));

	if (table) {
		table->entries = (uint64_t *)(void *)(table + 1);
		table->mask = entries - 1;
	}
	return table;
}

static void intern_table_put(struct intern_table *table, uint64_t entry, uint32_t place)
{
	while (table->entries[place & table->mask])
		place++;
	table->count++;
	/* Pairs with the acquire in intern_lookup(). */
	__atomic_store_n(&table->entries[place & table->mask], entry, __ATOMIC_RELEASE);
}

/* If out of memory, the table stays as it is. */
static void intern_table_grow(struct intern_index *index)
{
	struct intern_table *table = index->table;
	struct intern_table *larger =
		intern_table_new(table ? (table->mask + 1) * 4 : INTERN_FIRST);

	if (!larger)
		return;
	for (uint32_t i = 0; table && i <= table->mask; i++) {
		if (table->entries[i])
			intern_table_put(larger, table->entries[i],
					 (uint32_t)(table->entries[i] >> 32));
	}
	larger->older = table;
	__atomic_store_n(&index->table, larger, __ATOMIC_RELEASE);
}

/* The upper half of the hash selects the place and is in the entry: growing needs no rehash. */
static void intern_remember(struct intern_index *index, uint64_t hash, uint32_t id)
{
	struct intern_table *table = index->table;
	uint64_t entry = (hash >> 32) << 32 | id;

	if (!table || table->count > table->mask / 2) {
		intern_table_grow(index);
		table = index->table;
	}
	/*
	 * A table that cannot grow stops accepting entries when three quarters full; later ids are
	 * then not shared.
	 */
	if (table && table->count < table->mask - table->mask / 4)
		intern_table_put(table, entry, (uint32_t)(hash >> 32));
}

static bool intern_is_string(const uint8_t *place, const char *text, size_t length)
{
	const struct book_string *string = (const void *)place;

	return string->length == length && bits_same(string + 1, text, length);
}

/*
 * Strings carry their length in front; shapes are compared as they are. The header of a stack holds
 * its length: the rest may be compared only if the headers are equal.
 */
static bool intern_is(uint32_t kind, const uint8_t *place, const void *key, size_t length)
{
	if (kind == BOOK_ARENA_STRINGS)
		return intern_is_string(place, key, length);
	if (kind == BOOK_ARENA_STACKS && !bits_same(place, key, sizeof(struct book_stack)))
		return false;
	return bits_same(place, key, length);
}

static uint32_t intern_lookup(struct writer *writer, struct intern_arena *arena, uint64_t hash,
			      const void *key, size_t length)
{
	struct intern_table *table = __atomic_load_n(&arena->index.table, __ATOMIC_ACQUIRE);
	uint32_t upper = (uint32_t)(hash >> 32);

	if (!table)
		return 0;
	for (uint32_t place = upper;; place++) {
		uint64_t entry =
			__atomic_load_n(&table->entries[place & table->mask], __ATOMIC_ACQUIRE);
		uint32_t id = (uint32_t)entry;

		if (!entry)
			return 0;
		if (entry >> 32 == upper &&
		    intern_is(arena->kind,
			      intern_at(writer, arena, (uint64_t)id * intern_grain[arena->kind]),
			      key, length))
			return id;
	}
}

static uint32_t intern_add(struct writer *writer, struct intern_arena *arena, uint64_t hash,
			   const void *key, size_t length)
{
	size_t extra = arena->kind == BOOK_ARENA_STRINGS ? sizeof(struct book_string) : 0;
	uint64_t offset = intern_place(writer, arena, length + extra);
	uint8_t *place;
	uint32_t id;

	if (!offset)
		return 0;
	place = intern_at(writer, arena, offset);
	if (extra) {
		struct book_string string = {.length = (uint16_t)length};

		memcpy(place, &string, sizeof(string));
	}
	bits_copy(place + extra, key, length);
	id = intern_commit(arena, offset, length + extra);
	intern_remember(&arena->index, hash, id);
	return id;
}

static uint32_t intern_get(struct writer *writer, uint32_t kind, const void *key, size_t length)
{
	struct intern_arena *arena = &writer->intern.arenas[kind];
	uint64_t hash = hash_bytes(key, length) | UINT64_C(1) << 32; /* an entry is never 0 */
	uint32_t id = intern_lookup(writer, arena, hash, key, length);

	if (likely(id))
		return id;
	if (!lock_take(&writer->intern.lock))
		return 0;
	id = intern_lookup(writer, arena, hash, key, length);
	if (!id)
		id = intern_add(writer, arena, hash, key, length);
	lock_drop(&writer->intern.lock);
	return id;
}

bool intern_prepare(struct writer *writer)
{
	static const uint32_t kinds[] = {BOOK_ARENA_STRINGS, BOOK_ARENA_SHAPES};
	bool is_done = true;

	if (!lock_take(&writer->intern.lock))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct intern_arena *arena = &writer->intern.arenas[kinds[i]];
		struct intern_table *table = arena->index.table;

		if (!intern_grow(writer, arena, arena->used + BOOK_UNIT))
			is_done = false;
		if (!table || table->count > table->mask / 8)
			intern_table_grow(&arena->index);
	}
	lock_drop(&writer->intern.lock);
	return is_done;
}

size_t intern_length(const char *text, size_t max)
{
	size_t length = strnlen(text, max + 1);
	size_t cut;

	if (likely(length <= max))
		return length;
	for (cut = max; cut > max - 4 && ((uint8_t)text[cut] & 0xc0) == 0x80; cut--)
		;
	/* Four continuation bytes in a row are not UTF-8, so any cut will do. */
	return ((uint8_t)text[cut] & 0xc0) == 0x80 ? max : cut;
}

uint32_t intern_string(struct writer *writer, const char *text, size_t max)
{
	if (!text || !*text)
		return 0;
	return intern_get(writer, BOOK_ARENA_STRINGS, text, intern_length(text, max));
}

uint32_t intern_find_string(struct writer *writer, const char *text, size_t max)
{
	struct intern_arena *arena = &writer->intern.arenas[BOOK_ARENA_STRINGS];
	size_t length;

	if (!text || !*text)
		return 0;
	length = intern_length(text, max);
	return intern_lookup(writer, arena, hash_bytes(text, length) | UINT64_C(1) << 32, text,
			     length);
}

uint32_t intern_shape(struct writer *writer, const struct book_shape *shape)
{
	return intern_get(writer, BOOK_ARENA_SHAPES, shape, sizeof(*shape));
}

struct book_shape intern_shape_of(struct writer *writer, uint32_t id)
{
	struct intern_arena *arena = &writer->intern.arenas[BOOK_ARENA_SHAPES];
	struct book_shape shape = {0};
	uint64_t offset = (uint64_t)id * sizeof(shape);

	if (id && offset < __atomic_load_n(&arena->page->used, __ATOMIC_ACQUIRE))
		memcpy(&shape, intern_at(writer, arena, offset), sizeof(shape));
	return shape;
}

uint32_t intern_stack(struct writer *writer, const struct book_frame *frames, size_t count)
{
	return intern_stack_mixed(writer, frames, 0, count);
}

uint32_t intern_stack_mixed(struct writer *writer, const struct book_frame *frames, size_t native,
			    size_t python)
{
	struct {
		struct book_stack head;
		struct book_frame frames[INTERN_FRAMES_MAX];
	} stack;
	size_t length;

	native = bits_min(native, INTERN_FRAMES_MAX);
	python = bits_min(python, INTERN_FRAMES_MAX - native);
	length = (native + python) * sizeof(*frames);
	if (length == 0)
		return 0;
	stack.head = (struct book_stack){
		.native = (uint16_t)native,
		.python = (uint16_t)python,
		.hash = hash_bytes(frames, length),
	};
	bits_copy(stack.frames, frames, length);
	return intern_get(writer, BOOK_ARENA_STACKS, &stack, sizeof(stack.head) + length);
}

size_t intern_frames(struct writer *writer, uint32_t id, struct book_stack *ret_head,
		     struct book_frame *ret_frames, size_t max)
{
	struct intern_arena *arena = &writer->intern.arenas[BOOK_ARENA_STACKS];
	const uint8_t *place;
	size_t count;

	if (!id || (uint64_t)id * intern_grain[BOOK_ARENA_STACKS] >=
			   __atomic_load_n(&arena->page->used, __ATOMIC_ACQUIRE))
		return 0;
	place = intern_at(writer, arena, (uint64_t)id * intern_grain[BOOK_ARENA_STACKS]);
	memcpy(ret_head, place, sizeof(*ret_head));
	count = bits_min((size_t)ret_head->native + ret_head->python, max);
	memcpy(ret_frames, place + sizeof(*ret_head), count * sizeof(*ret_frames));
	return count;
}

uint32_t intern_module(struct writer *writer, const struct book_module *module)
{
	return intern_get(writer, BOOK_ARENA_MODULES, module, sizeof(*module));
}
