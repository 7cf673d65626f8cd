/* SPDX-License-Identifier: Apache-2.0 */

/* Checks come first, cheapest first: the name, the method, the path, the token, the parameters. */

#include "web/server/web-request.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/emit.h"
#include "base/worker.h"
#include "web/api/stream.h"
#include "web/server/accept-header.h"
#include "web/server/assets.h"
#include "web/server/connection-limits.h"
#include "web/server/routes.h"
#include "web/server/web-private.h"

struct exchange {
	struct web *web;
	struct MHD_Connection *connection;
	struct door_visit *visit; /* the connection's */
	char *uri;
	struct target target;
	const struct route *route;
	const struct asset *asset; /* NULL: the answer is made */
	struct routes_ask ask;
	struct worker_job job;

	struct body *body; /* the answer, once it is made */
	unsigned int status;
	const char *problem; /* instead of an answer */
	const char *retry;   /* seconds, as text: when to ask again; NULL = soon */
	bool begun;          /* its header was looked at */
	bool made;
};

struct exchange *exchange_new(struct web *web, const char *uri, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return NULL;
	exchange->web = web;
	exchange->connection = connection;
	exchange->visit = info ? info->socket_context : NULL;
	exchange->uri = strdup(uri);
	if (!exchange->uri) {
		free(exchange);
		return NULL;
	}
	return exchange;
}

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	door_set(exchange->visit, DOOR_ASKING);
	target_deinit(&exchange->target);
	body_unref(exchange->body);
	free(exchange->uri);
	free(exchange);
}

static const char *exchange_header(const struct exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* {"error":"...","status":404} */
static void exchange_refuse(struct exchange *exchange, unsigned int status, const char *problem)
{
	struct body *body = body_new(&exchange->web->purse);
	FILE *out = body ? body_open(body) : NULL;
	struct emit json = EMIT_INIT(out);

	body_unref(exchange->body);
	exchange->body = body;
	exchange->status = status;
	exchange->problem = problem;
	if (!out)
		return;
	emit_open_object(&json, NULL);
	emit_string(&json, "error", problem);
	emit_u64(&json, "status", status);
	emit_close_object(&json);
	emit_end(&json);
	(void)fclose(out); /* then the answer is shorter */
}

static void exchange_fail(struct exchange *exchange, int error)
{
	const char *problem;
	unsigned int status = routes_explain(error, &exchange->target, &problem);

	exchange_refuse(exchange, status, problem);
}

/* Makes the answer, in whichever thread. */
static void exchange_make(struct exchange *exchange)
{
	FILE *out;
	int r;

	exchange->body = body_new(&exchange->web->purse);
	out = exchange->body ? body_open(exchange->body) : NULL;
	if (!out) {
		exchange_fail(exchange, -ENOMEM);
		return;
	}
	r = exchange->route->make(&exchange->ask, out);
	if (fclose(out) != 0 && r == 0)
		r = -EIO;
	if (exchange->body->error < 0)
		r = exchange->body->error;
	if (r < 0)
		exchange_fail(exchange, r);
	else
		exchange->status = MHD_HTTP_OK;
}

static void exchange_run(struct worker_job *job)
{
	struct exchange *exchange = container_of(job, struct exchange, job);

	exchange->ask.arrived_ns = job->arrived_ns;
	if (__atomic_load_n(&exchange->web->closing, __ATOMIC_RELAXED))
		exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the daemon is ending");
	else if (door_has_left(exchange->visit))
		exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST, "nobody waits for the answer");
	else
		exchange_make(exchange);
	MHD_resume_connection(exchange->connection);
}

static const char *exchange_type(const struct exchange *exchange)
{
	const struct route *route = exchange->route;

	if (exchange->problem)
		return ROUTES_JSON;
	if (exchange->asset)
		return exchange->asset->type;
	return exchange->ask.openmetrics && route->type_openmetrics ? route->type_openmetrics
								    : route->type;
}

/*
 * What a browser may do with a file: a page gets its own scripts, styles, images and documents, from here
 * only, and no way to turn text into markup.
 */
static const char *exchange_policy(const struct exchange *exchange)
{
	if (!exchange->problem && exchange->asset && exchange->asset->is_page)
		return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
		       "connect-src 'self'; base-uri 'none'; form-action 'none'; "
		       "frame-ancestors 'none'; require-trusted-types-for 'script'; "
		       "trusted-types 'none'";
	return "default-src 'none'; frame-ancestors 'none'";
}

static const char *exchange_caching(const struct exchange *exchange)
{
	if (exchange->problem || !exchange->asset)
		return "no-store";
	return exchange->asset->is_named ? "max-age=31536000, immutable" : "no-cache";
}

/* Headers that every answer has; see docs/http.md for why. */
static void exchange_add_headers(const struct exchange *exchange, struct MHD_Response *response)
{
	const struct route *route = exchange->route;
	/* Failing for want of memory: a header less is better than no answer. */
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				      exchange_type(exchange));
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
				      exchange_caching(exchange));
	(void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	(void)MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	(void)MHD_add_response_header(response, "X-Frame-Options", "DENY");
	(void)MHD_add_response_header(response, "Content-Security-Policy",
				      exchange_policy(exchange));
	if (!exchange->problem && route->type_openmetrics)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept");
	switch (exchange->status) {
	case MHD_HTTP_METHOD_NOT_ALLOWED:
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
		break;
	case MHD_HTTP_UNAUTHORIZED:
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					      "Bearer realm=\"ttmem\"");
		break;
	case MHD_HTTP_SERVICE_UNAVAILABLE:
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
					      exchange->retry ? exchange->retry : EXCHANGE_RETRY);
		break;
	default:
		break;
	}
}

static int exchange_queue(struct exchange *exchange, struct MHD_Response *response,
			  enum door_state state)
{
	enum MHD_Result result;

	exchange_add_headers(exchange, response);
	__atomic_add_fetch(&exchange->web->answers[bits_min(exchange->status / 100, 5)], 1,
			   __ATOMIC_RELAXED);
	door_set(exchange->visit, state);
	result = MHD_queue_response(exchange->connection, exchange->status, response);
	MHD_destroy_response(response);
	return result == MHD_YES ? 0 : -EIO;
}

static void exchange_release_body(void *body)
{
	body_unref(body);
}

/* Sends what was made. */
static int exchange_answer(struct exchange *exchange)
{
	struct body *body = exchange->body;
	struct MHD_Response *response;

	if (!body)
		return -EIO;
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		body->length, body->text ? body->text : (char[]){""}, exchange_release_body, body);
	if (!response)
		return -EIO;
	exchange->body = NULL; /* the response's */
	return exchange_queue(exchange, response, DOOR_READING);
}

/* Sends a file of the program, or that the client has it already. */
static int exchange_show(struct exchange *exchange)
{
	const struct asset *asset = exchange->asset;
	bool packed = media_takes_gzip(exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	bool known =
		assets_is_known(asset, exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH));
	/* The one way to answer with bytes that are const. */
	struct MHD_IoVec file = {
		.iov_base = packed ? asset->packed : asset->plain,
		.iov_len = packed ? asset->packed_size : asset->plain_size,
	};
	struct MHD_Response *response =
		MHD_create_response_from_iovec(&file, known ? 0 : 1, NULL, NULL);
	char tag[64];

	if (!response)
		return -EIO;
	exchange->status = known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK;
	snprintf(tag, sizeof(tag), "W/%s", asset->etag);
	/* As above: better without than not at all. But who cannot be told of packing gets nothing. */
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
	if (packed && !known &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip") !=
		    MHD_YES) {
		MHD_destroy_response(response);
		return -EIO;
	}
	return exchange_queue(exchange, response, DOOR_READING);
}

static int exchange_listen(struct exchange *exchange, bool is_head,
			   const struct stream_rights *rights)
{
	struct MHD_Response *response = NULL;
	int r;

	exchange->status = MHD_HTTP_OK;
	if (is_head) {
		exchange->body = body_new(&exchange->web->purse);
		return exchange_answer(exchange);
	}
	r = stream_subscribe(exchange->web->stream, exchange->connection, exchange->visit, rights,
			     &response);
	if (r < 0) {
		exchange->retry = r == -EBUSY ? STREAM_RETRY : NULL;
		exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
				r == -EBUSY ? "too many listen already" : "no memory");
		return exchange_answer(exchange);
	}
	(void)MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* see above */
	worker_poke(exchange->web->totals);
	return exchange_queue(exchange, response, DOOR_LISTENING);
}

static enum MHD_Result exchange_count_host(void *context, enum MHD_ValueKind kind, const char *key,
					   const char *value)
{
	unsigned int *count = context;

	*count += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
	return MHD_YES;
}

static bool exchange_has_body(const struct exchange *exchange)
{
	const char *length = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0") != 0) ||
	       exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

/* Whether the request may be answered at all. */
static bool exchange_check(struct exchange *exchange, const char *method)
{
	const char *host = exchange_header(exchange, MHD_HTTP_HEADER_HOST);
	unsigned int hosts = 0;
	int r;

	MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, exchange_count_host,
				  &hosts);
	if (hosts != 1 || !host) {
		exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
				"a request needs exactly one Host header");
	} else if (!guard_is_host(&exchange->web->guard, host)) {
		exchange_refuse(exchange, MHD_HTTP_MISDIRECTED_REQUEST,
				"this server does not go by that name; ask localhost");
	} else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		   strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
	} else if (exchange_has_body(exchange)) {
		exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a request has no body here");
	} else {
		r = target_parse(&exchange->target, exchange->uri);
		if (r < 0)
			exchange_fail(exchange, r);
	}
	return !exchange->problem;
}

/* Finds the route, and whether this client may take it with these parameters. */
static bool exchange_choose(struct exchange *exchange, struct stream_rights *ret_rights)
{
	const char *authorization = exchange_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION);
	struct target *target = &exchange->target;

	exchange->route = routes_find(target->path, &exchange->ask.device);
	if (!exchange->route) {
		exchange_refuse(exchange, MHD_HTTP_NOT_FOUND, "there is no such path");
		return false;
	}
	if (exchange->route->local) {
		exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
				"only the daemon's own socket serves this");
		return false;
	}
	if (exchange->route->guarded &&
	    !guard_may_see(&exchange->web->guard, authorization, NULL)) {
		exchange_refuse(exchange, MHD_HTTP_UNAUTHORIZED,
				"details need the token: send \"Authorization: Bearer TOKEN\"");
		return false;
	}
	if (target_read(target, exchange->route->parameters) < 0) {
		exchange_fail(exchange, -EINVAL);
		return false;
	}
	*ret_rights = (struct stream_rights){
		.details = guard_may_see(&exchange->web->guard, authorization, target->token),
		.known = guard_has_token(&exchange->web->guard, authorization, target->token),
	};
	/* Who shows a token that is wrong wants to know. */
	if (!ret_rights->details && (target->token || (authorization && *authorization))) {
		exchange_refuse(exchange, MHD_HTTP_UNAUTHORIZED, "the token is wrong");
		return false;
	}
	return true;
}

/* Lets a lane make the answer while the connection waits. */
static int exchange_put(struct exchange *exchange)
{
	struct worker *lane = exchange->route->lane == ROUTES_TOTALS ? exchange->web->totals
								     : exchange->web->details;

	exchange->job.run = exchange_run;
	exchange->made = true;
	door_set(exchange->visit, DOOR_WAITING);
	MHD_suspend_connection(exchange->connection);
	if (worker_put(lane, &exchange->job))
		return 0;
	exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
			"too many requests wait: try again");
	MHD_resume_connection(exchange->connection);
	return 0;
}

int exchange_serve(struct exchange *exchange, const char *method)
{
	struct stream_rights rights = {0};

	if (exchange->made)
		return exchange_answer(exchange);
	if (!exchange->begun) {
		/* An answer now would end the connection: right only for who did wrong. */
		exchange->begun = true;
		return exchange_check(exchange, method) ? 0 : exchange_answer(exchange);
	}
	if (!exchange_choose(exchange, &rights))
		return exchange_answer(exchange);
	exchange->ask.web = exchange->web;
	exchange->ask.provider = &exchange->web->provider;
	exchange->ask.target = &exchange->target;
	exchange->ask.openmetrics =
		exchange->route->type_openmetrics &&
		media_prefers_openmetrics(exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT));
	switch (exchange->route->lane) {
	case ROUTES_STREAM:
		return exchange_listen(exchange, strcmp(method, MHD_HTTP_METHOD_HEAD) == 0,
				       &rights);
	case ROUTES_ASSET:
		exchange->asset = assets_find(exchange->target.path);
		return exchange_show(exchange);
	case ROUTES_AT_ONCE:
		exchange_make(exchange);
		return exchange_answer(exchange);
	case ROUTES_TOTALS:
	case ROUTES_DETAILS:
		break;
	}
	return exchange_put(exchange);
}
