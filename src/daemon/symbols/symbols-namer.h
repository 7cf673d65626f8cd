/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the stacks of books, with a limit on the total time, because the caller that reads the
 * books has other work.
 *
 * Reading a book holds its lock, and a name may take seconds. So a namer can also be nonblocking:
 * it returns names from the cache, notes the other addresses and resolves them after the lock has
 * been released; a second reading then finds the names.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/symbols/symbols.h"
#include "model/sites/namer.h"

#define SYMBOLS_NAMER_MS 5000u        /* for exited processes, whose books nobody else reads */
#define SYMBOLS_NAMER_LEARN_MS 2000u  /* per call of symbols_namer_learn() */
#define SYMBOLS_NAMER_NOTES_MAX 4096u /* unknown addresses; more stay addresses */

struct symbols_note {
	struct symbolizer_module module;
	uint64_t address;
};

struct symbols_namer {
	struct namer namer; /* passed to a request */
	struct symbols *symbols;
	uint64_t deadline_ns;       /* 0 = nonblocking */
	struct symbols_note *notes; /* to be resolved */
	size_t count, capacity;
	size_t asked;                    /* queries while learning, in total */
	struct symbolizer_answer answer; /* storage for the names returned last */
};

/* @waits: resolve names at once, until the time limit. */
void symbols_namer_init(struct symbols_namer *namer, struct symbols *symbols, bool waits);
void symbols_namer_deinit(struct symbols_namer *namer);

/*
 * Resolves the noted addresses with at most @max queries. No lock may be held; the texts of the
 * places must still exist. What is not reached in time stays noted. Return: whether a name was
 * found, so that reading again is worthwhile.
 */
bool symbols_namer_learn(struct symbols_namer *namer, size_t max);
