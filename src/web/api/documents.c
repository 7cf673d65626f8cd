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

static int documents_refuse(struct routes_ask *ask, const char *problem)
{
	snprintf(ask->url->problem, sizeof(ask->url->problem), "%s", problem);
	return -EINVAL;
}

/* Groups all buffers without ever holding all of them. */
static int documents_groups(struct routes_ask *ask, FILE *out)
{
	const struct query *query = ask->query;
	struct snapshot_request like = {.filter = query->filter, .asker = ask->asker};
	struct emit json = EMIT_INIT(out);
	int r;

	if (query->given & (QUERY_SORT | QUERY_CURSOR))
		return documents_refuse(ask, "parameter \"by\" does not go with sort or cursor: "
					     "groups are given at once, largest first");
	r = moment_answer_request(ask, false, &like);
	if (r == 0)
		r = group_pages_write(ask->provider, &like, query->by, query->limit, &json);
	return moment_answer_result(ask, r);
}

int documents_buffers(struct routes_ask *ask, FILE *out)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct query *query = ask->query;
	struct snapshot_request request = {
		.buffers = true,
		.filter = query->filter,
		.limit = query->limit,
		.sorted = (query->given & QUERY_SORT) != 0,
		.order = query->order,
		.asker = ask->asker,
	};
	struct emit json = EMIT_INIT(out);
	int r;

	/* Their own may be millions, which one thread would read for all users. */
	if (ask->asker && !ask->asker->sees_all && (query->given & (QUERY_BY | QUERY_SORT))) {
		(void)documents_refuse(ask,
				       "parameters \"by\" and \"sort\" are for root and members "
				       "of the daemon's group: ask for pages");
		return ROUTES_FORBIDDEN;
	}
	if (query->given & QUERY_BY)
		return documents_groups(ask, out);
	if (request.sorted && query->cursor)
		return documents_refuse(ask, "parameter \"sort\" does not go with cursor: pages "
					     "have an order of their own");
	request.has_after = query->cursor != NULL;
	if (request.has_after && page_cursor_parse(query->cursor, &request.after) < 0)
		return documents_refuse(ask, "parameter \"cursor\" is not what \"next\" of an "
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

/* -EINVAL from the provider means a bad cursor or an unknown kind, nothing else. */
static int documents_past(struct routes_ask *ask, web_answer_fn *answer, FILE *out)
{
	const char *kind = ask->query->kind;
	struct emit json = EMIT_INIT(out);
	int r = answer ? answer(ask->provider->context, ask->query, ask->asker, &json) : -EAGAIN;

	if (r != -EINVAL)
		return r;
	if (!kind || types_find_incident_kind(kind) < TYPES_INCIDENTS)
		return documents_refuse(ask, "parameter \"cursor\" is not what \"next\" of an "
					     "earlier page said");
	snprintf(ask->url->problem, sizeof(ask->url->problem),
		 "parameter \"kind\": \"%s\" is not %s", kind, QUERY_KINDS);
	return -EINVAL;
}

int documents_leaks(struct routes_ask *ask, FILE *out)
{
	return documents_past(ask, ask->provider->leaks, out);
}

int documents_ended(struct routes_ask *ask, FILE *out)
{
	return documents_past(ask, ask->provider->ended, out);
}

int documents_incidents(struct routes_ask *ask, FILE *out)
{
	return documents_past(ask, ask->provider->incidents, out);
}

int documents_history(struct routes_ask *ask, FILE *out)
{
	if (!(ask->query->given & QUERY_ADDRESS))
		return documents_refuse(ask, "parameter \"address\" is missing");
	return documents_past(ask, ask->provider->history, out);
}

int documents_peaks(struct routes_ask *ask, FILE *out)
{
	if (!(ask->query->given & QUERY_BY))
		ask->query->by = GROUP_SITE;
	if (ask->query->by == GROUP_THREAD)
		return documents_refuse(ask, "parameter \"by\": threads are not known");
	return documents_past(ask, ask->provider->peaks, out);
}

int documents_growth(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct emit json = EMIT_INIT(out);
	int r = provider->growth
			? provider->growth(provider->context, ask->query, ask->asker, &json)
			: -EAGAIN;

	return r == -EINVAL ? documents_refuse(ask, "parameter \"at\" is for recordings")
			    : moment_answer_result(ask, r);
}

int documents_commands(struct routes_ask *ask, FILE *out)
{
	return documents_past(ask, ask->provider->commands, out);
}

int documents_series(struct routes_ask *ask, FILE *out)
{
	if (ask->query->to_ns && ask->query->from_ns > ask->query->to_ns)
		return documents_refuse(ask, "\"from\" is after \"to\"");
	return documents_past(ask, ask->provider->series, out);
}
