/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A small model on two cards, as an application reports it: weights, activations, a trace, kernels; with "more", one
 * more layer. At its end it frees one buffer twice, frees an unknown address, changes a size, fails to allocate, and
 * leaves something behind. Built without optimisation, so that its stacks depend on no compiler.
 *
 *	worker [more] [wait]		wait: until end of input, before it ends
 */

#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static void declare(uint32_t device)
{
	struct ttmem_device_args args = {
		.struct_size = sizeof(args),
		.device = device,
		.unique_id = 0x1f2e3d4c00 + device,
		.arch = "wormhole_b0",
		.card = "n150",
	};

	args.memory[TTMEM_DRAM] = (struct ttmem_memory_facts){
		.capacity = 12288 * MIB, .bank_size = 1024 * MIB, .banks = 12, .alignment = 32};
	args.memory[TTMEM_L1] = (struct ttmem_memory_facts){.capacity = 90 * MIB,
							    .bank_base = 0x10000,
							    .bank_size = 90 * MIB / 64,
							    .banks = 64,
							    .alignment = 16};
	ttmem_device(&args);
}

static void load_weights(uint32_t device, uint32_t layers)
{
	char name[32];

	ttmem_phase_push("load");
	for (uint32_t i = 0; i < layers; i++) {
		(void)snprintf(name, sizeof(name), "weights.%u", i);
		ttmem_alloc(device, TTMEM_DRAM, 0x100000 + i * 8 * MIB, 8 * MIB, name);
	}
	ttmem_phase_pop();
}

static void run_layer(uint32_t device, uint32_t layer)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "layer %u", layer);
	ttmem_phase_push(name);
	ttmem_alloc(device, TTMEM_L1, 0x20000, 65536 * (layer + 1), "activation");
	ttmem_alloc(device, TTMEM_CB, 0x90000, 4096, NULL);
	ttmem_alloc(device, TTMEM_DRAM, 0x8000000 + layer * MIB, MIB, "cache");
	ttmem_free(device, TTMEM_CB, 0x90000);
	ttmem_free(device, TTMEM_L1, 0x20000);
	ttmem_phase_pop();
}

static void make_mistakes(void)
{
	ttmem_mark("mistakes");
	ttmem_alloc(0, TTMEM_L1, 0x40000, 1024, "twice");
	ttmem_free(0, TTMEM_L1, 0x40000);
	ttmem_free(0, TTMEM_L1, 0x40000);
	ttmem_free(0, TTMEM_DRAM, 0xdead000);
	ttmem_alloc(0, TTMEM_L1, 0x50000, 1024, "resized");
	ttmem_alloc(0, TTMEM_L1, 0x50000, 2048, "resized");
	ttmem_alloc_failed(1, TTMEM_DRAM, 20000 * MIB, 11000 * MIB);
}

int main(int argc, char **argv)
{
	int more = argc > 1 && strcmp(argv[1], "more") == 0;
	uint32_t layers = more ? 5 : 4;
	char byte;

	declare(0);
	declare(1);
	load_weights(0, layers);
	load_weights(1, 2);
	ttmem_alloc(0, TTMEM_TRACE, 0x7000000, 256 * 1024, "trace");
	ttmem_alloc(0, TTMEM_KERNEL, 0x1000, 12288, "matmul");
	ttmem_alloc(1, TTMEM_SYSTEM_MEMORY, 0x10000, 65536, "host queue");
	ttmem_alloc(1, TTMEM_L1_SMALL, 0x500, 512, "sync");
	for (uint32_t i = 0; i < layers; i++)
		run_layer(0, i);
	make_mistakes();
	for (uint32_t i = 0; i < layers - 1; i++)
		ttmem_free(0, TTMEM_DRAM, 0x100000 + i * 8 * MIB);
	ttmem_free(0, TTMEM_ANY, 0x7000000);
	if (strcmp(argv[argc - 1], "wait") == 0)
		while (read(0, &byte, 1) > 0)
			;
	return 0;
}
