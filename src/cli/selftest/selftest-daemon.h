/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A ttmemd for the self-test alone: in its own folder, at its own sockets, removed at the end. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SELFTEST_PATH 128u

struct selftest_daemon {
	char folder[SELFTEST_PATH];
	char socket[SELFTEST_PATH + 16];
	char legacy[SELFTEST_PATH + 16];
	char log[SELFTEST_PATH + 16];
	pid_t pid; /* 0 = not started */
	uint16_t port;
};

/* NULL, or why it did not start. In any case call selftest_daemon_stop() afterwards. */
const char *selftest_daemon_start(struct selftest_daemon *daemon);
void selftest_daemon_stop(struct selftest_daemon *daemon);

/* The whole log, freed by the caller; NULL if it cannot be read. */
char *selftest_daemon_log(const struct selftest_daemon *daemon);

/* The body of the answer to GET @path, freed by the caller; NULL on failure. */
char *selftest_daemon_get(const struct selftest_daemon *daemon, const char *path);

/*
 * Runs @argv with this process's environment; it is killed with this process. A pid or a negative
 * errno.
 */
pid_t selftest_spawn(const char *const *argv);
void selftest_end(pid_t pid);
