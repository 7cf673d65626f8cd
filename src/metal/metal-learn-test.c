/* SPDX-License-Identifier: Apache-2.0 */

/* What is learned from made-up buffers, and what is refused. */

#include "metal/metal-learn.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "metal/metal-refuse.h"
#include "metal/testing/metal-testing.h"

static const char test_inner, test_other_inner;
static const struct testing_allocator test_allocator = {.inner = &test_inner};
static const struct testing_allocator test_sub_device = {.inner = &test_other_inner};

/* Teaches it two buffers of different size, which is enough. */
static struct testing_device test_taught(const struct metal_names *names)
{
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer first = testing_buffer(&device, 0x2000, 1);
	struct testing_buffer second = testing_buffer(&device, 0x4000, 3);
	struct metal_facts facts;

	assert(metal_learn(names, &first, &facts) == 0);
	assert(metal_learn(names, &second, &facts) == 0);
	assert(*metal_learn_note());
	return device;
}

UNIT(knows_a_buffer_after_two_of_different_size)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(5, &test_allocator);
	struct testing_buffer first = testing_buffer(&device, 0x2000, 1);
	struct testing_buffer second = testing_buffer(&device, 0x4000, 3);
	struct metal_facts facts;

	assert(metal_learn(&names, &first, &facts) == 0);
	assert(facts.device == &device && facts.allocator == &test_inner);
	assert(facts.address == 0x2000 && facts.size == 2048);
	assert(!*metal_learn_note());
	assert(metal_learn(&names, &second, &facts) == 0);
	assert(strstr(metal_learn_note(), "size=page_size*num_pages,+24 "));
	assert(strstr(metal_learn_note(), "address=address(),+48 "));
	assert(strstr(metal_learn_note(), "device=+16,allocator() "));
	assert(strstr(metal_learn_note(), "allocator=allocator(),+72 "));
	assert(metal_learn(&names, &first, &facts) == 0);
	assert(facts.device == &device && facts.allocator == &test_inner);
}

UNIT(waits_for_another_size_but_not_for_ever)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;

	for (int i = 1; i < 64; i++)
		assert(metal_learn(&names, &buffer, &facts) == 0);
	assert(!*metal_learn_note());
	assert(metal_learn(&names, &buffer, &facts) == 0);
	assert(*metal_learn_note() && !metal_refused());
}

/* In a member that has no value yet, from an object that had this memory before. */
UNIT(a_stale_device_in_a_later_buffer_is_not_its_device)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_device other = testing_device(5, &test_allocator);
	struct testing_buffer first = testing_buffer(&device, 0x2000, 1);
	struct testing_buffer second = testing_buffer(&device, 0x4000, 3);
	struct metal_facts facts;

	second.words[TESTING_AT_SIZE + 1] = (uintptr_t)&other;
	assert(metal_learn(&names, &first, &facts) == 0);
	assert(metal_learn(&names, &second, &facts) == 0 && !metal_refused());
	assert(facts.device == &device);
	assert(strstr(metal_learn_note(), "device=+16,allocator() "));
}

UNIT(forgets_a_place_that_was_equal_by_chance)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer first = testing_buffer(&device, 0x2000, 1);
	struct testing_buffer second = testing_buffer(&device, 0x4000, 3);
	struct metal_facts facts;

	first.words[1] = 2048;
	assert(metal_learn(&names, &first, &facts) == 0);
	assert(metal_learn(&names, &second, &facts) == 0);
	assert(strstr(metal_learn_note(), "size=page_size*num_pages,+24 "));
}

/* tt-metal counts pages in 32 bits, and allocates as many as it has counted. */
UNIT(knows_the_size_of_more_pages_than_can_be_counted)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer many = testing_buffer(&device, 0x2000, 1);
	struct testing_buffer few = testing_buffer(&device, 0x4000, 3);
	uint64_t size = ((UINT64_C(1) << 32) + 1) * many.page_size;
	struct metal_facts facts;

	many.words[TESTING_AT_SIZE] = size;
	for (int i = 0; i < 2; i++) { /* while it learns, and then */
		assert(metal_learn(&names, &many, &facts) == 0 && !metal_refused());
		assert(facts.size == size && facts.pages == 1);
		assert(metal_learn(&names, &few, &facts) == 0 && facts.size == 3 * few.page_size);
		assert(strstr(metal_learn_note(), "size=page_size*num_pages,+24 "));
	}
	many.words[TESTING_AT_SIZE] = size + many.page_size; /* another number of pages */
	assert(metal_learn(&names, &many, &facts) == METAL_LEARN_UNKNOWN && metal_refused());
}

UNIT(passes_over_what_has_no_size)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 0);
	struct metal_facts facts;

	assert(metal_learn(&names, &buffer, &facts) == METAL_LEARN_UNKNOWN);
	assert(!metal_refused());
}

UNIT(takes_a_hooked_buffer_without_an_address)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0, 1);
	struct metal_facts facts;

	buffer.words[TESTING_AT_ADDRESS] = 77;
	assert(metal_learn(&names, &buffer, &facts) == 0);
	assert(facts.address == 0 && !metal_refused());
}

UNIT(refuses_a_size_that_is_not_in_the_object)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;

	buffer.words[TESTING_AT_SIZE] = 4096;
	assert(metal_learn(&names, &buffer, &facts) == METAL_LEARN_UNKNOWN);
	assert(metal_refused());
}

UNIT(refuses_a_size_that_moves)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer first = testing_buffer(&device, 0x2000, 1);
	struct testing_buffer second = testing_buffer(&device, 0x4000, 3);
	struct metal_facts facts;

	second.words[1] = second.words[TESTING_AT_SIZE];
	second.words[TESTING_AT_SIZE] = 0;
	assert(metal_learn(&names, &first, &facts) == 0);
	assert(metal_learn(&names, &second, &facts) == METAL_LEARN_UNKNOWN);
	assert(metal_refused());
}

UNIT(refuses_an_address_that_is_not_in_the_object)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;

	buffer.words[TESTING_AT_ADDRESS]++;
	assert(metal_learn(&names, &buffer, &facts) == METAL_LEARN_UNKNOWN);
	assert(metal_refused());
}

UNIT(refuses_a_buffer_of_two_devices)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_device other = testing_device(1, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;

	buffer.words[0] = (uintptr_t)&other;
	assert(metal_learn(&names, &buffer, &facts) == METAL_LEARN_UNKNOWN);
	assert(metal_refused());
}

UNIT(does_not_follow_words_that_are_no_pointers)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;

	buffer.words[0] = 0xfffffffffffffff8;
	buffer.words[1] = 8;
	assert(metal_learn(&names, &buffer, &facts) == 0);
	assert(facts.device == &device && !metal_refused());
}

UNIT(refuses_an_allocator_that_is_not_in_the_object)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;

	buffer.words[TESTING_AT_ALLOCATOR] = 0;
	assert(metal_learn(&names, &buffer, &facts) == METAL_LEARN_UNKNOWN);
	assert(metal_refused());
}

UNIT(refuses_when_no_device_owns_the_allocator_of_its_buffers)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_allocator);
	struct metal_facts facts;

	for (uint32_t i = 1; i <= 64; i++) {
		struct testing_buffer buffer = testing_buffer(&device, i * 0x1000, i);

		assert(!metal_refused());
		buffer.allocator = &test_sub_device;
		buffer.words[TESTING_AT_ALLOCATOR] = (uintptr_t)&test_other_inner;
		(void)metal_learn(&names, &buffer, &facts); /* what it learns is tested above */
	}
	assert(metal_refused());
}

UNIT(tells_the_allocator_of_a_sub_device)
{
	struct metal_names names = testing_names();
	struct testing_device device = test_taught(&names);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 1);
	struct metal_facts facts;
	bool is_default;

	buffer.allocator = &test_sub_device;
	buffer.words[TESTING_AT_ALLOCATOR] = (uintptr_t)&test_other_inner;
	assert(metal_learn(&names, &buffer, &facts) == 0);
	assert(facts.allocator == &test_other_inner);
	assert(metal_learn_api(&names, &buffer, &facts, &is_default) == &test_sub_device);
	assert(!is_default);
}

UNIT(refuses_a_buffer_that_differs_from_what_was_learned)
{
	struct metal_names names = testing_names();
	struct testing_device device = test_taught(&names);
	struct testing_buffer buffer = testing_buffer(&device, 0x2000, 2);
	struct metal_facts facts;

	buffer.words[TESTING_AT_SIZE] = 1;
	assert(metal_learn(&names, &buffer, &facts) == METAL_LEARN_UNKNOWN);
	assert(metal_refused());
}

UNIT(copies_memory_through_a_pipe_if_it_is_there)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char copy[16];

	assert(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
	memcpy(pages + page - sizeof(copy), "sixteen letters", sizeof(copy));
	assert(metal_learn_peek_by_pipe(pages + page - sizeof(copy), copy, sizeof(copy)) == 0);
	assert(strcmp(copy, "sixteen letters") == 0);
	assert(metal_learn_peek_by_pipe(pages + page, copy, sizeof(copy)) == -EFAULT);
	assert(metal_learn_peek_by_pipe(pages + page - 8, copy, sizeof(copy)) == -EFAULT);
	assert(munmap(pages, 2 * page) == 0);
}
