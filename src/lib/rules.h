/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How to get from a frame to its caller's, for each return address that was ever met: the few numbers that
 * the file's unwind tables come to at that one place. Reading those tables takes microseconds, applying
 * a rule takes nanoseconds.
 *
 * The table has a fixed size, and is read without a lock: each entry's address is stored last and
 * looked at twice. A rule that was pushed out is learned again.
 */

#include <stdbool.h>
#include <stdint.h>

enum rule_kind {
	RULE_END = 1,   /* the outermost frame: nobody called it */
	RULE_LOST = 2,  /* no tables for this place, or none that a rule can express */
	RULE_SP = 3,    /* the caller's stack pointer is ours plus @cfa */
	RULE_FP = 4,    /* ... the frame pointer plus @cfa */
	RULE_SAVED = 5, /* ... was saved at the frame pointer plus @cfa: realigned stacks */
};

#define RULE_FP_KEPT INT32_MAX /* the frame pointer is still the caller's */

/* The caller's stack pointer is the CFA of the tables; below it lies the return address. */
struct rule {
	enum rule_kind kind;
	int32_t cfa;
	int32_t fp; /* where the caller's frame pointer lies: from the CFA, RULE_SAVED: from ours */
};

/* Whether following the chain of frame pointers comes to the same. */
static inline bool rules_are_frames(const struct rule *rule)
{
	return rule->kind == RULE_FP && rule->cfa == 2 * (int32_t)sizeof(void *) &&
	       rule->fp == -rule->cfa;
}

/* False = not met yet. */
bool rules_find(uintptr_t address, struct rule *ret_rule);

/* One at a time. */
void rules_put(uintptr_t address, const struct rule *rule);
void rules_forget(void);
