/* SPDX-License-Identifier: Apache-2.0 */

/* The linker leads the calls here (--wrap), which works with the sanitizers' own allocators, too. */

#include "base/testing/unit-memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

#define MEMORY_EACH 32u        /* of the first ones, each fails */
#define MEMORY_MAX (1ul << 32) /* far more than any case takes: it ends what never succeeds */

static _Thread_local unsigned long
	memory_left; /* allocations up to the one that fails; 0 = none does */

static _Thread_local bool memory_is_spared;

static bool memory_is_out(void)
{
	if (memory_is_spared || memory_left == 0 || --memory_left > 0)
		return false;
	errno = ENOMEM;
	return true;
}

/* clang-format off */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
FILE *__real_open_memstream(char **text, size_t *length);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
FILE *__wrap_open_memstream(char **text, size_t *length);
/* clang-format on */

void *__wrap_malloc(size_t size)
{
	return memory_is_out() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_is_out() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return memory_is_out() ? NULL : __real_realloc(memory, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
	return memory_is_out() ? NULL : __real_reallocarray(memory, count, size);
}

char *__wrap_strdup(const char *text)
{
	return memory_is_out() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length)
{
	return memory_is_out() ? NULL : __real_strndup(text, length);
}

FILE *__wrap_open_memstream(char **text, size_t *length)
{
	return memory_is_out() ? NULL : __real_open_memstream(text, length);
}

void unit_memory_spare(void)
{
	memory_is_spared = true;
}

unsigned long unit_memory_sweep(unit_memory_fn *try, void *context)
{
	for (unsigned long n = 1; n < MEMORY_MAX; n += 1 + n / MEMORY_EACH) {
		unsigned long used;
		int r;

		memory_left = n;
		memory_is_spared = false;
		r = try(context);
		used = n - memory_left;
		memory_left = 0;
		if (used < n) {
			assert(r == 0);
			return used;
		}
		if (r != 0 && r != -ENOMEM)
			printf("without allocation %lu: %d\n", n, r);
		assert(r == 0 || r == -ENOMEM);
	}
	assert(!"a try that never succeeds");
	return 0;
}
