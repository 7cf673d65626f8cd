/* SPDX-License-Identifier: Apache-2.0 */

/* Start and stop of the server: its socket, its threads and the HTTP library's options. */

#include "web/server/web.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/worker.h"
#include "web/api/stream.h"
#include "web/export/metrics.h"
#include "web/server/accept-queue.h"
#include "web/server/connection-limits.h"
#include "web/server/web-private.h"
#include "web/server/web-request.h"

#define WEB_IDLE_S 10u
#define WEB_REQUEST_BYTES \
	((size_t)16 << 10) /* first line and headers, and output that is being sent */
#define WEB_JOBS_MAX \
	CONNECTION_LIMITS_VISITS_MAX /* one per connection: never the reason for a refusal */
#define WEB_PER_PEER 64u             /* connections per address, where addresses identify clients */
#define WEB_DETAILS_MAX 32u

static void *web_first_line(void *context, const char *uri, struct MHD_Connection *connection)
{
	return web_request_new(context, uri, connection);
}

/* NOLINTNEXTLINE(readability-function-size): the library's parameters */
static enum MHD_Result web_serve(void *context, struct MHD_Connection *connection, const char *url,
				 const char *method, const char *version, const char *upload,
				 size_t *upload_size, void **web_request)
{
	(void)upload; /* bodies are not read: the request is refused and the connection closed */
	if (!*web_request)
		return MHD_NO;
	return web_request_serve(*web_request, method) < 0 ? MHD_NO : MHD_YES;
}

static void web_completed(void *context, struct MHD_Connection *connection, void **web_request,
			  enum MHD_RequestTerminationCode why)
{
	web_request_free(*web_request);
	*web_request = NULL;
}

static void web_connection(void *context, struct MHD_Connection *connection, void **visit,
			   enum MHD_ConnectionNotificationCode what)
{
	struct web *web = context;
	const union MHD_ConnectionInfo *info;

	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		connection_limits_leave(*visit);
		*visit = NULL;
		if (info)
			accept_queue_left(web->accept_queue, info->connect_fd);
		return;
	}
	*visit = info ? connection_limits_enter(web->connection_limits, info->connect_fd) : NULL;
}

/* What the thread of totals does besides its jobs. */
static uint64_t web_tick(void *context, uint64_t now_ns)
{
	struct web *web = context;
	const struct snapshot_request request = {0};
	struct snapshot *snapshot = NULL;
	uint64_t due;

	/* Another snapshot right after the one for a request would only delay the next request. */
	if (web->shared && stream_takes(web->stream, now_ns))
		stream_tell_totals(web->stream, web->shared, web->shared_took_ns);
	if (stream_wants(web->stream, now_ns) &&
	    web->provider.snapshot(web->provider.context, &request, &snapshot) == 0) {
		stream_tell_totals(web->stream, snapshot, clock_ns(CLOCK_MONOTONIC) - now_ns);
		snapshot_free(snapshot);
	}
	if (web->shared && worker_is_idle(web->totals))
		web->shared = snapshot_free(web->shared);
	if (web->provider.records)
		stream_tell_stored(web->stream, web->provider.records(web->provider.context));
	due = stream_due(web->stream);
	/* After a failure, do not retry at once. */
	return due == UINT64_MAX ? CLOCK_NEVER : bits_max(due, now_ns + STREAM_PAUSE_NS / 2);
}

static int web_serve_consume(void *context, int fd, const struct sockaddr *peer, socklen_t length)
{
	const struct web *web = context;

	return MHD_add_connection(web->server, fd, peer, length) == MHD_YES ? 0 : -ENOSPC;
}

static int web_start_server(struct web *web, const struct address *address, int *fd)
{
	const struct accept_queue_config accepting = {
		.listening = *fd,
		.served_max = CONNECTION_LIMITS_VISITS_MAX,
		.context = web,
		.serve_consume = web_serve_consume,
	};
	sigset_t all, before;
	int r;

	/*
	 * The library's thread inherits the mask; the main thread handles signals. Its own limit is
	 * never reached: the queue counts, and does not wait until a connection has been closed.
	 * Not its epoll: when exactly as many sockets are ready as it asks for at once (128), it asks
	 * again before it serves them, and sleeps until something else happens.
	 */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	web->server = MHD_start_daemon(
		MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
			MHD_USE_NO_LISTEN_SOCKET,
		0, NULL, NULL, web_serve, web, MHD_OPTION_CONNECTION_LIMIT,
		2 * CONNECTION_LIMITS_VISITS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, WEB_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, WEB_REQUEST_BYTES,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		address_is_loopback(address) ? 0u : WEB_PER_PEER, MHD_OPTION_URI_LOG_CALLBACK,
		web_first_line, web, MHD_OPTION_NOTIFY_COMPLETED, web_completed, web,
		MHD_OPTION_NOTIFY_CONNECTION, web_connection, web, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!web->server)
		return errno ? -errno : -EIO;
	*fd = -1; /* taken in any case */
	r = accept_queue_new(&web->accept_queue, &accepting);
	return r < 0 ? r : accept_queue_start(web->accept_queue);
}

static int web_start(struct web *web, const struct web_config *config, const char **ret_problem)
{
	CLEANUP_CLOSE int fd = -1;
	struct address address;
	int r = address_parse(config->address, &address);

	if (r < 0) {
		*ret_problem = "the address must be in numbers, like 127.0.0.1:5392 or [::1]:5392";
		return r;
	}
	r = address_listen(&address, &fd, web->address);
	if (r < 0)
		return r;
	auth_init(&web->auth, &address, web->address, config->details);
	web->auth.names = config->hosts;
	if (config->token_file)
		(void)web_load_token(web, config->token_file, ret_problem); /* see the header */
	*ret_problem = NULL;
	r = stream_new(&web->stream, &web->purse, &web->provider, config->alive_ms);
	if (r == 0)
		r = connection_limits_new(&web->connection_limits, config->answer_ms);
	if (r == 0)
		r = worker_new(&web->details, &(struct worker_config){.name = "web details",
								      .jobs_max = WEB_DETAILS_MAX});
	if (r == 0)
		r = worker_new(&web->totals, &(struct worker_config){.name = "web totals",
								     .jobs_max = WEB_JOBS_MAX,
								     .tick = web_tick,
								     .context = web});
	if (r == 0 && web->provider.fleet)
		r = worker_new(&web->fleet, &(struct worker_config){.name = "web fleet",
								    .jobs_max = WEB_DETAILS_MAX});
	return r < 0 ? r : web_start_server(web, &address, &fd);
}

int web_new(struct web **ret_web, const struct web_config *config, const char **ret_problem)
{
	struct web *web = calloc(1, sizeof(*web));
	int r = -ENOMEM;

	*ret_problem = NULL;
	if (!web)
		return r;
	web->provider = *config->provider;
	web->metrics_processes = config->metrics_processes;
	web->is_private = config->is_private;
	web->moments = (struct quota){.id = QUOTA_MOMENTS,
				      .total = UINT64_MAX,
				      .each = MOMENT_TURNS_USER_MAX,
				      .users_max = MOMENT_TURNS_USERS_MAX};
	web->told = calloc(1, sizeof(*web->told));
	web->health = calloc(1, sizeof(*web->health));
	if (web->told && web->health)
		r = web_start(web, config, ret_problem);
	if (r < 0) {
		web_free(web);
		return r;
	}
	*ret_web = web;
	return 0;
}

struct web *web_free(struct web *web)
{
	if (!web)
		return NULL;
	__atomic_store_n(&web->closing, true, __ATOMIC_RELAXED);
	accept_queue_stop(web->accept_queue);
	/* Nothing may be suspended when the library stops: lanes finish and take nothing new. */
	worker_stop(web->totals);
	worker_stop(web->details);
	worker_stop(web->fleet);
	if (web->stream)
		stream_close(web->stream);
	if (web->server)
		MHD_stop_daemon(web->server);
	accept_queue_free(web->accept_queue);
	quota_deinit(&web->moments);
	worker_free(web->totals);
	worker_free(web->details);
	worker_free(web->fleet);
	connection_limits_free(web->connection_limits);
	stream_free(web->stream);
	snapshot_free(web->shared);
	free(web->told);
	free(web->health);
	free(web);
	return NULL;
}

int web_load_token(struct web *web, const char *path, const char **ret_problem)
{
	*ret_problem = NULL;
	return auth_load_token(&web->auth, path, ret_problem);
}

const char *web_address(const struct web *web)
{
	return web->address;
}

void web_tell_incident(struct web *web, const struct web_incident *incident)
{
	stream_tell_incident(web->stream, incident);
}
