/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A pile of buffers that are freed in reverse order of allocation, or individually: a caller that
 * stops halfway frees the pile and leaves nothing behind.
 */

#include <stddef.h>
#include <stdint.h>

struct sim_device;
struct sim_request;

struct sim_pile_entry {
	struct sim_device *device; /* not ours; NULL once freed individually */
	uint64_t address;
	uint32_t type;
};

struct sim_pile {
	struct sim_pile_entry *entries; /* ours */
	size_t n;
	size_t room;
};

#define SIM_PILE_NULL \
	{             \
		0     \
	}

int sim_pile_alloc(struct sim_pile *pile, struct sim_device *device,
		   const struct sim_request *request, uint64_t *ret_address);
void sim_pile_drop(struct sim_pile *pile, size_t i);
void sim_pile_release(struct sim_pile *pile, size_t mark);
void sim_pile_deinit(struct sim_pile *pile);
