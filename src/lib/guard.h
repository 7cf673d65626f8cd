/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether files that can be unloaded are still those that they were. What is remembered of a stack is found
 * again by its addresses, and these say nothing of who lies there now: another file of the same size is
 * likely to be loaded at the very place of one that has gone, down to the loader's own record of it.
 *
 * So a file is known by what its maker wrote into it: its build id, if that lies in the first page, otherwise by
 * its path. Looking takes no lock: libc tells what lies where, and a file that the caller's own stack leads
 * through stays there while it is looked into. Frame pointers may lead astray, to an address of a file that another
 * thread unloads in this moment; so who cannot be certain of a frame does not look into its file, and goes by
 * size, place, the loader's record and where the file has its unwind tables alone.
 *
 * There is a place for each file that was met in a stack; a stack has a bit for each place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARD_MAX 64u /* files */

/* What tells a file from others. */
struct guard_mark {
	const void *place; /* of the build id; NULL = by path */
	uint64_t words[2]; /* what is there; or a hash of the path */
};

/* @place: where the file's build id lies, and NULL if it has none. @start: of the file in memory. */
void guard_mark(uintptr_t start, const void *place, const char *path, struct guard_mark *ret_mark);

/* Changes: one at a time. */

/* The bit of the file that a call returns into at @address; 0 = there is no place, or no such file. */
uint64_t guard_set(uintptr_t address, const struct guard_mark *mark);

/* What the bits mean is over: the generation of modules has risen to @generation. */
void guard_forget(uint32_t generation);

/*
 * Whether all these files are the same. @certain: those of them that the caller's stack does lead through.
 * @generation: of the bits.
 */
bool guard_hold(uint64_t bits, uint64_t certain, uint32_t generation);
