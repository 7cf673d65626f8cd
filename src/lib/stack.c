/* SPDX-License-Identifier: Apache-2.0 */

/* Walking, the threads' caches, and what is done at a first sight. The header tells the rest. */

#include "lib/stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "book/writer.h"
#include "lib/bounds.h"
#include "lib/modules.h"
#include "lib/oldlog-names.h"
#include "lib/oldlog.h"

#define STACK_SETS 256u /* of two places each, the last used first */

/* How far above the frames that are kept a first sight looks for the loader and for signal handlers. */
#define STACK_LOOK 256u

_Static_assert(STACK_DEPTH_MAX == INTERN_FRAMES_MAX, "what is taken can be kept");

struct stack_known {
	uint64_t hash; /* of the addresses, and of what they mean; 0 = empty */
	uint32_t id;
	uint32_t reserved;
};

/* What a thread has once it took a stack. */
struct stack_cache {
	struct bounds bounds;
	uint32_t instance; /* of the gate, that is: of the book that the ids are of */
	uint32_t reserved;
	struct stack_known known[STACK_SETS][2];
};

static uint32_t stack_depth; /* 0 = off */
static pthread_key_t stack_key;
static uint32_t stack_key_state; /* 0 none, 1 being made, 2 there */

bool stack_is_on(void)
{
	return stack_depth != 0;
}

void stack_open(void)
{
	const char *how = secure_getenv("TTMEM_STACKS");
	const char *said = secure_getenv("TTMEM_STACK_DEPTH");
	unsigned long depth = said ? strtoul(said, NULL, 10) : 0;

	/* Not stored without need: a page that is not written is not there. */
	if (stack_depth)
		stack_depth = 0;
	oldlog_names_open();
	/* The old logs had stacks without being asked for them. */
	if (!how && oldlog_has_stacks())
		how = "fp";
	if (!how || strcmp(how, "fp") != 0)
		return;
	if (depth == 0)
		depth = STACK_DEPTH_USUAL;
	modules_open();
	stack_depth = (uint32_t)bits_min(depth, STACK_DEPTH_MAX);
}

static void stack_end(void *value)
{
	thread_self.stacks = NULL;
	(void)munmap(value, sizeof(struct stack_cache)); /* ours and whole: cannot fail */
}

/* So that a cache goes with its thread. Without a key to be had it stays: a few pages. */
static void stack_keep(struct stack_cache *cache)
{
	uint32_t none = 0;

	if (__atomic_compare_exchange_n(&stack_key_state, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		if (pthread_key_create(&stack_key, stack_end) == 0)
			__atomic_store_n(&stack_key_state, 2, __ATOMIC_RELEASE);
	}
	if (__atomic_load_n(&stack_key_state, __ATOMIC_ACQUIRE) == 2)
		(void)pthread_setspecific(stack_key, cache); /* ENOMEM: as without a key */
}

/* Not private_map(): a forked child goes on with it, and where its stack lies has not changed. */
static struct stack_cache *stack_make_cache(void)
{
	int saved_errno = errno;
	struct stack_cache *cache = mmap(NULL, sizeof(*cache), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (cache == MAP_FAILED) {
		cache = NULL;
	} else {
		bounds_find(&cache->bounds);
		stack_keep(cache);
	}
	errno = saved_errno;
	return cache;
}

static inline uintptr_t stack_plain(uintptr_t address)
{
#if defined(__aarch64__)
	/* Above the 48 bits of an address there may be its signature. */
	return address & ((UINT64_C(1) << 48) - 1);
#else
	return address;
#endif
}

/*
 * A frame is the address of the caller's frame and behind it the one that is returned to. Callers lie
 * further up, so the walk ends. @frame is where to begin, and then where it would go on. Return: how many.
 * A chain that is broken leads into the middle of somebody's variables, which a sanitizer would not like.
 */
static inline __attribute__((no_sanitize("address"))) size_t
stack_walk(const struct bounds *bounds, uintptr_t *frame, uintptr_t *addresses, size_t max)
{
	uintptr_t at = *frame;
	size_t n = 0;

	while (n < max && bounds_hold(bounds, at, 2 * sizeof(uintptr_t))) {
		const uintptr_t *words = (const uintptr_t *)at;
		uintptr_t address = stack_plain(words[1]);

		if (address == 0)
			break;
		/* Where calls were no jumps, in a build for debugging, our own frames come first. */
		if (n > 0 || !modules_is_own(address))
			addresses[n++] = address;
		if (words[0] <= at) {
			at = 0;
			break;
		}
		at = words[0];
	}
	*frame = at;
	return n;
}

/* Whether this is a place from which the loader must not be asked. */
static bool stack_is_delicate(const struct bounds *bounds, uintptr_t frame,
			      const uintptr_t *addresses, size_t n)
{
	uintptr_t further[16];

	if (modules_is_delicate(addresses, n))
		return true;
	for (size_t looked = 0; frame && looked < STACK_LOOK; looked += ARRAY_SIZE(further)) {
		n = stack_walk(bounds, &frame, further, ARRAY_SIZE(further));
		if (n == 0)
			return false;
		if (modules_is_delicate(further, n))
			return true;
	}
	return false;
}

/* In two lanes, because each step waits for the one before it. */
static inline uint64_t stack_hash(uint32_t generation, const uintptr_t *addresses, size_t n)
{
	uint64_t even = (uint64_t)generation << 8 | n;
	uint64_t odd = HASH_K0;
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		even = hash_fold(even ^ addresses[i] ^ HASH_K0, HASH_K1);
		odd = hash_fold(odd ^ addresses[i + 1] ^ HASH_K1, HASH_K0);
	}
	if (i < n)
		even = hash_fold(even ^ addresses[i] ^ HASH_K0, HASH_K1);
	return hash_fold(even ^ HASH_K0, odd ^ HASH_K1) | 1;
}

static void stack_remember(struct stack_cache *cache, uint64_t hash, uint32_t id)
{
	struct stack_known *set = cache->known[hash >> 8 & (STACK_SETS - 1)];

	set[1] = set[0];
	set[0] = (struct stack_known){.hash = hash, .id = id};
}

/* What the thread has not seen before, or not for long. */
static __attribute__((noinline)) uint32_t stack_first_sight(struct writer *writer,
							    struct stack_cache *cache,
							    const uintptr_t *addresses, size_t n)
{
	struct book_frame frames[STACK_DEPTH_MAX];
	uint32_t generation;
	size_t native = modules_frames(writer, addresses, n, frames, &generation);
	uint32_t id = intern_stack_mixed(writer, frames, native, 0);

	if (unlikely(oldlog_has_stacks()))
		oldlog_names_learn(id, addresses, native);
	/* A full book stays full: that there is no stack is remembered too. */
	stack_remember(cache, stack_hash(generation, addresses, n), id);
	return id;
}

uint32_t stack_take(struct writer *writer, struct thread *self, const void *frame)
{
	struct stack_cache *cache = self->stacks;
	uintptr_t addresses[STACK_DEPTH_MAX];
	uintptr_t at = (uintptr_t)frame;
	struct stack_known *set;
	uint32_t id = 0;
	uint64_t hash;
	size_t n;

	if (unlikely(!cache))
		cache = self->stacks = stack_make_cache();
	if (unlikely(!cache))
		goto out;
	if (unlikely(cache->instance != gate_current.instance)) {
		memset(cache->known, 0, sizeof(cache->known));
		cache->instance = gate_current.instance;
	}
	n = stack_walk(&cache->bounds, &at, addresses, stack_depth);
	if (n == 0)
		goto out;
	hash = stack_hash(modules_generation(), addresses, n);
	set = cache->known[hash >> 8 & (STACK_SETS - 1)];
	if (likely(set[0].hash == hash)) {
		id = set[0].id;
	} else if (set[1].hash == hash) {
		id = set[1].id;
		set[1] = set[0];
		set[0] = (struct stack_known){.hash = hash, .id = id};
	} else if (!stack_is_delicate(&cache->bounds, at, addresses, n)) {
		id = stack_first_sight(writer, cache, addresses, n);
	}
out:
	self->stack = id;
	if (unlikely(!id))
		writer_reject(&writer->header->lost_stacks);
	return id;
}
