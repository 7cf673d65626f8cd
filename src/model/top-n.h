/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first few of very many buffers in some order: a heap with the last of them on top, so that
 * each of the many costs one comparison and no memory.
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/snapshot.h"

/* Whether @buffer is among the first @limit so far; its texts need not be set yet. */
bool top_n_wants(const struct snapshot *snapshot, const struct snapshot_buffer *buffer,
		 size_t limit, enum snapshot_order order);

/* Adds one that top_n_wants(), and drops the last. 0 or -ENOMEM. */
int top_n_add(struct snapshot *snapshot, const struct snapshot_buffer *buffer, size_t limit,
	      enum snapshot_order order);
