/* SPDX-License-Identifier: Apache-2.0 */

/* Parameters become a request or a query; the provider does the rest. */

#include "web/api/documents.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "model/json/document.h"
#include "web/api/group-pages.h"
#include "web/server/routes.h"
#include "web/server/web.h"

static void details_cleanup_snapshot(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

static int details_refuse(struct target *target, const char *problem)
{
	snprintf(target->problem, sizeof(target->problem), "%s", problem);
	return -EINVAL;
}

/* Groups of all buffers, without ever having all buffers. */
static int details_groups(struct routes_ask *ask, FILE *out)
{
	struct target *target = ask->target;
	struct emit json = EMIT_INIT(out);

	if (target->given & (TARGET_SORT | TARGET_CURSOR))
		return details_refuse(target, "parameter \"by\" does not go with sort or cursor: "
					      "groups are given at once, largest first");
	return sums_write(ask->provider, &target->filter, target->by, target->limit, &json);
}

int details_buffers(struct routes_ask *ask, FILE *out)
{
	CLEANUP(details_cleanup_snapshot) struct snapshot *snapshot = NULL;
	struct target *target = ask->target;
	struct snapshot_request request = {
		.buffers = true,
		.filter = target->filter,
		.limit = target->limit,
		.sorted = (target->given & TARGET_SORT) != 0,
		.order = target->order,
	};
	struct emit json = EMIT_INIT(out);
	int r;

	if (target->given & TARGET_BY)
		return details_groups(ask, out);
	if (request.sorted && target->cursor)
		return details_refuse(target, "parameter \"sort\" does not go with cursor: pages "
					      "have an order of their own");
	request.has_after = target->cursor != NULL;
	if (request.has_after && page_cursor_parse(target->cursor, &request.after) < 0)
		return details_refuse(target, "parameter \"cursor\" is not what \"next\" of an "
					      "earlier page said");
	r = ask->provider->snapshot(ask->provider->context, &request, &snapshot);
	if (r < 0)
		return r;
	if (request.sorted)
		snapshot_sort_buffers(snapshot, request.order);
	document_buffers(&json, snapshot);
	return 0;
}

static struct web_past_query details_past(const struct routes_ask *ask)
{
	const struct target *target = ask->target;

	return (struct web_past_query){
		.asker = ask->asker,
		.pid = target->filter.pid,
		.kind = target->kind,
		.since_ns = target->since_ns,
		.limit = target->limit,
		.cursor = target->cursor,
	};
}

/* The provider knows no problem but a cursor that is none, and a kind that is none. */
static int details_result(struct routes_ask *ask, int result)
{
	struct target *target = ask->target;

	if (result != -EINVAL)
		return result;
	if (!target->kind || web_is_incident_kind(target->kind))
		return details_refuse(target, "parameter \"cursor\" is not what \"next\" of an "
					      "earlier page said");
	snprintf(target->problem, sizeof(target->problem), "parameter \"kind\": \"%s\" is not %s",
		 target->kind, TARGET_KINDS);
	return -EINVAL;
}

int details_leaks(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct web_past_query query = details_past(ask);
	struct emit json = EMIT_INIT(out);

	if (!provider->leaks)
		return -EAGAIN;
	return details_result(ask, provider->leaks(provider->context, &query, &json));
}

int details_incidents(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct web_past_query query = details_past(ask);
	struct emit json = EMIT_INIT(out);

	if (!provider->incidents)
		return -EAGAIN;
	return details_result(ask, provider->incidents(provider->context, &query, &json));
}

int details_history(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	struct web_history_query query = {
		.asker = ask->asker,
		.only_past = ask->target->only_past,
		.address = ask->target->address,
		.filter = ask->target->filter,
	};
	struct emit json = EMIT_INIT(out);

	if (!(ask->target->given & TARGET_ADDRESS))
		return details_refuse(ask->target, "parameter \"address\" is missing");
	if (!provider->history)
		return -EAGAIN;
	return details_result(ask, provider->history(provider->context, &query, &json));
}

int details_series(struct routes_ask *ask, FILE *out)
{
	const struct web_provider *provider = ask->provider;
	const struct target *target = ask->target;
	struct web_series_query query = {
		.asker = ask->asker,
		.from_ns = target->from_ns,
		.to_ns = target->to_ns,
		.step_s = target->step_s,
		.pid = target->filter.pid,
		.filter = target->filter,
		.limit = target->limit,
		.cursor = target->cursor,
	};
	struct emit json = EMIT_INIT(out);

	if (!provider->series)
		return -EAGAIN;
	if (query.to_ns && query.from_ns > query.to_ns)
		return details_refuse(ask->target, "\"from\" is after \"to\"");
	return details_result(ask, provider->series(provider->context, &query, &json));
}
