/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frames of stacks as the old logs print them: the file and the symbol that dladdr() finds, and for C++
 * its name as people wrote it, where the program has libstdc++ and may call it: that allocates memory. They
 * begin with the application: what only reports to ttmem is left out. That calls the loader, so it is done
 * once per stack, when it is seen for the first time, and kept under the stack's id. Writing a record only
 * looks it up, without a lock.
 */

#include <stddef.h>
#include <stdint.h>

#define DEBUG_LOG_NAMES_FRAMES 15u    /* of a stack: the most that a log shows */
#define DEBUG_LOG_NAMES_STACKS 16384u /* slots, 3/4 of them used; further stacks have no frames */
#define DEBUG_LOG_NAMES_BYTES (64u << 20) /* of all names; unused pages take no memory */
#define DEBUG_LOG_NAMES_SYMBOL_MAX \
	4095u /* bytes, as many as analyze decodes; longer ones are cut */
#define DEBUG_LOG_NAMES_MODULE_MAX 63u

struct debug_log_frame {
	const char *module;
	const char *symbol; /* empty = unknown */
	const char *name;   /* decoded; or the symbol */
	uint64_t offset;    /* of the return address in the symbol, else in the module */
};

/* Once for each book: the ids of another book mean other stacks. */
void debug_log_names_open(void);

/* See debug_log_new_stack(). */
void debug_log_names_learn(uint32_t id, const uintptr_t *addresses, size_t count, size_t room);

/* Return: how many frames; 0 = none known. They stay valid. */
size_t debug_log_names_find(uint32_t id, struct debug_log_frame *ret_frames, size_t max);
