/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How to leave a frame: along the chain of frame pointers, or by rule. Files whose code does not
 * keep frame pointers are pinned to rules once one of their frames has shown that, for as long as
 * nothing is loaded or unloaded. Frame pointers of all other files are trusted.
 *
 * Walks look up files without a lock, and check afterwards whether something has changed meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#define FP_OR_RULE_MAX 64u /* pinned files; if there are more, everything goes by rule */

/* A range of addresses with the same method: a pinned file, or the gap between two. */
struct fp_or_rule_window {
	uintptr_t low;
	uintptr_t high;
	bool by_rule;
};

#define FP_OR_RULE_WINDOW_NULL      \
	(struct fp_or_rule_window)  \
	{                           \
		.low = 1, .high = 0 \
	}

static inline bool fp_or_rule_covers(const struct fp_or_rule_window *window, uintptr_t address)
{
	return address >= window->low && address <= window->high;
}

/* The window around a return address. */
void fp_or_rule_look(uintptr_t address, struct fp_or_rule_window *ret_window);

/* Read before and after a walk: if it is odd or has changed, the result may be wrong. */
uint32_t fp_or_rule_version(void);

/* Callers serialize. Return addresses in the pinned file are above @low and not above @high. */
void fp_or_rule_pin(uintptr_t low, uintptr_t high);
void fp_or_rule_forget(void);
