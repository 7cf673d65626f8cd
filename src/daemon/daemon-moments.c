/* SPDX-License-Identifier: Apache-2.0 */

/* Serves moments of the past: exactly from the flight recorder, else sums from the history. */

#include <errno.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/user-file.h"
#include "daemon/daemon-moment-gaps.h"
#include "daemon/daemon.h"
#include "daemon/flight/moment-cache.h"
#include "daemon/flight/moment-list.h"
#include "daemon/notify/log-writer.h"
#include "daemon/recorder/recorder-moments.h"
#include "daemon/registry/collector.h"
#include "daemon/symbols/symbols-namer.h"
#include "model/query.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "store/store.h"

#define MOMENTS_NS (900 * NS_PER_S)    /* a quarter of an hour, as for series */
#define MOMENTS_LATE_NS (2 * NS_PER_S) /* of what has just happened, nobody needs a file at once */

int daemon_moments_reach(void *context, const struct query_asker *asker,
			 struct snapshot_reach *ret_reach)
{
	struct daemon *daemon = context;
	struct snapshot_reach reach = {
		.exact_from_ns = daemon->moments ? moment_cache_from(daemon->moments) : 0,
	};
	struct store_reader *reader;

	/* If it cannot be asked at present, there is none at present. */
	if (daemon_reader(daemon, asker, &reader) == 0)
		(void)store_query_series_from(reader, &reach.sums_from_ns);
	*ret_reach = reach;
	return 0;
}

/* As for now: names that must be looked up are there in the second reading. */
static int moments_named(struct daemon *daemon, const struct snapshot_request *request,
			 struct snapshot **ret_snapshot)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct snapshot_request named = *request;
	struct snapshot *again;
	int r;

	if (request->buffers && !request->unnamed) {
		symbols_namer_init(&namer, daemon->symbols, false);
		named.namer = &namer.namer;
	}
	r = moment_cache_snapshot(daemon->moments, &named, ret_snapshot);
	if (r < 0 || !named.namer || !symbols_namer_learn(&namer, SYMBOLS_NAMER_NOTES_MAX))
		return r;
	if (moment_cache_snapshot(daemon->moments, &named, &again) == 0) {
		snapshot_free(*ret_snapshot);
		*ret_snapshot = again;
	}
	return 0;
}

/* The cards are those of now, and which of them a process has, it has had from the beginning. */
static int moments_exact(struct daemon *daemon, const struct snapshot_request *request,
			 struct snapshot **ret_snapshot)
{
	CLEANUP(snapshot_cleanup) struct snapshot *totals = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct snapshot_request complete = *request;
	int r = collector_totals(daemon->collector, now - bits_min(now, NS_PER_S), &totals);

	if (r < 0)
		return r;
	complete.totals = totals;
	return moments_named(daemon, &complete, ret_snapshot);
}

static int moments_sums(struct daemon *daemon, const struct snapshot_request *request,
			struct snapshot **ret_snapshot)
{
	struct store_reader *reader;
	int r = daemon_reader(daemon, request->asker, &reader);

	if (r < 0)
		return r == -EOPNOTSUPP ? -ENODATA : r;
	r = recorder_moments_sums(reader, request->at_ns, ret_snapshot);
	if (r == 0)
		(*ret_snapshot)->moment = (struct snapshot_moment){
			.kind = SNAPSHOT_MOMENT_SUMS,
			.asked_ns = request->at_ns,
		};
	return r;
}

/* Rows are a user's own: what is missing of all is said with the totals. */
static void moments_missing(struct daemon *daemon, const struct snapshot_request *request,
			    struct snapshot *snapshot)
{
	CLEANUP(snapshot_cleanup) struct snapshot *totals = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct store_reader *reader;

	if (request->buffers)
		return;
	if (snapshot->moment.kind != SNAPSHOT_MOMENT_SUMS &&
	    daemon_reader(daemon, request->asker, &reader) == 0)
		daemon_moment_gaps_ended(snapshot, daemon->moments, reader);
	if (collector_totals(daemon->collector, now - bits_min(now, NS_PER_S), &totals) == 0)
		daemon_moment_gaps_driver(snapshot, totals);
}

int daemon_moments_snapshot(struct daemon *daemon, const struct snapshot_request *request,
			    struct snapshot **ret_snapshot)
{
	int r = daemon->moments ? moments_exact(daemon, request, ret_snapshot) : -ENODATA;

	if (r == -ENODATA && !request->buffers)
		r = moments_sums(daemon, request, ret_snapshot);
	if (r < 0)
		return r;
	moments_missing(daemon, request, *ret_snapshot);
	return daemon_moments_reach(daemon, request->asker, &(*ret_snapshot)->moment.reach);
}

static int moments_collect(struct daemon *daemon, struct moment_list *list)
{
	const struct query *query = list->query;
	uint64_t now = clock_ns(CLOCK_REALTIME);
	struct store_reader *reader;
	int r = 0;

	if (daemon->moments && query->to_ns >= moment_cache_from(daemon->moments))
		r = moment_cache_read(daemon->moments,
				      bits_min(query->to_ns, now - MOMENTS_LATE_NS),
				      moment_list_add_recording, list);
	if (r == 0 && daemon_reader(daemon, list->asker, &reader) == 0)
		r = recorder_moments_list(reader, list);
	/* Unless the history has it. */
	if (r == 0 && !moment_list_has_kind(list, "restart", daemon->start_ns))
		r = moment_list_add(list, &(struct moment_list_one){.time_ns = daemon->start_ns,
								    .kind = "restart"});
	return r;
}

int daemon_moments_list(void *context, const struct query *query, const struct query_asker *asker,
			struct emit *json)
{
	CLEANUP(moment_list_deinit) struct moment_list list = {.texts = NULL};
	uint64_t now = clock_ns(CLOCK_REALTIME);
	struct query complete = *query;
	int r;

	if (!complete.to_ns)
		complete.to_ns = now;
	if (!complete.from_ns)
		complete.from_ns = complete.to_ns - bits_min(complete.to_ns, MOMENTS_NS);
	r = moment_list_init(&list, &complete, asker);
	if (r == 0)
		r = moments_collect(context, &list);
	if (r == 0)
		r = daemon_moments_reach(context, asker, &list.reach);
	if (r < 0)
		return r;
	moment_list_finish(&list);
	moment_list_write(json, &list, clock_ns(CLOCK_REALTIME));
	return 0;
}

/* Without a folder for its files there is none, and that is said; everything else goes on. */
int daemon_open_black_box(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct black_box_config box = {
		.state = config->state,
		.keep_s = config->keep_s,
		.time_ns = config->flight.time_s * NS_PER_S,
		.size_max = config->flight.size,
		.symbols = daemon->symbols,
		.loop = daemon->loop,
		.context = daemon,
		.copied = daemon_keep_copied,
	};
	int r;

	if (!config->flight.size)
		return 0;
	r = black_box_new(&daemon->black_box, &box);
	if (r == 0)
		return moment_cache_new(&daemon->moments, daemon->black_box);
	if (r != -ENOMEM) {
		log_writer_print(daemon->log_writer,
				 "ttmemd: no flight recorder: cannot write to %s/flight: %s\n",
				 config->state, user_file_error(r));
		r = 0;
	}
	return r;
}
