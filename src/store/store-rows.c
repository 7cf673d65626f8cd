/* SPDX-License-Identifier: Apache-2.0 */

/* Packs the buffers of leak reports, and unpacks them. A file may be damaged: all is checked. */

#include "store/store-rows.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"
#include "model/sites/stack.h"
#include "store/store-item.h"

/* In this order for ever; new ones are added at the end. */
enum {
	COLUMN_DEVICE,
	COLUMN_DEVICE_UID,
	COLUMN_TYPE,
	COLUMN_ADDRESS,
	COLUMN_SIZE,
	COLUMN_REFS,
	COLUMN_BORN,
	COLUMN_THREAD,
	COLUMN_FLAGS,
	COLUMN_KERNEL_SORT,
	COLUMN_BANKS,
	COLUMN_SIZE_PER_BANK,
	COLUMN_NAME,
	COLUMN_PHASE,
	COLUMN_STACK,
	COLUMN_SPACE,
	COLUMNS,
};

#define ROWS_COLUMNS_FIRST 15u /* of a chunk that the first version wrote */

#define ROWS_HEADER 12u
#define ROWS_TEXTS 3u       /* of a row */
#define ROWS_STACKS 256u    /* that are kept while a chunk is read */
#define ROWS_COLUMNS_MAX 64 /* of a chunk that a later version wrote */
#define ROWS_RAW_MAX                                                                    \
	(ROWS_HEADER + ROWS_COLUMNS_MAX * sizeof(uint64_t) * (size_t)STORE_ROWS_CHUNK + \
	 STORE_ROWS_TEXT_MAX)

struct store_packer {
	uint32_t count, capacity;
	uint64_t (*rows)[COLUMNS];
	char *texts;
	size_t text_used, text_capacity;
	struct map numbers; /* of texts and stacks, by address */
	uint32_t *offsets;  /* by number */
};

struct store_packer *store_packer_new(uint64_t rows)
{
	struct store_packer *packer = calloc(1, sizeof(*packer));

	if (!packer)
		return NULL;
	/* Most reports are short, and a whole chunk takes half a megabyte. */
	packer->capacity = (uint32_t)bits_min(rows ? rows : 1, STORE_ROWS_CHUNK);
	packer->rows = calloc(packer->capacity, sizeof(*packer->rows));
	packer->offsets = calloc((size_t)ROWS_TEXTS * packer->capacity, sizeof(*packer->offsets));
	return packer->rows && packer->offsets ? packer : store_packer_free(packer);
}

struct store_packer *store_packer_free(struct store_packer *packer)
{
	if (!packer)
		return NULL;
	free(packer->rows);
	map_deinit(&packer->numbers);
	free(packer->offsets);
	free(packer->texts);
	free(packer);
	return NULL;
}

bool store_packer_is_full(const struct store_packer *packer)
{
	return packer->count == packer->capacity ||
	       packer->text_used + 1 + ROWS_TEXTS * TEXT_CLEAN_SIZE(STORE_TEXT_MAX) >
		       STORE_ROWS_TEXT_MAX;
}

uint32_t store_packer_count(const struct store_packer *packer)
{
	return packer->count;
}

size_t store_packer_size(const struct store_packer *packer)
{
	return ROWS_HEADER + COLUMNS * sizeof(uint64_t) * (size_t)packer->count + packer->text_used;
}

/* The offset of a text, which is copied when its key is met for the first time. A key of NULL is none. */
static int packer_text(struct store_packer *packer, const void *key, const char *text,
		       uint64_t *ret_at)
{
	uint32_t number = key ? map_find(&packer->numbers, (uintptr_t)key, 0) : 0;
	size_t length;
	char *texts;

	*ret_at = number ? packer->offsets[number - 1] : 0;
	if (number || !key || !*text)
		return 0;
	length = strnlen(text, STORE_TEXT_MAX);
	texts = array_grow(packer->texts, &packer->text_capacity,
			   packer->text_used + 1 + TEXT_CLEAN_SIZE(length), 1);
	if (!texts)
		return -ENOMEM;
	packer->texts = texts;
	if (map_add(&packer->numbers, (uintptr_t)key, 0, &number) < 0)
		return -ENOMEM;
	if (packer->text_used == 0)
		texts[packer->text_used++] = '\0';
	packer->offsets[number - 1] = (uint32_t)packer->text_used;
	*ret_at = packer->text_used;
	packer->text_used += text_clean(text, length, texts + packer->text_used) + 1;
	return 0;
}

int store_packer_add(struct store_packer *packer, const struct snapshot_buffer *buffer,
		     uint64_t device_uid)
{
	uint64_t row[COLUMNS] = {
		[COLUMN_DEVICE] = buffer->device, [COLUMN_DEVICE_UID] = device_uid,
		[COLUMN_TYPE] = buffer->type,     [COLUMN_ADDRESS] = buffer->address,
		[COLUMN_SIZE] = buffer->size,     [COLUMN_REFS] = buffer->refs,
		[COLUMN_BORN] = buffer->born_ns,  [COLUMN_THREAD] = buffer->thread,
		[COLUMN_FLAGS] = buffer->flags,   [COLUMN_KERNEL_SORT] = buffer->kernel_sort,
		[COLUMN_BANKS] = buffer->banks,   [COLUMN_SIZE_PER_BANK] = buffer->size_per_bank,
		[COLUMN_SPACE] = buffer->space,
	};
	char line[STACK_LINE];
	int r = packer_text(packer, buffer->name, buffer->name, &row[COLUMN_NAME]);

	if (r == 0)
		r = packer_text(packer, buffer->phase, buffer->phase, &row[COLUMN_PHASE]);
	if (!map_find(&packer->numbers, (uintptr_t)buffer->stack, 0))
		stack_line(buffer->stack, line, sizeof(line));
	if (r == 0)
		r = packer_text(packer, buffer->stack, line, &row[COLUMN_STACK]);
	if (r < 0)
		return r;
	memcpy(packer->rows[packer->count++], row, sizeof(row));
	return 0;
}

static void packer_put_u32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

/* A column's differences, their lowest bytes first. Small ones of either sign have few bits. */
static void packer_put_column(const struct store_packer *packer, size_t column, uint8_t *to)
{
	uint32_t count = packer->count;
	uint64_t before = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t more = packer->rows[i][column] - before;
		uint64_t value = more << 1 ^ (more >> 63 ? UINT64_MAX : 0);

		before = packer->rows[i][column];
		for (uint32_t byte = 0; byte < sizeof(value); byte++)
			to[(size_t)byte * count + i] = (uint8_t)(value >> 8 * byte);
	}
}

int store_packer_take(struct store_packer *packer, struct store_chunk *ret_chunk)
{
	size_t size = store_packer_size(packer);
	uLongf length = compressBound(size);
	CLEANUP_FREE uint8_t *raw = malloc(size);
	CLEANUP_FREE uint8_t *packed = malloc(sizeof(uint32_t) + length);
	uint8_t *at = raw, *less;

	if (!raw || !packed)
		return -ENOMEM;
	packer_put_u32(at, packer->count);
	packer_put_u32(at + 4, COLUMNS);
	packer_put_u32(at + 8, (uint32_t)packer->text_used);
	at += ROWS_HEADER;
	for (size_t i = 0; i < COLUMNS; i++) {
		packer_put_column(packer, i, at);
		at += sizeof(uint64_t) * packer->count;
	}
	if (packer->text_used > 0)
		memcpy(at, packer->texts, packer->text_used);
	packer_put_u32(packed, (uint32_t)size);
	/* It has room for any result, so only memory can be missing. */
	if (compress2(packed + sizeof(uint32_t), &length, raw, size, Z_BEST_SPEED) != Z_OK)
		return -ENOMEM;
	length += sizeof(uint32_t);
	less = realloc(packed, length);
	if (less)
		packed = less;
	*ret_chunk = (struct store_chunk){
		.rows = packer->count,
		.length = length,
		.bytes = cleanup_steal(packed),
	};
	packer->count = 0;
	packer->text_used = 0;
	map_deinit(&packer->numbers);
	return 0;
}

static uint32_t rows_get_u32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static uint64_t rows_get(const uint8_t *column, uint32_t count, uint32_t at, uint64_t before)
{
	uint64_t value = 0;

	for (uint32_t byte = 0; byte < sizeof(value); byte++)
		value |= (uint64_t)column[(size_t)byte * count + at] << 8 * byte;
	return before + (value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

/* NULL for none; so is what lies outside. */
static const char *rows_text(const struct store_rows *rows, uint64_t at)
{
	return at > 0 && at < rows->text_size && rows->texts[at] ? rows->texts + at : NULL;
}

/* Most rows have one of a few stacks. */
struct rows_stack {
	uint64_t at; /* 0 = none yet */
	const struct stack *stack;
};

static const struct stack *rows_stack(struct store_rows *rows, struct rows_stack *known,
				      uint64_t at)
{
	struct rows_stack *one = &known[at % ROWS_STACKS];

	if (one->at != at)
		*one = (struct rows_stack){at, stack_parse(&rows->stacks, rows_text(rows, at))};
	return one->stack;
}

/* @there: columns that the chunk has; what it lacks is 0. */
static void rows_fill(struct store_rows *rows, const uint8_t *columns, uint32_t there)
{
	struct rows_stack stacks[ROWS_STACKS] = {{.at = 0}};
	uint64_t row[COLUMNS] = {0};

	for (uint32_t i = 0; i < rows->count; i++) {
		for (size_t k = 0; k < COLUMNS && k < there; k++)
			row[k] = rows_get(columns + sizeof(uint64_t) * rows->count * k, rows->count,
					  i, row[k]);
		rows->device_uids[i] = row[COLUMN_DEVICE_UID];
		rows->buffers[i] = (struct snapshot_buffer){
			.device = (uint32_t)row[COLUMN_DEVICE],
			.type = (uint8_t)row[COLUMN_TYPE],
			.address = row[COLUMN_ADDRESS],
			.size = row[COLUMN_SIZE],
			.refs = (uint32_t)row[COLUMN_REFS],
			.born_ns = row[COLUMN_BORN],
			.thread = (uint32_t)row[COLUMN_THREAD],
			.flags = (uint8_t)row[COLUMN_FLAGS],
			.kernel_sort = (uint8_t)row[COLUMN_KERNEL_SORT],
			.banks = (uint32_t)row[COLUMN_BANKS],
			.size_per_bank = row[COLUMN_SIZE_PER_BANK],
			.name = rows_text(rows, row[COLUMN_NAME]),
			.phase = rows_text(rows, row[COLUMN_PHASE]),
			.stack = rows_stack(rows, stacks, row[COLUMN_STACK]),
			.space = (uint32_t)row[COLUMN_SPACE],
		};
	}
}

/* Checks the header of the unpacked bytes. */
static int rows_check(struct store_rows *rows, size_t size, uint32_t *ret_columns)
{
	if (size < ROWS_HEADER)
		return -EBADMSG;
	rows->count = rows_get_u32(rows->bytes);
	*ret_columns = rows_get_u32(rows->bytes + 4);
	rows->text_size = rows_get_u32(rows->bytes + 8);
	if (rows->count == 0 || rows->count > STORE_ROWS_CHUNK ||
	    *ret_columns < ROWS_COLUMNS_FIRST || *ret_columns > ROWS_COLUMNS_MAX ||
	    rows->text_size > STORE_ROWS_TEXT_MAX ||
	    size != ROWS_HEADER + sizeof(uint64_t) * *ret_columns * (size_t)rows->count +
			    rows->text_size)
		return -EBADMSG;
	rows->texts = (const char *)rows->bytes + size - rows->text_size;
	return rows->text_size == 0 || rows->texts[rows->text_size - 1] == '\0' ? 0 : -EBADMSG;
}

static int rows_inflate(struct store_rows *rows, const uint8_t *bytes, size_t length,
			size_t *ret_size)
{
	size_t size = length >= sizeof(uint32_t) ? rows_get_u32(bytes) : 0;
	uLongf got = size;
	int r;

	if (size < ROWS_HEADER || size > ROWS_RAW_MAX)
		return -EBADMSG;
	rows->bytes = malloc(size);
	if (!rows->bytes)
		return -ENOMEM;
	r = uncompress(rows->bytes, &got, bytes + sizeof(uint32_t), length - sizeof(uint32_t));
	if (r != Z_OK || got != size)
		return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	*ret_size = size;
	return 0;
}

int store_rows_unpack(struct store_rows *rows, const void *bytes, size_t length)
{
	uint32_t columns = 0;
	size_t size = 0;
	int r;

	store_rows_deinit(rows);
	r = rows_inflate(rows, bytes, length, &size);
	if (r == 0)
		r = rows_check(rows, size, &columns);
	if (r < 0)
		return r;
	rows->buffers = calloc(rows->count, sizeof(*rows->buffers));
	rows->device_uids = calloc(rows->count, sizeof(*rows->device_uids));
	if (!rows->buffers || !rows->device_uids)
		return -ENOMEM;
	rows_fill(rows, rows->bytes + ROWS_HEADER, columns);
	return 0;
}

void store_rows_deinit(struct store_rows *rows)
{
	free(rows->bytes);
	free(rows->buffers);
	free(rows->device_uids);
	pool_deinit(&rows->stacks);
	*rows = STORE_ROWS_NULL;
}
