/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file in memory that a recorder writes to and from which its chunks are taken out again. */

#include <stddef.h>
#include <stdint.h>

#include "recording/format/layout.h"

struct chunk_pipe {
	int fd; /* for the recorder */
	uint64_t at;
	uint8_t *contents; /* of the last chunk */
	size_t capacity;
};

#define CHUNK_PIPE_NULL ((struct chunk_pipe){.fd = -1})

/* 0 or a negative errno. */
int chunk_pipe_init(struct chunk_pipe *pipe);
void chunk_pipe_deinit(struct chunk_pipe *pipe);

/*
 * The next chunk: 1, with its second frame in pipe->contents; 0: there is none yet; or a negative
 * errno.
 */
int chunk_pipe_next(struct chunk_pipe *pipe, struct recording_entry *ret_entry);

/* Again from the first one, unless it was cleared since. */
void chunk_pipe_rewind(struct chunk_pipe *pipe);

/* Frees the buffer; the chunks stay. */
void chunk_pipe_rest(struct chunk_pipe *pipe);

/* Frees the memory of what was taken out. */
void chunk_pipe_clear(struct chunk_pipe *pipe);
