/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The old server's lists, from a finished snapshot with buffers: what is left, with names, stacks and ages, and loaded
 * kernels. Devices have the numbers that the processes use. Only live processes count.
 */

#include <stddef.h>
#include <stdio.h>

struct snapshot;
struct snapshot_buffer;
struct snapshot_process;

/* What the caller remembers of buffers: a snapshot only has what they are now. */
struct remaining_report_history {
	void *context;
	size_t double_freed; /* buffers that were freed when they were free already */
	/* The last events of a buffer, below its line; nothing if none is known. */
	void (*put)(void *context, FILE *out, const struct snapshot_process *process,
		    const struct snapshot_buffer *buffer);
	/* A list of the double-freed buffers; only called if there are any. */
	void (*put_double_freed)(void *context, FILE *out);
};

/* 0 or -ENOMEM. @history: NULL = none. */
int remaining_report_buffers(FILE *out, const struct snapshot *snapshot,
			     const struct remaining_report_history *history);
int remaining_report_kernels(FILE *out, const struct snapshot *snapshot);

/* The list of double-freed buffers with its heading; nothing without any. */
void remaining_report_double_freed(FILE *out, const struct remaining_report_history *history);
