/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A book in plain memory: for tests that make books no writer would write, keep them in files, or
 * change them between two reads. Pages that were never reserved are holes.
 */

#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/backing.h"
#include "book/write/writer.h"

struct testing_memory {
	struct book_file file;
	uint8_t *base;
	uint8_t *is_data;      /* for each page */
	struct writer *writer; /* NULL until testing_memory_write() */

	/* Called before each read, if not NULL. */
	void (*before_read)(struct testing_memory *memory);
	void *context;
};

void testing_memory_init(struct testing_memory *memory, uint64_t size);
void testing_memory_write(struct testing_memory *memory, uint32_t ring_events);
void testing_memory_deinit(struct testing_memory *memory);

/* Stores at any offset; its pages become data. */
void testing_memory_patch(struct testing_memory *memory, uint64_t offset, const void *bytes,
			  uint64_t length);

/*
 * Saves a book to a file and loads it again: text, all in hexadecimal. A line with the size, then
 * one for each 64 bytes that are not all zero: the offset and up to eight 64-bit words, without
 * trailing zeros.
 */
void testing_memory_save(const struct testing_memory *memory, const char *path);
void testing_memory_load(struct testing_memory *memory, const char *path);

/* A small book with some of everything: three devices, names, incidents, marks. */
void testing_memory_fill(struct testing_memory *memory);
#define TESTING_MEMORY_SIZE (BOOK_POOL_OFFSET + 160u * BOOK_UNIT)
