/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests of symbols: the test program is also the process that looks into files, and can be told to
 * misbehave by the address that is asked for.
 */

#include <stdint.h>
#include <sys/types.h>

#include "symbol/symbolizer.h"

/* The user whose files the tests ask for: who runs them. */
struct symbolizer_module testing_symbolizer_module(const char *name);

/* Says in @module which build the file there is. */
void testing_symbolizer_build_id(const char *name, struct symbolizer_module *module);

/* The only child of ours that looks into files; waits until there is one. */
pid_t testing_symbolizer_pid(void);

/* A line of /proc/PID/status as a number of base @base. */
uint64_t testing_symbolizer_status(pid_t pid, const char *key, int base);

/* Whether the process is there. */
int testing_symbolizer_lives(pid_t pid);
