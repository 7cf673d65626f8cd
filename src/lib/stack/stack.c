/* SPDX-License-Identifier: Apache-2.0 */

/* The threads' stack caches, and what happens when a stack is seen for the first time. */

#include "lib/stack/stack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/keyword.h"
#include "base/process/freeze.h"
#include "book/write/writer.h"
#include "lib/api/debug-log.h"
#include "lib/api/debug.h"
#include "lib/process/block-signals.h"
#include "lib/stack/bounds.h"
#include "lib/stack/frame-provider.h"
#include "lib/stack/modules.h"
#include "lib/stack/stack-memo.h"
#include "lib/stack/unload-guard.h"
#include "lib/stack/walk.h"

#define STACK_SETS 256u /* of two entries each, the most recently used first */

#define STACK_MEMOS 32u /* one for each place that calls ttmem and each height of the stack there */

/* How many frames beyond those kept are searched for the loader and for signal handlers. */
#define STACK_LOOK 256u

/* Stack that must be left for a new one. */
#define STACK_ROOM 12288u

/* Native frames beside those of a provider: half of what a stack in the book can hold. */
#define STACK_NATIVE_MAX (STACK_DEPTH_MAX / 2)

_Static_assert(STACK_DEPTH_MAX == INTERN_FRAMES_MAX, "what is taken can be kept");
_Static_assert(STACK_DEPTH_MAX + STACK_LOOK <= WALK_MAX, "what is walked has room");

struct stack_known {
	uint64_t hash;    /* of the addresses, generation and provider's frames; 0 = empty */
	uint64_t guards;  /* of its files that may be unloaded */
	uint64_t certain; /* those whose frames are certain */
	uint32_t id;
	uint32_t reserved;
};

/* What a thread has once it has taken a stack. */
struct stack_cache {
	struct bounds bounds;
	struct frame_provider_sight sight;
	uint32_t instance; /* of the gate, that is: of the book that issued the ids */
	uint32_t reserved;
	struct stack_known known[STACK_SETS][2] __attribute__((aligned(CACHE_LINE)));
	struct stack_memo memos[STACK_MEMOS];
};

_Static_assert(2 * sizeof(struct stack_known) == CACHE_LINE, "a set is a line");

static uint32_t stack_depth; /* 0 = off */
static bool stack_is_native; /* false = only the provider's frames */
static pthread_key_t stack_key;
static uint32_t stack_key_state; /* 0 none, 1 being created, 2 ready */

bool stack_is_on(void)
{
	return stack_depth != 0; /* set before the gate is published */
}

/* Return: whether stacks are wanted. */
static bool stack_wanted(enum walk_how *ret_how, bool *ret_is_native)
{
	static const char *const ways[] = {
		[WALK_FRAMES] = "fp", [WALK_RULES] = "unwind", [WALK_AUTO] = "auto"};
	const char *said = secure_getenv("TTMEM_STACKS");
	size_t length = said ? strlen(said) : 0;

	*ret_how = WALK_AUTO;
	*ret_is_native = true;
	if (!said || keyword_is_yes(said, length))
		return true;
	if (keyword_is_no(said, length))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		*ret_how = (enum walk_how)i;
		if (keyword_is(said, length, ways[i]))
			return true;
	}
	*ret_is_native = false;
	if (keyword_is(said, length, "python"))
		return true;
	debug_line("stacks: off, TTMEM_STACKS is none of auto, fp, unwind, python and off: %s",
		   said);
	return false;
}

static uint32_t stack_wanted_depth(void)
{
	const char *said = secure_getenv("TTMEM_STACK_DEPTH");
	uint32_t depth = said ? keyword_number(said, STACK_DEPTH_MAX) : STACK_DEPTH_USUAL;

	if (depth)
		return depth;
	debug_line("stacks: %u frames, TTMEM_STACK_DEPTH is no number from 1 to %u: %s",
		   STACK_DEPTH_USUAL, STACK_DEPTH_MAX, said);
	return STACK_DEPTH_USUAL;
}

void stack_open(void)
{
	enum walk_how how;
	bool is_native;

	/* Stored only if set: an unwritten page takes no memory. */
	if (stack_depth)
		stack_depth = 0;
	debug_log_new_book();
	if (!stack_wanted(&how, &is_native))
		return;
	modules_open();
	if (is_native)
		walk_open(how);
	stack_is_native = is_native;
	stack_depth = stack_wanted_depth();
}

static void stack_end(void *value)
{
	thread_self.stacks = NULL;
	(void)munmap(value, sizeof(struct stack_cache)); /* ours and whole: cannot fail */
}

/* Frees the cache when its thread ends. If there is no key left the cache leaks: a few pages. */
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

/*
 * Not private_map(): a forked child keeps using it, and its stack is where it was. A handler that
 * left by siglongjmp(), or cancellation, would leave it behind, and an open file.
 */
static __attribute__((noinline)) void stack_make_cache(struct thread *self)
{
	struct block_signals block_signals;
	struct stack_cache *cache;

	if (freeze_is_on())
		return;
	block_signals_begin(&block_signals);
	cache = mmap(NULL, sizeof(*cache), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (cache != MAP_FAILED) {
		(void)madvise(cache, sizeof(*cache), MADV_DONTDUMP); /* only advice */
		bounds_find(&cache->bounds);
		stack_keep(cache);
		self->stacks = cache;
	}
	block_signals_end(&block_signals);
}

/*
 * Two lanes, because each step depends on the one before. The generation comes last: next to an
 * address it would act like part of it, and files can be as little apart as generations.
 */
static inline uint64_t stack_hash(uint32_t generation, const uintptr_t *addresses, size_t n)
{
	uint64_t even = 0;
	uint64_t odd = HASH_K0 ^ n;
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		even = hash_fold(even ^ addresses[i] ^ HASH_K0, HASH_K1);
		odd = hash_fold(odd ^ addresses[i + 1] ^ HASH_K1, HASH_K0);
	}
	if (i < n)
		even = hash_fold(even ^ addresses[i] ^ HASH_K0, HASH_K1);
	return hash_fold(even ^ HASH_K0, odd ^ HASH_K1 ^ generation) | 1;
}

static void stack_remember(struct stack_cache *cache, const struct stack_known *known)
{
	struct stack_known *set = cache->known[known->hash >> 8 & (STACK_SETS - 1)];

	set[1] = set[0];
	set[0] = *known;
}

/* NULL = not seen before, or evicted. */
static inline const struct stack_known *stack_find(struct stack_cache *cache, uint64_t hash)
{
	struct stack_known *set = cache->known[hash >> 8 & (STACK_SETS - 1)];
	struct stack_known known;

	if (likely(set[0].hash == hash))
		return &set[0];
	if (set[1].hash != hash)
		return NULL;
	known = set[1];
	set[1] = set[0];
	set[0] = known;
	return &set[0];
}

/* For a stack that the thread has not seen before, or that was evicted. */
static __attribute__((noinline)) uint32_t
stack_first_sight(struct writer *writer, struct stack_cache *cache, const struct walk_found *found)
{
	struct book_frame frames[STACK_DEPTH_MAX];
	struct frame_provider_native native = {.addresses = found->addresses,
					       .places = found->places};
	struct modules_validity validity = {.generation = modules_generation()};
	size_t n = bits_min(found->count, stack_depth);
	struct stack_known known;
	size_t others;
	uint32_t id;

	if (n > 0)
		native.count = modules_frames(writer, found, n, frames, &validity);
	/* Its callers are not known, or are in no file. */
	if (native.count > 0 && (native.count < n || (found->is_cut && n == found->count)))
		frames[native.count - 1].flags = BOOK_FRAME_CUT;
	if (cache->sight.identity)
		native.count = bits_min(native.count, STACK_NATIVE_MAX);
	others = frame_provider_tell(writer, &cache->sight, stack_depth, &native, frames);
	id = intern_stack_mixed(writer, frames, native.count, others);
	if (unlikely(debug_log_is_on()))
		debug_log_new_stack(id, found->addresses, native.count,
				    modules_may_call(found) ? bounds_room(&cache->bounds) : 0);
	if (validity.is_fleeting)
		return id;
	/* A full book stays full: remember also that there is no stack. */
	known = (struct stack_known){
		.guards = validity.guards,
		.certain = walk_is_sure() ? validity.guards : validity.first,
		.id = id,
	};
	known.hash = frame_provider_mix(stack_hash(validity.generation, found->addresses, n),
					&cache->sight);
	stack_remember(cache, &known);
	return id;
}

/* How the files are found depends on the whole stack, as far as it is examined. */
static __attribute__((noinline)) uint32_t stack_meet_on(struct writer *writer,
							struct stack_cache *cache,
							const struct bounds *bounds,
							struct walk_start start)
{
	struct walk_found found = {.count = 0};
	uint32_t id = 0;

	if (!stack_is_native)
		return stack_first_sight(writer, cache, &found);
	for (int tries = 0; tries < 2; tries++) {
		uint32_t generation = modules_generation();

		walk_thorough(bounds, &cache->bounds, start, stack_depth + STACK_LOOK, &found);
		if (found.count == 0 && !cache->sight.identity)
			return 0;
		id = stack_first_sight(writer, cache, &found);
		/* If the loaded files have changed, the walk may have relied on the old ones. */
		if (generation == modules_generation())
			break;
	}
	return id;
}

/* Most of the room that a new stack needs is for the addresses. */
static __attribute__((noinline)) uint32_t
stack_meet(struct writer *writer, struct stack_cache *cache, struct walk_start start)
{
	const struct bounds *bounds = &cache->bounds;
	uintptr_t here = (uintptr_t)start.frame;
	struct block_signals block_signals;
	struct bounds alternate;

	if (!bounds_hold(bounds, here, sizeof(uintptr_t)) && stack_is_native) {
		if (!bounds_find_alternate(here, &alternate))
			return 0;
		bounds = &alternate;
	}
	if (stack_is_native && here - bounds->low < STACK_ROOM)
		return 0;
	/* The thread's own stack may have grown since. */
	if (bounds == &alternate) {
		block_signals_begin(&block_signals);
		bounds_find(&cache->bounds);
		block_signals_end(&block_signals);
	}
	return stack_meet_on(writer, cache, bounds, start);
}

/* Which memo a call uses: its stack pointer and its return address decide. */
static inline struct stack_memo *stack_memo(struct stack_cache *cache, struct walk_start start)
{
	const uintptr_t *words = start.frame;

	return &cache->memos[((uintptr_t)start.frame / 16 ^ words[1]) * HASH_K0 >> 32 &
			     (STACK_MEMOS - 1)];
}

/* Whether its files are the same as when it was met. */
static inline bool stack_is_valid(const struct stack_known *known, uint32_t generation)
{
	return likely(!known->guards) ||
	       unload_guard_hold(known->guards, known->certain, generation);
}

/* The walk that was noted is that of a known stack. */
static inline void stack_note(struct stack_memo *memo, const struct stack_known *known,
			      uint64_t identity, uint32_t generation)
{
	memo->guards = known->guards;
	memo->certain = known->certain;
	memo->identity = identity;
	memo->generation = generation;
	memo->id = known->id;
}

/* Walks. @memo: may be NULL. False = the stack is not known, or not valid any more. */
static inline __attribute__((always_inline)) bool stack_walk(struct stack_cache *cache,
							     struct stack_memo *memo,
							     struct walk_start start,
							     uint32_t *ret_id)
{
	uintptr_t addresses[STACK_DEPTH_MAX];
	const struct stack_known *known;
	bool is_noting = memo && stack_memo_begin(memo);
	uint32_t generation;
	uint64_t hash;
	size_t n = 0;

	if (likely(stack_is_native)) {
		n = walk_quick(&cache->bounds, start, addresses, stack_depth,
			       is_noting ? &memo->walk : NULL);
		/* Its rules may not be learned yet. */
		if (n == 0)
			return false;
	}
	generation = modules_generation();
	hash = frame_provider_mix(stack_hash(generation, addresses, n), &cache->sight);
	known = stack_find(cache, hash);
	if (!known || !stack_is_valid(known, generation))
		return false;
	if (is_noting && walk_memo_end(&memo->walk))
		stack_note(memo, known, cache->sight.identity, generation);
	*ret_id = known->id;
	return true;
}

/* Not inlined, because walks would pay for its registers. */
static __attribute__((noinline)) bool
stack_holds(const struct stack_memo *memo, const struct stack_cache *cache, struct walk_start start)
{
	return stack_memo_holds(memo, cache->sight.identity, modules_generation(), start);
}

/* Compares, and walks only if that fails. Otherwise as stack_walk(). */
static __attribute__((noinline)) bool stack_compare(struct stack_cache *cache,
						    struct walk_start start, uint32_t *ret_id)
{
	struct stack_memo *memo = stack_memo(cache, start);

	if (!stack_memo_is_live(memo) || !stack_holds(memo, cache, start))
		return stack_walk(cache, memo, start, ret_id);
	stack_memo_used(memo);
	*ret_id = memo->id;
	return true;
}

/* Ids of another book. */
static __attribute__((noinline)) void stack_forget(struct stack_cache *cache)
{
	memset(cache->known, 0, sizeof(cache->known));
	/* Stored only if set: an unwritten page takes no memory. */
	for (size_t i = 0; i < STACK_MEMOS; i++) {
		if (cache->memos[i].id)
			cache->memos[i].id = 0;
	}
	cache->sight = (struct frame_provider_sight){0};
	cache->instance = gate_current.instance;
}

void stack_drop(struct thread *self)
{
	if (self->stacks)
		self->stacks->instance = 0;
}

uint32_t stack_take(struct writer *writer, struct thread *self, struct walk_start start)
{
	struct stack_cache *cache = self->stacks;
	uint32_t id = 0;
	bool is_known;

	if (unlikely(!cache)) {
		stack_make_cache(self);
		cache = self->stacks;
	}
	if (unlikely(!cache))
		goto out;
	if (unlikely(cache->instance != gate_current.instance))
		stack_forget(cache);
	frame_provider_look(writer, &cache->sight, stack_depth);
	if (likely(stack_is_native))
		is_known = stack_compare(cache, start, &id);
	else
		is_known = stack_walk(cache, NULL, start, &id);
	if (unlikely(!is_known) && likely(!freeze_is_on()))
		id = stack_meet(writer, cache, start);
	frame_provider_seen(&cache->sight, id);
out:
	self->stack = id;
	if (unlikely(!id))
		writer_reject(&writer->header->lost_stacks);
	return id;
}
