/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A fake daemon: one function answers each packet. Helpers assert. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Answers one packet on a connection. */
typedef void daemon_client_testing_fn(int fd, const void *packet, size_t length);

struct daemon_client_testing {
	pid_t pid;
	char path[108];
};

/* In a process of its own, run as @uid. */
struct daemon_client_testing daemon_client_testing_start(const char *path, uid_t uid,
							 daemon_client_testing_fn *serve);
void daemon_client_testing_stop(struct daemon_client_testing *server);

/* Run as our user, at a path to which TTMEM_SOCKET is then set. */
struct daemon_client_testing daemon_client_testing_here(daemon_client_testing_fn *serve);

/* Sends a packet of text; and one of a native answer. */
void daemon_client_testing_send(int fd, const char *text);
void daemon_client_testing_reply(int fd, uint32_t kind, int status, const void *payload,
				 size_t length, bool end);
