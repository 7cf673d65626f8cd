/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The unit test runner.
 *
 * A test file is a list of cases, each a plain function body with plain asserts:
 *
 *	UNIT(grows_by_one)
 *	{
 *		assert(grow(1) == 2);
 *	}
 *
 * main() is in unit.c. Every case runs in its own child, so that one that crashes, hangs or leaves
 * a mess behind affects nothing but itself. The child has an empty folder named by TMPDIR and
 * XDG_RUNTIME_DIR, no TTMEM* variables of the caller's shell, and stdin from /dev/null. It fails if
 * it asserts, crashes, exits, takes too long, or ends with different open file descriptors than it
 * began with.
 */

/* Tests consist of asserts: a release build must not remove them. */
#undef NDEBUG
#include <assert.h>

#include <stdbool.h>

/*
 * Far more than a case takes on a busy machine: it ends hangs, it does not judge speed.
 * TTMEM_UNIT_TIMEOUT=N multiplies it, for valgrind, sanitizers and emulation.
 */
#define UNIT_SECONDS 240

/* For unit_expect_fds(): do not compare descriptors at all. */
#define UNIT_FDS_ANY (-1)

struct unit_case {
	const char *name;
	void (*run)(void);
	bool must_abort;
	unsigned int seconds;
	struct unit_case *next; /* the runner's list, in order of definition */
};

/* Adds @unit, which must live as long as the program, to the end of the list. */
void unit_register(struct unit_case *unit);

/* Ends the calling case as skipped. @reason is one line for the reader of the log. */
_Noreturn void unit_skip(const char *reason);

/*
 * Declares that this case leaves @n more descriptors open than it found, as one that turns on the
 * library does: its book stays open until the process ends.
 */
void unit_expect_fds(int n);

/* The case's own empty folder, removed with everything in it when the case ends. */
const char *unit_dir(void);
/* A path in it; good until the fourth call after this one. */
const char *unit_path(const char *name);

#define UNIT_CASE(case_name, aborts, limit)                                 \
	static void unit_body_##case_name(void);                            \
	static struct unit_case unit_case_##case_name = {                   \
		.name = #case_name,                                         \
		.run = unit_body_##case_name,                               \
		.must_abort = (aborts),                                     \
		.seconds = (limit),                                         \
	};                                                                  \
	__attribute__((constructor)) static void unit_add_##case_name(void) \
	{                                                                   \
		unit_register(&unit_case_##case_name);                      \
	}                                                                   \
	static void unit_body_##case_name(void)

#define UNIT(case_name) UNIT_CASE(case_name, false, UNIT_SECONDS)

/* A case that passes only if it ends by abort(), e.g. by an assert in the code under test. */
#define UNIT_FAIL(case_name) UNIT_CASE(case_name, true, UNIT_SECONDS)

/* A case that may take longer, for proofs. */
#define UNIT_LONG(case_name, limit) UNIT_CASE(case_name, false, limit)
