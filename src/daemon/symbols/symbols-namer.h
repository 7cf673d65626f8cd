/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the stacks of books, with a limit on how long all of them together may take: whoever reads the
 * books has more to do.
 *
 * Reading a book holds its lock, and a name may take seconds. So a namer can also be one that does not wait:
 * it tells what is known, notes the rest, and asks for that when the book has been let go; who then
 * reads again finds the names.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/symbols/symbols.h"
#include "model/namer.h"

#define SYMBOLS_NAMER_MS 5000u        /* of the dead, whose books nobody else reads */
#define SYMBOLS_NAMER_LEARN_MS 2000u  /* of one time of learning */
#define SYMBOLS_NAMER_NOTES_MAX 4096u /* what is not known; more stay addresses */

struct symbols_note {
	struct symbolizer_module module;
	uint64_t address;
};

struct symbols_namer {
	struct namer namer; /* what a request takes */
	struct symbols *symbols;
	uint64_t deadline_ns;       /* 0 = it does not wait */
	struct symbols_note *notes; /* what is to be asked for */
	size_t count, capacity;
	size_t asked;                    /* by learning, in all */
	struct symbolizer_answer answer; /* what the last names point into */
};

/* @waits: names are asked for at once, until its time is over. */
void symbols_namer_init(struct symbols_namer *namer, struct symbols *symbols, bool waits);
void symbols_namer_deinit(struct symbols_namer *namer);

/*
 * Asks for what was noted, at most @max questions, without any lock held; the texts of the places must
 * still be there. What there was no time for stays noted. Return: whether a name was found, so that it
 * is worth reading again.
 */
bool symbols_namer_learn(struct symbols_namer *namer, size_t max);
