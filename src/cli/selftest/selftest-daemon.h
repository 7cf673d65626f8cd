/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A ttmemd for the self-test alone: in a folder of its own, at sockets of its own, gone at the end. */

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

/* NULL, or why there is none. In any case selftest_daemon_stop() follows. */
const char *selftest_daemon_start(struct selftest_daemon *daemon);
void selftest_daemon_stop(struct selftest_daemon *daemon);

/* The whole log, to be freed; NULL if it cannot be read. */
char *selftest_daemon_log(const struct selftest_daemon *daemon);

/* What it answers to GET @path, to be freed; NULL if it does not. */
char *selftest_daemon_get(const struct selftest_daemon *daemon, const char *path);

/* Runs @argv with this process's environment; it ends with this process. A pid or a negative errno. */
pid_t selftest_spawn(const char *const *argv);
void selftest_end(pid_t pid);
