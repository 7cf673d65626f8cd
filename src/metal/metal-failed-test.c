/* SPDX-License-Identifier: Apache-2.0 */

/* Refused allocations: each is told, with its size, or without one where that is not certain. */

#include "metal/metal-failed.h"

#include "base/testing/unit.h"
#include "metal/metal-learn.h"
#include "metal/testing/metal-testing.h"

#define PAGES_COUNTED (UINT64_C(1) << 32) /* by tt-metal: then it begins with 0 again */

#define BANKS 8u /* as the made-up allocators have */

static bool test_yes(const void *buffer)
{
	(void)buffer; /* all are in DRAM */
	return true;
}

static bool test_no(const void *buffer)
{
	(void)buffer; /* as above */
	return false;
}

/* As tt-metal's, it multiplies what num_pages() says. */
static uint64_t test_per_bank(const void *buffer)
{
	const struct testing_buffer *self = buffer;

	return self->page_size * ((self->pages + BANKS - 1) / BANKS);
}

static struct testing_allocator test_allocator = {
	.inner = &test_allocator,
	.bank_sizes = {[TTMEM_DRAM] = 0x4000000, [TTMEM_L1] = 0x100000},
};

/* A request of so many pages is refused; @also: another word of the object. */
static struct ttmem_failed_args refuse(uint64_t page_size, uint64_t pages, uint64_t also)
{
	static struct testing_device device;
	struct metal_names names = testing_names();
	struct testing_buffer buffer;
	size_t before = testing_failures();

	names.is_l1 = names.is_trace = test_no;
	names.is_dram = test_yes;
	names.size_per_bank = test_per_bank;
	device = testing_device(3, &test_allocator);
	buffer = testing_buffer(&device, 0, (uint32_t)pages);
	buffer.page_size = page_size;
	buffer.words[TESTING_AT_SIZE] = page_size * pages;
	buffer.words[TESTING_AT_SIZE + 1] = also;
	metal_failed(&names, test_allocator.inner, &buffer, true);
	assert(testing_failures() == before + 1);
	assert(testing_failed_args()->device == 3 && testing_failed_args()->type == TTMEM_DRAM);
	return *testing_failed_args();
}

UNIT(a_refused_request_has_its_size_and_that_in_each_bank)
{
	const struct ttmem_failed_args args = refuse(2048, 64, 0);

	assert(args.size == 2048 * 64 && args.size_per_bank == 2048 * 8 && args.banks == 8);
}

UNIT(a_refused_request_of_more_pages_than_are_counted_has_its_size)
{
	struct ttmem_failed_args args = refuse(32, UINT64_C(1) << 35, 0); /* 2^40 bytes */

	assert(args.size == UINT64_C(1) << 40 && args.size_per_bank == 0);
	args = refuse(32, PAGES_COUNTED + 4096, 0);
	assert(args.size == 32 * (PAGES_COUNTED + 4096) && args.size_per_bank == 0);
}

/* The page size is in the object, too, and is as good a size for one page. */
UNIT(a_refused_request_that_may_have_two_sizes_has_none)
{
	struct ttmem_failed_args args = refuse(2048, PAGES_COUNTED + 1, 2048);

	assert(args.size == 0 && args.size_per_bank == 0 && args.largest_free == TTMEM_UNKNOWN);
	args = refuse(2048, 1, 2048);
	assert(args.size == 2048);
}

/* Where a buffer has its size and its device is known from then on. */
static void learn(void)
{
	const struct metal_names names = testing_names();
	struct testing_device device = testing_device(3, &test_allocator);
	struct metal_facts facts;

	for (uint32_t pages = 1; pages <= 2; pages++) {
		struct testing_buffer buffer = testing_buffer(&device, 0x1000 * pages, pages);

		assert(metal_learn(&names, &buffer, &facts) == 0);
	}
}

/* In a member that has no value yet, from an object that had this memory before. */
UNIT(a_refused_request_that_also_has_a_stale_device_is_told)
{
	struct testing_device other = testing_device(5, &test_allocator);

	learn();
	assert(refuse(2048, 64, (uintptr_t)&other).size == 2048 * 64);
}

UNIT(a_refused_request_has_its_size_from_where_sizes_have_been_found)
{
	learn();
	assert(refuse(2048, PAGES_COUNTED + 1, 2048).size == 2048 * (PAGES_COUNTED + 1));
}

static struct metal_optional test_cores(const void *buffer)
{
	(void)buffer;
	return (struct metal_optional){.value = 2, .has_value = true};
}

UNIT(a_refused_request_on_single_cores_is_marked)
{
	struct testing_device device = testing_device(3, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0, 2);
	struct metal_names names = testing_names();

	names.is_l1 = names.is_per_core = test_yes;
	names.is_dram = names.is_trace = test_no;
	names.buffer_cores = test_cores;
	metal_failed(&names, test_allocator.inner, &buffer, false);
	assert(testing_failed_args()->shape_flags == TTMEM_SHAPE_PER_CORE);
	assert(testing_failed_args()->banks == 2 && testing_failed_args()->bank_size == 0);
	names.is_per_core = test_no;
	metal_failed(&names, test_allocator.inner, &buffer, false);
	assert(testing_failed_args()->shape_flags == 0);
}
