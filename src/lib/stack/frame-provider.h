/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Frames of another language, from the provider that its runtime has registered (ttmem/provider.h).
 * An identity number for them goes into the thread's stack cache together with the native
 * addresses; the frames themselves are fetched only when a stack is seen for the first time. The
 * book stores them after the native frames, each with the number of native frames outside it, so
 * that a reader need not guess where they belong.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "book/format/layout.h"

struct writer;

/* What a thread sees now, and what it saw when it could last look. Initially all 0. */
struct frame_provider_sight {
	uint64_t identity; /* 0 = no frames */
	uint64_t last;     /* the same for the last exact sight */
	uint32_t last_id;  /* its stack in the book */
	bool is_approximate;
};

/* The native side of a stack. @places are the stack pointers of the frames; 0 = not known. */
struct frame_provider_native {
	const uintptr_t *addresses;
	const uintptr_t *places;
	size_t count;
};

/* Gets the identity of the current frames. Inside the busy flag. */
void frame_provider_look(struct writer *writer, struct frame_provider_sight *sight, uint32_t depth);

/*
 * Fetches the frames and appends them to the native frames at @frames, as many as fit into a stack
 * of the book. Return: how many.
 */
size_t frame_provider_tell(struct writer *writer, const struct frame_provider_sight *sight,
			   uint32_t depth, const struct frame_provider_native *native,
			   struct book_frame *frames);

/* The stack with these frames is @id. */
static inline void frame_provider_seen(struct frame_provider_sight *sight, uint32_t id)
{
	if (sight->identity && !sight->is_approximate) {
		sight->last = sight->identity;
		sight->last_id = id;
	}
}

static inline uint64_t frame_provider_mix(uint64_t hash, const struct frame_provider_sight *sight)
{
	if (!sight->identity)
		return hash;
	return hash_fold(hash ^ HASH_K0, sight->identity ^ HASH_K1) | 1;
}
