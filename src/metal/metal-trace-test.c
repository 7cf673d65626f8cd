/* SPDX-License-Identifier: Apache-2.0 */

/* A buffer that lies where a trace writes is found, and nothing else is. */

#include "metal/metal-trace.h"

#include "base/testing/unit.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-records.h"
#include "metal/metal-space.h"
#include "metal/metal-target.h"
#include "metal/testing/metal-testing.h"

#define TEST_MANY 5000

static const char test_mesh, test_other_mesh;
static const struct metal_space test_space, test_other_space;

static struct metal_trace_range test_range(uint32_t type, uint64_t start, uint64_t end)
{
	return (struct metal_trace_range){.space = &test_space,
					  .type = type,
					  .start = start,
					  .end = end,
					  .size = end - start};
}

static void test_add(uint64_t start, uint64_t end)
{
	struct metal_trace_range range = test_range(TTMEM_DRAM, start, end);

	metal_trace_add(&test_mesh, &range);
}

/* The start of what it overlaps with; 0 = nothing. */
static uint64_t test_find(uint64_t start, uint64_t end)
{
	struct metal_trace_range range = test_range(TTMEM_DRAM, start, end);
	uint32_t id;
	const struct metal_trace_range *found = metal_trace_find(&range, &id);

	return found ? found->start : 0;
}

UNIT(finds_what_a_capture_was_given)
{
	metal_trace_begin(&test_mesh);
	test_add(0x1000, 0x2000);
	test_add(0x4000, 0x5000);
	test_add(0x1000, 0x2000);
	assert(test_find(0x1000, 0x1001) == 0); /* it cannot be replayed yet */
	metal_trace_end(&test_mesh, 7);
	assert(test_find(0x1000, 0x1001) == 0x1000 && test_find(0xf00, 0x1001) == 0x1000);
	assert(test_find(0x1fff, 0x4000) == 0x1000 && test_find(0x4fff, 0x9000) == 0x4000);
	assert(test_find(0x2000, 0x4000) == 0 && test_find(0, 0x1000) == 0);
	assert(test_find(0x5000, 0x6000) == 0);
	metal_trace_release(&test_mesh, 8);
	assert(test_find(0x1000, 0x1001) == 0x1000);
	metal_trace_release(&test_mesh, 7);
	assert(test_find(0x1000, 0x1001) == 0);
}

UNIT(finds_a_long_one_behind_short_ones)
{
	metal_trace_begin(&test_mesh);
	test_add(0x1000, 0x9000);
	for (uint64_t at = 0x2000; at < 0x8000; at += 0x100)
		test_add(at, at + 0x10);
	metal_trace_end(&test_mesh, 1);
	assert(test_find(0x8800, 0x8801) == 0x1000);
	assert(test_find(0x9000, 0x9001) == 0);
}

UNIT(knows_memories_and_meshes_apart)
{
	struct metal_trace_range range = test_range(TTMEM_L1, 0x1000, 0x2000);
	uint32_t id;

	metal_trace_begin(&test_mesh);
	test_add(0x1000, 0x2000);
	metal_trace_add(&test_other_mesh, &range); /* nothing is captured there */
	metal_trace_end(&test_other_mesh, 3);
	assert(metal_trace_is_open(&test_mesh) && !metal_trace_is_open(&test_other_mesh));
	metal_trace_end(&test_mesh, 3);
	assert(!metal_trace_is_open(&test_mesh));
	assert(!metal_trace_find(&range, &id));
	range.type = TTMEM_DRAM;
	assert(metal_trace_find(&range, &id) && id == 3);
	range.space = &test_other_space;
	assert(!metal_trace_find(&range, &id));
	metal_trace_release(&test_other_mesh, 3);
	assert(test_find(0x1000, 0x1001) == 0x1000);
	metal_trace_close(&test_other_mesh);
	assert(test_find(0x1000, 0x1001) == 0x1000);
	metal_trace_close(&test_mesh);
	assert(test_find(0x1000, 0x1001) == 0);
}

UNIT(forgets_what_was_cleared)
{
	metal_trace_begin(&test_mesh);
	test_add(0x1000, 0x2000);
	metal_trace_end(&test_mesh, 1);
	metal_trace_clear(&test_other_space);
	assert(test_find(0x1000, 0x1001) == 0x1000);
	metal_trace_clear(&test_space);
	assert(test_find(0x1000, 0x1001) == 0);
}

UNIT(several_captures_at_once)
{
	metal_trace_begin(&test_mesh);
	test_add(0x1000, 0x2000);
	metal_trace_begin(&test_mesh);
	test_add(0x3000, 0x4000);
	metal_trace_end(&test_mesh, 1);
	metal_trace_end(&test_mesh, 2);
	metal_trace_release(&test_mesh, 1);
	assert(test_find(0x1000, 0x1001) == 0 && test_find(0x3000, 0x3001) == 0x3000);
}

UNIT(many_ranges_have_a_bound)
{
	metal_trace_begin(&test_mesh);
	for (uint64_t i = 1; i <= 100 * TEST_MANY; i++)
		test_add(i * 0x10, i * 0x10 + 8);
	metal_trace_end(&test_mesh, 1);
	for (uint64_t i = 1; i <= TEST_MANY; i++)
		assert(test_find(i * 0x10 + 7, i * 0x10 + 9) == i * 0x10 &&
		       test_find(i * 0x10 + 8, i * 0x10 + 9) == 0);
	assert(test_find(100 * TEST_MANY * 0x10, 100 * TEST_MANY * 0x10 + 1) == 0);
}

static const char test_inner;
static const struct testing_allocator test_allocator = {
	.inner = &test_inner,
	.bank_sizes = {[TTMEM_DRAM] = 1 << 20},
};

static void test_allocate(const struct metal_names *names, const struct testing_device *device,
			  struct testing_buffer *buffer)
{
	const struct metal_shape shape = {.type = TTMEM_DRAM, .size_per_bank = 0x1000};
	const struct metal_facts facts = {
		.device = device,
		.allocator = buffer->allocator->inner,
		.address = buffer->address,
		.size = 100,
	};
	struct metal_target *target = metal_target_get(names, device);

	assert(target && metal_space_meet(names, buffer, &facts, target) == 0);
	metal_records_allocated(metal_space_find(facts.allocator), buffer, &facts, &shape, target);
}

UNIT(an_allocation_over_it_is_reported_on_each_device)
{
	struct metal_names names = testing_names();
	struct testing_device a = testing_device(1, &test_allocator);
	struct testing_device b = testing_device(6, &test_allocator);
	struct testing_device mesh = testing_mesh(&test_allocator, &a, &b);
	struct testing_buffer kept = testing_buffer(&mesh, 0x2000, 1);
	struct testing_buffer dropped = testing_buffer(&mesh, 0x4000, 1);
	struct testing_buffer late = testing_buffer(&mesh, 0x4800, 1);

	metal_trace_begin(&mesh);
	test_allocate(&names, &mesh, &kept);
	test_allocate(&names, &mesh, &dropped);
	assert(metal_records_freed(&dropped));
	metal_trace_end(&mesh, 3);
	assert(testing_overlaps() == 0);
	test_allocate(&names, &mesh, &late);
	assert(testing_overlaps() == 2);
	assert(testing_overlap_args()->device == 1 || testing_overlap_args()->device == 6);
	assert(testing_overlap_args()->address == 0x4800);
	assert(testing_overlap_args()->traced.stack != 0);
	assert(metal_records_freed(&late));
	metal_trace_release(&mesh, 3);
	test_allocate(&names, &mesh, &late);
	assert(testing_overlaps() == 2);
}
