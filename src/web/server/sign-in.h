/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Signing in with a link of "ttmem open": what the command asks for on the daemon's own socket, and
 * what the page does with it. docs/http.md says why it is done in this way; sessions.h has the store.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "web/server/sessions.h"

struct query_asker;
struct routes_ask;
struct session_row;

#define SIGN_IN_NAME_SIZE 16 /* of a cookie */
#define SIGN_IN_COOKIE_SIZE (SESSIONS_SECRET_SIZE + 96)

/* How to get a link of a private server. */
#define SIGN_IN_PRIVATE "press Enter where \"ttmem report --serve\" runs, and open the new link"

/* A request over TCP, as far as it matters here. Texts are the request's. */
struct sign_in {
	const char *host;
	const char *authorization; /* NULL = none */
	uint32_t user;             /* whose connection it is; PEER_USER_UNKNOWN = not known */
	bool is_same_origin;
	struct session *session; /* owned; NULL = is not signed in */

	char cookie[SIGN_IN_COOKIE_SIZE]; /* for the answer's Set-Cookie; "" = none */
};

/*
 * The name of our cookie. Browsers send cookies to every port of a host, so that it has the port by
 * which the browser reaches us: else two daemons would replace each other's.
 */
void sign_in_cookie_name(const char *host, char ret_name[SIGN_IN_NAME_SIZE]);

/* Makes a code for a link; on the daemon's own socket. */
int sign_in_link(struct routes_ask *ask, FILE *out);

/* Exchanges a code for a cookie; ends a session. Over TCP. */
int sign_in_begin(struct routes_ask *ask, FILE *out);
int sign_in_end(struct routes_ask *ask, FILE *out);

/* Who is signed in; NULL for everybody else. */
const struct session_row *sign_in_session(const struct query_asker *asker,
					  struct session_row *ret_row);
