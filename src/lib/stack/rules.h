/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How to get from a frame to its caller's, for each return address seen so far: the few numbers
 * that the file's unwind tables yield for that address. Reading those tables takes microseconds,
 * applying a rule takes nanoseconds.
 *
 * The table has a fixed size, and is read without a lock: an entry's address is stored last and
 * checked twice. An evicted rule is learned again.
 */

#include <stdbool.h>
#include <stdint.h>

enum rule_kind {
	RULE_END = 1,    /* the outermost frame: it has no caller */
	RULE_LOST = 2,   /* no tables for this address, or none that a rule can express */
	RULE_SP = 3,     /* the caller's stack pointer is ours plus @cfa */
	RULE_FP = 4,     /* ... the frame pointer plus @cfa */
	RULE_SAVED = 5,  /* ... was saved at the frame pointer plus @cfa: realigned stacks */
	RULE_SIGNAL = 6, /* a handler returns here: the kernel saved everything on the stack */
};

#define RULE_KEPT INT32_MAX /* still in its register */

/*
 * On x86-64 the return address is just below the CFA. On aarch64 it may be anywhere, so it needs a
 * number of its own; all three are multiples of 8 and fit into 64 bits.
 */
#if defined(__x86_64__)
#define RULE_HAS_RA 0
#define RULE_OFFSET_MAX (INT32_MAX - 1)
#else
#define RULE_HAS_RA 1
#define RULE_OFFSET_MAX (8 * ((1 << 20) - 2))
#endif

/* The caller's stack pointer is the CFA of the tables. */
struct rule {
	enum rule_kind kind;
	int32_t cfa;
	int32_t fp; /* offset of the saved frame pointer: from the CFA; RULE_SAVED: from ours */
#if RULE_HAS_RA
	int32_t ra; /* offset of the return address from the CFA */
#endif
};

static inline int32_t rules_ra(const struct rule *rule)
{
#if RULE_HAS_RA
	return rule->ra;
#else
	(void)rule;
	return -(int32_t)sizeof(void *);
#endif
}

/* Whether following the frame pointer gives the same result. */
static inline bool rules_are_frames(const struct rule *rule)
{
	return rule->kind == RULE_FP && rule->cfa == 2 * (int32_t)sizeof(void *) &&
	       rule->fp == -rule->cfa && rules_ra(rule) == -(int32_t)sizeof(void *);
}

/* False = not known yet. */
bool rules_find(uintptr_t address, struct rule *ret_rule);

/* Callers serialize. */
void rules_put(uintptr_t address, const struct rule *rule);
void rules_forget(void);
