/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the history knows of moments of the past: sums, and what happened. */

#include <stdint.h>

struct moment_list;
struct snapshot;
struct store_reader;

/*
 * Bytes and buffers of every process, device and type at a time, or as the last point before it has
 * them. 0 and a finished snapshot that the caller owns, -ENODATA if there is no point of that time, or
 * another negative errno.
 */
int recorder_moments_sums(struct store_reader *reader, uint64_t at_ns,
			  struct snapshot **ret_snapshot);

/* Adds incidents, ended processes that are not in the list yet, and runs of the daemon. */
int recorder_moments_list(struct store_reader *reader, struct moment_list *list);
