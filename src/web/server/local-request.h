/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The same routes on the daemon's own socket. Whoever serves that socket knows who asks, and sends what is
 * written here as it likes; there is no server of ours in between. So no token is needed: the details that a
 * route shows are those that the asker may see. Not served are the routes that need the server: files,
 * the stream and /metrics.
 */

#include <stdio.h>

struct routes_ask;
struct web_asker;
struct web_provider;

#define LOCAL_REQUEST_PROBLEM_SIZE 256

struct local_request_answer {
	unsigned int status;                      /* of HTTP */
	const char *reason;                       /* its usual words */
	const char *type;                         /* of the content */
	char problem[LOCAL_REQUEST_PROBLEM_SIZE]; /* for people, unless the status is 200 */
};

/* Writes the answer to "/path?parameters". Unless its status is 200, what was written is of no use. */
void local_request_serve(const struct web_provider *provider, const struct web_asker *asker,
			 const char *url, FILE *out, struct local_request_answer *ret_answer);

/* Routes that only this socket serves: how the daemon is, and the old report of remaining buffers. */
int local_request_status(struct routes_ask *ask, FILE *out);
int local_request_dump(struct routes_ask *ask, FILE *out);
