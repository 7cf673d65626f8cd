/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks stacks. The thorough walk learns rules under a lock and with signals blocked: a handler
 * that left by siglongjmp() would leave the lock held.
 */

#include "lib/stack/walk.h"

#include <ucontext.h>

#include "base/bits.h"
#include "base/threads/lock.h"
#include "lib/api/debug.h"
#include "lib/process/block-signals.h"
#include "lib/process/linked.h"
#include "lib/stack/eh-frame.h"
#include "lib/stack/fp-or-rule.h"
#include "lib/stack/modules.h"
#include "lib/stack/rules.h"
#include "lib/stack/walk-memo.h"

/* Damaged chains lead into other functions' variables, which a sanitizer would report. */
#define WALK_READS __attribute__((no_sanitize("address")))

/* The steps of a walk. Inlined, so that it is in registers and pays for notes only if it is noted. */
#define WALK_STEP static inline __attribute__((always_inline)) WALK_READS

#define WALK_WORD sizeof(uintptr_t)

/*
 * What the kernel leaves for the return from a handler: where the context is, counted from the stack
 * pointer, and where the registers are in it.
 */
#define WALK_CONTEXT(field) (WALK_CONTEXT_AT + offsetof(ucontext_t, uc_mcontext.field))
#if defined(__x86_64__)
#define WALK_CONTEXT_AT 0
#define WALK_CONTEXT_IP WALK_CONTEXT(gregs[REG_RIP])
#define WALK_CONTEXT_SP WALK_CONTEXT(gregs[REG_RSP])
#define WALK_CONTEXT_FP WALK_CONTEXT(gregs[REG_RBP])
#define WALK_CONTEXT_RA WALK_CONTEXT_IP /* is never in a register */
#else
#define WALK_CONTEXT_AT 128 /* after the siginfo */
#define WALK_CONTEXT_IP WALK_CONTEXT(pc)
#define WALK_CONTEXT_SP WALK_CONTEXT(sp)
#define WALK_CONTEXT_FP WALK_CONTEXT(regs[29])
#define WALK_CONTEXT_RA WALK_CONTEXT(regs[30])
#endif

/*
 * Whether following a frame pointer also gives the caller's stack pointer, which its rules may need.
 * If not, auto goes by rules only.
 */
#if defined(__x86_64__)
#define WALK_FRAMES_GIVE_SP true
#else
#define WALK_FRAMES_GIVE_SP false
#endif

/* A frame of the application: its return address and registers. */
struct walk {
	uintptr_t ip; /* 0 = no further frame */
	uintptr_t sp;
	uintptr_t fp;
	uintptr_t fp_at;          /* where it was read */
	uintptr_t ra;             /* the register, in an interrupted function; 0 = not known */
	uintptr_t end;            /* of the stack */
	const struct bounds *own; /* the thread's own stack, if this is another one; or NULL */
	bool is_interrupted;      /* by a signal, so maybe where there is no frame yet */
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
	if (walk_way == WALK_RULES || (walk_way == WALK_AUTO && !WALK_FRAMES_GIVE_SP))
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

WALK_STEP uintptr_t walk_plain(uintptr_t address)
{
#if defined(__aarch64__)
	/* Above the 48 bits of an address there may be a pointer authentication code. */
	return address & ((UINT64_C(1) << 48) - 1);
#else
	return address;
#endif
}

/* Once: a damaged chain leads to words that another thread may change. */
WALK_STEP uintptr_t walk_read(uintptr_t at)
{
	return __atomic_load_n((const uintptr_t *)at, __ATOMIC_RELAXED);
}

/* The walk depends on this word. @memo: NULL = it is not noted. */
WALK_STEP void walk_note(struct walk_memo *memo, uintptr_t at, uintptr_t value)
{
	if (memo)
		walk_memo_note(memo, at, value);
}

/*
 * A frame is the address of the caller's frame followed by the return address. Callers are at
 * higher addresses, so the walk ends. @places and @memo may be NULL.
 */
WALK_STEP size_t walk_frames(const struct bounds *bounds, struct walk_start start,
			     uintptr_t *addresses, uintptr_t *places, size_t max,
			     struct walk_memo *memo)
{
	uintptr_t at = (uintptr_t)start.frame;
	size_t n = 0;

	while (n < max && bounds_hold(bounds, at, 2 * WALK_WORD)) {
		uintptr_t word = walk_read(at + WALK_WORD);
		uintptr_t next = walk_read(at);
		uintptr_t address = walk_plain(word);

		walk_note(memo, at + WALK_WORD, word);
		if (address == 0)
			break;
		/* In a debug build, without tail calls, our own frames come first. */
		if (n > 0 || !modules_is_own(address)) {
			if (places)
				places[n] = at + 2 * WALK_WORD;
			addresses[n++] = address;
		}
		if (n < max)
			walk_note(memo, at, next);
		if (next <= at)
			break;
		at = next;
	}
	return n;
}

/* The caller of our function. It may be ours as well: in a debug build there are no tail calls. */
WALK_STEP void walk_begin(struct walk *walk, const struct bounds *bounds, struct walk_start start,
			  struct walk_memo *memo)
{
	uintptr_t at = (uintptr_t)start.frame;
	uintptr_t word;

	*walk = (struct walk){.end = bounds->high};
	if (unlikely(!bounds_hold(bounds, at, 2 * WALK_WORD)))
		return;
	word = walk_read(at + WALK_WORD);
	walk_note(memo, at + WALK_WORD, word);
	walk->ip = walk_plain(word);
	walk->sp = start.sp;
	walk->fp = walk_read(at);
	walk->fp_at = at;
}

/* Whether this word of the stack may be read. */
WALK_STEP bool walk_holds(const struct walk *walk, uintptr_t at)
{
	return at >= walk->sp && at < walk->end && walk->end - at >= WALK_WORD &&
	       at % WALK_WORD == 0;
}

WALK_STEP void walk_by_frame(struct walk *walk, struct walk_memo *memo)
{
	uintptr_t at = walk->fp;

	walk->ip = 0;
	walk_note(memo, walk->fp_at, at);
	if (!walk_holds(walk, at) || !walk_holds(walk, at + WALK_WORD))
		return;
	walk->ip = walk_read(at + WALK_WORD);
	walk_note(memo, at + WALK_WORD, walk->ip);
	walk->fp = walk_read(at);
	walk->fp_at = at;
	walk->sp = at + 2 * WALK_WORD;
}

/* From a signal handler to what it interrupted. */
static __attribute__((noinline)) WALK_READS void walk_by_context(struct walk *walk)
{
	uintptr_t at = walk->sp;
	uintptr_t sp;

	walk->ip = 0;
	if (!walk_holds(walk, at) || walk->end - at < WALK_CONTEXT_AT + sizeof(ucontext_t))
		return;
	sp = walk_read(at + WALK_CONTEXT_SP);
	if (walk->own && sp >= walk->own->mapped && sp < walk->own->high) {
		walk->end = walk->own->high;
		walk->own = NULL;
	} else if (sp <= at || sp >= walk->end) {
		return;
	}
	walk->sp = sp;
	walk->fp = walk_read(at + WALK_CONTEXT_FP);
	walk->ra = walk_plain(walk_read(at + WALK_CONTEXT_RA));
	walk->ip = walk_read(at + WALK_CONTEXT_IP) + 1;
	walk->is_interrupted = true;
}

/* Reads the return address; 0 = there is none. */
WALK_STEP uintptr_t walk_return(const struct walk *walk, int32_t offset, uintptr_t cfa,
				struct walk_memo *memo)
{
	uintptr_t at = cfa + (uintptr_t)offset;
	uintptr_t word;

	if (offset == RULE_KEPT)
		return cfa >= walk->sp ? walk->ra : 0;
	if (unlikely(!walk_holds(walk, at)))
		return 0;
	word = walk_read(at);
	walk_note(memo, at, word);
	return walk_plain(word);
}

WALK_STEP void walk_by_rule(struct walk *walk, const struct rule *rule, struct walk_memo *memo)
{
	uintptr_t cfa = (rule->kind == RULE_SP ? walk->sp : walk->fp) + (uintptr_t)rule->cfa;
	uintptr_t from = cfa;

	walk->ip = 0;
	if (unlikely(rule->kind <= RULE_LOST))
		return;
	if (rule->kind == RULE_FP || rule->kind == RULE_SAVED)
		walk_note(memo, walk->fp_at, walk->fp);
	if (unlikely(rule->kind >= RULE_SAVED)) {
		if (rule->kind == RULE_SIGNAL) {
			struct walk copy = *walk; /* which leaves the walk in registers */

			walk_by_context(&copy);
			*walk = copy;
			if (memo)
				walk_memo_spoil(memo);
			return;
		}
		if (!walk_holds(walk, cfa))
			return;
		cfa = walk_read(from);
		walk_note(memo, from, cfa);
		from = walk->fp;
	}
	walk->ip = walk_return(walk, rules_ra(rule), cfa, memo);
	if (rule->fp != RULE_KEPT) {
		from += (uintptr_t)rule->fp;
		if (unlikely(!walk_holds(walk, from)))
			walk->ip = 0;
		else
			walk->fp = walk_read(from);
		walk->fp_at = from;
	}
	walk->sp = cfa;
	walk->ra = 0;
	walk->is_interrupted = false;
}

/* Return: whether this is a frame of the application. Ours come first. */
WALK_STEP bool walk_add(uintptr_t *addresses, size_t n, uintptr_t ip)
{
	addresses[n] = ip;
	return n > 0 || likely(!modules_is_own(ip));
}

/* Inlined twice, with and without notes. */
WALK_STEP size_t walk_known(const struct bounds *bounds, struct walk_start start,
			    uintptr_t *addresses, size_t max, struct walk_memo *memo)
{
	struct fp_or_rule_window window = FP_OR_RULE_WINDOW_NULL;
	uint32_t version = memo ? memo->version : fp_or_rule_version();
	struct walk walk;
	struct rule rule;
	size_t n = 0;

	walk_begin(&walk, bounds, start, memo);
	while (walk.ip) {
		n += walk_add(addresses, n, walk.ip);
		if (n == max)
			break;
		if (unlikely(!fp_or_rule_covers(&window, walk.ip)))
			fp_or_rule_look(walk.ip, &window);
		if (!window.by_rule && !walk.is_interrupted) {
			walk_by_frame(&walk, memo);
		} else {
			if (unlikely(!rules_find(walk.ip, &rule)))
				return 0;
			n -= rule.kind == RULE_SIGNAL;
			walk_by_rule(&walk, &rule, memo);
		}
	}
	return likely(!(version & 1) && version == fp_or_rule_version()) ? n : 0;
}

static __attribute__((noinline)) WALK_READS size_t walk_noting(const struct bounds *bounds,
							       struct walk_start start,
							       uintptr_t *addresses, size_t max,
							       struct walk_memo *memo)
{
	walk_memo_begin(memo, start);
	if (walk_how() == WALK_FRAMES)
		return walk_frames(bounds, start, addresses, NULL, max, memo);
	return walk_known(bounds, start, addresses, max, memo);
}

WALK_READS size_t walk_quick(const struct bounds *bounds, struct walk_start start,
			     uintptr_t *addresses, size_t max, struct walk_memo *ret_memo)
{
	if (unlikely(ret_memo))
		return walk_noting(bounds, start, addresses, max, ret_memo);
	if (walk_how() == WALK_FRAMES)
		return walk_frames(bounds, start, addresses, NULL, max, NULL);
	return walk_known(bounds, start, addresses, max, NULL);
}

/* Whether the method now chosen for a frame agrees with its rule. */
static WALK_READS bool walk_is_right(const struct walk *walk, const struct rule *rule)
{
	struct fp_or_rule_window window;
	struct walk next = *walk;

	fp_or_rule_look(walk->ip, &window);
	if (window.by_rule || rules_are_frames(rule))
		return true;
	/* In the outermost frame a chain that ends is right too. */
	walk_by_frame(&next, NULL);
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

/* The rule of a frame. @is_learning: the lock is held; otherwise false if something is missing. */
static bool walk_rule(const struct walk *walk, bool is_learning, struct rule *ret_rule)
{
	if (!rules_find(walk->ip, ret_rule)) {
		if (!is_learning)
			return false;
		eh_frame_rule(walk->ip, ret_rule);
		rules_put(walk->ip, ret_rule);
	}
	/* An interrupted function goes by rule anyway. */
	if (!walk->is_interrupted && !walk_is_right(walk, ret_rule)) {
		if (!is_learning)
			return false;
		walk_pin(walk->ip);
	}
	return true;
}

/* By rule all the way. False = a rule is missing. */
static WALK_READS bool walk_rules(struct walk walk, size_t max, bool is_learning,
				  struct walk_found *found)
{
	struct rule rule = {.kind = RULE_LOST};

	found->count = 0;
	found->is_interrupted = false;
	while (walk.ip) {
		found->places[found->count] = walk.sp;
		found->count += walk_add(found->addresses, found->count, walk.ip);
		found->is_cut = found->count == max;
		if (found->is_cut)
			return true;
		if (!walk_rule(&walk, is_learning, &rule))
			return false;
		if (rule.kind == RULE_SIGNAL) {
			found->count--;
			found->is_interrupted = true;
		}
		walk_by_rule(&walk, &rule, NULL);
	}
	found->is_cut = rule.kind != RULE_END;
	return true;
}

static void walk_learn(const struct walk *walk, size_t max, struct walk_found *found)
{
	struct block_signals block_signals;

	found->count = 0;
	if (!walk_has_tables)
		return;
	block_signals_begin(&block_signals);
	if (lock_take(&walk_lock)) {
		if (walk_is_stale())
			walk_forget();
		(void)walk_rules(*walk, max, true, found); /* learns what is missing */
		lock_drop(&walk_lock);
	}
	block_signals_end(&block_signals);
}

WALK_READS void walk_thorough(const struct bounds *bounds, const struct bounds *own,
			      struct walk_start start, size_t max, struct walk_found *ret_found)
{
	/* Only handlers run on another stack, even if the walk does not get to their callers. */
	bool is_handler = bounds != own;
	struct walk walk;

	if (walk_how() == WALK_FRAMES) {
		ret_found->is_interrupted = is_handler;
		ret_found->is_cut = false;
		ret_found->count = walk_frames(bounds, start, ret_found->addresses,
					       ret_found->places, max, NULL);
		return;
	}
	walk_begin(&walk, bounds, start, NULL);
	walk.own = is_handler ? own : NULL;
	/* Most stacks that are new to a thread are known to others. */
	if (walk_is_stale() || !walk_rules(walk, max, false, ret_found))
		walk_learn(&walk, max, ret_found);
	ret_found->is_interrupted |= is_handler;
}
