/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the stacks of one book, with a limit on how long all of them together may take: whoever reads
 * the book has more to do.
 */

#include <stdint.h>

#include "core/namer.h"
#include "daemon/symbols.h"

#define SYMBOLS_NAMER_MS 5000u

struct symbols_namer {
	struct namer namer; /* what a request takes */
	struct symbols *symbols;
	uint32_t user;
	uint32_t pid;
	uint64_t deadline_ns;
	struct symbols_answer answer; /* what the last names point into */
};

_Static_assert(NAMER_NAMES_MAX >= RESOLVE_FRAMES_MAX, "room for all names");

/* @user: who made the book; @pid: the process, if it lives, else 0. Nothing to be released. */
void symbols_namer_init(struct symbols_namer *namer, struct symbols *symbols, uint32_t user,
			uint32_t pid);
