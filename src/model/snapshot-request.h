/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is requested of a snapshot. Without a limit it has the totals of every process, and all
 * buffers that the filter accepts. With a limit it is a page of buffers, or the first of them in
 * some order; then it has only the books that had to be read, so that a page costs no more than its
 * contents.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/filter.h"
#include "model/page-cursor.h"
#include "model/snapshot.h"

struct namer;
struct query_asker;

struct snapshot_request {
	bool buffers;
	bool incidents;
	uint32_t
		explained; /* so many failed allocations of a process, the newest, get a paragraph */
	bool held_at_close; /* incidents of this kind too: what was live when its device was closed */
	bool closed; /* rows of buffers that closing their device ended too; only what logs still have */
	bool ended;   /* buffers of dead processes too, if their books are still held */
	bool at_peak; /* not the live buffers but those of the peaks; see snapshot-peak.h. No limit */
	uint32_t peak_slots_max; /* nothing is told of peaks of larger tables; 0 = any */
	struct filter filter;    /* for buffers and incidents; totals are never filtered */

	size_t limit;             /* on buffers; 0 = all of them */
	bool has_after;           /* for a page: */
	struct page_cursor after; /* where the previous one ended */
	bool sorted;              /* not a page but the first @limit of all; @after is ignored */
	enum snapshot_order order;

	/*
	 * Finished totals of the machine, not older than a moment: they tell which card a process's
	 * device is, for filters by device, and for a page, which knows nothing of cards. NULL = none.
	 */
	const struct snapshot *totals;

	uint64_t at_ns;      /* CLOCK_REALTIME: a moment of the past; 0 = now */
	uint64_t since_ns;   /* CLOCK_MONOTONIC: shared totals are no older; 0 = than now */
	bool is_own;         /* who asks will change the snapshot: totals too must not be shared */
	bool unnamed;        /* who asks does not look at stacks: nobody need look for names */
	struct namer *namer; /* for native frames of stacks; NULL = they stay addresses */

	/*
	 * For buffers: only of processes whose details this client may see; NULL = of all. With
	 * at_ns also for sums: which thread asks, as in query.h.
	 */
	const struct query_asker *asker;
};

/* Whether rows of a process's device are wanted; @declared_id is used where totals do not know it. */
bool snapshot_request_wants(const struct snapshot_request *request,
			    const struct snapshot_process *process, uint32_t device,
			    uint64_t declared_id);

/*
 * Takes over from finished totals which chips the devices of a snapshot are that knows nothing of cards:
 * a page before it is finished, or the book of one process, which may have ended since.
 */
void snapshot_take_joins(const struct snapshot *totals, struct snapshot *snapshot);
