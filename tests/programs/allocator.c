/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process with a simulated device, for tests that compare ttmem's output with the allocator's own
 * state: allocates and frees at random, prints its free lists as JSON, and waits for end of input.
 *
 *	allocator SEED [CARD]
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "sim/device.h"
#include "sim/random.h"
#include "sim/sim-card.h"

#define STEPS 3000
#define HELD 600

struct held {
	uint32_t type;
	uint64_t address;
};

static struct held held[HELD];
static size_t held_count;

static void take(struct sim_device *device, struct sim_random *random)
{
	static const uint32_t types[] = {TTMEM_DRAM,         TTMEM_L1,    TTMEM_CB,
					 TTMEM_KERNEL,       TTMEM_TRACE, TTMEM_L1_SMALL,
					 TTMEM_SYSTEM_MEMORY};
	uint32_t type = types[sim_random_next(random) % 7];
	struct sim_bank *bank = sim_device_bank(device, type);
	struct sim_request request = {
		.type = type,
		.size = 1 + sim_random_next(random) % (bank->size * bank->banks / 50),
		.page_size = 16 + sim_random_next(random) % 3000,
		.name = "random",
	};
	uint64_t address;

	if (held_count < HELD && sim_device_alloc(device, &request, &address) == 0)
		held[held_count++] = (struct held){type, address};
}

static void give_back(struct sim_device *device, struct sim_random *random)
{
	size_t i;

	if (held_count == 0)
		return;
	i = sim_random_next(random) % held_count;
	(void)sim_device_free(device, held[i].type, held[i].address); /* it is allocated */
	held[i] = held[--held_count];
}

static void print_bank(const char *name, const struct sim_bank *bank, const char *end)
{
	uint64_t at = bank->base;
	bool first = true;

	printf("\"%s\":{\"base\":%" PRIu64 ",\"size\":%" PRIu64 ",\"banks\":%" PRIu32
	       ",\"used\":%" PRIu64 ",\"largest\":%" PRIu64 ",\"holes\":[",
	       name, bank->base, bank->size, bank->banks, bank->used, sim_bank_largest(bank));
	for (size_t i = 0; i <= bank->n_blocks; i++) {
		uint64_t to =
			i < bank->n_blocks ? bank->blocks[i].address : bank->base + bank->size;
		uint64_t from = (at + bank->alignment - 1) / bank->alignment * bank->alignment;

		to = to / bank->alignment * bank->alignment;
		if (from < to) {
			printf("%s[%" PRIu64 ",%" PRIu64 "]", first ? "" : ",", from, to - from);
			first = false;
		}
		if (i < bank->n_blocks)
			at = bank->blocks[i].address + bank->blocks[i].length;
	}
	printf("]}%s", end);
}

int main(int argc, char **argv)
{
	struct sim_random random = {argc > 1 ? strtoull(argv[1], NULL, 0) : 1};
	struct sim_device device;
	struct sim_request alias = {
		.type = TTMEM_CB, .flags = TTMEM_FLAG_ALIAS, .size = 4096, .name = "alias"};
	uint64_t address;
	char byte;

	if (sim_device_init(&device, sim_card_find(argc > 2 ? argv[2] : "n150"), 0, 0, 2, NULL) < 0)
		return 1;
	for (int i = 0; i < STEPS; i++) {
		if (sim_random_next(&random) % 5 < 3)
			take(&device, &random);
		else
			give_back(&device, &random);
	}
	alias.address = device.banks[TTMEM_L1].base + 64;
	(void)sim_device_alloc(&device, &alias, &address); /* takes no memory, so it cannot fail */
	putchar('{');
	print_bank("DRAM", &device.banks[TTMEM_DRAM], ",");
	print_bank("L1", &device.banks[TTMEM_L1], ",");
	print_bank("L1_SMALL", &device.banks[TTMEM_L1_SMALL], ",");
	print_bank("TRACE", &device.banks[TTMEM_TRACE], ",");
	print_bank("SYSTEM_MEMORY", &device.banks[TTMEM_SYSTEM_MEMORY], "}\n");
	if (fflush(stdout) != 0)
		return 1;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	_exit(0); /* what is left stays allocated, as after a crash */
}
