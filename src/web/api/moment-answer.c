/* SPDX-License-Identifier: Apache-2.0 */

/* Says from when on moments are known: whoever asks for an earlier one wants to know that. */

#include "web/api/moment-answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/emit.h"
#include "model/query.h"
#include "model/snapshot-request.h"
#include "web/server/routes.h"
#include "web/server/web.h"

static int moment_answer_refuse(struct url *url, int result, const char *problem)
{
	(void)snprintf(url->problem, sizeof(url->problem), "parameter \"at\": %s", problem);
	return result;
}

/* Nothing is known of the moment. */
static int moment_answer_beyond(struct url *url, const struct snapshot_reach *reach, bool has_sums)
{
	char text[160];

	if (has_sums && reach->sums_from_ns)
		(void)snprintf(text, sizeof(text),
			       "nothing is known of that moment; sums are known from %" PRIu64
			       " on",
			       reach->sums_from_ns);
	else if (reach->exact_from_ns)
		(void)snprintf(text, sizeof(text),
			       "nothing is known of that moment; exact moments are known from "
			       "%" PRIu64 " on",
			       reach->exact_from_ns);
	else
		(void)snprintf(text, sizeof(text),
			       "this daemon has no flight recorder: no moments are known exactly");
	return moment_answer_refuse(url, -ENODATA, text);
}

static int moment_answer_reach(struct routes_ask *ask, struct snapshot_reach *ret_reach)
{
	const struct web_provider *provider = ask->provider;

	*ret_reach = (struct snapshot_reach){0};
	return provider->reach ? provider->reach(provider->context, ask->asker, ret_reach) : 0;
}

int moment_answer_request(struct routes_ask *ask, bool has_sums, struct snapshot_request *request)
{
	const struct query *query = ask->query;
	struct url *url = ask->url;
	struct snapshot_reach reach;
	bool is_known;
	int r;

	if (!(query->given & QUERY_AT))
		return 0;
	if (query->at_ns > clock_ns(CLOCK_REALTIME))
		return moment_answer_refuse(url, -EINVAL, "that moment is in the future");
	r = moment_answer_reach(ask, &reach);
	if (r < 0)
		return r;
	is_known = reach.exact_from_ns && query->at_ns >= reach.exact_from_ns;
	if (has_sums)
		is_known |= reach.sums_from_ns && query->at_ns >= reach.sums_from_ns;
	if (!is_known)
		return moment_answer_beyond(url, &reach, has_sums);
	request->at_ns = query->at_ns;
	request->asker = ask->asker;
	return 0;
}

int moment_answer_result(struct routes_ask *ask, int result)
{
	struct snapshot_reach reach;

	/* With a problem, it has been explained. */
	if (!(ask->query->given & QUERY_AT) || result != -ENODATA || *ask->url->problem)
		return result;
	if (moment_answer_reach(ask, &reach) < 0)
		reach = (struct snapshot_reach){0};
	return moment_answer_beyond(ask->url, &reach, false);
}

int moment_answer_list(struct routes_ask *ask, FILE *out)
{
	static const struct query_asker anybody = {.is_tcp = true};
	const struct web_provider *provider = ask->provider;
	const struct query_asker *asker = ask->asker;
	const struct query *query = ask->query;
	struct emit json = EMIT_INIT(out);

	if (!provider->moments)
		return -EAGAIN;
	if (query->to_ns && query->from_ns > query->to_ns) {
		(void)snprintf(ask->url->problem, sizeof(ask->url->problem),
			       "\"from\" is after \"to\"");
		return -EINVAL;
	}
	/* All may ask; the token shows all names, whoever is signed in. */
	if (!ask->sees_all && !asker)
		asker = &anybody;
	else if (ask->sees_all && asker && asker->is_tcp)
		asker = NULL;
	return provider->moments(provider->context, query, asker, &json);
}
