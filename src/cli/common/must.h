/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory for a command that answers once: if there is none, the command ends with "out of memory" and
 * COMMAND_FAILED. Only for the main thread, and not for commands that run for days, such as top, or while
 * another program depends on them, as in run.
 */

#include <stddef.h>
#include <stdint.h>

struct map;
struct pool;
struct stack;

/* The command that the message names. */
void must_name(const char *command);

/*
 * Calls @fn before the end, to remove what is half done; it may exit with a code of its own. NULL: nothing
 * is to be done anymore.
 */
void must_clean_up(void (*fn)(void *context), void *context);

/* Ends the command for lack of memory. */
_Noreturn void must_end(void);

/* The pointer, which is not NULL. */
#define must_have(pointer)                   \
	({                                   \
		__auto_type had = (pointer); \
		if (!had)                    \
			must_end();          \
		had;                         \
	})

/* The result of a function, which is not -ENOMEM. */
int must_not_lack(int r);

/* Zeroes. */
void *must_alloc(size_t count, size_t size);

char *must_copy(const char *text);

/* array_grow(); NULL only if nothing is needed. */
void *must_grown(void *array, size_t *capacity, size_t needed, size_t size);

/* Makes room for @needed elements in an array, which may move. */
#define must_grow(array, capacity, needed) \
	((array) = must_grown((array), (capacity), (needed), sizeof(*(array))))

/* map_add() */
uint32_t must_number(struct map *map, uint64_t a, uint64_t b);

/* stack_copy(); NULL stays NULL. */
const struct stack *must_stack(struct pool *pool, const struct stack *stack);

/* pool_text() */
const char *must_text(struct pool *pool, const char *text);
