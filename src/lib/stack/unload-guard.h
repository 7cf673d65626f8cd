/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks whether files that can be unloaded are still the same. A remembered stack is found again
 * by its addresses, and these do not say which file is mapped there now: another file of the same
 * size is likely to be loaded at exactly the same place after the first is unloaded, even with the
 * same address for the loader's record.
 *
 * So a file is identified by its contents: its build id if that is in the first page, otherwise its
 * path. The check takes no lock: libc says which file is mapped where, and a file on the caller's
 * own stack cannot be unloaded while it is being read. Frame pointers may be wrong and point into a
 * file that another thread is unloading right now. So if a frame is not certain, its file is not
 * read; only its size, place, loader's record and the place of its unwind tables are compared.
 *
 * Each file found in a stack has an entry; a stack has a bit for each entry.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNLOAD_GUARD_MAX 64u /* files */

/* What distinguishes a file from others. */
struct unload_guard_mark {
	const void *place; /* of the build id; NULL = by path */
	uint64_t words[2]; /* the words found there; or a hash of the path */
};

/* @place: the file's build id in memory, NULL if it has none. @start: of the file in memory. */
void unload_guard_mark(uintptr_t start, const void *place, const char *path,
		       struct unload_guard_mark *ret_mark);

/* Functions that change the table: callers serialize. */

/* The bit of the file into which a call returns at @address; 0 = table full, or no such file. */
uint64_t unload_guard_set(uintptr_t address, const struct unload_guard_mark *mark);

/* Invalidates all bits: the generation of modules has risen to @generation. */
void unload_guard_forget(uint32_t generation);

/*
 * Whether all these files are the same. @certain: those that are certainly on the caller's stack.
 * @generation: of the bits.
 */
bool unload_guard_hold(uint64_t bits, uint64_t certain, uint32_t generation);
