/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The chunks of a file, for tests of who writes them: a plain walk from the beginning. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/layout.h"

struct testing_chunk {
	struct recording_chunk head;
	uint8_t *contents; /* head.entry.size bytes; NULL = none */
};

struct testing_chunks {
	struct testing_chunk *chunks;
	size_t count, capacity;
	uint64_t size; /* of the file */
	uint64_t torn; /* bytes after the last whole chunk */
};

/* Asserts what holds for every whole chunk. */
void testing_chunks_read(struct testing_chunks *ret_chunks, const char *path);
void testing_chunks_deinit(struct testing_chunks *chunks);

/* Chunk @n of a kind, counted from 0; NULL = there are fewer. */
const struct testing_chunk *testing_chunks_find(const struct testing_chunks *chunks, uint32_t kind,
						size_t n);
size_t testing_chunks_count(const struct testing_chunks *chunks, uint32_t kind);
