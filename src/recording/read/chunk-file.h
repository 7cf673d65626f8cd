/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The chunks of a recording. Opening reads the indexes, and the headers of the chunks after the
 * last of them; without a usable index, all headers. Contents are read when they are asked for.
 * Nothing in the file is trusted, and the file may still be growing: what was there when it was
 * opened counts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/layout.h"

/*
 * 1 GiB of them: a day and a half of 32 devices that are busy in every second. A recording of 1e9
 * events on two devices has 20,000.
 */
#define CHUNK_FILE_ENTRIES_MAX (UINT32_C(1) << 22)

#define CHUNK_FILE_WHY_SIZE 256u

/* Bytes that are used again for the next chunk. */
struct chunk_bytes {
	uint8_t *bytes;
	size_t size, capacity;
};

#define CHUNK_BYTES_NULL     \
	(struct chunk_bytes) \
	{                    \
		0            \
	}

void chunk_bytes_deinit(struct chunk_bytes *bytes);

struct chunk_file {
	int fd;
	uint64_t size; /* when it was opened */
	uint64_t end;  /* of the last whole chunk */

	/* In the order of the file, without indexes. A kind of 0: not to be used. */
	struct recording_entry *entries;
	size_t count, capacity;

	struct chunk_bytes frame; /* of the chunk that was read last */
	void *zstd;
};

/* 0 or a negative errno, then with a line for users in @ret_why. */
int chunk_file_open(struct chunk_file *file, const char *path, char ret_why[CHUNK_FILE_WHY_SIZE]);
void chunk_file_close(struct chunk_file *file);

/* The contents of a chunk: 0, -EBADMSG if they are not what was written, or another negative errno. */
int chunk_file_read(struct chunk_file *file, const struct recording_entry *entry,
		    struct chunk_bytes *contents);
