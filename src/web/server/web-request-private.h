/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A request, for web-request.c, which checks and makes, and web-request-answer.c, which sends. */

#include <stdbool.h>
#include <stdint.h>

#include "base/threads/worker.h"
#include "web/server/body.h"
#include "web/server/connection-limits.h"
#include "web/server/routes.h"
#include "web/server/sign-in.h"
#include "web/server/url.h"

struct MHD_Connection;
struct MHD_Response;
struct asset;
struct web;

struct web_request {
	struct web *web;
	struct MHD_Connection *connection;
	struct connection_limits_visit *visit; /* the connection's */
	char *uri;
	struct url url;
	const struct route *route;
	const struct asset *asset; /* NULL: the answer is generated */
	struct routes_ask ask;
	struct sign_in sign_in;
	struct worker_job job;

	struct body *body; /* the generated answer */
	unsigned int status;
	const char *problem;     /* in place of an answer */
	const char *retry;       /* seconds, as text: when to retry; NULL = soon */
	char tag[BODY_TAG_SIZE]; /* quoted; "" = none */
	bool takes_gzip;         /* and the answer is made where compressing delays nobody */
	bool packed;             /* the body is compressed */
	bool begun;              /* its header was checked */
	bool made;
	bool has_turn; /* of its user, for a moment of the past */
	uint32_t turn_user;
};

/* A header of the request; NULL = none. */
const char *web_request_header(const struct web_request *web_request, const char *name);

/* Each sends something, with all headers. 0 or -EIO: the connection cannot be served. */
int web_request_queue(struct web_request *web_request, struct MHD_Response *response,
		      enum connection_limits_state state);
int web_request_answer(struct web_request *web_request); /* what was generated */
int web_request_show(struct web_request *web_request);   /* a built-in file */
