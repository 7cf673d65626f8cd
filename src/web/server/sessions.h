/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Browsers that are signed in: "ttmem open" gets a code on the daemon's own socket, where the kernel
 * tells who asks, and a browser exchanges it for a session with the rights of that user.
 *
 * A code works once and for a minute. Both a code and a session's secret work only in connections
 * from processes of one user of this machine, as the kernel names the other end of a connection:
 * command lines, in which a code may stand, are readable by all users, and browsers send the cookies
 * of 127.0.0.1 to every port there, whoever serves it. So what other users can learn is useless to
 * them.
 *
 * Each user has at most a few of both; a new one replaces the user's oldest. All users together
 * share what there is (base/quota.h). Nothing outlives the daemon. Times are the caller's
 * CLOCK_BOOTTIME; from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/query.h"

#define SESSIONS_CODES_MAX 512u
#define SESSIONS_CODES_PER_USER 4u
#define SESSIONS_CODE_NS (60 * NS_PER_S)
#define SESSIONS_MAX 512u
#define SESSIONS_PER_USER 8u
#define SESSIONS_IDLE_NS (7200 * NS_PER_S) /* since it was last used */
#define SESSIONS_AGE_NS (43200 * NS_PER_S) /* since it began */

#define SESSIONS_SECRET_BYTES 32u /* random ones, written as hexadecimal */
#define SESSIONS_SECRET_SIZE (2 * SESSIONS_SECRET_BYTES + 1)
#define SESSIONS_NAME_SIZE 64

struct sessions;

/* Who is signed in. Counted: a request or a stream may outlast the session. */
struct session;

enum sessions_outcome {
	SESSIONS_UNKNOWN = 1,   /* no such code: it was used, has expired, or was never given */
	SESSIONS_ELSEWHERE = 2, /* it is for the browser of another user; it stays valid */
};

/* NULL: no memory. */
struct sessions *sessions_new(void);
struct sessions *sessions_free(struct sessions *sessions);

/* For whom a code is. */
struct sessions_wish {
	const struct query_asker *asker; /* its rights; copied */
	const char *name;                /* of that user, for people; cut if it is too long */
	uint32_t browser;                /* the user whose browser may use it */
};

/* 0, -ENOBUFS if all users together have too many, or another negative errno. */
int sessions_give(struct sessions *sessions, const struct sessions_wish *wish, uint64_t now_ns,
		  char ret_code[SESSIONS_SECRET_SIZE]);

/*
 * Ends a code and begins a session. @user: whose process asks. 0 (then @ret_session is the caller's),
 * a sessions_outcome, -ENOBUFS if there are too many sessions (the code stays), or a negative errno.
 */
int sessions_exchange(struct sessions *sessions, const char *code, uint32_t user, uint64_t now_ns,
		      char ret_secret[SESSIONS_SECRET_SIZE], struct session **ret_session);

/* The session with that secret, which is thereby used; NULL: there is none for this user. */
struct session *sessions_find(struct sessions *sessions, const char *secret, uint32_t user,
			      uint64_t now_ns);

/* Signs out. Streams of the session then show no more details. */
void sessions_end(struct sessions *sessions, struct session *session);

struct session *session_ref(struct session *session);
struct session *session_unref(struct session *session); /* NULL is fine */

/* The rights; valid as long as the session, and never changed. */
const struct query_asker *session_asker(const struct session *session);

/* Whether it is still signed in. Does not count as use. */
bool session_is_valid(const struct session *session, uint64_t now_ns);

/* For a stream that goes on: counts as use of a valid session. */
void session_use(struct session *session, uint64_t now_ns);
