/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests of symbols: the test program is also the process that looks into files, and can be told to
 * misbehave by the address that is asked for.
 */

#include <stdint.h>
#include <sys/types.h>

#include "daemon/symbols.h"

/* The user whose files the tests ask for: who runs them. */
struct symbols_module testing_symbols_module(const char *name);

/* The only child of ours that looks into files; waits until there is one. */
pid_t testing_symbols_pid(void);

/* A line of /proc/PID/status as a number of base @base. */
uint64_t testing_symbols_status(pid_t pid, const char *key, int base);

/* Whether the process is there. */
int testing_symbols_lives(pid_t pid);
