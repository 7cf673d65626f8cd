/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Appends chunks to a recording, each by one write, and indexes in between. Whatever happens to the
 * writer or to the disk, the file consists of whole chunks and at most one torn one at its end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/layout.h"

/* Left for the last index and the end, so that a limit holds for the whole file. */
#define CHUNK_WRITER_SIZE_MIN (UINT64_C(1) << 20)

struct chunk_writer;

/* A part of a chunk's contents. */
struct chunk_part {
	const void *bytes;
	size_t length;
};

/*
 * @fd: an empty file, open for writing; stays the caller's. @size_max: of the file, 0 = no limit.
 */
int chunk_writer_new(struct chunk_writer **ret_writer, int fd, uint64_t size_max);
struct chunk_writer *chunk_writer_free(struct chunk_writer *writer);

/*
 * Adds a chunk whose contents are @parts, one after the other. The caller fills everything in @entry
 * except for offset, size and length. 0; -EFBIG if the file would become larger than it may; or why it
 * cannot be written, such as -ENOSPC; -EMSGSIZE for more than RECORDING_SIZE_MAX. After any other failure the file ends with the chunk before, and nothing
 * more can be added but the end.
 */
int chunk_writer_add(struct chunk_writer *writer, const struct recording_entry *entry,
		     const struct chunk_part *parts, size_t count);

/*
 * Adds a chunk of another recording: @frame is its second frame, of entry->length bytes. The caller
 * fills everything in @entry except for offset. Return: as chunk_writer_add().
 */
int chunk_writer_copy(struct chunk_writer *writer, const struct recording_entry *entry,
		      const void *frame);

/* The last index, and a RECORDING_END with @json, if they still fit. 0 or why they are not there. */
int chunk_writer_end(struct chunk_writer *writer, const struct recording_entry *entry,
		     const char *json);

/* Bytes of the file so far, and the last chunk's share of them. */
uint64_t chunk_writer_size(const struct chunk_writer *writer);
uint64_t chunk_writer_last(const struct chunk_writer *writer);

/* Why nothing can be added any more; 0 = it can. */
int chunk_writer_failed(const struct chunk_writer *writer);
