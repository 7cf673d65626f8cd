/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `ttmem run --black-box`: a flight recorder for the family. The last minute of a process becomes a
 * file when one of its allocations fails, when a signal kills it, or when it leaves something. All
 * calls accept NULL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/ending.h"

struct namer;
struct run_black_box;
struct scan_book;

/* @folder: for the files. NULL after the reason was reported. */
struct run_black_box *run_black_box_new(const char *folder);

/* Says which files there are, unless @quiet. */
struct run_black_box *run_black_box_free(struct run_black_box *box, bool quiet);

void run_black_box_add(struct run_black_box *box, struct scan_book *book);

/* Reads what is new. Return: how long to wait at most, @wait_ms or less. */
int run_black_box_round(struct run_black_box *box, int wait_ms);

/* @has_left: buffers. */
void run_black_box_ended(struct run_black_box *box, struct scan_book *book,
			 const struct ending *ending, bool has_left, struct namer *namer);
