/* SPDX-License-Identifier: Apache-2.0 */

/* What was read becomes a hole: offsets only grow, as the recorder expects, and memory does not. */

#include "recording/flight/chunk-pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"

#define PIPE_FRAME_HEAD 8u /* of the skippable frame */
#define PIPE_PAGE 4096u
#define PIPE_CONTENTS_KEPT (UINT64_C(1) << 20) /* of the buffer for contents */

int chunk_pipe_init(struct chunk_pipe *pipe)
{
	*pipe = CHUNK_PIPE_NULL;
	/* Not one of the names that are taken for books. */
	pipe->fd = memfd_create("flight", MFD_CLOEXEC);
	return pipe->fd < 0 ? -errno : 0;
}

void chunk_pipe_deinit(struct chunk_pipe *pipe)
{
	if (pipe->fd >= 0)
		close(pipe->fd);
	free(pipe->contents);
	*pipe = CHUNK_PIPE_NULL;
}

static int pipe_room(struct chunk_pipe *pipe, size_t length)
{
	uint8_t *contents;

	if (length <= pipe->capacity)
		return 0;
	contents = realloc(pipe->contents, length);
	if (!contents)
		return -ENOMEM;
	pipe->contents = contents;
	pipe->capacity = length;
	return 0;
}

int chunk_pipe_next(struct chunk_pipe *pipe, struct recording_entry *ret_entry)
{
	struct recording_chunk chunk;
	uint64_t at = pipe->at + PIPE_FRAME_HEAD;
	ssize_t n = pread(pipe->fd, &chunk, sizeof(chunk), (off_t)at);
	int r;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	if ((size_t)n < sizeof(chunk) || chunk.magic != RECORDING_MAGIC)
		return -EBADMSG;
	r = pipe_room(pipe, chunk.entry.length);
	if (r < 0)
		return r;
	at += sizeof(chunk);
	if (chunk.entry.length > 0) {
		n = pread(pipe->fd, pipe->contents, chunk.entry.length, (off_t)at);
		if (n != (ssize_t)chunk.entry.length)
			return n < 0 ? -errno : -EBADMSG;
	}
	pipe->at = at + chunk.entry.length;
	*ret_entry = chunk.entry;
	return 1;
}

void chunk_pipe_rewind(struct chunk_pipe *pipe)
{
	pipe->at = 0;
}

void chunk_pipe_rest(struct chunk_pipe *pipe)
{
	free(pipe->contents);
	pipe->contents = NULL;
	pipe->capacity = 0;
}

void chunk_pipe_clear(struct chunk_pipe *pipe)
{
	/* If it cannot be, the memory is free when the pipe is. */
	if (pipe->at >= PIPE_PAGE)
		(void)fallocate(pipe->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				(off_t)bits_align_down(pipe->at, PIPE_PAGE));
	if (pipe->capacity > PIPE_CONTENTS_KEPT)
		chunk_pipe_rest(pipe);
}
