/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tests in phases: the pytest plugin gives each test a phase "pytest-PID-WORD/NUMBER NODEID", below
 * which the test may have phases of its own, and above which there may be others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_phase {
	const char *name; /* the test's; in the phase, and not terminated */
	size_t length;
	const char *inner; /* the test's own phase; "" = none */
	uint64_t key;      /* differs between tests, and between runs of one */
};

/* Whether @phase is that of a test. */
bool test_phase_parse(const char *phase, struct test_phase *ret_test);
