/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests of symbols: the test program also acts as the process that reads files, and misbehaves
 * at certain addresses.
 */

#include <stdint.h>
#include <sys/types.h>

#include "symbol/symbolizer.h"

/* A module with the user who runs the tests. */
struct symbolizer_module testing_symbolizer_module(const char *name);

/* Sets the build id of the file in @module. */
void testing_symbolizer_build_id(const char *name, struct symbolizer_module *module);

/* Our only child that reads files; waits until there is one. */
pid_t testing_symbolizer_pid(void);

/* A line of /proc/PID/status as a number in base @base. */
uint64_t testing_symbolizer_status(pid_t pid, const char *key, int base);

/* Whether the process exists. */
int testing_symbolizer_lives(pid_t pid);
