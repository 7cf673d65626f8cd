/* SPDX-License-Identifier: Apache-2.0 */

/* Objects that are as much of tt-metal as this folder looks at. */

#include "metal/testing/metal-testing.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

#define TESTING_PAGE 2048u
#define TESTING_ENTRIES_MAX 4096
#define TESTING_BASE 0x1000u /* the first address in each bank */
#define TESTING_BANKS 8u

static struct {
	struct testing_entry list[TESTING_ENTRIES_MAX];
	size_t count;
	size_t reports;
	size_t declared;
	struct ttmem_device_args device;
	size_t clashes;
	struct ttmem_clash_args clash;
	size_t gave_up;
	size_t overlaps;
	struct ttmem_trace_overlap_args overlap;
	size_t failures;
	struct ttmem_failed_args failed;
} testing;

static int32_t testing_id(const void *device)
{
	const struct testing_device *self = device;

	return self->id;
}

/* id() and build_id() are where tt-metal has them. */
static int32_t (*const testing_device_table[8])(const void *) = {
	[3] = testing_id, [4] = testing_id};
static int32_t (*const testing_mesh_table[8])(const void *);

static uint32_t testing_address(const void *buffer)
{
	return ((const struct testing_buffer *)buffer)->address;
}

static uint64_t testing_page_size(const void *buffer)
{
	return ((const struct testing_buffer *)buffer)->page_size;
}

static uint32_t testing_num_pages(const void *buffer)
{
	return ((const struct testing_buffer *)buffer)->pages;
}

static const void *testing_buffer_allocator(const void *buffer)
{
	return ((const struct testing_buffer *)buffer)->allocator;
}

static const void *const *testing_own(const void *device)
{
	const struct testing_device *self = device;

	return (const void *const *)&self->own;
}

static uint64_t testing_cb_total(const void *device)
{
	return ((const struct testing_device *)device)->cb_total;
}

static int32_t testing_arch(const void *device)
{
	return ((const struct testing_device *)device)->arch;
}

static uint32_t testing_l1_per_core(const void *device)
{
	return ((const struct testing_device *)device)->l1_per_core;
}

static struct metal_grid testing_grid(const void *device)
{
	return ((const struct testing_device *)device)->grid;
}

static bool testing_is_local(const void *device)
{
	return !((const struct testing_device *)device)->is_remote;
}

static struct metal_vector testing_members(const void *mesh)
{
	const struct testing_device *self = mesh;
	struct metal_vector vector = {.begin = malloc(sizeof(self->members))};

	assert(vector.begin);
	memcpy(vector.begin, self->members, sizeof(self->members));
	vector.end = (char *)vector.begin + self->member_count * sizeof(void *);
	return vector;
}

static struct metal_vector testing_member_ids(const void *mesh)
{
	const struct testing_device *self = mesh;
	int32_t *ids = calloc(self->member_count + 1, sizeof(*ids));

	assert(ids);
	for (size_t i = 0; i < self->member_count; i++)
		ids[i] = self->members[i]->id;
	return (struct metal_vector){.begin = ids, .end = ids + self->member_count};
}

static uint32_t testing_bank_count(const void *allocator, const uint32_t *type)
{
	(void)allocator, (void)type; /* all have the same */
	return TESTING_BANKS;
}

static uint64_t testing_bank_size(const void *allocator, const uint32_t *type)
{
	return ((const struct testing_allocator *)allocator)->bank_sizes[*type];
}

static uint64_t testing_bank_base(const void *allocator, const uint8_t *memory)
{
	(void)allocator, (void)memory; /* all have the same */
	return TESTING_BASE;
}

static uint32_t testing_alignment(const void *allocator, uint32_t type)
{
	(void)allocator, (void)type; /* all have the same */
	return 32;
}

static struct metal_statistics testing_statistics(const void *allocator, const uint32_t *type)
{
	const struct testing_allocator *self = allocator;

	return (struct metal_statistics){.total = self->total ? self->total
							      : self->bank_sizes[*type]};
}

static uint64_t testing_l1_end(const void *allocator)
{
	const struct testing_allocator *self = allocator;

	return self->l1_end ? self->l1_end
			    : TESTING_BASE + self->bank_sizes[TTMEM_L1] +
				      self->bank_sizes[TTMEM_L1_SMALL];
}

static void testing_clear(void *allocator)
{
	(void)allocator; /* that there is one lets answers be kept */
}

static bool testing_close(void *mesh)
{
	(void)mesh; /* as above */
	return true;
}

struct metal_names testing_names(void)
{
	return (struct metal_names){
		.clear = testing_clear,
		.mesh_close = testing_close,
		.address = testing_address,
		.page_size = testing_page_size,
		.num_pages = testing_num_pages,
		.buffer_allocator = testing_buffer_allocator,
		.device_allocator = testing_own,
		.mesh_allocator = testing_own,
		.cb_total = testing_cb_total,
		.device_arch = testing_arch,
		.l1_per_core = testing_l1_per_core,
		.device_grid = testing_grid,
		.device_is_local = testing_is_local,
		.mesh_devices = testing_members,
		.mesh_ids = testing_member_ids,
		.bank_count = testing_bank_count,
		.bank_size = testing_bank_size,
		.bank_base = testing_bank_base,
		.alignment = testing_alignment,
		.statistics = testing_statistics,
		.l1_end = testing_l1_end,
		.operator_delete = free,
		.device_table = testing_device_table,
		.mesh_table = testing_mesh_table,
		.library = "made-up",
		.has_ids = true,
	};
}

struct testing_device testing_device(int32_t id, const struct testing_allocator *own)
{
	return (struct testing_device){.table = testing_device_table, .id = id, .own = own};
}

struct testing_device testing_mesh(const struct testing_allocator *own, struct testing_device *a,
				   struct testing_device *b)
{
	return (struct testing_device){
		.table = testing_mesh_table,
		.own = own,
		.members = {a, b},
		.member_count = 2,
	};
}

struct testing_buffer testing_buffer(const struct testing_device *device, uint32_t address,
				     uint32_t pages)
{
	struct testing_buffer buffer = {
		.address = address,
		.page_size = TESTING_PAGE,
		.pages = pages,
		.allocator = device->own,
	};

	buffer.words[TESTING_AT_DEVICE] = (uintptr_t)device;
	buffer.words[TESTING_AT_SIZE] = buffer.page_size * pages;
	buffer.words[TESTING_AT_ADDRESS] = address;
	buffer.words[TESTING_AT_ALLOCATOR] = (uintptr_t)device->own->inner;
	return buffer;
}

static struct testing_entry *testing_look_up(uint32_t device, uint32_t type, uint64_t address,
					     uint32_t space)
{
	for (size_t i = 0; i < testing.count; i++) {
		struct testing_entry *entry = &testing.list[i];

		if (entry->device == device && entry->type == type && entry->address == address &&
		    entry->space == space)
			return entry;
	}
	return NULL;
}

const struct testing_entry *testing_find(uint32_t device, uint32_t type, uint64_t address,
					 uint32_t space)
{
	return testing_look_up(device, type, address, space);
}

size_t testing_live(void)
{
	return testing.count;
}

size_t testing_reports(void)
{
	return testing.reports;
}

size_t testing_declared(void)
{
	return testing.declared;
}

size_t testing_overlaps(void)
{
	return testing.overlaps;
}

const struct ttmem_trace_overlap_args *testing_overlap_args(void)
{
	return &testing.overlap;
}

const struct ttmem_device_args *testing_device_args(void)
{
	return &testing.device;
}

void ttmem_alloc_ex(const struct ttmem_alloc_args *args)
{
	assert(!testing_look_up(args->device, args->type, args->address, args->space));
	assert(testing.count < TESTING_ENTRIES_MAX);
	testing.list[testing.count++] = (struct testing_entry){
		.device = args->device,
		.type = args->type,
		.space = args->space,
		.address = args->address,
		.size = args->size,
		.size_per_bank = args->size_per_bank,
	};
	testing.reports++;
}

void ttmem_free_ex(const struct ttmem_free_args *args)
{
	struct testing_entry *entry =
		testing_look_up(args->device, args->type, args->address, args->space);

	assert(entry);
	*entry = testing.list[--testing.count];
}

void ttmem_free(uint32_t device, uint32_t type, uint64_t address)
{
	const struct ttmem_free_args args = {.device = device, .type = type, .address = address};

	ttmem_free_ex(&args);
}

void ttmem_alloc_mesh_ex(const uint32_t *devices, size_t n, const struct ttmem_alloc_args *args)
{
	for (size_t i = 0; i < n; i++) {
		struct ttmem_alloc_args one = *args;

		one.device = devices[i];
		ttmem_alloc_ex(&one);
	}
}

void ttmem_free_mesh_ex(const uint32_t *devices, size_t n, const struct ttmem_free_args *args)
{
	for (size_t i = 0; i < n; i++) {
		struct ttmem_free_args one = *args;

		one.device = devices[i];
		ttmem_free_ex(&one);
	}
}

void ttmem_device(const struct ttmem_device_args *args)
{
	testing.device = *args;
	testing.declared++;
}

size_t testing_clashes(void)
{
	return testing.clashes;
}

const struct ttmem_clash_args *testing_clash_args(void)
{
	return &testing.clash;
}

void ttmem_clash(const struct ttmem_clash_args *args)
{
	assert(testing_look_up(args->device, args->type, args->address, args->space));
	testing.clash = *args;
	testing.clashes++;
}

/* Each call is somebody else's. */
void ttmem_here(struct ttmem_origin *ret_origin)
{
	*ret_origin = (struct ttmem_origin){.stack = (uint32_t)testing.reports};
}

void ttmem_trace_overlap(const struct ttmem_trace_overlap_args *args)
{
	testing.overlap = *args;
	testing.overlap.trace = NULL; /* the caller's */
	testing.overlaps++;
}

size_t testing_failures(void)
{
	return testing.failures;
}

const struct ttmem_failed_args *testing_failed_args(void)
{
	return &testing.failed;
}

void ttmem_alloc_failed_ex(const struct ttmem_failed_args *args)
{
	testing.failed = *args;
	testing.failed.name = NULL; /* the caller's */
	testing.failures++;
}

void ttmem_give_up(const char *reason)
{
	assert(*reason && *reason != '/'); /* folders are nobody else's business */
	testing.gave_up++;
}

size_t testing_gave_up(void)
{
	return testing.gave_up;
}
