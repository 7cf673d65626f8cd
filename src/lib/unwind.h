/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libunwind, as a reader of unwind tables. It is loaded when it is first needed, by dlopen() and for this
 * library alone: linked into an application it would take the place of libc's backtrace().
 *
 * It never sees the application's stack. It is asked what the tables say of one return address, and steps
 * from a frame whose registers and stack are made up; from which of them the caller's were taken tells the
 * rule (lib/rules.h). So neither a damaged stack nor one that is in use can lead it anywhere, and of its
 * answers only those count that can be checked.
 *
 * Where a file's tables lie is asked of _dl_find_object(), which takes no lock: it may be asked from within
 * the loader and from signal handlers. Without it, or on another machine than x86-64, there is no
 * unwinding.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/rules.h"

/*
 * Loads it, and tries it. One thread at a time, and never from a callback of the loader or a signal handler.
 * Once is enough. Return: whether it can be used.
 */
bool unwind_load(void);

/* All of these: one thread at a time. */

/* What is known of it without loading it: 0 nothing yet, > 0 it can be used, < 0 it cannot. */
int unwind_state(void);

/* In a forked child in which it cannot be used any more: a thread that was inside it is gone. */
void unwind_give_up(void);

/* The rule for a return address; at least RULE_LOST. */
void unwind_learn(uintptr_t address, struct rule *ret_rule);

/* A file that is loaded: what returns into it is above low and not above high. */
struct unwind_file {
	uintptr_t low;
	uintptr_t high;
	const char *path; /* the loader's; empty = the program */
};

/* The one that a return address is in. */
bool unwind_find_file(uintptr_t address, struct unwind_file *ret_file);
