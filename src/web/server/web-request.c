/* SPDX-License-Identifier: Apache-2.0 */

/* Checks come first, cheapest first: host name, method, path, token or cookie, parameters. */

#include "web/server/web-request.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "answers/fields.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/threads/worker.h"
#include "model/snapshot.h"
#include "web/api/stream.h"
#include "web/server/accept-header.h"
#include "web/server/accept-queue.h"
#include "web/server/assets.h"
#include "web/server/connection-limits.h"
#include "web/server/pack.h"
#include "web/server/peer-user.h"
#include "web/server/routes.h"
#include "web/server/sign-in.h"
#include "web/server/web-private.h"
#include "web/server/web-request-private.h"

struct web_request *web_request_new(struct web *web, const char *uri,
				    struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct web_request *web_request = calloc(1, sizeof(*web_request));

	if (!web_request)
		return NULL;
	web_request->web = web;
	web_request->connection = connection;
	web_request->visit = info ? info->socket_context : NULL;
	web_request->uri = strdup(uri);
	if (!web_request->uri) {
		free(web_request);
		return NULL;
	}
	return web_request;
}

void web_request_free(struct web_request *web_request)
{
	if (!web_request)
		return;
	connection_limits_set(web_request->visit, CONNECTION_LIMITS_ASKING);
	if (web_request->has_turn)
		quota_give(&web_request->web->moments, web_request->turn_user, 1);
	url_deinit(&web_request->url);
	session_unref(web_request->sign_in.session);
	body_unref(web_request->body);
	free(web_request->uri);
	free(web_request);
}

#define ROW struct web_request

static const struct field web_request_refusal[] = {
	FIELD("error", TEXT, problem),
	FIELD("status", SHORT, status),
	FIELD_END,
};

/* {"error":"...","status":404} */
static void web_request_refuse(struct web_request *web_request, unsigned int status,
			       const char *problem)
{
	struct body *body = body_new(&web_request->web->purse);
	FILE *out = body ? body_open(body) : NULL;
	struct emit json = EMIT_INIT(out);

	body_unref(web_request->body);
	web_request->body = body;
	web_request->status = status;
	web_request->problem = problem;
	if (!out)
		return;
	fields_put_row(&json, web_request_refusal, web_request);
	emit_end(&json);
	(void)fclose(out); /* then the answer is shorter */
}

static void web_request_fail(struct web_request *web_request, int error)
{
	const char *problem;
	unsigned int status = routes_explain(error, &web_request->url, &problem);

	web_request_refuse(web_request, status, problem);
}

static void web_request_pack(struct web_request *web_request)
{
	struct body *packed = web_request->takes_gzip ? pack_document(web_request->body) : NULL;

	if (!packed)
		return; /* it is sent as it is */
	body_unref(web_request->body);
	web_request->body = packed;
	web_request->packed = true;
}

/* Generates the answer; in any thread. */
static void web_request_make(struct web_request *web_request)
{
	FILE *out;
	int r;

	web_request->body = body_new(&web_request->web->purse);
	out = web_request->body ? body_open(web_request->body) : NULL;
	if (!out) {
		web_request_fail(web_request, -ENOMEM);
		return;
	}
	r = web_request->route->make(&web_request->ask, out);
	web_request->ask.snapshot = snapshot_free(web_request->ask.snapshot);
	if (fclose(out) != 0 && r == 0)
		r = -EIO;
	if (web_request->body->error < 0)
		r = web_request->body->error;
	if (r != 0) {
		web_request_fail(web_request, r);
		return;
	}
	web_request->status = MHD_HTTP_OK;
	if (strcmp(web_request->route->type, ROUTES_JSON) == 0)
		body_tag(web_request->body, web_request->tag);
	web_request_pack(web_request);
}

static void web_request_run(struct worker_job *job)
{
	struct web_request *web_request = container_of(job, struct web_request, job);

	web_request->ask.arrived_ns = job->arrived_ns;
	if (__atomic_load_n(&web_request->web->closing, __ATOMIC_RELAXED))
		web_request_refuse(web_request, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "the daemon is ending");
	else if (connection_limits_has_left(web_request->visit))
		web_request_refuse(web_request, MHD_HTTP_BAD_REQUEST,
				   "nobody waits for the answer");
	else
		web_request_make(web_request);
	MHD_resume_connection(web_request->connection);
}

static int web_request_listen(struct web_request *web_request, bool is_head,
			      const struct stream_rights *rights)
{
	const struct stream_peer peer = {web_request->connection, web_request->visit};
	const struct stream_format format = {
		.changes = web_request->url.query.given & QUERY_CHANGES,
		.packed = accept_header_takes_gzip(
			web_request_header(web_request, MHD_HTTP_HEADER_ACCEPT_ENCODING)),
	};
	struct MHD_Response *response = NULL;
	int r;

	web_request->status = MHD_HTTP_OK;
	if (is_head) {
		web_request->body = body_new(&web_request->web->purse);
		return web_request_answer(web_request);
	}
	r = stream_subscribe(web_request->web->stream, &peer, rights, &format, &response);
	if (r < 0) {
		web_request->retry = r == -EBUSY ? STREAM_RETRY : NULL;
		web_request_refuse(web_request, MHD_HTTP_SERVICE_UNAVAILABLE,
				   r == -EBUSY ? "too many listen already" : "no memory");
		return web_request_answer(web_request);
	}
	web_request->packed = format.packed;
	(void)MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* see above */
	worker_poke(web_request->web->totals);
	return web_request_queue(web_request, response, CONNECTION_LIMITS_LISTENING);
}

static enum MHD_Result web_request_count_host(void *context, enum MHD_ValueKind kind,
					      const char *key, const char *value)
{
	unsigned int *count = context;

	*count += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
	return MHD_YES;
}

static bool web_request_has_body(const struct web_request *web_request)
{
	const char *length = web_request_header(web_request, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0") != 0) ||
	       web_request_header(web_request, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

/* What signing in may change is not asked for with GET, which others may repeat or send ahead. */
static bool web_request_is_method(struct web_request *web_request, const char *method)
{
	uint32_t device;

	web_request->route = routes_find(web_request->url.path, &device);
	if (web_request->route && web_request->route->post)
		return strcmp(method, MHD_HTTP_METHOD_POST) == 0;
	return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
	       strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* Whether the request may be answered at all. */
static bool web_request_check(struct web_request *web_request, const char *method)
{
	const char *host = web_request_header(web_request, MHD_HTTP_HEADER_HOST);
	unsigned int hosts = 0;
	int r;

	MHD_get_connection_values(web_request->connection, MHD_HEADER_KIND, web_request_count_host,
				  &hosts);
	if (hosts != 1 || !host) {
		web_request_refuse(web_request, MHD_HTTP_BAD_REQUEST,
				   "a request needs exactly one Host header");
	} else if (!auth_is_host(&web_request->web->auth, host)) {
		web_request_refuse(web_request, MHD_HTTP_MISDIRECTED_REQUEST,
				   "this server does not go by that name; ask localhost");
	} else if ((r = url_parse(&web_request->url, web_request->uri)) < 0) {
		web_request_fail(web_request, r);
	} else if (!web_request_is_method(web_request, method)) {
		web_request_refuse(web_request, MHD_HTTP_METHOD_NOT_ALLOWED,
				   web_request->route && web_request->route->post
					   ? "only POST"
					   : "only GET and HEAD");
	} else if (web_request_has_body(web_request)) {
		web_request_refuse(web_request, MHD_HTTP_CONTENT_TOO_LARGE,
				   "a request has no body here");
	}
	return !web_request->problem;
}

/* Whose connection it is. */
static uint32_t web_request_user(const struct web_request *web_request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(web_request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? accept_queue_user(web_request->web->accept_queue, info->connect_fd)
		    : PEER_USER_UNKNOWN;
}

/* Who is signed in, if the request has a cookie that is right, and is not another site's. */
static void web_request_recognize(struct web_request *web_request)
{
	struct sessions *sessions = web_request->web->provider.sessions;
	struct sign_in *sign_in = &web_request->sign_in;
	char name[SIGN_IN_NAME_SIZE];
	const char *cookie;

	sign_in->host = web_request_header(web_request, MHD_HTTP_HEADER_HOST);
	sign_in->authorization = web_request_header(web_request, MHD_HTTP_HEADER_AUTHORIZATION);
	sign_in->user = PEER_USER_UNKNOWN;
	sign_in->is_same_origin = auth_is_same_origin(
		sign_in->host, web_request_header(web_request, MHD_HTTP_HEADER_ORIGIN),
		web_request_header(web_request, "Sec-Fetch-Site"));
	web_request->ask.sign_in = sign_in;
	sign_in_cookie_name(sign_in->host, name);
	cookie = MHD_lookup_connection_value(web_request->connection, MHD_COOKIE_KIND, name);
	if (!sessions || !sign_in->is_same_origin || !(cookie || web_request->route->post))
		return;
	sign_in->user = web_request_user(web_request);
	if (cookie && sign_in->user != PEER_USER_UNKNOWN)
		sign_in->session =
			sessions_find(sessions, cookie, sign_in->user, clock_ns(CLOCK_BOOTTIME));
}

/* Details of a request without the right token: with the rights of who is signed in. */
static bool web_request_enter(struct web_request *web_request)
{
	const struct session *session = web_request->sign_in.session;

	if (!session) {
		web_request_refuse(
			web_request, MHD_HTTP_UNAUTHORIZED,
			web_request->web->is_private
				? "this is shown to browsers only that have signed "
				  "in: " SIGN_IN_PRIVATE
				: "details need the token: send \"Authorization: Bearer TOKEN\"; a "
				  "browser can sign in with the link of \"ttmem open\"");
		return false;
	}
	if (!web_request->route->scoped && !session_asker(session)->sees_all) {
		web_request_refuse(web_request, MHD_HTTP_FORBIDDEN, ROUTES_ALL_ONLY);
		return false;
	}
	return true;
}

static bool web_request_is_guarded(const struct web_request *web_request)
{
	const struct route *route = web_request->route;

	/* What is answered at once is the server's health, and signing in. */
	return route->guarded || (web_request->web->is_private && route->lane != ROUTES_AT_ONCE &&
				  route->lane != ROUTES_ASSET);
}

/* Checks that this client may use the route with these parameters. */
static bool web_request_choose(struct web_request *web_request, struct stream_rights *ret_rights)
{
	const struct auth *auth = &web_request->web->auth;
	const char *authorization = web_request_header(web_request, MHD_HTTP_HEADER_AUTHORIZATION);
	struct url *url = &web_request->url;

	web_request->route = routes_find(url->path, &web_request->ask.device);
	if (!web_request->route) {
		web_request_refuse(web_request, MHD_HTTP_NOT_FOUND, "there is no such path");
		return false;
	}
	if (web_request->route->local) {
		web_request_refuse(web_request, MHD_HTTP_FORBIDDEN,
				   "only the daemon's own socket serves this");
		return false;
	}
	web_request_recognize(web_request);
	if (web_request_is_guarded(web_request) && !auth_may_see(auth, authorization, NULL) &&
	    !web_request_enter(web_request))
		return false;
	if (url_read(url, routes_honours(web_request->route)) < 0) {
		web_request_fail(web_request, -EINVAL);
		return false;
	}
	*ret_rights = (struct stream_rights){
		.details = auth_may_see(auth, authorization, url->query.token),
		.known = auth_has_token(auth, authorization, url->query.token),
		.session = web_request->sign_in.session,
	};
	web_request->ask.sees_all = ret_rights->details;
	/* Refuse a wrong token even where none is needed: the client wants to know. */
	if (!ret_rights->details && !web_request->route->post &&
	    (url->query.token || (authorization && *authorization))) {
		web_request_refuse(web_request, MHD_HTTP_UNAUTHORIZED, "the token is wrong");
		return false;
	}
	/* The token shows all. */
	if (web_request->sign_in.session && !(web_request->route->guarded && ret_rights->details))
		web_request->ask.asker = session_asker(web_request->sign_in.session);
	return true;
}

/* NULL: there is no such thread. */
static struct worker *web_request_lane(const struct web_request *web_request)
{
	const struct web *web = web_request->web;

	/* A moment of the past takes longer than one of now. */
	if (web_request->url.query.given & QUERY_AT)
		return web->details;
	switch (web_request->route->lane) {
	case ROUTES_TOTALS:
		return web->totals;
	case ROUTES_FLEET:
		return web->fleet;
	case ROUTES_DETAILS:
	case ROUTES_AT_ONCE:
	case ROUTES_STREAM:
	case ROUTES_ASSET:
		break;
	}
	return web->details;
}

/*
 * Whether its user may ask for another moment of the past; or for details of what that user has made,
 * as who is signed in and does not see all.
 */
static bool web_request_takes_turn(struct web_request *web_request)
{
	const struct query_asker *asker = web_request->ask.asker;
	bool is_own = web_request->route->guarded && asker && !asker->sees_all;

	if (!(web_request->url.query.given & QUERY_AT) && !web_request->route->takes_turn &&
	    !is_own)
		return true;
	web_request->turn_user = web_request_user(web_request);
	web_request->has_turn = quota_take(&web_request->web->moments, web_request->turn_user, 1);
	return web_request->has_turn;
}

/* Hands the request to a lane; the connection is suspended meanwhile. */
static int web_request_put(struct web_request *web_request)
{
	struct worker *lane = web_request_lane(web_request);

	if (!lane) {
		web_request_refuse(web_request, MHD_HTTP_NOT_FOUND, "no fleet is configured");
		return web_request_answer(web_request);
	}
	if (!web_request_takes_turn(web_request)) {
		web_request_refuse(web_request, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "too many of your requests wait: wait for an answer");
		return web_request_answer(web_request);
	}
	web_request->job.run = web_request_run;
	web_request->made = true;
	web_request->takes_gzip = accept_header_takes_gzip(
		web_request_header(web_request, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	connection_limits_set(web_request->visit, CONNECTION_LIMITS_WAITING);
	MHD_suspend_connection(web_request->connection);
	if (worker_put(lane, &web_request->job))
		return 0;
	web_request_refuse(web_request, MHD_HTTP_SERVICE_UNAVAILABLE,
			   "too many requests wait: try again");
	MHD_resume_connection(web_request->connection);
	return 0;
}

int web_request_serve(struct web_request *web_request, const char *method)
{
	struct stream_rights rights = {0};

	if (web_request->made)
		return web_request_answer(web_request);
	if (!web_request->begun) {
		/* Answering now closes the connection, which is right only for a bad request. */
		web_request->begun = true;
		return web_request_check(web_request, method) ? 0 : web_request_answer(web_request);
	}
	if (!web_request_choose(web_request, &rights))
		return web_request_answer(web_request);
	web_request->ask.web = web_request->web;
	web_request->ask.provider = &web_request->web->provider;
	web_request->ask.url = &web_request->url;
	web_request->ask.query = &web_request->url.query;
	web_request->ask.openmetrics = web_request->route->type_openmetrics &&
				       accept_header_prefers_openmetrics(web_request_header(
					       web_request, MHD_HTTP_HEADER_ACCEPT));
	switch (web_request->route->lane) {
	case ROUTES_STREAM:
		return web_request_listen(web_request, strcmp(method, MHD_HTTP_METHOD_HEAD) == 0,
					  &rights);
	case ROUTES_ASSET:
		web_request->asset = assets_find(web_request->url.path);
		return web_request_show(web_request);
	case ROUTES_AT_ONCE:
		web_request_make(web_request);
		return web_request_answer(web_request);
	case ROUTES_TOTALS:
	case ROUTES_DETAILS:
	case ROUTES_FLEET:
		break;
	}
	return web_request_put(web_request);
}
