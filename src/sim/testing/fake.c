/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A fake libttmem for tests. Records are never removed, only marked as freed, so that a double free
 * can be told from an unknown one. Names and phases are kept as text.
 */

#include "sim/testing/fake.h"

#undef NDEBUG
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PHASES 16

struct record {
	uint32_t device;
	uint32_t type;
	uint64_t address;
	uint64_t size;
	uint64_t size_per_bank;
	uint64_t owner;
	uint32_t flags;
	bool is_live;
	char name[FAKE_TEXT];
	char freed_phase[FAKE_TEXT];
};

static struct fake_figures *figures;
static struct record *records;
static size_t n_records, room;
static pid_t records_pid;
static char phases[PHASES][FAKE_TEXT];
static int n_phases;

struct fake_figures *fake_figures(void)
{
	if (!figures) {
		void *memory = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			abort();
		figures = memory;
	}
	/* A child begins with empty tables, like its parent. */
	if (records_pid != getpid()) {
		records_pid = getpid();
		n_records = 0;
	}
	return figures;
}

/* Calls of forked children would be mixed in at random: the hash is only useful without them. */
static void hash_call(const char *call, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t hash = fake_figures()->hash;
	const uint64_t words[] = {a, b, c};

	for (; *call; call++)
		hash = (hash ^ (unsigned char)*call) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < 3; i++)
		hash = (hash ^ words[i] ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	figures->hash = hash;
}

static void phase_path(char *text)
{
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < n_phases && at < FAKE_TEXT; i++)
		at += (size_t)snprintf(text + at, FAKE_TEXT - at, "%s%s", i ? "/" : "", phases[i]);
}

/* Backwards: the youngest record of a key counts. */
static struct record *find(uint32_t device, uint32_t type, uint64_t address)
{
	for (size_t i = n_records; i-- > 0;) {
		struct record *record = &records[i];

		if (record->device == device && record->address == address &&
		    (type == TTMEM_ANY || record->type == type))
			return record;
	}
	return NULL;
}

/* Which types share memory, so that their buffers must not overlap. */
static uint32_t place(uint32_t type)
{
	if (type == TTMEM_CB)
		return TTMEM_L1;
	return type == TTMEM_KERNEL ? TTMEM_DRAM : type;
}

static bool overlaps(const struct ttmem_alloc_args *args)
{
	for (size_t i = 0; i < n_records; i++) {
		const struct record *record = &records[i];

		if (record->is_live && record->device == args->device &&
		    place(record->type) == place(args->type) &&
		    !(record->flags & TTMEM_FLAG_ALIAS) &&
		    args->address < record->address + record->size_per_bank &&
		    record->address < args->address + args->size_per_bank)
			return true;
	}
	return false;
}

static struct record *new_record(void)
{
	if (n_records == room) {
		room = room ? 2 * room : 1024;
		records = reallocarray(records, room, sizeof(*records));
		if (!records)
			abort();
	}
	return &records[n_records++];
}

static void remember_last(const struct ttmem_alloc_args *args)
{
	figures->alloc = *args;
	figures->alloc.name = NULL;
	(void)snprintf(figures->alloc_name, FAKE_TEXT, "%s", args->name ? args->name : "");
	phase_path(figures->alloc_phase);
}

void ttmem_alloc_ex(const struct ttmem_alloc_args *args)
{
	struct record *record;
	uint64_t bytes;

	hash_call("alloc", args->device << 8 | args->type, args->address, args->size);
	assert(args->struct_size == sizeof(*args));
	assert(args->device < TTMEM_DEVICE_COUNT && args->type < TTMEM_TYPE_COUNT && args->size);
	remember_last(args);
	if (args->flags & TTMEM_FLAG_HOOKED) {
		figures->hooked++;
		return;
	}

	figures->allocs++;
	figures->by_type[args->type]++;
	record = find(args->device, args->type, args->address);
	if (record && record->is_live) {
		figures->live_again++;
		return;
	}
	if (args->flags & TTMEM_FLAG_ALIAS)
		figures->aliases++;
	else if (overlaps(args))
		figures->overlaps++;

	if (!record)
		record = new_record();
	*record = (struct record){
		.device = args->device,
		.type = args->type,
		.address = args->address,
		.size = args->flags & TTMEM_FLAG_ALIAS ? 0 : args->size,
		.size_per_bank = args->size_per_bank,
		.owner = args->owner,
		.flags = args->flags,
		.is_live = true,
	};
	(void)snprintf(record->name, FAKE_TEXT, "%s", args->name ? args->name : "");
	figures->live++;
	bytes = atomic_fetch_add(&figures->bytes[args->type], record->size) + record->size;
	if (bytes > figures->peak[args->type])
		figures->peak[args->type] = bytes;
}

static void end_record(struct record *record)
{
	record->is_live = false;
	phase_path(record->freed_phase);
	figures->frees++;
	figures->live--;
	figures->bytes[record->type] -= record->size;
}

void ttmem_free(uint32_t device, uint32_t type, uint64_t address)
{
	struct record *record;

	hash_call("free", device, type, address);
	record = find(device, type, address);
	if (record && record->is_live) {
		end_record(record);
		return;
	}
	figures->unknown_frees++;
	if (record) {
		figures->double_frees++;
		(void)snprintf(figures->freed_name, FAKE_TEXT, "%s", record->name);
		(void)snprintf(figures->freed_phase, FAKE_TEXT, "%s", record->freed_phase);
		phase_path(figures->freed_again_phase);
	}
}

void ttmem_free_ex(const struct ttmem_free_args *args)
{
	assert(args->struct_size == sizeof(*args));
	if (args->flags & TTMEM_FLAG_HOOKED)
		fake_figures()->hooked_frees++;
	else
		ttmem_free(args->device, args->type, args->address);
}

void ttmem_free_all(uint32_t device, uint32_t type, uint64_t owner)
{
	hash_call("free_all", device, type, owner);
	for (size_t i = 0; i < n_records; i++) {
		struct record *record = &records[i];

		if (record->is_live && record->device == device && record->type == type &&
		    (!owner || record->owner == owner))
			end_record(record);
	}
}

void ttmem_alloc_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address,
		      uint64_t size, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		struct ttmem_alloc_args args = {
			.struct_size = sizeof(args),
			.device = devices[i],
			.type = type,
			.address = address,
			.size = size,
			.name = name,
		};

		ttmem_alloc_ex(&args);
	}
}

void ttmem_free_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		ttmem_free(devices[i], type, address);
}

void ttmem_alloc_failed(uint32_t device, uint32_t type, uint64_t size, uint64_t largest_free)
{
	hash_call("failed", device, type, size);
	figures->failed++;
	figures->failed_size = size;
	figures->failed_largest = largest_free;
}

void ttmem_device(const struct ttmem_device_args *args)
{
	hash_call("device", args->device, args->unique_id, 0);
	assert(args->struct_size == sizeof(*args));
	figures->devices++;
	figures->device = *args;
}

void ttmem_device_close(uint32_t device)
{
	hash_call("close", device, 0, 0);
	figures->closed++;
}

void ttmem_phase_push(const char *name)
{
	hash_call(name, 1, 0, 0);
	assert(n_phases < PHASES);
	(void)snprintf(phases[n_phases++], FAKE_TEXT, "%s", name);
	figures->phases++;
}

void ttmem_skip_frames(const char *patterns)
{
	assert(*patterns);
}

void ttmem_phase_pop(void)
{
	hash_call("pop", 0, 0, 0);
	assert(n_phases > 0);
	n_phases--;
	figures->phases--;
}

void ttmem_goodbye(void)
{
	fake_figures()->goodbyes++;
}

uint64_t fake_live_named(const char *name)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_records; i++)
		n += records[i].is_live && strcmp(records[i].name, name) == 0;
	return n;
}
