/* SPDX-License-Identifier: Apache-2.0 */

/* Each allocation fails once, and helpers of this layer bear it. */

#include "base/testing/unit-memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/quota.h"
#include "base/testing/unit.h"

static unsigned int refused;

static int allocate_three(void *context)
{
	CLEANUP_FREE char *first = strdup("first");
	CLEANUP_FREE char *second = first ? malloc(10) : NULL;
	CLEANUP_FREE char *third = second ? realloc(NULL, 10) : NULL;

	(*(unsigned int *)context)++;
	refused += !third;
	return third ? 0 : -ENOMEM;
}

UNIT(each_allocation_fails_once)
{
	unsigned int calls = 0;

	assert(unit_memory_sweep(allocate_three, &calls) == 3);
	assert(calls == 4 && refused == 3);
	assert(allocate_three(&calls) == 0);
}

static int fail(void *context)
{
	(void)context;
	return -EIO;
}

UNIT_FAIL(another_failure_is_not_accepted)
{
	(void)unit_memory_sweep(fail, NULL);
}

static int spare_second(void *context)
{
	CLEANUP_FREE char *first = malloc(1);
	CLEANUP_FREE char *second = NULL;

	(void)context;
	unit_memory_spare();
	second = malloc(1);
	assert(second);
	return first ? 0 : -ENOMEM;
}

UNIT(a_check_has_memory)
{
	assert(unit_memory_sweep(spare_second, NULL) == 1);
}

/* What is there stays, whatever does not fit any more. */
static int fill_map(void *context)
{
	struct map map = {0};
	uint32_t number;
	int r = 0;

	(void)context;
	for (uint64_t i = 1; r == 0 && i <= 1000; i++) {
		r = map_add(&map, i, 0, &number);
		assert(r < 0 || number == i);
		assert(map_find(&map, i, 0) == (r < 0 ? 0 : i));
		for (uint64_t k = 1; k < i; k++)
			assert(map_find(&map, k, 0) == k);
	}
	map_deinit(&map);
	return r;
}

UNIT(a_map_without_memory_keeps_its_entries)
{
	assert(unit_memory_sweep(fill_map, NULL) > 2);
}

static int fill_pool(void *context)
{
	struct pool pool = POOL_NULL;
	bool is_all = true;
	char text[16];

	(void)context;
	for (int i = 0; i < 500; i++) {
		const char *copy;

		(void)snprintf(text, sizeof(text), "text %d", i);
		copy = pool_text(&pool, text, strlen(text));
		assert(!copy || strcmp(copy, text) == 0);
		is_all = is_all && copy;
	}
	pool_deinit(&pool);
	return is_all ? 0 : -ENOMEM;
}

UNIT(a_pool_without_memory_has_no_text)
{
	assert(unit_memory_sweep(fill_pool, NULL) > 2);
}

static int take_quota(void *context)
{
	struct quota quota = {.total = 1000, .each = 10};
	bool is_all = true;

	(void)context;
	for (uint64_t user = 0; user < 50; user++) {
		bool has = quota_take(&quota, user, 3);

		assert(quota_used(&quota, user) == (has ? 3 : 0));
		is_all = is_all && has;
	}
	assert(quota.used % 3 == 0);
	quota_deinit(&quota);
	return is_all ? 0 : -ENOMEM;
}

UNIT(a_quota_without_memory_gives_nothing)
{
	assert(unit_memory_sweep(take_quota, NULL) > 0);
}

static int grow(void *context)
{
	size_t capacity = 0;
	char *array = NULL;
	int r = 0;

	(void)context;
	for (size_t i = 0; r == 0 && i < 100; i++) {
		char *grown = array_grow(array, &capacity, i + 1, 1);

		if (grown) {
			array = grown;
			array[i] = (char)i;
		}
		for (size_t k = 0; k < i; k++)
			assert(array[k] == (char)k);
		r = grown ? 0 : -ENOMEM;
	}
	free(array);
	return r;
}

UNIT(an_array_that_cannot_grow_stays)
{
	assert(unit_memory_sweep(grow, NULL) == 4);
}
