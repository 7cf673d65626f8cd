/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The buffers of a leak report, packed: a chunk holds up to STORE_ROWS_CHUNK rows and can be read
 * without the others, so that neither a writer nor a reader of a long list holds all of it. Within a
 * chunk a column's values follow each other, each as the difference from the one before, byte by
 * byte; most of these bytes are 0, and zlib removes them.
 *
 * A chunk: the length of the rest before compression (4 bytes, little-endian like all others), then
 * compressed: number of rows, of columns, and of bytes of texts (4 each); the columns; the texts,
 * each with its NUL. A text in a column is its offset there; 0 is the empty text, which means none.
 * A reader ignores columns that it does not know.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

#define STORE_ROWS_CHUNK 2048u
#define STORE_ROWS_TEXT_MAX (UINT32_C(1) << 20) /* bytes of texts in a chunk */

/* A chunk. */
struct store_chunk {
	uint32_t first; /* place of its first row in the list */
	uint32_t rows;
	size_t length;
	uint8_t *bytes; /* owned */
};

struct store_packer;

/* With room for @rows, or for a chunk if that is less. NULL: no memory. */
struct store_packer *store_packer_new(uint64_t rows);
struct store_packer *store_packer_free(struct store_packer *packer);

/* Whether it must be emptied before another row is added. */
bool store_packer_is_full(const struct store_packer *packer);

/* Texts are told apart by their addresses. 0 or -ENOMEM. */
int store_packer_add(struct store_packer *packer, const struct snapshot_buffer *buffer,
		     uint64_t device_uid);

/* Rows in it, and bytes before compression. */
uint32_t store_packer_count(const struct store_packer *packer);
size_t store_packer_size(const struct store_packer *packer);

/* Makes a chunk of the rows, whose place the caller sets, and empties the packer. 0 or -ENOMEM. */
int store_packer_take(struct store_packer *packer, struct store_chunk *ret_chunk);

/* An unpacked chunk. */
struct store_rows {
	uint8_t *bytes; /* owned */
	uint32_t count;
	uint32_t text_size;
	const char *texts;
	struct snapshot_buffer *buffers; /* owned; their texts are in @bytes, their process is 0 */
	struct pool stacks;              /* of the buffers */
	uint64_t *device_uids;           /* owned */
};

#define STORE_ROWS_NULL ((struct store_rows){.bytes = NULL})

/* 0; -EBADMSG: not a chunk of ours; or -ENOMEM. Frees what was there before. */
int store_rows_unpack(struct store_rows *rows, const void *bytes, size_t length);
void store_rows_deinit(struct store_rows *rows);
