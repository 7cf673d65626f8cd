/* SPDX-License-Identifier: Apache-2.0 */

/* A free ends exactly what was reported, whatever else is at that address. */

#include "metal/metal-records.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "metal/metal-circular.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-space.h"
#include "metal/metal-target.h"
#include "metal/testing/metal-testing.h"

#define TEST_MANY 1000

static const char test_inner_a, test_inner_b;
static const struct testing_allocator test_a = {
	.inner = &test_inner_a,
	.bank_sizes = {[TTMEM_DRAM] = 1 << 20},
};
static const struct testing_allocator test_b = {
	.inner = &test_inner_b,
	.bank_sizes = {[TTMEM_DRAM] = 1 << 20},
};

static bool test_is_per_core;

static void test_place(const struct metal_names *names, const struct testing_device *device,
		       struct testing_buffer *buffer, uint32_t type, uint64_t size)
{
	const struct metal_shape shape = {.type = type, .is_per_core = test_is_per_core};
	const struct metal_facts facts = {
		.device = device,
		.allocator = buffer->allocator->inner,
		.address = buffer->address,
		.size = size,
	};
	struct metal_target *target = metal_target_get(names, device);

	assert(target);
	assert(metal_space_meet(names, buffer, &facts, target) == 0);
	metal_lock();
	metal_records_allocated(metal_space_find(facts.allocator), buffer, &facts, &shape, target);
	metal_unlock();
}

static void test_allocate(const struct metal_names *names, const struct testing_device *device,
			  struct testing_buffer *buffer, uint64_t size)
{
	test_place(names, device, buffer, TTMEM_DRAM, size);
}

static bool test_free(const struct testing_buffer *buffer)
{
	bool is_known;

	metal_lock();
	is_known = metal_records_freed(buffer);
	metal_unlock();
	return is_known;
}

UNIT(ends_what_was_reported)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(2, &test_a);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);

	test_allocate(&names, &device, &buffer, 100);
	assert(testing_find(2, TTMEM_DRAM, 0x2000, 0)->size == 100);
	assert(test_free(&buffer));
	assert(testing_live() == 0);
	assert(!test_free(&buffer));
}

UNIT(has_all_buffers_of_one_address_on_different_cores)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a),
			      other = testing_device(1, &test_b);
	struct testing_buffer buffers[3], beside = testing_buffer(&other, 0x2000, 1);

	test_is_per_core = true;
	for (uint32_t i = 0; i < 3; i++) {
		buffers[i] = testing_buffer(&device, 0x2000, 1);
		test_place(&names, &device, &buffers[i], TTMEM_L1, 100 + i);
	}
	/* The numbers are per device: another one begins anew. */
	test_place(&names, &other, &beside, TTMEM_L1, 50);
	assert(testing_live() == 4 && testing_find(1, TTMEM_L1, 0x2000, 1)->size == 50);
	assert(testing_find(0, TTMEM_L1, 0x2000, 0)->size == 100);
	assert(testing_find(0, TTMEM_L1, 0x2000, METAL_SPACE_LANES)->size == 101);
	assert(testing_find(0, TTMEM_L1, 0x2000, METAL_SPACE_LANES + 1)->size == 102);
	/* Each free ends its own, in any order, and its number is used again. */
	assert(test_free(&buffers[1]) && testing_live() == 3);
	assert(!testing_find(0, TTMEM_L1, 0x2000, METAL_SPACE_LANES));
	assert(test_free(&buffers[0]) && testing_live() == 2);
	test_place(&names, &device, &buffers[0], TTMEM_L1, 7);
	test_place(&names, &device, &buffers[1], TTMEM_L1, 8);
	assert(testing_find(0, TTMEM_L1, 0x2000, 0)->size == 7);
	assert(testing_find(0, TTMEM_L1, 0x2000, METAL_SPACE_LANES)->size == 8);
}

UNIT(ends_those_per_core_for_one_that_is_on_all)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);
	struct testing_buffer a = testing_buffer(&device, 0x2000, 1), b = a, all = a;

	test_is_per_core = true;
	test_place(&names, &device, &a, TTMEM_L1, 100);
	test_place(&names, &device, &b, TTMEM_L1, 100);
	test_is_per_core = false;
	test_place(&names, &device, &all, TTMEM_L1, 1);
	assert(testing_live() == 1 && testing_find(0, TTMEM_L1, 0x2000, 0)->size == 1);
	test_is_per_core = true;
	test_place(&names, &device, &a, TTMEM_L1, 2);
	assert(testing_live() == 1 && testing_find(0, TTMEM_L1, 0x2000, 0)->size == 2);
}

UNIT(has_a_mesh_buffer_on_each_device)
{
	struct metal_names names = testing_names();
	struct testing_device a = testing_device(1, &test_a), b = testing_device(6, &test_a);
	struct testing_device mesh = testing_mesh(&test_a, &a, &b);
	struct testing_buffer buffer = testing_buffer(&mesh, 0x2000, 1);

	test_allocate(&names, &mesh, &buffer, 100);
	assert(testing_find(1, TTMEM_DRAM, 0x2000, 0) && testing_find(6, TTMEM_DRAM, 0x2000, 0));
	assert(test_free(&buffer) && testing_live() == 0);
}

UNIT(keeps_two_allocators_at_one_address_apart)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);
	struct testing_buffer one = testing_buffer(&device, 0x2000, 1), other = one;

	other.allocator = &test_b;
	test_allocate(&names, &device, &one, 100);
	test_allocate(&names, &device, &other, 200);
	assert(testing_find(0, TTMEM_DRAM, 0x2000, 0)->size == 100);
	assert(testing_find(0, TTMEM_DRAM, 0x2000, 1)->size == 200);
	assert(test_free(&one));
	assert(testing_live() == 1 && testing_find(0, TTMEM_DRAM, 0x2000, 1));
}

UNIT(ends_an_older_one_at_an_address_that_is_given_again)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);
	struct testing_buffer one = testing_buffer(&device, 0x2000, 1), other = one;

	test_allocate(&names, &device, &one, 100);
	test_allocate(&names, &device, &other, 200);
	assert(testing_live() == 1);
	assert(testing_find(0, TTMEM_DRAM, 0x2000, 0)->size == 200);
	assert(!test_free(&one) && testing_live() == 1);
}

UNIT(ends_an_older_one_whose_object_is_used_again)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);

	test_allocate(&names, &device, &buffer, 100);
	buffer.address = 0x6000;
	test_allocate(&names, &device, &buffer, 200);
	assert(testing_live() == 1 && testing_find(0, TTMEM_DRAM, 0x6000, 0)->size == 200);
}

UNIT(ends_only_what_the_cleared_allocator_held)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);
	struct testing_buffer one = testing_buffer(&device, 0x2000, 1), other = one;

	other.allocator = &test_b;
	test_allocate(&names, &device, &one, 100);
	test_allocate(&names, &device, &other, 200);
	metal_lock();
	metal_records_clear(&test_inner_a);
	assert(!metal_space_find(&test_inner_a) && metal_space_find(&test_inner_b));
	metal_unlock();
	assert(testing_live() == 1 && testing_find(0, TTMEM_DRAM, 0x2000, 1));
	assert(!test_free(&one) && test_free(&other));
}

UNIT(ends_what_a_closed_device_held)
{
	struct metal_names names = testing_names();
	struct testing_device a = testing_device(0, &test_a), b = testing_device(1, &test_b);
	struct testing_buffer one = testing_buffer(&a, 0x2000, 1);
	struct testing_buffer other = testing_buffer(&b, 0x2000, 1);

	test_allocate(&names, &a, &one, 100);
	test_allocate(&names, &b, &other, 200);
	metal_lock();
	metal_records_close(&a);
	assert(testing_live() == 1);
	metal_records_close(NULL);
	metal_unlock();
	assert(testing_live() == 0);
}

static void test_refuse(const void *program, const struct testing_device *device)
{
	metal_lock();
	metal_records_refused(program, device);
	metal_unlock();
}

UNIT(a_refused_program_clashes_with_the_lowest_buffer_of_l1)
{
	static const char programs[3];
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(5, &test_a);
	struct testing_buffer low = testing_buffer(&device, 0x4000, 1);
	struct testing_buffer high = testing_buffer(&device, 0x6000, 1);
	struct testing_buffer dram = testing_buffer(&device, 0x1000, 1);
	struct metal_circular cb = {0x1000, 0x3000, 4, &programs[0], 1};

	test_place(&names, &device, &high, TTMEM_L1, 100);
	test_place(&names, &device, &low, TTMEM_L1, 100);
	test_place(&names, &device, &dram, TTMEM_DRAM, 100);
	metal_circular_told(&names, &device, &cb); /* up to where the buffer begins */
	cb = (struct metal_circular){0x2000, 0x2001, 4, &programs[1], 2};
	metal_circular_told(&names, &device, &cb);
	test_refuse(&programs[0], &device);
	test_refuse(&programs[2], &device); /* it has none */
	assert(testing_clashes() == 0);
	test_refuse(&programs[1], &device);
	assert(testing_clashes() == 1);
	assert(testing_clash_args()->device == 5 && testing_clash_args()->type == TTMEM_L1);
	assert(testing_clash_args()->address == 0x4000);
	assert(testing_clash_args()->wanted_address == 0x2000);
	assert(testing_clash_args()->wanted_size == 0x2001);
	assert(test_free(&low));
	test_refuse(&programs[1], &device);
	assert(testing_clashes() == 1);
}

UNIT(a_program_that_a_mesh_refuses_clashes_on_each_device)
{
	static const char program;
	struct metal_names names = testing_names();
	struct testing_device a = testing_device(0, &test_b), b = testing_device(1, &test_b);
	struct testing_device mesh = testing_mesh(&test_a, &a, &b);
	struct testing_buffer buffer = testing_buffer(&mesh, 0x4000, 1);
	const struct metal_circular cb = {0x1000, 0x4000, 4, &program, 1};

	test_place(&names, &mesh, &buffer, TTMEM_L1, 100);
	metal_circular_told(&names, &a, &cb); /* each device is told for itself */
	metal_circular_told(&names, &b, &cb);
	test_refuse(&program, &mesh);
	assert(testing_clashes() == 2);
	metal_circular_program_ended(&program);
	test_refuse(&program, &mesh);
	assert(testing_clashes() == 2);
}

UNIT(finds_each_of_many)
{
	static struct testing_buffer buffers[TEST_MANY];
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);

	for (uint32_t i = 0; i < TEST_MANY; i++) {
		buffers[i] = testing_buffer(&device, 0x1000 + i * 64, 1);
		test_allocate(&names, &device, &buffers[i], i + 1);
	}
	assert(testing_live() == TEST_MANY);
	for (uint32_t i = 0; i < TEST_MANY; i += 2)
		assert(test_free(&buffers[i]));
	assert(testing_live() == TEST_MANY / 2);
	for (uint32_t i = 1; i < TEST_MANY; i += 2)
		assert(testing_find(0, TTMEM_DRAM, buffers[i].address, 0)->size == i + 1);
	assert(!test_free(&buffers[0]) && test_free(&buffers[TEST_MANY - 1]));
}

static void test_forget(void)
{
	metal_records_forget();
	metal_space_forget();
	metal_target_forget();
}

UNIT(knows_nothing_of_its_parent_after_a_fork)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_a);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	int status;
	pid_t pid;

	metal_lock_at_fork(test_forget);
	test_allocate(&names, &device, &buffer, 100);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		assert(!test_free(&buffer));
		assert(testing_live() == 1); /* its book is the parent's */
		_exit(0);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	assert(test_free(&buffer) && testing_live() == 0);
}
