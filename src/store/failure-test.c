/* SPDX-License-Identifier: Apache-2.0 */

/* A failed allocation is stored with who held the memory, and which of their buffers. */

#include <string.h>

#include "base/testing/unit.h"
#include "store/testing/store-testing-rows.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	L1 = 1,
	CB = 5,
};

UNIT(a_failed_allocation_knows_who_held_what)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	struct snapshot_incident incident = {.kind = "alloc_failed",
					     .type = L1,
					     .size = 1 << 20,
					     .largest_free = 512,
					     .size_per_bank = 1 << 14,
					     .banks = 64,
					     .bank_size = 1 << 20,
					     .bank_free = 1 << 12,
					     .explanation = "because",
					     .count = 1,
					     .time_ns = TESTING_START};
	struct testing_told told;
	uint32_t small, large;

	testing_init(&world);
	testing_open(&world);
	small = testing_process(snapshot, 42, "train");
	large = testing_process(snapshot, 43, "serve");
	testing_memory(snapshot, small, 0, L1, 100, 1);
	testing_memory(snapshot, large, 0, CB, 900, 1); /* is in L1 */
	testing_memory(snapshot, large, 0, DRAM, 5000, 1);
	testing_memory(snapshot, large, 1, L1, 5000, 1); /* another device */
	assert(snapshot_finish(snapshot) == 0);
	testing_buffer(snapshot, small, L1, 1, "small", NULL);
	testing_buffer(snapshot, large, CB, 2, "large", NULL);
	testing_buffer(snapshot, large, DRAM, 3, "elsewhere", NULL);
	testing_buffer(snapshot, large, L1, 3, "other device", NULL);
	snapshot->buffers[3].device = 1;
	incident.process = small;
	store_put_failure(world.store, snapshot, &incident);
	testing_flush(&world);

	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.holders == 2 && told.parts == 2);
	assert(!told.incident.example.has_address && told.incident.example.largest_free == 512);
	assert(told.incident.example.size_per_bank == 1 << 14);
	assert(told.incident.example.banks == 64 && told.incident.example.bank_size == 1 << 20);
	assert(told.incident.example.bank_free == 1 << 12);
	assert(strcmp(told.incident.example.explanation, "because") == 0);
	assert(told.incident.process.id.pid == 42);
	assert(told.holder.process.id.pid == 42 &&
	       told.holder.used == 100); /* the last is smallest */
	assert(strcmp(told.part.name, "small") == 0 || strcmp(told.part.name, "large") == 0);
	snapshot_free(snapshot);
	testing_close(&world);
}
