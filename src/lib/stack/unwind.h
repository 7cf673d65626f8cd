/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libunwind as a reader of unwind tables. It is loaded by dlopen() when first needed, with its
 * symbols visible to this library alone: linked into an application it would replace libc's
 * backtrace().
 *
 * It never sees the application's stack. For one return address it steps from a frame whose
 * registers and stack are artificial; the caller's register values then show which of them they
 * came from, and hence the rule (lib/stack/rules.h). So neither a damaged stack nor one in use can
 * mislead it, and only results that can be checked are used.
 *
 * A file's tables are found by _dl_find_object(), which takes no lock, so it may be called inside
 * the loader and in signal handlers. Without it, or on machines other than x86-64, there is no
 * unwinding.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/stack/rules.h"

enum unwind_state {
	UNWIND_UNKNOWN = 0, /* not loaded yet */
	UNWIND_LATE,        /* being loaded, or the loader has been blocked for long */
	UNWIND_READY,
	UNWIND_MISSING, /* not installed */
	UNWIND_LOST,    /* it was loaded, but can no longer be used */
};

/* The state, without loading it. */
enum unwind_state unwind_state(void);

/* The functions below: callers serialize. */

/*
 * Loads and tests it, once. Never from a callback of the loader or a signal handler. May return
 * before that is done; unwind_state() gives the result.
 */
void unwind_load(void);

/* In a forked child: it cannot be used any more, because a thread that was inside it is gone. */
void unwind_give_up(void);

/* The rule for a return address; at least RULE_LOST. */
void unwind_learn(uintptr_t address, struct rule *ret_rule);

/* A loaded file: return addresses in it are above low and not above high. */
struct unwind_file {
	uintptr_t low;
	uintptr_t high;
	const char *path; /* the loader's; empty = the program */
};

/* The file of a return address. */
bool unwind_find_file(uintptr_t address, struct unwind_file *ret_file);
