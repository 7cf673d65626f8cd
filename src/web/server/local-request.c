/* SPDX-License-Identifier: Apache-2.0 */

/* From a URL to an answer, without a server; web-request.c does this for TCP. */

#include "web/server/local-request.h"

#include <errno.h>
#include <microhttpd.h>
#include <time.h>
#include <unistd.h>

#include "answers/document.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/health.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "web/server/routes.h"
#include "web/server/web.h"

static void local_request_health(struct emit *json, const struct health *health)
{
	emit_u64(json, "books", health->books);
	emit_u64(json, "books_refused", health->books_refused);
	emit_u64(json, "ended", health->ended);
	emit_u64(json, "leaked", health->leaked);
	emit_u64(json, "unobserved_exits", health->unobserved_exits);
	emit_open_object(json, "past");
	emit_bool(json, "running", health->store_runs);
	emit_u64(json, "bytes", health->store_bytes);
	emit_u64(json, "queued", health->store_queued);
	emit_u64(json, "written", health->store_written);
	emit_u64(json, "dropped", health->store_dropped);
	emit_u64(json, "dropped_leaks", health->limits[HEALTH_STORE_LEAKS]);
	emit_u64(json, "joined", health->limits[HEALTH_STORE_JOINED]);
	emit_close_object(json);
	emit_open_object(json, "old_clients");
	emit_u64(json, "connections", health->legacy_connections);
	emit_u64(json, "messages", health->legacy_messages);
	emit_u64(json, "refused", health->legacy_refused);
	emit_u64(json, "taken_over", health->legacy_taken_over);
	emit_u64(json, "in_doubt", health->legacy_in_doubt);
	emit_close_object(json);
}

static void local_request_flight(struct emit *json, const struct health *health)
{
	const struct health_flight *flight = &health->flight;

	if (!flight->runs) {
		emit_null(json, "flight");
		return;
	}
	emit_open_object(json, "flight");
	emit_u64(json, "bytes", flight->bytes);
	emit_u64(json, "bytes_max", flight->bytes_max);
	emit_u64(json, "events", flight->events);
	emit_u64(json, "missed", health->limits[HEALTH_FLIGHT_MISSED]);
	emit_u64(json, "late_users", flight->late_users);
	emit_u64(json, "rounds", flight->rounds);
	emit_u64(json, "dropped", health->limits[HEALTH_FLIGHT_DROPPED]);
	emit_u64(json, "left_out", health->limits[HEALTH_FLIGHT_LEFT_OUT]);
	emit_u64(json, "files", flight->files);
	emit_u64(json, "refused", health->limits[HEALTH_FLIGHT_REFUSED]);
	emit_u64(json, "failed", health->limits[HEALTH_FLIGHT_FAILED]);
	emit_close_object(json);
}

/* Whom everybody may know: who has a path or a port can be seen in /proc by all users. */
static void local_request_doors(struct emit *json, const struct health *health)
{
	emit_open_array(json, "doors");
	for (size_t i = 0; i < HEALTH_DOORS; i++) {
		const struct health_door *door = &health->doors[i];

		if (!door->is_wanted)
			continue;
		emit_open_object(json, NULL);
		emit_string(json, "name", health_door_name((enum health_door_id)i));
		emit_string(json, "where", door->where);
		emit_bool(json, "open", door->is_open);
		emit_string(json, "problem", *door->problem ? door->problem : NULL);
		if (door->pid)
			emit_u64(json, "pid", door->pid);
		else
			emit_null(json, "pid");
		if (door->user_id != HEALTH_NOBODY)
			emit_u64(json, "user_id", door->user_id);
		else
			emit_null(json, "user_id");
		emit_u64(json, "since_ns", door->since_ns);
		emit_close_object(json);
	}
	emit_close_array(json);
}

int local_request_status(struct routes_ask *ask, FILE *out)
{
	struct health health = {0};
	struct emit json = EMIT_INIT(out);

	ask->provider->health(ask->provider->context, &health);
	document_open(&json, "ttmem.status/1", clock_ns(CLOCK_REALTIME));
	emit_bool(&json, "running", true);
	emit_u64(&json, "pid", (uint64_t)getpid());
	emit_u64(&json, "user_id", geteuid());
	emit_string(&json, "version", health.version);
	emit_string(&json, "socket", health.socket);
	emit_string(&json, "http", health.http);
	emit_u64(&json, "start_ns", health.start_ns);
	emit_bool(&json, "you_see_all", ask->asker->sees_all);
	local_request_health(&json, &health);
	local_request_flight(&json, &health);
	local_request_doors(&json, &health);
	document_close_bare(&json);
	return 0;
}

int local_request_dump(struct routes_ask *ask, FILE *out)
{
	if (!ask->provider->dump)
		return -ENOENT;
	return ask->provider->dump(ask->provider->context, ask->asker, ask->url->since_ns, out);
}

static void local_request_refuse(struct local_request_answer *answer, unsigned int status,
				 const char *problem)
{
	answer->status = status;
	answer->type = ROUTES_TEXT;
	(void)snprintf(answer->problem, sizeof(answer->problem), "%s", problem); /* cut is fine */
}

/* Finds the route and checks that this client may use it. NULL: refused. */
static const struct route *local_request_choose(struct routes_ask *ask,
						struct local_request_answer *answer)
{
	const struct route *route = routes_find(ask->url->path, &ask->device);

	if (!route) {
		local_request_refuse(answer, MHD_HTTP_NOT_FOUND, "there is no such path");
		return NULL;
	}
	if (!route->make || route->tcp) {
		local_request_refuse(answer, MHD_HTTP_NOT_FOUND, "this is served over TCP only");
		return NULL;
	}
	if (route->guarded && !route->scoped && !ask->asker->sees_all) {
		local_request_refuse(answer, MHD_HTTP_FORBIDDEN, ROUTES_ALL_ONLY);
		return NULL;
	}
	return route;
}

void local_request_serve(const struct web_provider *provider, const struct query_asker *asker,
			 const char *url, FILE *out, struct local_request_answer *ret_answer)
{
	CLEANUP(url_deinit) struct url parsed = {0};
	struct local_request_answer answer = {.status = MHD_HTTP_OK};
	struct routes_ask ask = {
		.provider = provider,
		.asker = asker,
		.url = &parsed,
		.sees_all = asker->sees_all,
		.arrived_ns = asker->came_ns,
	};
	const struct route *route = NULL;
	const char *problem;
	int r = url_parse(&parsed, url);

	if (r == 0)
		route = local_request_choose(&ask, &answer);
	if (route) {
		r = url_read(&parsed, route->parameters);
		if (r == 0)
			r = route->make(&ask, out);
		answer.type = route->type;
	}
	if (r != 0) {
		unsigned int status = routes_explain(r, &parsed, &problem);

		local_request_refuse(&answer, status, problem);
	}
	snapshot_free(ask.snapshot);
	answer.reason = MHD_get_reason_phrase_for(answer.status);
	*ret_answer = answer;
}
