/* SPDX-License-Identifier: Apache-2.0 */

/* A command is one thread, so what it has to clean up is in static variables. */

#include "cli/common/must.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "base/pool.h"
#include "cli/common/command.h"
#include "model/sites/stack.h"

static const char *must_command = "";
static void (*must_cleanup)(void *context);
static void *must_context;

void must_name(const char *command)
{
	must_command = command;
}

void must_clean_up(void (*fn)(void *context), void *context)
{
	must_cleanup = fn;
	must_context = context;
}

void must_end(void)
{
	void (*fn)(void *context) = must_cleanup;

	must_cleanup = NULL; /* it may lack memory, too */
	fprintf(stderr, "ttmem%s%s: out of memory\n", *must_command ? " " : "", must_command);
	if (fn)
		fn(must_context);
	exit(COMMAND_FAILED);
}

int must_not_lack(int r)
{
	if (r == -ENOMEM)
		must_end();
	return r;
}

void *must_alloc(size_t count, size_t size)
{
	return must_have(calloc(count, size));
}

char *must_copy(const char *text)
{
	return must_have(strdup(text));
}

void *must_grown(void *array, size_t *capacity, size_t needed, size_t size)
{
	return needed > *capacity ? must_have(array_grow(array, capacity, needed, size)) : array;
}

uint32_t must_number(struct map *map, uint64_t a, uint64_t b)
{
	uint32_t number = 0;

	if (map_add(map, a, b, &number) < 0)
		must_end();
	return number;
}

const char *must_text(struct pool *pool, const char *text)
{
	return must_have(pool_text(pool, text, strlen(text)));
}

const struct stack *must_stack(struct pool *pool, const struct stack *stack)
{
	return stack ? must_have(stack_copy(pool, stack)) : NULL;
}
