/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A free list as an allocator has it: the holes of one memory, by address, from which blocks are taken
 * and to which they are given back. (free-blocks.h shows the holes of a memory as somebody else
 * divided it; here we divide.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which hole is taken, of those that are large enough. */
enum free_list_fit {
	FREE_LIST_FIRST, /* the first one from the end where the search begins */
	FREE_LIST_BEST,  /* the smallest; of several, that first one */
};

struct free_list_hole {
	uint64_t address;
	uint64_t length;
};

struct free_list {
	uint64_t free; /* bytes in all holes */
	/* private */
	struct free_list_hole *holes; /* by address; no two touch */
	size_t count, capacity;
};

#define FREE_LIST_NULL ((struct free_list){.holes = NULL})

/* One hole, or none if @length is 0. 0 or -ENOMEM. */
int free_list_init(struct free_list *list, uint64_t address, uint64_t length);
void free_list_deinit(struct free_list *list);

/* Takes a block of @length bytes, which is not 0. False: no hole is large enough. */
bool free_list_take(struct free_list *list, uint64_t length, bool is_top_down,
		    enum free_list_fit fit, uint64_t *ret_address);

/* Whether there is a hole for it. */
bool free_list_has(const struct free_list *list, uint64_t length);

/* Gives back what was taken. 0 or -ENOMEM. */
int free_list_give(struct free_list *list, uint64_t address, uint64_t length);

/* Bytes that are free from @base, the lowest address, up to the lowest block. */
uint64_t free_list_bottom(const struct free_list *list, uint64_t base);

uint64_t free_list_largest(const struct free_list *list);
