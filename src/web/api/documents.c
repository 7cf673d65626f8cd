/* SPDX-License-Identifier: Apache-2.0 */

/* Turns URL parameters into a request or a query; the provider does the rest. */

#include "web/api/documents.h"

#include <errno.h>
#include <stdio.h>

#include "answers/buffers.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "model/query.h"
#include "model/types.h"
#include "web/api/group-pages.h"
#include "web/api/moment-answer.h"
#include "web/server/routes.h"
#include "web/server/web.h"

static int documents_refuse(struct url *url, const char *problem)
{
	snprintf(url->problem, sizeof(url->problem), "%s", problem);
	return -EINVAL;
}

/* Groups all buffers without ever holding all of them. */
static int documents_groups(struct routes_ask *ask, FILE *out)
{
	struct url *url = ask->url;
	struct snapshot_request like = {.filter = url->filter, .asker = ask->asker};
	struct emit json = EMIT_INIT(out);
	int r;

	if (url->given & (URL_SORT | URL_CURSOR))
		return documents_refuse(url, "parameter \"by\" does not go with sort or cursor: "
					     "groups are given at once, largest first");
	r = moment_answer_request(ask, false, &like);
	if (r == 0)
		r = group_pages_write(ask->provider, &like, url->by, url->limit, &json);
	return moment_answer_result(ask, r);
}

int documents_buffers(struct routes_ask *ask, FILE *out)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	struct url *url = ask->url;
	struct snapshot_request request = {
		.buffers = true,
		.filter = url->filter,
		.limit = url->limit,
		.sorted = (url->given & URL_SORT) != 0,
		.order = url->order,
		.asker = ask->asker,
	};
	struct emit json = EMIT_INIT(out);
	int r;

	/* Their own may be millions, which one thread would read for all users. */
	if (ask->asker && !ask->asker->sees_all && (url->given & (URL_BY | URL_SORT))) {
		(void)documents_refuse(url,
				       "parameters \"by\" and \"sort\" are for root and members "
				       "of the daemon's group: ask for pages");
		return ROUTES_FORBIDDEN;
	}
	if (url->given & URL_BY)
		return documents_groups(ask, out);
	if (request.sorted && url->cursor)
		return documents_refuse(url, "parameter \"sort\" does not go with cursor: pages "
					     "have an order of their own");
	request.has_after = url->cursor != NULL;
	if (request.has_after && page_cursor_parse(url->cursor, &request.after) < 0)
		return documents_refuse(url, "parameter \"cursor\" is not what \"next\" of an "
					     "earlier page said");
	r = moment_answer_request(ask, false, &request);
	if (r == 0)
		r = ask->provider->snapshot(ask->provider->context, &request, &snapshot);
	if (r < 0)
		return moment_answer_result(ask, r);
	if (request.sorted)
		snapshot_sort_buffers(snapshot, request.order);
	buffers_put(&json, snapshot);
	return 0;
}

static struct query_past documents_past(const struct routes_ask *ask)
{
	const struct url *url = ask->url;

	return (struct query_past){
		.asker = ask->asker,
		.pid = url->filter.pid,
		.kind = url->kind,
		.has_buffers_max = (url->given & URL_BUFFERS) != 0,
		.buffers_max = url->buffers_max,
		.since_ns = url->since_ns,
		.limit = url->limit,
		.cursor = url->cursor,
	};
}

/* -EINVAL from the provider means a bad cursor or an unknown kind, nothing else. */
static int documents_result(struct routes_ask *ask, int result)
{
	struct url *url = ask->url;

	if (result != -EINVAL)
		return result;
	if (!url->kind || types_find_incident_kind(url->kind) < TYPES_INCIDENTS)
		return documents_refuse(url, "parameter \"cursor\" is not what \"next\" of an "
					     "earlier page said");
	snprintf(url->problem, sizeof(url->problem), "parameter \"kind\": \"%s\" is not %s",
		 url->kind, URL_KINDS);
	return -EINVAL;
}

int documents_leaks(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct query_past query = documents_past(ask);
	struct emit json = EMIT_INIT(out);

	if (!provider->leaks)
		return -EAGAIN;
	return documents_result(ask, provider->leaks(provider->context, &query, &json));
}

int documents_ended(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct query_past query = documents_past(ask);
	struct emit json = EMIT_INIT(out);

	if (!provider->ended)
		return -EAGAIN;
	return documents_result(ask, provider->ended(provider->context, &query, &json));
}

int documents_incidents(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct query_past query = documents_past(ask);
	struct emit json = EMIT_INIT(out);

	if (!provider->incidents)
		return -EAGAIN;
	return documents_result(ask, provider->incidents(provider->context, &query, &json));
}

int documents_history(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct query_history query = {
		.asker = ask->asker,
		.only_past = ask->url->only_past,
		.address = ask->url->address,
		.filter = ask->url->filter,
	};
	struct emit json = EMIT_INIT(out);

	if (!(ask->url->given & URL_ADDRESS))
		return documents_refuse(ask->url, "parameter \"address\" is missing");
	if (!provider->history)
		return -EAGAIN;
	return documents_result(ask, provider->history(provider->context, &query, &json));
}

int documents_peaks(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	const struct query_peaks query = {
		.asker = ask->asker,
		.filter = ask->url->filter,
		.by = ask->url->given & URL_BY ? ask->url->by : GROUP_SITE,
	};
	struct emit json = EMIT_INIT(out);

	if (query.by == GROUP_THREAD)
		return documents_refuse(ask->url, "parameter \"by\": threads are not known");
	if (!provider->peaks)
		return -EAGAIN;
	return provider->peaks(provider->context, &query, &json);
}

int documents_growth(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	const struct query_growth query = {
		.asker = ask->asker,
		.pid = ask->url->filter.pid,
		.at_ns = ask->url->given & URL_AT ? ask->url->at_ns : 0,
	};
	struct emit json = EMIT_INIT(out);
	int r = provider->growth ? provider->growth(provider->context, &query, &json) : -EAGAIN;

	return r == -EINVAL ? documents_refuse(ask->url, "parameter \"at\" is for recordings")
			    : moment_answer_result(ask, r);
}

int documents_commands(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	const struct query_commands query = {.asker = ask->asker, .pid = ask->url->filter.pid};
	struct emit json = EMIT_INIT(out);

	return provider->commands ? provider->commands(provider->context, &query, &json) : -EAGAIN;
}

int documents_series(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	const struct url *url = ask->url;
	struct query_series query = {
		.asker = ask->asker,
		.from_ns = url->from_ns,
		.to_ns = url->to_ns,
		.step_ms = url->step_ms,
		.pid = url->filter.pid,
		.filter = url->filter,
		.limit = url->limit,
		.cursor = url->cursor,
	};
	struct emit json = EMIT_INIT(out);

	if (!provider->series)
		return -EAGAIN;
	if (query.to_ns && query.from_ns > query.to_ns)
		return documents_refuse(ask->url, "\"from\" is after \"to\"");
	return documents_result(ask, provider->series(provider->context, &query, &json));
}
