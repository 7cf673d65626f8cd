/* SPDX-License-Identifier: Apache-2.0 */

/* Items for the database while one allocation fails: an item is whole, or there is none. */

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"
#include "store/store-item.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	L1 = 1,
};

#define PROCESSES 20u
#define BUFFERS 60u

static struct snapshot *snapshot;
static struct snapshot_incident incident;

static void begin(void)
{
	char name[32];

	snapshot = testing_snapshot(TESTING_START);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		(void)snprintf(name, sizeof(name), "program %u", i);
		(void)testing_process(snapshot, 42 + i,
				      snapshot_text(snapshot, name, strlen(name)));
		testing_memory(snapshot, i, i % 3, DRAM, 100 + i, 1);
		testing_memory(snapshot, i, i % 3, L1, 10 + i, 1);
	}
	for (uint32_t i = 0; i < BUFFERS; i++) {
		(void)snprintf(name, sizeof(name), "buffer %u", i);
		testing_buffer(snapshot, 0, L1, 0x1000 * (i + UINT64_C(1)), name, NULL);
	}
	assert(snapshot_finish(snapshot) == 0);
	incident = (struct snapshot_incident){
		.kind = "alloc_failed",
		.type = L1,
		.count = 1,
		.explanation = "because",
		.second = {.known = true,
			   .name = "weights",
			   .phase = "load",
			   .stack = testing_stack("a.c:2:g @ app -> a.c:9:main @ app")},
	};
}

static int try_sample(void *context)
{
	struct store_item *item = store_item_sample(snapshot);

	(void)context;
	unit_memory_spare();
	if (!item)
		return -ENOMEM;
	assert(item->process_count == PROCESSES && item->sample_count == 2 * PROCESSES + 6);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "program %u", i);
		assert(strcmp(store_item_text(item, item->processes[i].comm), name) == 0);
	}
	store_item_free(item);
	return 0;
}

static int try_incident(void *context)
{
	const bool *is_failure = context;
	struct store_item *item = *is_failure ? store_item_failure(snapshot, &incident)
					      : store_item_incident(snapshot, &incident);

	unit_memory_spare();
	if (!item)
		return -ENOMEM;
	assert(strcmp(store_item_text(item, item->second.name), "weights") == 0);
	assert(strcmp(store_item_text(item, item->second.phase), "load") == 0);
	assert(*store_item_text(item, item->second.stack));
	assert(strcmp(store_item_text(item, item->explanation), "because") == 0);
	assert(item->sample_count == (*is_failure ? 7 : 0)); /* who holds L1 of device 0 */
	assert(item->process_count == 1 + (*is_failure ? 7 : 0));
	store_item_free(item);
	return 0;
}

static int try_leak(void *context)
{
	const struct ending ending = {.ended_ns = TESTING_START};
	struct store_item *item = NULL;
	int r = store_item_leak(snapshot, 0, &ending, 1 << 20, &item);

	(void)context;
	unit_memory_spare();
	assert(r == 0 ? item != NULL : r == -ENOMEM && !item);
	if (r < 0)
		return r;
	assert(item->leaked_buffers == BUFFERS && item->cut == 0 && item->chunk_count > 0);
	store_item_free(item);
	return 0;
}

static int try_ending(void *context)
{
	const struct ending ending = {.ended_ns = TESTING_START};
	struct store_item *item = store_item_ending(snapshot, 0, &ending);

	(void)context;
	unit_memory_spare();
	if (!item)
		return -ENOMEM;
	assert(item->process_count == 1);
	assert(strcmp(store_item_text(item, item->processes[0].comm), "program 0") == 0);
	store_item_free(item);
	return 0;
}

UNIT(samples_are_whole)
{
	begin();
	assert(unit_memory_sweep(try_sample, NULL) > 5);
	snapshot_free(snapshot);
}

UNIT(incidents_are_whole)
{
	bool is_failure = false;

	begin();
	assert(unit_memory_sweep(try_incident, &is_failure) > 2);
	is_failure = true;
	assert(unit_memory_sweep(try_incident, &is_failure) > 4);
	snapshot_free(snapshot);
}

UNIT(leaks_are_whole)
{
	begin();
	assert(unit_memory_sweep(try_leak, NULL) > 4);
	snapshot_free(snapshot);
}

UNIT(ends_are_whole)
{
	begin();
	assert(unit_memory_sweep(try_ending, NULL) > 1);
	snapshot_free(snapshot);
}
