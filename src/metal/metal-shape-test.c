/* SPDX-License-Identifier: Apache-2.0 */

/* What a buffer takes in a bank: asked of tt-metal until it is known how it is worked out. */

#include "metal/metal-shape.h"

#include "base/testing/unit.h"
#include "metal/metal-learn.h"
#include "metal/metal-names.h"
#include "metal/metal-records.h"
#include "metal/metal-space.h"

#define TEST_OFTEN 200

/* Pages of 100 bytes over 8 banks that are aligned to 32. */
static struct metal_space test_space = {
	.memory[TTMEM_DRAM] = {.banks = 8, .alignment = 32},
};
static uint32_t test_asked;
static uint64_t test_more; /* than it should say */
static struct metal_optional test_cores;

static bool test_yes(const void *buffer)
{
	(void)buffer;
	return true;
}

static bool test_no(const void *buffer)
{
	(void)buffer;
	return false;
}

static uint64_t test_per_bank(const void *buffer)
{
	const struct metal_facts *facts = buffer;

	test_asked++;
	return (facts->pages + 7) / 8 * 128 + test_more;
}

static struct metal_optional test_buffer_cores(const void *buffer)
{
	(void)buffer;
	return test_cores;
}

/* What one of @pages takes in a bank. */
static uint64_t test_take(uint32_t pages)
{
	static const struct metal_names names = {
		.is_dram = test_yes,
		.is_l1 = test_no,
		.is_trace = test_no,
		.size_per_bank = test_per_bank,
		.buffer_cores = test_buffer_cores,
	};
	const struct metal_facts facts = {.size = 100ull * pages, .page_size = 100, .pages = pages};
	struct metal_look look = metal_shape_look(&names, &facts);
	struct metal_shape shape;

	if (metal_shape_must_ask(&facts, &look, &test_space))
		metal_shape_ask(&names, &facts, &look);
	assert(metal_shape_make(&facts, &look, &test_space, &shape));
	assert(shape.type == TTMEM_DRAM && shape.page_size == 100);
	assert(shape.flags ==
	       (test_cores.has_value ? TTMEM_SHAPE_SHARDED : TTMEM_SHAPE_INTERLEAVED));
	assert(shape.banks == (test_cores.has_value ? test_cores.value : 8));
	return shape.size_per_bank;
}

static void test_learn(void)
{
	for (uint32_t i = 1; i <= TEST_OFTEN; i++)
		assert(test_take(i) == (i + 7) / 8 * 128);
	assert(test_asked > 0 && test_asked < TEST_OFTEN);
	test_asked = 0;
}

UNIT(works_out_what_a_bank_takes_after_it_was_right_often_enough)
{
	test_learn();
	assert(test_take(8) == 128 && test_take(9) == 256 && test_take(1000) == 125 * 128);
	assert(test_asked == 0);
}

UNIT(goes_on_asking_where_tt_metal_says_something_else_once)
{
	test_more = 32;
	assert(test_take(5) == 160);
	test_more = 0;
	for (uint32_t i = 1; i <= TEST_OFTEN; i++)
		assert(test_take(i) == (i + 7) / 8 * 128);
	assert(test_asked == TEST_OFTEN + 1);
}

UNIT(goes_on_asking_while_all_buffers_are_alike)
{
	for (uint32_t i = 0; i < TEST_OFTEN; i++)
		assert(test_take(7) == 128);
	assert(test_asked == TEST_OFTEN);
}

UNIT(always_asks_for_a_shard)
{
	test_learn();
	test_cores = (struct metal_optional){3, true};
	test_more = 64;
	assert(test_take(24) == 3 * 128 + 64 && test_asked == 1);
}

UNIT(asks_where_an_allocator_has_not_told_its_banks)
{
	test_learn();
	test_space.memory[TTMEM_DRAM].alignment = 0;
	test_more = 64;
	assert(test_take(24) == 3 * 128 + 64 && test_asked == 1);
}

/* Whether one at 0x9000 is counted, where L1 ends at 0x8000 and L1_SMALL begins at @small_base. */
static bool test_is_counted(bool is_l1, uint64_t small_base)
{
	const struct metal_names names = {.is_dram = is_l1 ? test_no : test_yes,
					  .is_l1 = test_yes,
					  .is_trace = test_no,
					  .size_per_bank = test_per_bank};
	const struct metal_space space = {
		.small_base = small_base,
		.memory = {[TTMEM_DRAM] = {.bank_base = 0x1000, .bank_size = 0x7000},
			   [TTMEM_L1] = {.bank_base = 0x1000, .bank_size = 0x7000},
			   [TTMEM_L1_SMALL] = {.bank_base = 0x8000, .bank_size = 0x800}}};
	const struct metal_facts facts = {.address = 0x9000, .size = 100, .page_size = 100};
	struct metal_look look = metal_shape_look(&names, &facts);
	struct metal_shape shape;

	return metal_shape_make(&facts, &look, &space, &shape) &&
	       shape.type == (is_l1 ? TTMEM_L1 : TTMEM_DRAM);
}

UNIT(counts_a_buffer_in_an_unexpected_place_if_its_type_is_certain)
{
	assert(test_is_counted(false, 0x8000));
	assert(test_is_counted(true, UINT64_MAX));
	assert(!test_is_counted(true, 0x8000));
}

static struct metal_core_node test_nodes[3] = {
	{&test_nodes[1], 0, 0, 0x500}, {&test_nodes[2], 0, 1, 0x400}, {NULL, 5, 6, 0x600}};
static struct metal_core_map test_map = {.first = &test_nodes[0], .count = 3};

static const struct metal_core_map *test_addresses(const void *buffer)
{
	(void)buffer;
	return &test_map;
}

static uint32_t test_address(const void *buffer)
{
	return (uint32_t)((const struct metal_facts *)buffer)->address;
}

/* Three pages of 100 bytes on each core. */
static struct metal_shape test_hybrid(bool is_per_core)
{
	const struct metal_names names = {.is_dram = test_no,
					  .is_l1 = test_yes,
					  .is_trace = test_no,
					  .size_per_bank = test_per_bank,
					  .buffer_cores = test_buffer_cores,
					  .address = test_address,
					  .is_per_core = is_per_core ? test_yes : test_no,
					  .per_core_addresses = test_addresses};
	const struct metal_space space = {.is_hybrid = true,
					  .unit = 64,
					  .small_base = UINT64_MAX,
					  .memory[TTMEM_L1] = {.banks = 8, .alignment = 16}};
	const struct metal_facts facts = {
		.address = 0x400, .size = 600, .page_size = 100, .pages = 6};
	struct metal_look look;
	struct metal_shape shape;

	test_cores = (struct metal_optional){2, true};
	look = metal_shape_look(&names, &facts);
	look.size_per_bank = 3ull * 112; /* as tt-metal says it */
	assert(metal_shape_make(&facts, &look, &space, &shape));
	return shape;
}

UNIT(a_hybrid_allocator_takes_pages_of_l1_in_its_unit)
{
	struct metal_shape shape = test_hybrid(false);

	assert(!shape.is_per_core && shape.banks == 2 && shape.size_per_bank == 3ull * 128);
}

UNIT(is_on_each_core_that_has_an_address)
{
	struct metal_shape shape = test_hybrid(true);

	assert(shape.is_per_core && shape.banks == 3 && shape.size_per_bank == 3ull * 128);
	assert(shape.flags == 0);
}

UNIT(does_not_believe_a_table_of_cores_that_is_another_one)
{
	test_map.count = 4;
	assert(test_hybrid(true).banks == 0 && test_hybrid(true).is_per_core);
	test_map.count = 2;
	assert(test_hybrid(true).banks == 0);
	test_map.count = 3;
	test_nodes[1].address = 0x404;
	assert(test_hybrid(true).banks == 0);
	test_nodes[1] = (struct metal_core_node){(const void *)8, 0, 0, 0x400};
	assert(test_hybrid(true).banks == 0);
	test_map.count = UINT64_MAX;
	assert(test_hybrid(true).banks == 0);
}
