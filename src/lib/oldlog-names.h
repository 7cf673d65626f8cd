/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frames of stacks as the old logs print them: the file and the symbol that dladdr() knows. That asks the
 * loader, which is not allowed everywhere, so it is done when a stack is seen for the first time, once
 * for each, and kept under the stack's id. Whoever writes a record only looks it up, and takes no lock.
 */

#include <stddef.h>
#include <stdint.h>

#define OLDLOG_NAMES_FRAMES 15u        /* of a stack: as many as a log ever shows */
#define OLDLOG_NAMES_STACKS 16384u     /* places; three quarters are used, others have no frames */
#define OLDLOG_NAMES_BYTES (64u << 20) /* of all names; what is not used is not there */
#define OLDLOG_NAMES_SYMBOL_MAX 4095u  /* bytes, as many as analyze decodes; longer ones are cut */
#define OLDLOG_NAMES_MODULE_MAX 63u

struct oldlog_frame {
	const char *module;
	const char *symbol; /* empty = not known */
	uint64_t offset;    /* of the return in the symbol, else in the module */
};

/* Once for each book: the ids of another mean something else. */
void oldlog_names_open(void);

/* The return addresses of stack @id, innermost first. Where the loader may be asked. */
void oldlog_names_learn(uint32_t id, const uintptr_t *addresses, size_t count);

/* Return: how many frames; 0 = there are none. They stay. */
size_t oldlog_names_find(uint32_t id, struct oldlog_frame *ret_frames, size_t max);
