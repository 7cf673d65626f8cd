/* SPDX-License-Identifier: Apache-2.0 */

/* Circular buffers: what lies over each other counts once, and tt-metal's own account goes before ours. */

#include "metal/metal-circular.h"

#include "base/testing/unit.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/testing/metal-testing.h"

static const char test_inner;
static const struct testing_allocator test_allocator = {.inner = &test_inner};

/* As an older tt-metal, which has no account. */
static struct metal_names test_old_names(void)
{
	struct metal_names names = testing_names();

	names.cb_total = NULL;
	return names;
}

static void test_tell(const struct metal_names *names, const struct testing_device *device,
		      struct metal_circular cb)
{
	metal_circular_told(names, device, &cb);
}

static uint64_t test_bytes(uint32_t device, uint64_t address)
{
	const struct testing_entry *entry = testing_find(device, TTMEM_CB, address, 0);

	return entry ? entry->size : 0;
}

UNIT(counts_each_address_on_most_cores_once)
{
	struct metal_names names = test_old_names();
	struct testing_device device = testing_device(3, &test_allocator);

	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	assert(test_bytes(3, 0x1000) == 0x400);
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1080, .size = 0x100, .cores = 2});
	assert(test_bytes(3, 0x1000) == 0x400 + 0x80 * 2);
	/* With a hole before it. */
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x2000, .size = 0x10, .cores = 1});
	assert(test_bytes(3, 0x1000) == 0x400 + 0x80 * 2 + 0x10);
	/* More cores in the middle of the first one. */
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1010, .size = 0x10, .cores = 10});
	assert(test_bytes(3, 0x1000) == 0x400 + 0x80 * 2 + 0x10 + 0x10 * 6);
	assert(testing_live() == 1);
}

UNIT(reports_nothing_that_is_inside_another_one)
{
	struct metal_names names = test_old_names();
	struct testing_device device = testing_device(0, &test_allocator);
	size_t reports;

	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	reports = testing_reports();
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1040, .size = 0x20, .cores = 3});
	assert(testing_reports() == reports);
}

UNIT(lies_where_the_lowest_one_does)
{
	struct metal_names names = test_old_names();
	struct testing_device device = testing_device(0, &test_allocator);

	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x2000, .size = 0x100, .cores = 1});
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 1});
	assert(test_bytes(0, 0x1000) == 0x200);
	assert(testing_live() == 1);
}

UNIT(ends_all_of_a_device_without_an_account)
{
	struct metal_names names = test_old_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_device other = testing_device(1, &test_allocator);

	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	test_tell(&names, &other,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	metal_circular_ended(&names, &device);
	assert(testing_live() == 1 && test_bytes(1, 0x1000) == 0x400);
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x10, .cores = 1});
	assert(test_bytes(0, 0x1000) == 0x10);
}

UNIT(takes_the_account_of_a_device_that_has_one)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);

	device.cb_total = 12345;
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	metal_circular_refresh(&names);
	assert(test_bytes(0, 0x1000) == 12345);
	device.cb_total = 0;
	metal_circular_ended(&names, &device);
	metal_circular_refresh(&names);
	assert(testing_live() == 0);
}

UNIT(lies_on_each_device_of_a_mesh)
{
	struct metal_names names = test_old_names();
	struct testing_device a = testing_device(4, &test_allocator);
	struct testing_device b = testing_device(7, &test_allocator);
	struct testing_device mesh = testing_mesh(&test_allocator, &a, &b);

	test_tell(&names, &mesh,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 2});
	assert(test_bytes(4, 0x1000) == 0x200 && test_bytes(7, 0x1000) == 0x200);
	metal_lock();
	metal_circular_close(&a);
	assert(testing_live() == 2);
	metal_circular_close(&mesh);
	metal_unlock();
	assert(testing_live() == 0);
}

UNIT(ends_everything_when_all_is_closed)
{
	struct metal_names names = test_old_names();
	struct testing_device a = testing_device(0, &test_allocator);
	struct testing_device b = testing_device(1, &test_allocator);

	test_tell(&names, &a,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 2});
	test_tell(&names, &b,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 2});
	metal_lock();
	metal_circular_close(NULL);
	metal_unlock();
	assert(testing_live() == 0);
}

static uint64_t test_span(uint32_t device)
{
	const struct testing_entry *entry = testing_find(device, TTMEM_CB, 0x1000, 0);

	assert(entry);
	return entry->size_per_bank;
}

UNIT(reaches_as_far_as_the_farthest_program)
{
	static const char programs[2];
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct metal_circular cb = {0x1000, 0x100, 4, &programs[0], 1};

	device.cb_total = 500;
	test_tell(&names, &device, cb);
	cb = (struct metal_circular){0x1000, 0x800, 1, &programs[1], 2};
	test_tell(&names, &device, cb);
	metal_circular_refresh(&names);
	assert(test_span(0) == 0x800);
	/* Laid out again: what it had before does not count any more. */
	cb = (struct metal_circular){0x1000, 0x200, 1, &programs[1], 3};
	test_tell(&names, &device, cb);
	cb = (struct metal_circular){0x1200, 0x40, 1, &programs[1], 3};
	test_tell(&names, &device, cb);
	metal_circular_refresh(&names);
	assert(test_span(0) == 0x240);
	metal_circular_program_ended(&programs[1]);
	metal_circular_refresh(&names);
	assert(test_span(0) == 0x100 && test_bytes(0, 0x1000) == 500);
}

UNIT(does_not_say_how_far_unless_it_knows_all_programs)
{
	static const char program;
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	const struct metal_circular known = {0x1000, 0x100, 4, &program, 1};
	const struct metal_circular unknown = {0x1000, 0x800, 4, NULL, 0};

	device.cb_total = 500;
	test_tell(&names, &device, known);
	test_tell(&names, &device, unknown);
	metal_circular_refresh(&names);
	assert(test_span(0) == 0);
	device.cb_total = 0;
	metal_circular_program_ended(&program);
	metal_circular_refresh(&names);
	assert(testing_live() == 0);
	device.cb_total = 400;
	test_tell(&names, &device, known);
	metal_circular_refresh(&names);
	assert(test_span(0) == 0x100);
}

UNIT(reaches_as_far_as_what_was_told_without_an_account)
{
	struct metal_names names = test_old_names();
	struct testing_device device = testing_device(0, &test_allocator);

	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1000, .size = 0x100, .cores = 4});
	test_tell(&names, &device,
		  (struct metal_circular){.address = 0x1400, .size = 0x100, .cores = 1});
	assert(test_span(0) == 0x500);
}

UNIT(the_end_of_a_program_on_a_mesh_asks_for_no_account)
{
	static const char program;
	struct metal_names names = testing_names();
	struct testing_device a = testing_device(0, &test_allocator);
	struct testing_device b = testing_device(1, &test_allocator);
	struct testing_device mesh = testing_mesh(&test_allocator, &a, &b);
	const struct metal_circular cb = {0x1000, 0x100, 4, &program, 1};

	mesh.cb_total = 500; /* what asking it would say */
	test_tell(&names, &mesh, cb);
	metal_lock();
	assert(metal_circular_extent(&program, 1).end == 0x1100);
	metal_unlock();
	metal_circular_program_ended(&program);
	metal_circular_refresh(&names);
	assert(test_bytes(1, 0x1000) == 0x400);
}

static const struct testing_device *test_closing;

static uint64_t test_close_and_ask(const void *device)
{
	const struct testing_device *asked = device;

	if (asked == test_closing) {
		metal_lock();
		metal_circular_close(asked);
		metal_unlock();
	}
	return asked->cb_total;
}

UNIT(a_device_that_is_closed_while_it_is_asked_hides_no_other)
{
	struct metal_names names = testing_names();
	struct testing_device devices[2] = {testing_device(0, &test_allocator),
					    testing_device(1, &test_allocator)};

	names.cb_total = test_close_and_ask;
	for (uint32_t i = 0; i < 2; i++) {
		metal_lock();
		metal_circular_close(NULL);
		metal_unlock();
		test_closing = NULL;
		for (uint32_t k = 0; k < 2; k++) {
			devices[k].cb_total = 500;
			test_tell(&names, &devices[k],
				  (struct metal_circular){
					  .address = 0x1000, .size = 0x100, .cores = 1});
		}
		metal_circular_refresh(&names);
		assert(test_bytes(0, 0x1000) == 500 && test_bytes(1, 0x1000) == 500);
		test_closing = &devices[i];
		for (uint32_t k = 0; k < 2; k++) {
			devices[k].cb_total = 600;
			metal_circular_ended(&names, &devices[k]);
		}
		metal_circular_refresh(&names);
		assert(test_bytes(i, 0x1000) == 0 && test_bytes(1 - i, 0x1000) == 600);
	}
}
