/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests: made-up objects with functions like tt-metal's, and what was reported of them. Its
 * ttmem_...() take the place of libttmem's, and keep what is live; a free of something else fails the test.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ttmem/ttmem.h>

#include "metal/metal-names.h"

#define TESTING_WORDS 20 /* of a buffer that may be searched */

/* What Buffer::allocator() returns: a pointer to what a buffer keeps comes first. */
struct testing_allocator {
	const void *inner;
	uint64_t bank_sizes[TTMEM_TYPE_COUNT];
	uint64_t total;  /* that get_statistics() says instead; 0 = the same */
	uint64_t l1_end; /* that get_worker_l1_size() says; 0 = what follows from the sizes */
};

struct testing_device {
	const void *table;
	int32_t id;
	const struct testing_allocator *own;
	uint64_t cb_total;
	int32_t arch;
	uint32_t l1_per_core;
	struct metal_grid grid;
	bool is_remote;
	struct testing_device *members[4]; /* of a mesh */
	size_t member_count;
};

struct testing_buffer {
	uint64_t words[TESTING_WORDS];
	uint64_t page_size;
	uint32_t address;
	uint32_t pages;
	const struct testing_allocator *allocator;
};

struct testing_entry {
	uint32_t device;
	uint32_t type;
	uint32_t space;
	uint64_t address;
	uint64_t size;
	uint64_t size_per_bank;
};

/* Words of a buffer in which its members are. */
enum {
	TESTING_AT_DEVICE = 2,
	TESTING_AT_SIZE = 3,
	TESTING_AT_ADDRESS = 6,
	TESTING_AT_ALLOCATOR = 9,
};

/* All functions, as the newest tt-metal has them. */
struct metal_names testing_names(void);

struct testing_device testing_device(int32_t id, const struct testing_allocator *own);
struct testing_device testing_mesh(const struct testing_allocator *own, struct testing_device *a,
				   struct testing_device *b);

/* In @device's own allocator. */
struct testing_buffer testing_buffer(const struct testing_device *device, uint32_t address,
				     uint32_t pages);

/* NULL: nothing is live there. */
const struct testing_entry *testing_find(uint32_t device, uint32_t type, uint64_t address,
					 uint32_t space);

size_t testing_live(void);
size_t testing_reports(void);  /* calls that reported an allocation */
size_t testing_overlaps(void); /* calls of ttmem_trace_overlap() */
size_t testing_declared(void); /* calls of ttmem_device() */
size_t testing_gave_up(void);  /* calls of ttmem_give_up() */

/* Calls of ttmem_clash(), and the last of them. */
size_t testing_clashes(void);
const struct ttmem_clash_args *testing_clash_args(void);

/* Calls of ttmem_alloc_failed_ex(), and the last of them. */
size_t testing_failures(void);
const struct ttmem_failed_args *testing_failed_args(void);

/* The last overlap. */
const struct ttmem_trace_overlap_args *testing_overlap_args(void);

/* The last device that was declared. */
const struct ttmem_device_args *testing_device_args(void);
