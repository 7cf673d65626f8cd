/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which way out of a frame: along the chain of frame pointers, or by rule. Files whose code does not keep
 * frame pointers are pinned to rules, once one of their frames has shown that, and for as long as nothing
 * is loaded or unloaded. Everything else is trusted.
 *
 * Walks look without a lock, and ask afterwards whether something has changed meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#define PICK_MAX 64u /* pinned files; with more of them everything goes by rule */

/* A stretch of addresses that all go the same way: a pinned file, or what is between two. */
struct pick_window {
	uintptr_t low;
	uintptr_t high;
	bool by_rule;
};

#define PICK_WINDOW_NULL            \
	(struct pick_window)        \
	{                           \
		.low = 1, .high = 0 \
	}

static inline bool pick_covers(const struct pick_window *window, uintptr_t address)
{
	return address >= window->low && address <= window->high;
}

/* The window around a return address. */
void pick_look(uintptr_t address, struct pick_window *ret_window);

/* Before a walk, and behind it: odd, or not the same, and what was seen may be wrong. */
uint32_t pick_version(void);

/* One at a time. A file's addresses; what returns into it is above @low and not above @high. */
void pick_pin(uintptr_t low, uintptr_t high);
void pick_forget(void);
