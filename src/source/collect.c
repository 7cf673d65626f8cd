/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books first: what processes report about themselves decides what is counted of the other sources.
 */

#include "source/collect.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/memory/overlap.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/daemon-client/daemon-client.h"
#include "source/host/host.h"
#include "source/host/nodes.h"
#include "source/source.h"

static int collect_openers(void *context, struct snapshot *snapshot,
			   struct snapshot_claim **ret_claims, size_t *ret_count)
{
	/* A daemon that has just failed to answer is not tried again. */
	return daemon_client_outcome(context)
		       ? -ENODATA
		       : daemon_client_openers(context, snapshot, ret_claims, ret_count);
}

/* What the machine adds to its books. */
static int collect_host(const struct collect_sources *sources,
			const struct snapshot_request *request, struct snapshot *snapshot)
{
	const struct nodes_teller teller = {sources->remote, collect_openers};
	struct host_closed closed = {0};
	int r = kernel_collect(sources->proc, sources->knows, sources->known, snapshot);

	if (r == 0)
		r = host_collect(request, sources->cards, sources->remote ? &teller : NULL,
				 snapshot, &closed);
	if (r < 0)
		return r;
	if (closed.regions && sources->remote &&
	    daemon_client_regions(sources->remote, snapshot) == 0)
		closed.regions = 0;
	host_note_closed(closed.regions, snapshot);
	snapshot->closed_regions = closed.regions;
	/* Without a daemon it is not known, which is no reason for a note: few can read it. */
	if (closed.driver_memory && sources->remote && daemon_client_outcome(sources->remote) == 0)
		(void)daemon_client_driver_memory(sources->remote, snapshot);
	if (sources->scan)
		book_note_nothing(sources->scan,
				  sources->remote ? daemon_client_count(sources->remote) : 0,
				  snapshot);
	return 0;
}

static int collect_all(const struct collect_sources *sources,
		       const struct snapshot_request *request, struct snapshot **ret_snapshot)
{
	CLEANUP(snapshot_cleanup)
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	int r = snapshot ? 0 : -ENOMEM;

	if (r == 0)
		r = source_collect(sources->books, request, snapshot);
	if (r == 0 && !sources->is_recorded)
		r = collect_host(sources, request, snapshot);
	if (r < 0)
		return r;
	/* A snapshot is stamped at its end: nothing in it may be newer. */
	snapshot->time_ns = sources->is_recorded ? sources->recorded_ns : clock_ns(CLOCK_REALTIME);
	if (request->limit || sources->is_recorded)
		snapshot_take_joins(request->totals, snapshot);
	r = snapshot_finish(snapshot);
	/* A page has only some of them, and buffers of peaks were live at different times. */
	if (r == 0 && sources->notes_overlaps && request->buffers && !request->limit &&
	    !request->at_peak)
		r = overlap_note_all(snapshot);
	if (r < 0)
		return r;
	*ret_snapshot = cleanup_steal(snapshot);
	return 0;
}

/* Rows are chosen while books are read, but which card a device is, is known only at the end. */
int collect_machine(const struct collect_sources *sources, const struct snapshot_request *request,
		    struct snapshot **ret_snapshot)
{
	static const struct snapshot_request totals_only = {0};
	CLEANUP(snapshot_cleanup) struct snapshot *totals = NULL;
	struct snapshot_request complete = *request;
	int r = 0;

	if (request->buffers && request->filter.device_count && !request->totals) {
		r = collect_all(sources, &totals_only, &totals);
		complete.totals = totals;
	}
	return r < 0 ? r : collect_all(sources, &complete, ret_snapshot);
}
