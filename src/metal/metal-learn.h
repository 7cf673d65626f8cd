/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a Buffer of tt-metal says about itself, without its header. Most of it comes from exported
 * functions. Which device and which allocator it belongs to has no such function in some or all versions:
 * where the object keeps these is learned from the first buffers.
 *
 * Everything that can be had in two ways is compared while it is learned: the size, the address and the
 * allocator must be found in the object as well, and the device must be the only pointer in it that leads
 * to an object with the virtual table of Device or MeshDevice. Where the ways disagree, all is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metal_names;

struct metal_facts {
	const void *device; /* a Device or MeshDevice */
	const void *
		allocator; /* two live buffers of one allocator and type have different addresses */
	uint64_t address;  /* 0 = hooked: no memory behind it */
	uint64_t size;     /* on each device */
	uint64_t page_size;
	uint32_t pages;
};

enum metal_learn_outcome {
	METAL_LEARN_UNKNOWN = 1, /* not enough is known yet, or nothing is to be known */
};

int metal_learn(const struct metal_names *names, const void *buffer, struct metal_facts *ret_facts);

/* In which words of a buffer its size may be: bit N is word N. All, while it is being learned. */
uint32_t metal_learn_size_places(void);

/* The same for its device. */
uint32_t metal_learn_device_places(void);

/*
 * The buffer's allocator as an Allocator, for bank_count() and others. @ret_is_default: it is the device's
 * own, not a sub-device's.
 */
const void *metal_learn_api(const struct metal_names *names, const void *buffer,
			    const struct metal_facts *facts, bool *ret_is_default);

/* The allocator that the device itself has, as an Allocator. */
const void *metal_learn_own_allocator(const struct metal_names *names, const void *device);

/* Copies memory that may not be there, of up to a page: -EFAULT. Less than 0 else. */
int metal_learn_peek_by_pipe(const void *from, void *to, size_t size);
int metal_learn_copy(const void *from, void *to, size_t size);

/* What was learned and how, in one line; "" while it is being learned. */
const char *metal_learn_note(void);
