/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A simulated device: its memory, allocated as on a real one, with every allocation and free
 * reported to ttmem the way a runtime would report it. A device belongs to one thread.
 */

#include <stdint.h>
#include <ttmem/ttmem.h>

#include "sim/bank.h"

struct sim_card;

/*
 * Faults to inject, each a number of calls still to be affected: 0 = none. They are for tests and
 * demonstrations of how a tool handles a faulty runtime.
 */
struct sim_device_faults {
	uint32_t fail_alloc;   /* fail as if there were no room */
	uint32_t change_size;  /* report the allocation a second time, one page larger */
	uint32_t repeat_alloc; /* report the allocation a second time, unchanged */
	uint32_t forget_free;  /* free the memory, but do not report it */
	uint32_t repeat_free;  /* report the free twice */
	uint32_t free_untyped; /* report the free without the type */
};

struct sim_device {
	uint32_t number;
	const struct sim_card *card;
	struct sim_device_faults faults;
	/* One for each kind of memory; see sim_device_bank(). Read-only. */
	/* By type. Kernels are in DRAM, and circular buffers at the bottom of L1, below its buffers. */
	struct sim_bank banks[TTMEM_TYPE_COUNT];
};

/*
 * Which part of a card's memory a process may use: the @index-th of @count equal ones. Each process
 * allocates for itself, so processes that share a card would otherwise use the same addresses, and
 * on a real card they would destroy each other's data. @count 0: all of it.
 */
struct sim_share {
	uint32_t index;
	uint32_t count;
};

/* Arguments of sim_device_alloc(); unused fields are 0. */
struct sim_request {
	uint32_t type;
	uint32_t flags;     /* TTMEM_FLAG_...; OWNS_DATA is added where it is true */
	uint64_t size;      /* bytes over all banks */
	uint64_t page_size; /* 0 = one page */
	const char *name;
	uint32_t name_id; /* if there is no name */
	uint32_t kernel_sort;
	uint64_t owner;
	uint64_t address; /* for ALIAS and PREALLOCATED: its address */
};

int sim_device_init(struct sim_device *device, const struct sim_card *card, uint32_t board,
		    uint32_t chip, uint32_t number, const struct sim_share *share);
void sim_device_deinit(struct sim_device *device);

int sim_device_alloc(struct sim_device *device, const struct sim_request *request,
		     uint64_t *ret_address);
int sim_device_free(struct sim_device *device, uint32_t type, uint64_t address);
void sim_device_free_owner(struct sim_device *device, uint32_t type, uint64_t owner);
void sim_device_capture(struct sim_device *device, uint32_t type, uint64_t size, const char *name);

struct sim_bank *sim_device_bank(struct sim_device *device, uint32_t type);
