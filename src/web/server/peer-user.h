/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose process is at the other end of a TCP connection within this machine, as the kernel says
 * (sock_diag). For limits, and so that the code and the cookie of one user's browser are of no use to
 * another user (sessions.h). It gives nobody any rights.
 */

#include <stdint.h>

struct peer_user;

/* NULL: the kernel offers no such thing, or there is no memory. */
struct peer_user *peer_user_new(void);
struct peer_user *peer_user_free(struct peer_user *peer_user);

#define PEER_USER_UNKNOWN \
	UINT32_MAX /* of another machine or network namespace, or already closed */

/* @peer_user may be NULL. */
uint32_t peer_user_find(struct peer_user *peer_user, int fd);
