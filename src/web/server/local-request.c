/* SPDX-License-Identifier: Apache-2.0 */

/* From a URL to an answer, without a server; web-request.c does this for TCP. */

#include "web/server/local-request.h"

#include <errno.h>
#include <microhttpd.h>
#include <time.h>
#include <unistd.h>

#include "answers/document.h"
#include "answers/status.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/health.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "web/server/routes.h"
#include "web/server/web.h"

int local_request_status(struct routes_ask *ask, FILE *out)
{
	const struct document_about about = {.time_ns = clock_ns(CLOCK_REALTIME)};
	struct emit json = EMIT_INIT(out);
	struct status_row row = {
		.is_running = true,
		.pid = (uint32_t)getpid(),
		.user_id = geteuid(),
		.you_see_all = ask->asker->sees_all,
	};

	ask->provider->health(ask->provider->context, &row.health);
	row.has_flight = row.health.flight.runs;
	/* Whom everybody may know: who has a path or a port can be seen in /proc by all users. */
	status_set_lists(&row);
	document_put_about(&json, &status_document, &about, &row);
	return 0;
}

int local_request_dump(struct routes_ask *ask, FILE *out)
{
	if (!ask->provider->dump)
		return -ENOENT;
	return ask->provider->dump(ask->provider->context, ask->asker, ask->query->since_ns, out);
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
		.query = &parsed.query,
		.sees_all = asker->sees_all,
		.arrived_ns = asker->came_ns,
	};
	const struct route *route = NULL;
	const char *problem;
	int r = url_parse(&parsed, url);

	if (r == 0)
		route = local_request_choose(&ask, &answer);
	if (route) {
		r = url_read(&parsed, routes_honours(route));
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
