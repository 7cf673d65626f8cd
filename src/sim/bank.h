/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Allocates the memory of several banks of equal size, as tt-metal's allocator does.
 *
 * A buffer consists of pages that are distributed over the banks in turn. Every bank keeps room for
 * the same number of pages at the same address, so one list of blocks describes all banks,
 * addresses are per bank, and a buffer of one page still takes that page in every bank.
 *
 * Only blocks in use are kept, sorted by address; a hole is the gap between two of them, so
 * adjacent holes merge by themselves.
 */

#include <stddef.h>
#include <stdint.h>

/* From which end of the window to search for a place. */
enum sim_bank_end {
	SIM_BANK_BOTTOM, /* the lowest hole that fits, at its lower end */
	SIM_BANK_TOP,    /* the highest hole that fits, at its upper end */
};

/* A block in use. */
struct sim_block {
	uint64_t address;
	uint64_t length; /* bytes in each bank */
	uint64_t owner;  /* set by the caller */
	uint32_t kind;   /* set by the caller; a block is freed by address and kind */
};

struct sim_bank_request {
	uint64_t size;      /* bytes over all banks */
	uint64_t page_size; /* 0 = all of it is one page */
	enum sim_bank_end end;
	uint32_t kind;
	uint64_t owner;
};

struct sim_bank {
	uint64_t base; /* first address */
	uint64_t size; /* bytes in each bank */
	uint32_t banks;
	uint32_t alignment;       /* a power of two */
	uint64_t used;            /* bytes in each bank */
	struct sim_block *blocks; /* ours, sorted by address */
	size_t n_blocks;
	/* private */
	size_t room;
};

int sim_bank_init(struct sim_bank *bank, uint64_t base, uint64_t size, uint32_t banks,
		  uint32_t alignment);
void sim_bank_deinit(struct sim_bank *bank);

int sim_bank_need(const struct sim_bank *bank, uint64_t size, uint64_t page_size,
		  uint64_t *ret_length);
int sim_bank_alloc(struct sim_bank *bank, const struct sim_bank_request *request,
		   uint64_t *ret_address);
int sim_bank_free(struct sim_bank *bank, uint32_t kind, uint64_t address);
size_t sim_bank_free_owner(struct sim_bank *bank, uint32_t kind, uint64_t owner);

uint64_t sim_bank_largest(const struct sim_bank *bank);

/* The same over all banks together. */
uint64_t sim_bank_largest_total(const struct sim_bank *bank);
