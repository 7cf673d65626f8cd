/* SPDX-License-Identifier: Apache-2.0 */

/* Serves moments of the past: exactly from the flight recorder, else sums from the history. */

#include <errno.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/flight/moment-cache.h"
#include "daemon/registry/collector.h"
#include "daemon/symbols/symbols-namer.h"
#include "model/query.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"

int daemon_moments_reach(void *context, const struct query_asker *asker,
			 struct snapshot_reach *ret_reach)
{
	const struct daemon *daemon = context;

	*ret_reach = (struct snapshot_reach){
		.exact_from_ns = daemon->moments ? moment_cache_from(daemon->moments) : 0,
	};
	return 0;
}

static void moments_cleanup(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

/* As for now: names that must be looked up are there in the second reading. */
static int moments_named(struct daemon *daemon, struct snapshot_request *request,
			 struct snapshot **ret_snapshot)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct snapshot *again;
	int r;

	if (request->buffers && !request->unnamed) {
		symbols_namer_init(&namer, daemon->symbols, false);
		request->namer = &namer.namer;
	}
	r = moment_cache_snapshot(daemon->moments, request, ret_snapshot);
	if (r < 0 || !request->namer || !symbols_namer_learn(&namer, SYMBOLS_NAMER_NOTES_MAX))
		return r;
	if (moment_cache_snapshot(daemon->moments, request, &again) == 0) {
		snapshot_free(*ret_snapshot);
		*ret_snapshot = again;
	}
	return 0;
}

/* The cards are those of now, and which of them a process has, it has had from the beginning. */
static int moments_exact(struct daemon *daemon, const struct snapshot_request *request,
			 struct snapshot **ret_snapshot)
{
	CLEANUP(moments_cleanup) struct snapshot *totals = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct snapshot_request complete = *request;
	int r = collector_totals(daemon->collector, now - bits_min(now, NS_PER_S), &totals);

	if (r < 0)
		return r;
	complete.totals = totals;
	return moments_named(daemon, &complete, ret_snapshot);
}

int daemon_moments_snapshot(struct daemon *daemon, const struct snapshot_request *request,
			    struct snapshot **ret_snapshot)
{
	return daemon->moments ? moments_exact(daemon, request, ret_snapshot) : -ENODATA;
}
