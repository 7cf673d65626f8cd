/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Accepts connections, and hands them to the HTTP library in turns of their users: those of this
 * machine, as the kernel names them, and one for all that it cannot name. A user may have as many
 * connections served, and as many waiting, as are then left for all others (base/quota.h). So
 * however many one user opens, the next one's is served at once.
 */

#include <stdint.h>
#include <sys/socket.h>

struct accept_queue;

struct accept_queue_config {
	int listening;       /* taken, even on failure */
	uint32_t served_max; /* at a time */
	void *context;
	/* Takes @fd in any case. Return: whether it is served; then accept_queue_left() follows. */
	int (*serve_consume)(void *context, int fd, const struct sockaddr *peer, socklen_t length);
};

/* 0 or a negative errno. Nothing is accepted before the start, so the caller can store the queue. */
int accept_queue_new(struct accept_queue **ret_queue, const struct accept_queue_config *config);
int accept_queue_start(struct accept_queue *queue);

/* No more is accepted or served; the library may be stopped. NULL is fine. */
void accept_queue_stop(struct accept_queue *queue);
struct accept_queue *accept_queue_free(struct accept_queue *queue);

/* A served connection is about to be closed. From any thread. */
void accept_queue_left(struct accept_queue *queue, int fd);

/* Whose a served connection is; PEER_USER_UNKNOWN = not known. From any thread. */
uint32_t accept_queue_user(struct accept_queue *queue, int fd);
