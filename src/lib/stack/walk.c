/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks stacks. The thorough walk learns rules under a lock and with signals blocked: a handler
 * that left by siglongjmp() would leave the lock held.
 */

#include "lib/stack/walk.h"

#include "base/bits.h"
#include "base/threads/lock.h"
#include "lib/api/debug.h"
#include "lib/process/block-signals.h"
#include "lib/process/linked.h"
#include "lib/stack/eh-frame.h"
#include "lib/stack/fp-or-rule.h"
#include "lib/stack/modules.h"
#include "lib/stack/rules.h"

/* Damaged chains lead into other functions' variables, which a sanitizer would report. */
#define WALK_READS __attribute__((no_sanitize("address")))

#define WALK_WORD sizeof(uintptr_t)

/* Stack that must be left for learning. */
#define WALK_ROOM 8192u

/* A frame of the application: its return address and registers. */
struct walk {
	uintptr_t ip; /* 0 = no further frame */
	uintptr_t sp;
	uintptr_t fp;
	uintptr_t end; /* of the stack */
};

static enum walk_how walk_way;
static struct lock walk_lock; /* for everything below, and changes of rules and pins */
static uint32_t walk_generation;
static bool walk_has_tables;

static enum walk_how walk_how(void)
{
	return __atomic_load_n(&walk_way, __ATOMIC_RELAXED);
}

bool walk_is_sure(void)
{
	return walk_how() != WALK_FRAMES;
}

/* The loaded files have changed: addresses may belong to different ones. */
static bool walk_is_stale(void)
{
	return __atomic_load_n(&walk_generation, __ATOMIC_ACQUIRE) != modules_generation();
}

static void walk_forget(void)
{
	rules_forget();
	fp_or_rule_forget();
	if (walk_way == WALK_RULES)
		fp_or_rule_pin(0, UINTPTR_MAX);
	__atomic_store_n(&walk_generation, modules_generation(), __ATOMIC_RELEASE);
}

void walk_open(enum walk_how how)
{
	/* Held by a thread that this forked child does not have. It may have been changing rules. */
	bool was_held = walk_lock.word & LOCK_HELD;

	walk_has_tables = how != WALK_FRAMES && eh_frame_works();
	if (how != WALK_FRAMES && !walk_has_tables) {
		debug_line("stacks: there are no unwind tables: %s",
			   linked_is_static() ? "the program was linked without --eh-frame-hdr"
					      : "the C library has no _dl_find_object()");
		/* Unchecked frame pointers are better than nothing. */
		if (how == WALK_AUTO)
			how = WALK_FRAMES;
	}
	walk_lock = LOCK_NULL;
	if (walk_way == how && !was_held)
		return;
	walk_way = how;
	walk_forget();
}

static inline uintptr_t walk_plain(uintptr_t address)
{
#if defined(__aarch64__)
	/* Above the 48 bits of an address there may be a pointer authentication code. */
	return address & ((UINT64_C(1) << 48) - 1);
#else
	return address;
#endif
}

/*
 * A frame is the address of the caller's frame followed by the return address. Callers are at
 * higher addresses, so the walk ends. @places may be NULL.
 */
static inline WALK_READS size_t walk_frames(const struct bounds *bounds, uintptr_t at,
					    uintptr_t *addresses, uintptr_t *places, size_t max)
{
	size_t n = 0;

	while (n < max && bounds_hold(bounds, at, 2 * WALK_WORD)) {
		const uintptr_t *words = (const uintptr_t *)at;
		uintptr_t address = walk_plain(words[1]);

		if (address == 0)
			break;
		/* In a debug build, without tail calls, our own frames come first. */
		if (n > 0 || !modules_is_own(address)) {
			if (places)
				places[n] = at + 2 * WALK_WORD;
			addresses[n++] = address;
		}
		if (words[0] <= at)
			break;
		at = words[0];
	}
	return n;
}

/* The innermost frame of the application. Ours have frame pointers. */
static inline WALK_READS void walk_begin(struct walk *walk, const struct bounds *bounds,
					 const void *frame)
{
	uintptr_t at = (uintptr_t)frame;

	*walk = (struct walk){.end = bounds->high};
	while (bounds_hold(bounds, at, 2 * WALK_WORD)) {
		const uintptr_t *words = (const uintptr_t *)at;

		if (likely(!modules_is_own(words[1]))) {
			walk->ip = words[1];
			walk->sp = at + 2 * WALK_WORD;
			walk->fp = words[0];
			return;
		}
		if (words[0] <= at)
			return;
		at = words[0];
	}
}

/* Whether this word of the stack may be read. */
static inline bool walk_holds(const struct walk *walk, uintptr_t at)
{
	return at >= walk->sp && at < walk->end && walk->end - at >= WALK_WORD &&
	       at % WALK_WORD == 0;
}

static inline WALK_READS uintptr_t walk_read(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

static inline WALK_READS void walk_by_frame(struct walk *walk)
{
	uintptr_t at = walk->fp;

	walk->ip = 0;
	if (!walk_holds(walk, at) || !walk_holds(walk, at + WALK_WORD))
		return;
	walk->ip = walk_read(at + WALK_WORD);
	walk->fp = walk_read(at);
	walk->sp = at + 2 * WALK_WORD;
}

static inline WALK_READS void walk_by_rule(struct walk *walk, const struct rule *rule)
{
	uintptr_t cfa = (rule->kind == RULE_SP ? walk->sp : walk->fp) + (uintptr_t)rule->cfa;
	uintptr_t from = cfa;

	walk->ip = 0;
	if (unlikely(rule->kind <= RULE_LOST))
		return;
	if (unlikely(rule->kind == RULE_SAVED)) {
		if (!walk_holds(walk, cfa))
			return;
		from = walk->fp;
		cfa = walk_read(cfa);
	}
	if (unlikely(!walk_holds(walk, cfa - WALK_WORD)))
		return;
	if (rule->fp != RULE_FP_KEPT) {
		from += (uintptr_t)rule->fp;
		if (unlikely(!walk_holds(walk, from)))
			return;
		walk->fp = walk_read(from);
	}
	walk->ip = walk_read(cfa - WALK_WORD);
	walk->sp = cfa;
}

static size_t walk_known(const struct bounds *bounds, const void *frame, uintptr_t *addresses,
			 size_t max)
{
	struct fp_or_rule_window window = FP_OR_RULE_WINDOW_NULL;
	uint32_t version = fp_or_rule_version();
	struct walk walk;
	struct rule rule;
	size_t n = 0;

	walk_begin(&walk, bounds, frame);
	while (walk.ip) {
		addresses[n++] = walk.ip;
		if (n == max)
			break;
		if (unlikely(!fp_or_rule_covers(&window, walk.ip)))
			fp_or_rule_look(walk.ip, &window);
		if (!window.by_rule) {
			walk_by_frame(&walk);
		} else {
			if (unlikely(!rules_find(walk.ip, &rule)))
				return 0;
			walk_by_rule(&walk, &rule);
		}
	}
	return likely(!(version & 1) && version == fp_or_rule_version()) ? n : 0;
}

size_t walk_quick(const struct bounds *bounds, const void *frame, uintptr_t *addresses, size_t max)
{
	if (walk_how() == WALK_FRAMES)
		return walk_frames(bounds, (uintptr_t)frame, addresses, NULL, max);
	return walk_known(bounds, frame, addresses, max);
}

/* Whether the method now chosen for a frame agrees with its rule. */
static bool walk_is_right(const struct walk *walk, const struct rule *rule)
{
	struct fp_or_rule_window window;
	struct walk next = *walk;

	fp_or_rule_look(walk->ip, &window);
	if (window.by_rule || rules_are_frames(rule))
		return true;
	/* In the outermost frame a chain that ends is right too. */
	walk_by_frame(&next);
	return rule->kind == RULE_END && next.ip == 0;
}

/* From now on this file goes by rule. */
static void walk_pin(uintptr_t address)
{
	struct linked_file file;

	if (!linked_find(address, &file))
		return;
	fp_or_rule_pin(file.low, file.high);
	if (debug_is_on())
		debug_line("stacks: no frame pointers in %s, it is unwound by its tables",
			   *linked_path(&file) ? linked_path(&file) : "the program");
}

/* By rule all the way. @is_learning: the lock is held; otherwise 0 if a rule is missing. */
static size_t walk_rules(const struct bounds *bounds, const void *frame, uintptr_t *addresses,
			 uintptr_t *places, size_t max, bool is_learning)
{
	struct walk walk;
	struct rule rule;
	size_t n = 0;

	walk_begin(&walk, bounds, frame);
	while (walk.ip) {
		places[n] = walk.sp;
		addresses[n++] = walk.ip;
		if (n == max)
			break;
		if (!rules_find(walk.ip, &rule)) {
			if (!is_learning)
				return 0;
			eh_frame_rule(walk.ip, &rule);
			rules_put(walk.ip, &rule);
		}
		if (!walk_is_right(&walk, &rule)) {
			if (!is_learning)
				return 0;
			walk_pin(walk.ip);
		}
		walk_by_rule(&walk, &rule);
	}
	return n;
}

static size_t walk_learn(const struct bounds *bounds, const void *frame, uintptr_t *addresses,
			 uintptr_t *places, size_t max)
{
	struct block_signals block_signals;
	size_t n = 0;

	if (!walk_has_tables || (uintptr_t)frame - bounds->low < WALK_ROOM)
		return 0;
	block_signals_begin(&block_signals);
	if (lock_take(&walk_lock)) {
		if (walk_is_stale())
			walk_forget();
		n = walk_rules(bounds, frame, addresses, places, max, true);
		lock_drop(&walk_lock);
	}
	block_signals_end(&block_signals);
	return n;
}

size_t walk_thorough(const struct bounds *bounds, const void *frame, uintptr_t *addresses,
		     uintptr_t *places, size_t max)
{
	size_t n = 0;

	if (!bounds_hold(bounds, (uintptr_t)frame, WALK_WORD))
		return 0;
	if (walk_how() != WALK_FRAMES) {
		/* Most stacks that are new to a thread are known to others. */
		if (!walk_is_stale())
			n = walk_rules(bounds, frame, addresses, places, max, false);
		if (n == 0)
			n = walk_learn(bounds, frame, addresses, places, max);
	}
	if (walk_how() == WALK_FRAMES)
		n = walk_frames(bounds, (uintptr_t)frame, addresses, places, max);
	return n;
}
