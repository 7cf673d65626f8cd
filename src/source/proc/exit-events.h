/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Exits of all threads of the machine, as the kernel's process connector tells them: for kernels that
 * forget how a process ended as soon as its parent has waited for it. The connector needs CAP_NET_ADMIN,
 * and our pid namespace must be the initial one; otherwise nothing is ever told. Only the kernel's own
 * messages count. If they come faster than they are read, some are lost, and we are told that.
 */

#include <stdbool.h>
#include <stdint.h>

struct exit_event {
	uint32_t pid;   /* of the process */
	bool is_leader; /* its first thread has exited; others may live on */
	int status;     /* as waitpid() would have it if this was all */
};

enum exit_events_outcome {
	EXIT_EVENTS_OTHER = 1, /* something was read that is not about an exit */
};

/* A descriptor that becomes readable, or a negative errno: not allowed, or not there. */
int exit_events_open(void);

/*
 * Reads one message. 0, EXIT_EVENTS_OTHER, -EAGAIN if there is none, -ENOBUFS if some before those that
 * follow, or among them, were lost; or another negative errno.
 */
int exit_events_next(int fd, struct exit_event *ret_event);
