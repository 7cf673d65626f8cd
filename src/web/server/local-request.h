/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The same routes on the daemon's own socket. The code that serves that socket knows the client and
 * sends the answer itself; no HTTP server is involved. So no token is needed: a route shows the
 * details that the client may see. Routes that need the server are not available: files, the stream
 * and /metrics.
 */

#include <stdio.h>

struct routes_ask;
struct query_asker;
struct web_provider;

#define LOCAL_REQUEST_PROBLEM_SIZE 256

struct local_request_answer {
	unsigned int status;                      /* HTTP status */
	const char *reason;                       /* its standard phrase */
	const char *type;                         /* content type */
	char problem[LOCAL_REQUEST_PROBLEM_SIZE]; /* for people, unless the status is 200 */
};

/* Writes the answer to "/path?parameters". Unless the status is 200, discard what was written. */
void local_request_serve(const struct web_provider *provider, const struct query_asker *asker,
			 const char *url, FILE *out, struct local_request_answer *ret_answer);

/*
 * Routes that only this socket serves: the daemon's status, and the old report of remaining
 * buffers.
 */
int local_request_status(struct routes_ask *ask, FILE *out);
int local_request_dump(struct routes_ask *ask, FILE *out);
