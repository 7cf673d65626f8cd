/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A model sharded over all chips of a galaxy. A mesh allocates in lockstep: every buffer has one
 * address, valid on all chips, so one allocator decides for all and each buffer is reported to
 * ttmem once.
 */

#include <errno.h>
#include <stdio.h>
#include <ttmem/ttmem.h>

#include "sim/workload.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE 2048u
#define BUFFERS 24u

struct mesh {
	struct workload_context *context;
	struct workload_devices devices;
	uint32_t numbers[SIM_CARD_CHIPS_MAX];
	uint64_t addresses[BUFFERS];
	uint32_t n; /* buffers */
};

/* The allocator for all chips: the first chip's. */
static struct sim_bank *lockstep(struct mesh *mesh)
{
	return &mesh->devices.device[0].banks[TTMEM_DRAM];
}

/* size is what each chip holds. */
static int alloc_on_mesh(struct mesh *mesh, uint64_t size, const char *name)
{
	struct sim_bank_request place = {.size = size, .page_size = PAGE, .kind = TTMEM_DRAM};
	uint64_t address;
	int r;

	r = sim_bank_alloc(lockstep(mesh), &place, &address);
	if (r == -ENOMEM)
		ttmem_alloc_failed(mesh->numbers[0], TTMEM_DRAM, size,
				   sim_bank_largest_total(lockstep(mesh)));
	if (r < 0)
		return r;
	ttmem_alloc_mesh(mesh->numbers, mesh->devices.n, TTMEM_DRAM, address, size, name);
	mesh->addresses[mesh->n++] = address;
	return 0;
}

static void free_last(struct mesh *mesh)
{
	uint64_t address = mesh->addresses[--mesh->n];

	ttmem_free_mesh(mesh->numbers, mesh->devices.n, TTMEM_DRAM, address);
	/* It was allocated there, so this cannot fail. */
	(void)sim_bank_free(lockstep(mesh), TTMEM_DRAM, address);
}

static int round_trip(struct mesh *mesh)
{
	char name[32];
	uint64_t mib;
	int r = 0;

	workload_phase("shard");
	for (uint32_t i = 0; r == 0 && i < BUFFERS && !workload_ended(mesh->context); i++) {
		mib = sim_random_between(&mesh->context->random, 64, 320);
		(void)snprintf(name, sizeof(name), "experts.%u", i);
		r = alloc_on_mesh(mesh, workload_size(mesh->context, mib * MIB, PAGE), name);
		workload_pause(mesh->context);
	}
	ttmem_phase_pop();

	workload_phase("run");
	workload_pause(mesh->context);
	while (mesh->n)
		free_last(mesh);
	ttmem_phase_pop();
	return r;
}

/**
 * workload_mesh() - play a model on a mesh
 * @context: the context; a card with one chip makes a mesh of one
 *
 * Return: 0 or a negative errno; everything is freed either way.
 */
int workload_mesh(struct workload_context *context)
{
	struct mesh mesh = {.context = context};
	int r;

	r = workload_open(context, SIM_CARD_CHIPS_MAX, &mesh.devices);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < mesh.devices.n; i++)
		mesh.numbers[i] = mesh.devices.device[i].number;
	do {
		r = round_trip(&mesh);
	} while (r == 0 && workload_again(context));
	workload_close(&mesh.devices);
	return r;
}
