/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the test runner runs one case: in a child, with a time limit, removing everything that the
 * child left behind.
 */

#include <stdbool.h>

struct unit_case;

enum unit_outcome {
	UNIT_PASSED,
	UNIT_FAILED,
	UNIT_SKIPPED,
};

struct unit_result {
	enum unit_outcome outcome;
	double seconds;
	char why[256]; /* one line, empty if there is nothing to report */
};

/* Once per program, before the first case. Return: 0, or a negative errno. */
int unit_run_init(void);

/*
 * Runs @unit and waits for its end. What the case printed is shown only if it failed, or
 * immediately if @verbose. Never fails itself: a case that could not be started has failed.
 */
void unit_run(const struct unit_case *unit, unsigned int patience, bool verbose,
	      struct unit_result *ret_result);

/* Runs @unit in this very process, for debuggers. Does not return if the case fails. */
void unit_run_here(const struct unit_case *unit);
