/* SPDX-License-Identifier: Apache-2.0 */

/* A simulated device reports what it does, and each injected fault causes exactly that fault. */

#include "sim/device.h"

#include <errno.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/testing/unit.h"
#include "sim/pile.h"
#include "sim/sim-card.h"
#include "sim/testing/fake.h"

static void open_n150(struct sim_device *device)
{
	assert(sim_device_init(device, sim_card_find("n150"), 0, 0, 3, NULL) == 0);
}

static uint64_t must_alloc(struct sim_device *device, uint32_t type, uint64_t size)
{
	struct sim_request request = {.type = type, .size = size, .page_size = 2048, .name = "x"};
	uint64_t address = 0;

	assert(sim_device_alloc(device, &request, &address) == 0);
	return address;
}

UNIT(init_refuses_chips_that_are_not_there)
{
	struct sim_device device;

	assert(sim_device_init(&device, NULL, 0, 0, 0, NULL) == -EINVAL);
	assert(sim_device_init(&device, sim_card_find("n300"), 0, 2, 0, NULL) == -EINVAL);
	assert(sim_device_init(&device, sim_card_find("n300"), 0, 0, 1024, NULL) == -EINVAL);
	assert(fake_figures()->devices == 0);
}

UNIT(processes_that_share_a_card_have_addresses_of_their_own)
{
	static const uint32_t types[] = {TTMEM_DRAM, TTMEM_L1, TTMEM_SYSTEM_MEMORY, TTMEM_L1_SMALL,
					 TTMEM_TRACE};
	const struct sim_card *card = sim_card_find("n150");
	const struct sim_share first = {0, 2}, second = {1, 2}, none = {2, 2};
	struct sim_device whole, a, b;

	open_n150(&whole);
	assert(sim_device_init(&a, card, 0, 0, 3, &first) == 0);
	assert(sim_device_init(&b, card, 0, 0, 3, &second) == 0);
	assert(sim_device_init(&b, card, 0, 0, 3, &none) == -EINVAL);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct sim_bank *all = sim_device_bank(&whole, types[i]);
		const struct sim_bank *low = sim_device_bank(&a, types[i]);
		const struct sim_bank *high = sim_device_bank(&b, types[i]);

		assert(low->base == all->base && low->size > 0 && low->size == high->size);
		assert(high->base == low->base + low->size);
		assert(high->base + high->size <= all->base + all->size);
		assert(high->base % all->alignment == all->base % all->alignment);
	}
	sim_device_deinit(&whole);
	sim_device_deinit(&a);
	sim_device_deinit(&b);
}

UNIT(a_device_is_declared_and_closed)
{
	struct sim_device device;

	open_n150(&device);
	assert(fake_figures()->devices == 1 && fake_figures()->closed == 0);
	sim_device_deinit(&device);
	assert(fake_figures()->closed == 1);
	sim_device_deinit(&device);
	assert(fake_figures()->closed == 1);
}

UNIT(everything_known_is_reported)
{
	struct sim_device device;
	const struct ttmem_alloc_args *args = &fake_figures()->alloc;
	struct sim_request request = {
		.type = TTMEM_KERNEL,
		.size = UINT64_C(25) * 2048,
		.page_size = 2048,
		.name = "reader",
		.name_id = 9,
		.kernel_sort = TTMEM_KERNEL_FABRIC,
		.owner = 42,
	};
	uint64_t address;

	open_n150(&device);
	assert(sim_device_alloc(&device, &request, &address) == 0);
	assert(address == 32 && args->address == 32); /* the first of a DRAM bank */
	assert(args->device == 3 && args->type == TTMEM_KERNEL &&
	       args->size == UINT64_C(25) * 2048);
	assert(args->size_per_bank == UINT64_C(3) * 2048 && args->banks == 12 &&
	       args->first_bank == 0);
	assert(args->owner == 42 && args->name_id == 9);
	assert(args->kernel_sort == TTMEM_KERNEL_FABRIC && args->flags == TTMEM_FLAG_OWNS_DATA);
	assert(strcmp(fake_figures()->alloc_name, "reader") == 0);
	assert(sim_device_free(&device, TTMEM_KERNEL, address) == 0);
	assert(fake_figures()->live == 0);
	sim_device_deinit(&device);
}

UNIT(each_type_is_allocated_in_its_own_memory)
{
	struct sim_device device;
	uint64_t l1_top = 1499136 - 32768;

	open_n150(&device);
	assert(must_alloc(&device, TTMEM_DRAM, 2048) == 32);
	assert(must_alloc(&device, TTMEM_KERNEL, 2048) == 32 + 2048);
	assert(must_alloc(&device, TTMEM_L1, 2048) == l1_top - 2048);
	assert(must_alloc(&device, TTMEM_L1, 2048) == l1_top - 4096);
	assert(must_alloc(&device, TTMEM_CB, 2048) == 103712);
	assert(must_alloc(&device, TTMEM_L1_SMALL, 2048) == 1499136 - 2048);
	assert(must_alloc(&device, TTMEM_TRACE, 2048) == (1u << 30) - 27560000);
	assert(must_alloc(&device, TTMEM_SYSTEM_MEMORY, 2048) == 4096);
	assert(!sim_device_bank(&device, TTMEM_TYPE_COUNT));
	assert(fake_figures()->overlaps == 0);
	sim_device_deinit(&device);
}

UNIT(requests_without_sense_are_refused_silently)
{
	struct sim_device device;
	struct sim_request request = {.type = TTMEM_TYPE_COUNT, .size = 1};
	uint64_t address = 77;

	open_n150(&device);
	assert(sim_device_alloc(&device, &request, &address) == -EINVAL);
	request = (struct sim_request){.type = TTMEM_DRAM, .size = 0};
	assert(sim_device_alloc(&device, &request, &address) == -EINVAL);
	assert(sim_device_free(&device, TTMEM_ANY, 32) == -EINVAL);
	assert(address == 77 && fake_figures()->allocs == 0 && fake_figures()->failed == 0);
	assert(fake_figures()->unknown_frees == 0);
	sim_device_deinit(&device);
}

UNIT(a_failed_allocation_tells_the_largest_hole)
{
	struct sim_device device;
	struct sim_request request = {.type = TTMEM_TRACE, .page_size = 4096};
	uint64_t address = 77;

	open_n150(&device);
	request.size = UINT64_C(12) * 27560000;
	assert(sim_device_alloc(&device, &request, &address) ==
	       -ENOMEM); /* pages do not fit evenly */
	assert(fake_figures()->failed == 1 && fake_figures()->failed_size == request.size);
	assert(fake_figures()->failed_largest == request.size);
	assert(address == 77 && fake_figures()->allocs == 0);

	request.size = UINT64_C(4096) * 12;
	assert(sim_device_alloc(&device, &request, &address) == 0);
	request.size = UINT64_MAX;
	assert(sim_device_alloc(&device, &request, &address) == -ENOMEM);
	assert(fake_figures()->failed_largest == UINT64_C(12) * (27560000 - 4096));
	sim_device_deinit(&device);
}

UNIT(an_alias_takes_no_memory)
{
	struct sim_device device;
	struct sim_request request = {
		.type = TTMEM_CB,
		.flags = TTMEM_FLAG_ALIAS,
		.size = 4096,
		.owner = 8,
	};
	uint64_t output, address, used;

	open_n150(&device);
	output = must_alloc(&device, TTMEM_L1, 4096);
	used = device.banks[TTMEM_L1].used;
	request.address = output;
	assert(sim_device_alloc(&device, &request, &address) == 0 && address == output);
	assert(fake_figures()->alloc.flags == TTMEM_FLAG_ALIAS);
	assert(device.banks[TTMEM_L1].used == used && fake_figures()->live == 2);

	/* Ending the program must not touch the buffer that contains the alias. */
	sim_device_free_owner(&device, TTMEM_CB, 8);
	assert(device.banks[TTMEM_L1].used == used && fake_figures()->live == 1);
	assert(sim_device_free(&device, TTMEM_L1, output) == 0);
	assert(fake_figures()->live == 0 && device.banks[TTMEM_L1].used == 0);
	sim_device_deinit(&device);
}

UNIT(an_owner_is_freed_as_a_whole)
{
	struct sim_device device;
	struct sim_request request = {.type = TTMEM_CB, .size = 1 << 16, .page_size = 1024};
	uint64_t address;

	open_n150(&device);
	for (uint64_t i = 0; i < 6; i++) {
		request.owner = 1 + i % 2;
		assert(sim_device_alloc(&device, &request, &address) == 0);
	}
	sim_device_free_owner(&device, TTMEM_CB, 0); /* no owner: would mean all owners in ttmem */
	assert(fake_figures()->live == 6);
	sim_device_free_owner(&device, TTMEM_CB, 1);
	assert(fake_figures()->live == 3 && device.banks[TTMEM_L1].n_blocks == 3);
	sim_device_free_owner(&device, TTMEM_CB, 2);
	assert(fake_figures()->live == 0 && device.banks[TTMEM_L1].n_blocks == 0);
	sim_device_deinit(&device);
}

UNIT(graph_capture_is_only_counted)
{
	struct sim_device device;

	open_n150(&device);
	sim_device_capture(&device, TTMEM_L1, 1 << 20, "dry run");
	assert(fake_figures()->hooked == 1 && fake_figures()->hooked_frees == 1);
	assert(fake_figures()->allocs == 0 && device.banks[TTMEM_L1].used == 0);
	sim_device_deinit(&device);
}

UNIT(a_second_free_is_reported_and_refused)
{
	struct sim_device device;
	uint64_t address;

	open_n150(&device);
	address = must_alloc(&device, TTMEM_DRAM, 4096);
	assert(sim_device_free(&device, TTMEM_DRAM, address) == 0);
	assert(sim_device_free(&device, TTMEM_DRAM, address) == -ENOENT);
	assert(fake_figures()->double_frees == 1 && fake_figures()->frees == 1);
	sim_device_deinit(&device);
}

UNIT(faults_of_allocations)
{
	struct sim_device device;
	struct sim_request request = {.type = TTMEM_DRAM, .size = 4096, .page_size = 2048};
	uint64_t address;

	open_n150(&device);
	device.faults.fail_alloc = 2;
	assert(sim_device_alloc(&device, &request, &address) == -ENOMEM);
	assert(sim_device_alloc(&device, &request, &address) == -ENOMEM);
	assert(fake_figures()->failed == 2);
	assert(sim_device_alloc(&device, &request, &address) == 0);
	assert(fake_figures()->live_again == 0);

	device.faults.repeat_alloc = 1;
	assert(sim_device_alloc(&device, &request, &address) == 0);
	assert(fake_figures()->live_again == 1 && fake_figures()->alloc.size == 4096);

	device.faults.change_size = 1;
	assert(sim_device_alloc(&device, &request, &address) == 0);
	assert(fake_figures()->live_again == 2 && fake_figures()->alloc.size == 6144);
	assert(sim_device_alloc(&device, &request, &address) == 0);
	assert(fake_figures()->live_again == 2);
	sim_device_deinit(&device);
}

UNIT(faults_of_frees)
{
	struct sim_device device;
	uint64_t a, b, c, d;

	open_n150(&device);
	a = must_alloc(&device, TTMEM_DRAM, 4096);
	b = must_alloc(&device, TTMEM_DRAM, 4096);
	c = must_alloc(&device, TTMEM_DRAM, 4096);
	d = must_alloc(&device, TTMEM_DRAM, 4096);

	device.faults.forget_free = 1;
	assert(sim_device_free(&device, TTMEM_DRAM, a) == 0);
	assert(fake_figures()->live == 4 && device.banks[TTMEM_DRAM].n_blocks == 3);
	device.faults.repeat_free = 1;
	assert(sim_device_free(&device, TTMEM_DRAM, b) == 0);
	assert(fake_figures()->live == 3 && fake_figures()->double_frees == 1);
	device.faults.free_untyped = 1;
	assert(sim_device_free(&device, TTMEM_DRAM, c) == 0);
	assert(sim_device_free(&device, TTMEM_DRAM, d) == 0);
	assert(fake_figures()->live == 1 && fake_figures()->unknown_frees == 1);
	sim_device_deinit(&device);
}

UNIT(a_pile_frees_in_reverse_and_once)
{
	struct sim_device device;
	struct sim_pile pile = SIM_PILE_NULL;
	struct sim_request request = {.type = TTMEM_DRAM, .size = 64};
	uint64_t first, address;

	open_n150(&device);
	for (uint32_t i = 0; i < 200; i++) {
		assert(sim_pile_alloc(&pile, &device, &request, &address) == 0);
		if (i == 0)
			first = address;
	}
	assert(fake_figures()->live == 200);
	sim_pile_drop(&pile, 0);
	sim_pile_drop(&pile, 0);
	sim_pile_drop(&pile, 150);
	assert(fake_figures()->live == 198);
	assert(sim_pile_alloc(&pile, &device, &request, &address) == 0 && address == first);
	sim_pile_release(&pile, 10);
	assert(pile.n == 10 && fake_figures()->live == 9);
	sim_pile_deinit(&pile);
	sim_pile_deinit(&pile);
	assert(fake_figures()->live == 0 && fake_figures()->unknown_frees == 0);
	assert(device.banks[TTMEM_DRAM].n_blocks == 0);
	sim_device_deinit(&device);
}

UNIT(a_pile_passes_failure_on)
{
	struct sim_device device;
	struct sim_pile pile = SIM_PILE_NULL;
	struct sim_request request = {.type = TTMEM_DRAM, .size = UINT64_MAX, .page_size = 64};
	uint64_t address = 77;

	open_n150(&device);
	assert(sim_pile_alloc(&pile, &device, &request, &address) == -ENOMEM);
	assert(address == 77 && pile.n == 0);
	sim_pile_deinit(&pile);
	sim_device_deinit(&device);
}
