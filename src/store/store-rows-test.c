/* SPDX-License-Identifier: Apache-2.0 */

/* Packed rows: they come back as they were, and bytes that are no chunk are refused. */

#include "store/store-rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

static struct snapshot_buffer row_of(uint64_t i)
{
	static const char *const names[] = {NULL, "weights", "kv cache", "\xff"};
	static const char *const stacks[] = {NULL, "a.py:1:load -> s.c:2:take (cut) @ app"};

	return (struct snapshot_buffer){
		.device = (uint32_t)(i % 32),
		.type = (uint8_t)(i % 7),
		.address = i * UINT64_C(0x9e3779b97f4a7c15),
		.size = i % 2 ? UINT64_MAX : i,
		.refs = UINT32_MAX,
		.born_ns = UINT64_MAX - i,
		.thread = (uint32_t)i,
		.flags = 4,
		.kernel_sort = 2,
		.banks = 12,
		.size_per_bank = i << 40,
		.space = (uint32_t)(i % 1024),
		.name = names[i % 4],
		.phase = names[i % 3],
		.stack = testing_stack(stacks[i % 2]),
	};
}

static struct store_chunk pack(uint64_t count)
{
	struct store_packer *packer = store_packer_new(STORE_ROWS_CHUNK);
	struct store_chunk chunk;

	assert(packer);
	for (uint64_t i = 0; i < count; i++) {
		struct snapshot_buffer row = row_of(i);

		assert(!store_packer_is_full(packer));
		assert(store_packer_add(packer, &row, i * 3) == 0);
	}
	assert(store_packer_is_full(packer) == (count == STORE_ROWS_CHUNK));
	assert(store_packer_take(packer, &chunk) == 0 && store_packer_count(packer) == 0);
	store_packer_free(packer);
	return chunk;
}

UNIT(rows_come_back_as_they_were)
{
	struct store_chunk chunk = pack(STORE_ROWS_CHUNK);
	struct store_rows rows = STORE_ROWS_NULL;

	assert(chunk.rows == STORE_ROWS_CHUNK);
	assert(store_rows_unpack(&rows, chunk.bytes, chunk.length) == 0);
	assert(rows.count == STORE_ROWS_CHUNK);
	for (uint32_t i = 0; i < rows.count; i++) {
		const struct snapshot_buffer put = row_of(i), *got = &rows.buffers[i];
		const char *name = put.name && *put.name == '\xff' ? "\xef\xbf\xbd" : put.name;

		assert(got->device == put.device && got->type == put.type);
		assert(got->address == put.address && got->size == put.size);
		assert(got->refs == put.refs && got->born_ns == put.born_ns);
		assert(got->thread == put.thread && got->flags == put.flags);
		assert(got->kernel_sort == 2 && got->banks == 12 && got->space == put.space);
		assert(got->size_per_bank == put.size_per_bank && rows.device_uids[i] == i * 3);
		assert(name ? got->name && strcmp(got->name, name) == 0 : !got->name);
		assert(put.phase ? strcmp(got->phase, put.phase) == 0 : !got->phase);
		assert(put.stack ? strcmp(testing_line(got->stack), testing_line(put.stack)) == 0
				 : !got->stack);
	}
	store_rows_deinit(&rows);
	free(chunk.bytes);
}

UNIT(long_texts_fill_a_chunk)
{
	struct store_packer *packer = store_packer_new(STORE_ROWS_CHUNK);
	struct store_rows rows = STORE_ROWS_NULL;
	struct store_chunk chunk;
	char *names[STORE_ROWS_CHUNK];
	uint32_t count = 0;

	assert(packer);
	while (!store_packer_is_full(packer)) {
		struct snapshot_buffer row = {.refs = 1};

		assert(count < STORE_ROWS_CHUNK);
		names[count] = malloc(20000);
		assert(names[count]);
		memset(names[count], '\xff', 19999); /* three bytes each, cleaned */
		names[count][19999] = '\0';
		row.stack = testing_stack(names[count]);
		row.name = row.phase = names[count++];
		assert(store_packer_add(packer, &row, 0) == 0);
	}
	assert(count > 10 && count < STORE_ROWS_CHUNK);
	assert(store_packer_take(packer, &chunk) == 0);
	assert(store_rows_unpack(&rows, chunk.bytes, chunk.length) == 0 && rows.count == count);
	store_rows_deinit(&rows);
	store_packer_free(packer);
	free(chunk.bytes);
	while (count > 0)
		free(names[--count]);
}

/* A chunk whose unpacked bytes were changed by the caller. */
static int repack(const uint8_t *raw, size_t size, struct store_rows *rows)
{
	uint8_t packed[65536];
	uLongf length = sizeof(packed) - 4;

	packed[0] = (uint8_t)size;
	packed[1] = (uint8_t)(size >> 8);
	packed[2] = (uint8_t)(size >> 16);
	packed[3] = 0;
	assert(compress2(packed + 4, &length, raw, size, 1) == Z_OK);
	return store_rows_unpack(rows, packed, length + 4);
}

/* The first version had no spaces: fifteen columns. */
UNIT(chunks_of_an_earlier_version_are_read)
{
	const size_t column = sizeof(uint64_t) * 5, end = 12 + 15 * column;
	struct store_chunk chunk = pack(5);
	struct store_rows rows = STORE_ROWS_NULL;
	uint8_t raw[4096];
	uLongf size = sizeof(raw);

	assert(uncompress(raw, &size, chunk.bytes + 4, chunk.length - 4) == Z_OK);
	assert(repack(raw, size, &rows) == 0 && rows.buffers[4].space == 4);
	memmove(raw + end, raw + end + column, size - end - column);
	raw[4] = 15;
	assert(repack(raw, size - column, &rows) == 0 && rows.count == 5);
	assert(rows.buffers[4].space == 0 && rows.buffers[4].refs == UINT32_MAX);
	assert(rows.buffers[1].name && strcmp(rows.buffers[1].name, "weights") == 0);
	raw[4] = 14;
	memmove(raw + end - column, raw + end, size - end - column);
	assert(repack(raw, size - 2 * column, &rows) == -EBADMSG);
	store_rows_deinit(&rows);
	free(chunk.bytes);
}

UNIT(damaged_chunks_are_refused)
{
	struct store_chunk chunk = pack(5);
	struct store_rows rows = STORE_ROWS_NULL;
	uint8_t raw[4096], changed[sizeof(raw)];
	uLongf size = sizeof(raw);

	assert(uncompress(raw, &size, chunk.bytes + 4, chunk.length - 4) == Z_OK);
	assert(repack(raw, size, &rows) == 0 && rows.count == 5);
	/* Cut anywhere. */
	for (size_t i = 0; i < chunk.length; i++)
		assert(store_rows_unpack(&rows, chunk.bytes, i) == -EBADMSG);
	/* Each number of the header. */
	for (size_t at = 0; at < 12; at++) {
		memcpy(changed, raw, size);
		changed[at] ^= 1;
		assert(repack(changed, size, &rows) == -EBADMSG);
	}
	/* Texts that do not end. */
	memcpy(changed, raw, size);
	changed[size - 1] = 'x';
	assert(repack(changed, size, &rows) == -EBADMSG);
	/* Offsets of texts may be anything; the memory behind them may not be read. */
	for (size_t at = 12; at < size - 1; at++) {
		memcpy(changed, raw, size);
		changed[at] ^= 0xff;
		assert(repack(changed, size, &rows) == 0);
		for (uint32_t i = 0; i < rows.count; i++) {
			assert(!rows.buffers[i].name || strlen(rows.buffers[i].name) < size);
			assert(!rows.buffers[i].stack ||
			       strlen(testing_line(rows.buffers[i].stack)) < size);
		}
	}
	/* A length that nobody would write. */
	chunk.bytes[3] = 0xff;
	assert(store_rows_unpack(&rows, chunk.bytes, chunk.length) == -EBADMSG);
	store_rows_deinit(&rows);
	free(chunk.bytes);
}
