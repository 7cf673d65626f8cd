/* SPDX-License-Identifier: Apache-2.0 */

/* docs/http.md has the same table for people; test_queries.py compares them. */

#include "answers/answers.h"

#include "answers/ended.h"
#include "answers/incidents.h"
#include "answers/series.h"
#include "model/query.h"

#define ANSWERS_FILTER (QUERY_PID | QUERY_DEVICE | QUERY_TYPE)
#define ANSWERS_PAST (QUERY_PID | QUERY_SINCE | QUERY_LIMIT | QUERY_CURSOR)

const struct answer answers[ANSWERS_COUNT] = {
	[ANSWERS_HEALTH] = {"/healthz"},
	[ANSWERS_METRICS] = {"/metrics"},
	[ANSWERS_METRICS_SITES] = {"/metrics/sites", QUERY_LIMIT},
	[ANSWERS_SMI] = {"/api/v1/smi", QUERY_DEVICE | QUERY_AT, .options = QUERY_USER},
	[ANSWERS_HOST] = {"/api/v1/host"},
	[ANSWERS_FLEET] = {"/api/v1/fleet"},
	[ANSWERS_PS] = {"/api/v1/ps", QUERY_AT, .options = QUERY_PID | QUERY_DEVICE},
	[ANSWERS_BUFFERS] = {"/api/v1/buffers",
			     ANSWERS_FILTER | QUERY_SORT | QUERY_BY | QUERY_LIMIT | QUERY_CURSOR |
				     QUERY_AT,
			     .options = QUERY_NAME},
	[ANSWERS_MAP] = {"/api/v1/map", ANSWERS_FILTER | QUERY_AT},
	[ANSWERS_FIT] = {"/api/v1/fit", ANSWERS_FILTER | QUERY_SIZE | QUERY_PAGE | QUERY_CORES |
						QUERY_PER_BANK | QUERY_AT},
	[ANSWERS_LEAKS] = {"/api/v1/leaks", ANSWERS_PAST | QUERY_BUFFERS, .page = 100, "processes",
			   "buffers", leaks_fields, sizeof(struct leaks_row)},
	[ANSWERS_ENDED] = {"/api/v1/ended", ANSWERS_PAST, .page = 100, "processes",
			   .fields = ended_fields, sizeof(struct ended_row)},
	[ANSWERS_PEAK] = {"/api/v1/peak", ANSWERS_FILTER | QUERY_BY},
	[ANSWERS_GROWTH] = {"/api/v1/growth", QUERY_PID | QUERY_AT},
	[ANSWERS_COMMANDS] = {"/api/v1/commands", QUERY_PID},
	[ANSWERS_INCIDENTS] = {"/api/v1/incidents", ANSWERS_PAST | QUERY_KIND, .page = 100,
			       "incidents", .fields = incident_fields, sizeof(struct incident_row)},
	[ANSWERS_HISTORY] = {"/api/v1/history", ANSWERS_FILTER | QUERY_ADDRESS | QUERY_ONLY},
	[ANSWERS_SERIES] = {"/api/v1/series",
			    ANSWERS_FILTER | QUERY_FROM | QUERY_TO | QUERY_STEP | QUERY_LIMIT |
				    QUERY_CURSOR,
			    .page = 10000, "series", .fields = series_fields,
			    sizeof(struct series_row)},
	[ANSWERS_MOMENTS] = {"/api/v1/moments",
			     QUERY_PID | QUERY_DEVICE | QUERY_FROM | QUERY_TO | QUERY_LIMIT},
	[ANSWERS_STREAM] = {"/api/v1/stream", QUERY_TOKEN | QUERY_CHANGES},
	[ANSWERS_DEVICES] = {"/api/devices"},
	[ANSWERS_SIGN_IN] = {"/api/v1/sign-in"},
	[ANSWERS_SIGN_OUT] = {"/api/v1/sign-out"},
	[ANSWERS_OPEN] = {"/api/v1/open", QUERY_BROWSER},
	[ANSWERS_STATUS] = {"/api/v1/status"},
	[ANSWERS_CARDS] = {"/api/v1/cards"},
	[ANSWERS_DUMP] = {"/api/v1/dump", QUERY_SINCE},
};
