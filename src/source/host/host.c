/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cards first, because they identify regions; who has them open last, because it matters most for
 * processes about which nothing else is known.
 */

#include "source/host/host.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/host/card-watch.h"
#include "source/host/driver-memory.h"
#include "source/host/driver.h"
#include "source/host/nodes.h"
#include "source/host/region.h"
#include "source/proc/pid-cache.h"

static void host_close(struct proc *proc)
{
	proc_close(proc);
}

static int host_collect_cards(struct card_watch *cards, struct snapshot *snapshot)
{
	uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	bool is_complete;
	int r = driver_collect_cards(snapshot, &is_complete);

	/* From an incomplete list one would conclude that cards are gone. */
	if (r == 0 && cards && is_complete)
		r = card_watch_apply(cards, began_ns, clock_ns(CLOCK_MONOTONIC), snapshot);
	return r;
}

int host_collect(const struct snapshot_request *request, struct card_watch *cards,
		 const struct nodes_teller *teller, struct snapshot *snapshot,
		 struct host_closed *ret_closed)
{
	CLEANUP(host_close) struct proc proc = {.root = -1};
	CLEANUP(pid_cache_cleanup) struct pid_cache *pid_cache = NULL;
	int r;

	*ret_closed = (struct host_closed){0};
	/* A page contains only few processes: the others would look as if they had no books. */
	if (request->limit)
		return 0;
	r = proc_open(&proc);
	if (r < 0 && r != -ENOMEM) {
		snapshot_note(snapshot, "driver and regions of tt-metal cannot be looked at: %s",
			      strerrordesc_np(-r));
		return 0;
	}
	if (r == 0)
		r = pid_cache_new(&pid_cache, &proc, snapshot);
	if (r == 0)
		r = host_collect_cards(cards, snapshot);
	if (r == 0)
		r = region_collect(pid_cache, snapshot, &ret_closed->regions);
	if (r == 0)
		r = driver_collect_pids(pid_cache, snapshot);
	if (r == 0)
		r = nodes_check(pid_cache, teller, snapshot);
	if (r == 0)
		r = driver_memory_collect(snapshot, &ret_closed->driver_memory);
	return r;
}

void host_note_closed(size_t closed, struct snapshot *snapshot)
{
	if (closed)
		snapshot_note(snapshot,
			      "%zu region%s of tt-metal belong%s to other users: look as root, or "
			      "let ttmemd run",
			      closed, closed == 1 ? "" : "s", closed == 1 ? "s" : "");
}
