/* SPDX-License-Identifier: Apache-2.0 */

/* The table, and the answers made from totals. Those with rows are in documents.c. */

#include "web/server/routes.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers/answers.h"
#include "answers/devices.h"
#include "answers/document.h"
#include "answers/healthz.h"
#include "answers/host.h"
#include "answers/session.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/threads/worker.h"
#include "model/health.h"
#include "model/merge.h"
#include "model/types.h"
#include "web/api/documents.h"
#include "web/api/map-answer.h"
#include "web/api/moment-answer.h"
#include "web/api/stream.h"
#include "web/export/metrics-sites.h"
#include "web/export/metrics.h"
#include "web/server/accept-queue.h"
#include "web/server/assets.h"
#include "web/server/connection-limits.h"
#include "web/server/local-request.h"
#include "web/server/sign-in.h"
#include "web/server/web-private.h"

#define ROUTES_RECENT_NS (2 * NS_PER_S)

/*
 * The totals for a request. Requests that waited together share one snapshot: it was started after
 * the last of them arrived, so it is valid for all.
 */
static int routes_totals(struct routes_ask *ask, const struct snapshot **ret_snapshot)
{
	struct snapshot_request request = {0};
	struct web *web = ask->web;
	int r;

	if (ask->query->given & QUERY_AT) {
		r = moment_answer_request(ask, true, &request);
		if (r == 0)
			r = ask->provider->snapshot(ask->provider->context, &request,
						    &ask->snapshot);
		*ret_snapshot = ask->snapshot;
		return moment_answer_result(ask, r);
	}
	if (!web) {
		request.since_ns = ask->arrived_ns;
		r = ask->provider->snapshot(ask->provider->context, &request, &ask->snapshot);
		*ret_snapshot = ask->snapshot;
		return r;
	}
	if (!web->shared || ask->arrived_ns > web->shared_ns) {
		web->shared = snapshot_free(web->shared);
		web->shared_ns = clock_ns(CLOCK_MONOTONIC);
		r = web->provider.snapshot(web->provider.context, &request, &web->shared);
		if (r < 0)
			return r;
		web->shared_took_ns = clock_ns(CLOCK_MONOTONIC) - web->shared_ns;
	}
	*ret_snapshot = web->shared;
	return 0;
}

static int routes_smi(struct routes_ask *ask, FILE *out)
{
	const struct snapshot *snapshot = NULL;
	struct emit json = EMIT_INIT(out);
	int r = routes_totals(ask, &snapshot);

	if (r == 0)
		document_smi(&json, snapshot, &ask->query->filter, NULL);
	return r;
}

static int routes_ps(struct routes_ask *ask, FILE *out)
{
	const struct snapshot *snapshot = NULL;
	struct emit json = EMIT_INIT(out);
	int r = routes_totals(ask, &snapshot);

	if (r == 0)
		document_ps(&json, snapshot, &ask->query->filter, NULL);
	return r;
}

/*
 * For commands, which look once and ask what was before. All of it is remembered from earlier
 * readings, so that a recent one will do.
 */
static int routes_cards(struct routes_ask *ask, FILE *out)
{
	const struct snapshot *snapshot = NULL;
	struct emit json = EMIT_INIT(out);
	int r;

	ask->arrived_ns -= bits_min(ask->arrived_ns, ROUTES_RECENT_NS);
	r = routes_totals(ask, &snapshot);
	if (r == 0)
		document_put(&json, &cards_document, snapshot, snapshot);
	return r;
}

static struct devices_row routes_stats(const struct snapshot *snapshot, uint32_t number)
{
	struct devices_row row = {.device = number};

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		for (uint32_t type = 0; device->device == number && type < BOOK_TYPES; type++) {
			row.used[type] = merge_add(row.used[type], device->memory[type].used);
			row.buffers = merge_add(row.buffers, device->memory[type].buffers);
		}
	}
	return row;
}

/* Several devices may have the same number: they are one row. */
static int routes_devices(struct routes_ask *ask, FILE *out)
{
	const struct snapshot *snapshot = NULL;
	struct emit json = EMIT_INIT(out);
	CLEANUP_FREE struct devices_row *rows = NULL;
	struct devices_answer answer = {0};
	int r = routes_totals(ask, &snapshot);

	if (r < 0)
		return r;
	answer.rows = rows = calloc(snapshot->device_count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (uint32_t number = 0; number < BOOK_DEVICES; number++) {
		for (size_t i = 0; i < snapshot->device_count; i++) {
			if (snapshot->devices[i].device != number)
				continue;
			rows[answer.count++] = routes_stats(snapshot, number);
			break;
		}
	}
	document_put_about(&json, &devices_document, NULL, &answer);
	return 0;
}

static int routes_device_stats(struct routes_ask *ask, FILE *out)
{
	const struct snapshot *snapshot = NULL;
	struct emit json = EMIT_INIT(out);
	struct devices_row row;
	int r;

	if (ask->device >= BOOK_DEVICES)
		return -ENOENT;
	r = routes_totals(ask, &snapshot);
	if (r < 0)
		return r;
	row = routes_stats(snapshot, ask->device);
	document_put_about(&json, &devices_one, NULL, &row);
	return 0;
}

static int routes_metrics(struct routes_ask *ask, FILE *out)
{
	struct web *web = ask->web;
	struct metrics_server server = {
		.thrown_out = connection_limits_thrown_out(web->connection_limits),
	};
	struct metrics_input input = {
		.health = web->health,
		.server = &server,
		.processes = web->metrics_processes,
		.provider = &web->provider,
	};
	struct stream_counts counts;
	int r;

	/* Before the snapshot, and not from an earlier request: see struct health. */
	memset(web->health, 0, sizeof(*web->health));
	ask->arrived_ns = clock_ns(CLOCK_MONOTONIC);
	web->provider.health(web->provider.context, web->health);
	r = routes_totals(ask, &input.snapshot);
	if (r < 0)
		return r;
	stream_counts(web->stream, &counts);
	server.subscribers = counts.subscribers;
	server.subscribers_dropped = counts.dropped;
	for (size_t i = 0; i < ARRAY_SIZE(server.answers); i++)
		server.answers[i] = __atomic_load_n(&web->answers[i], __ATOMIC_RELAXED);
	metrics_write(&input, web->told,
		      ask->openmetrics ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT, out);
	return 0;
}

struct routes_notes {
	char room[HEALTH_DOORS][64];
	const char *list[HEALTH_DOORS + 1];
};

/* Over TCP everybody reads this: what is missing, and not who has it. Returns how many there are. */
static size_t routes_note(const struct health *health, struct routes_notes *notes)
{
	size_t count = 0;

	if (!health->store_runs)
		notes->list[count++] = "the past cannot be written at present";
	for (uint32_t i = 0; i < HEALTH_DOORS; i++) {
		/* A note of its own says that the past cannot be written. */
		if (i == HEALTH_DOOR_HISTORY || !health_is_closed(&health->doors[i]))
			continue;
		(void)snprintf(notes->room[i], sizeof(notes->room[i]),
			       "closed: %s; see ttmem status", health_door_name(i)); /* fits */
		notes->list[count++] = notes->room[i];
	}
	return count;
}

static bool routes_is_well(const struct health *health)
{
	for (size_t i = 0; i < HEALTH_DOORS; i++) {
		if (health_is_closed(&health->doors[i]))
			return false;
	}
	return health->store_runs;
}

static int routes_metrics_sites(struct routes_ask *ask, FILE *out)
{
	size_t wanted = ask->query->given & QUERY_LIMIT ? ask->query->limit : METRICS_SITES_DEFAULT;

	return metrics_sites_write(ask->provider, wanted,
				   ask->openmetrics ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT,
				   out);
}

static int routes_health(struct routes_ask *ask, FILE *out)
{
	struct health health = {0};
	struct session_row session;
	struct healthz_row row = {
		.details = auth_details(&ask->web->auth),
		.session = sign_in_session(ask->asker, &session),
		.has_fleet = ask->provider->fleet != NULL,
		.health = &health,
	};
	struct routes_notes notes;
	struct document_about about = {.time_ns = clock_ns(CLOCK_REALTIME), .notes = notes.list};
	struct emit json = EMIT_INIT(out);

	ask->provider->health(ask->provider->context, &health);
	row.status = health_status(routes_is_well(&health));
	/* What is served is for those who may see it. */
	if (ask->asker && health.recording.file)
		row.recording = &health.recording;
	about.note_count = routes_note(&health, &notes);
	document_put_about(&json, &healthz_document, &about, &row);
	return 0;
}

/* What other machines ask for. */
static int routes_host(struct routes_ask *ask, FILE *out)
{
	const struct snapshot *snapshot = NULL;
	struct emit json = EMIT_INIT(out);
	struct health *health = ask->web->health;
	int r;

	memset(health, 0, sizeof(*health));
	ask->provider->health(ask->provider->context, health);
	r = routes_totals(ask, &snapshot);
	if (r == 0)
		host_put(&json, snapshot, health, routes_is_well(health));
	return r;
}

static int routes_fleet(struct routes_ask *ask, FILE *out)
{
	struct emit json = EMIT_INIT(out);

	return ask->provider->fleet(ask->provider->context, &ask->web->closing, &json);
}

#define ROUTES_METRICS                              \
	"text/plain; version=0.0.4; charset=utf-8", \
		"application/openmetrics-text; version=1.0.0; charset=utf-8"

static const struct route routes_table[ANSWERS_COUNT] = {
	[ANSWERS_HEALTH] = {ROUTES_JSON, .make = routes_health, .tcp = true},
	[ANSWERS_METRICS] = {ROUTES_METRICS, routes_metrics, .lane = ROUTES_TOTALS, .tcp = true},
	[ANSWERS_METRICS_SITES] = {ROUTES_METRICS, routes_metrics_sites, .lane = ROUTES_DETAILS,
				   .guarded = true, .tcp = true},
	[ANSWERS_SMI] = {ROUTES_JSON, .make = routes_smi, .lane = ROUTES_TOTALS},
	[ANSWERS_HOST] = {ROUTES_JSON, .make = routes_host, .lane = ROUTES_TOTALS, .tcp = true},
	[ANSWERS_FLEET] = {ROUTES_JSON, .make = routes_fleet, .lane = ROUTES_FLEET, .tcp = true},
	[ANSWERS_PS] = {ROUTES_JSON, .make = routes_ps, .lane = ROUTES_TOTALS},
	[ANSWERS_BUFFERS] = {ROUTES_JSON, .make = documents_buffers, .lane = ROUTES_DETAILS,
			     .guarded = true, .scoped = true},
	[ANSWERS_MAP] = {ROUTES_JSON, .make = map_answer_answer, .lane = ROUTES_DETAILS,
			 .guarded = true},
	[ANSWERS_FIT] = {ROUTES_JSON, .make = map_answer_answer_fit, .lane = ROUTES_DETAILS,
			 .guarded = true},
	[ANSWERS_LEAKS] = {ROUTES_JSON, .make = documents_leaks, .lane = ROUTES_DETAILS,
			   .guarded = true, .scoped = true},
	[ANSWERS_ENDED] = {ROUTES_JSON, .make = documents_ended, .lane = ROUTES_DETAILS,
			   .guarded = true, .scoped = true},
	[ANSWERS_PEAK] = {ROUTES_JSON, .make = documents_peaks, .lane = ROUTES_DETAILS,
			  .guarded = true, .scoped = true},
	[ANSWERS_GROWTH] = {ROUTES_JSON, .make = documents_growth, .lane = ROUTES_DETAILS,
			    .guarded = true, .scoped = true, .takes_turn = true},
	[ANSWERS_COMMANDS] = {ROUTES_JSON, .make = documents_commands, .lane = ROUTES_DETAILS,
			      .guarded = true, .scoped = true},
	[ANSWERS_INCIDENTS] = {ROUTES_JSON, .make = documents_incidents, .lane = ROUTES_DETAILS,
			       .guarded = true, .scoped = true},
	[ANSWERS_HISTORY] = {ROUTES_JSON, .make = documents_history, .lane = ROUTES_DETAILS,
			     .guarded = true, .scoped = true},
	[ANSWERS_SERIES] = {ROUTES_JSON, .make = documents_series, .lane = ROUTES_DETAILS},
	[ANSWERS_MOMENTS] = {ROUTES_JSON, .make = moment_answer_list, .lane = ROUTES_DETAILS,
			     .takes_turn = true},
	[ANSWERS_STREAM] = {"text/event-stream", .lane = ROUTES_STREAM},
	[ANSWERS_DEVICES] = {ROUTES_JSON, .make = routes_devices, .lane = ROUTES_TOTALS},
	[ANSWERS_SIGN_IN] = {ROUTES_JSON, .make = sign_in_begin, .tcp = true, .post = true},
	[ANSWERS_SIGN_OUT] = {ROUTES_JSON, .make = sign_in_end, .tcp = true, .post = true},
	[ANSWERS_OPEN] = {ROUTES_JSON, .make = sign_in_link, .local = true},
	[ANSWERS_STATUS] = {ROUTES_JSON, .make = local_request_status, .local = true},
	[ANSWERS_CARDS] = {ROUTES_JSON, .make = routes_cards, .lane = ROUTES_TOTALS, .local = true},
	[ANSWERS_DUMP] = {ROUTES_TEXT, .make = local_request_dump, .lane = ROUTES_DETAILS,
			  .local = true},
	[ANSWERS_STATS] = {ROUTES_JSON, .make = routes_device_stats, .lane = ROUTES_TOTALS},
	[ANSWERS_ASSET] = {.lane = ROUTES_ASSET},
};

const struct route *routes_find(const char *path, uint32_t *ret_device)
{
	for (size_t i = 0; i < ANSWERS_STATS; i++) {
		if (strcmp(answers[i].path, path) == 0)
			return &routes_table[i];
	}
	if (assets_find(path))
		return &routes_table[ANSWERS_ASSET];
	return url_device_path(path, ret_device) == 0 ? &routes_table[ANSWERS_STATS] : NULL;
}

uint32_t routes_honours(const struct route *route)
{
	return answers[route - routes_table].honours;
}

unsigned int routes_explain(int error, const struct url *url, const char **ret_problem)
{
	switch (error) {
	case -EINVAL:
		*ret_problem = url->problem;
		return MHD_HTTP_BAD_REQUEST;
	case ROUTES_UNAUTHORIZED:
	case ROUTES_FORBIDDEN:
	case ROUTES_UNAVAILABLE:
		*ret_problem = url->problem;
		return (unsigned int)error;
	case -ENOENT:
		*ret_problem = "there is no such thing";
		return MHD_HTTP_NOT_FOUND;
	case -ENODATA:
		*ret_problem = url->problem;
		return MHD_HTTP_NOT_FOUND;
	case -EAGAIN:
		*ret_problem = "the past cannot be asked at present";
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	case -ENOSPC:
		*ret_problem = "the history cannot be read: the disk that has it is full";
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	case -EOPNOTSUPP:
		*ret_problem = "this daemon remembers nothing of the past";
		return MHD_HTTP_NOT_IMPLEMENTED;
	case -EFBIG:
		*ret_problem = "the answer would be too large: choose a device or a smaller limit";
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	case -ENOBUFS:
		*ret_problem = "too many answers are being read: try again";
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		*ret_problem = strerrordesc_np(-error) ? strerrordesc_np(-error) : "failed";
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}
