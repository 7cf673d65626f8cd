/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Of `ttmem run --record`: the family's books go into a file as well. All calls accept NULL. */

#include <stdbool.h>
#include <stdint.h>

#include "base/ending.h"

struct namer;
struct run_record;
struct scan_book;

/* NULL after the reason was reported. */
struct run_record *run_record_new(const char *path, const char *const *argv, uint64_t size_max);

/* Ends the recording and says what is in it, unless @quiet. */
struct run_record *run_record_end(struct run_record *record, bool quiet);

void run_record_add(struct run_record *record, struct scan_book *book);

/* Reads what is new. Return: how long to wait at most, @wait_ms or less. */
int run_record_round(struct run_record *record, int wait_ms);

/* @status: as from waitpid(); NULL = not known. */
void run_record_book_ended(struct run_record *record, struct scan_book *book,
			   const struct ending *ending, struct namer *namer);
