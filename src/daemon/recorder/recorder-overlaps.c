/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two processes at the same place of one device. Only their books together show it, so the buffers
 * of all devices that several processes use are read and compared: when their counters have
 * changed, and for at most a tenth of the time.
 *
 * Books are read one after another. A process may take over what another one has just freed, and
 * then one search shows both as holders. So a pair is reported when a second search shows it too.
 */

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "daemon/notify/notice.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/overlap-notes.h"
#include "daemon/symbols/symbols-namer.h"
#include "model/filter.h"
#include "model/memory/overlap.h"
#include "model/sites/stack.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/proc/namespaces.h"
#include "store/store.h"

#define RECORDER_OVERLAPS_REST 10u  /* after a search there is none for so many times as long */
#define RECORDER_OVERLAPS_MAX 4096u /* pairs that are remembered as reported */

/* The shared devices; more than a filter holds: all devices. */
static void recorder_overlaps_filter(const struct snapshot *snapshot, const bool *shared,
				     struct filter *filter)
{
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		if (!shared[i])
			continue;
		if (filter->device_count == FILTER_DEVICES_MAX) {
			filter->device_count = 0;
			return;
		}
		filter->devices[filter->device_count++] = (struct filter_device){
			.by_id = device->unique_id != 0,
			.value = device->unique_id ? device->unique_id : device->device,
		};
	}
}

/* Everybody's buffers on shared devices. NULL: no memory. */
static struct snapshot *recorder_overlaps_read(struct recorder *recorder,
					       const struct snapshot *totals)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct snapshot_request request = {.buffers = true};
	const struct collector_wish wish = {.request = &request};
	CLEANUP_FREE bool *shared = NULL;
	struct snapshot *all = NULL;
	bool any;

	shared = overlap_shared_rows(totals, &any);
	if (!shared)
		return NULL;
	recorder_overlaps_filter(totals, shared, &request.filter);
	/* Names as far as they are known: few of these stacks are ever shown. */
	if (recorder->config.symbols) {
		symbols_namer_init(&namer, recorder->config.symbols, false);
		request.namer = &namer.namer;
	}
	return collector_read(recorder->config.collector, &wish, &all) < 0 ? NULL : all;
}

static uint64_t recorder_overlaps_text(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

/* What the store takes for the call site: a stack, else names. */
static uint64_t recorder_overlaps_site(const struct overlap *overlap)
{
	const struct stack *stack =
		overlap->second->stack ? overlap->second->stack : overlap->first->stack;
	const uint64_t names[] = {
		recorder_overlaps_text(overlap->first->name),
		recorder_overlaps_text(overlap->first->phase),
		recorder_overlaps_text(overlap->second->name),
		recorder_overlaps_text(overlap->second->phase),
	};
	char line[STACK_LINE];

	return stack ? recorder_overlaps_text(stack_line(stack, line, sizeof(line)))
		     : hash_bytes(names, sizeof(names));
}

static struct recorder_overlap recorder_overlaps_new(const struct snapshot *snapshot,
						     const struct overlap *overlap)
{
	const struct snapshot_process *first = &snapshot->processes[overlap->first->process];
	const struct snapshot_process *second = &snapshot->processes[overlap->second->process];
	const uint64_t parts[] = {
		second->id.pid,
		second->id.start_ticks,
		overlap->second->device,
		overlap->second->type,
		overlap->second->size,
		overlap->address,
		recorder_overlaps_site(overlap),
	};

	return (struct recorder_overlap){
		.processes = {first->id, second->id},
		.address = overlap->address,
		.key = hash_bytes(parts, sizeof(parts)),
	};
}

/* The same two processes, in either order: which of two buffers is older may change. */
static bool recorder_overlaps_is(const struct recorder_overlap *a, const struct recorder_overlap *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (process_id_equal(a->processes[0], b->processes[i]) &&
		    process_id_equal(a->processes[1], b->processes[1 - i]))
			return true;
	}
	return false;
}

static struct recorder_overlap *recorder_overlaps_find(const struct recorder *recorder,
						       const struct recorder_overlap *pair)
{
	for (size_t i = 0; i < recorder->overlap_count; i++) {
		if (recorder_overlaps_is(&recorder->overlaps[i], pair))
			return &recorder->overlaps[i];
	}
	return NULL;
}

/* What is known about a pair, a new entry if need be. NULL: it cannot be remembered. */
static struct recorder_overlap *recorder_overlaps_get(struct recorder *recorder,
						      const struct recorder_overlap *pair)
{
	struct recorder_overlap *entry = recorder_overlaps_find(recorder, pair);

	if (entry)
		return entry;
	if (recorder->overlap_count >= RECORDER_OVERLAPS_MAX)
		return NULL;
	entry = array_grow(recorder->overlaps, &recorder->overlap_capacity,
			   recorder->overlap_count + 1, sizeof(*entry));
	if (!entry)
		return NULL;
	recorder->overlaps = entry;
	entry += recorder->overlap_count++;
	*entry = *pair;
	entry->address = ~pair->address; /* that no search has shown yet */
	return entry;
}

/* Pairs of which one has exited do not come back. */
static void recorder_overlaps_forget(struct recorder *recorder, const struct snapshot *totals)
{
	size_t kept = 0;

	for (size_t i = 0; i < recorder->overlap_count; i++) {
		struct recorder_overlap entry = recorder->overlaps[i];

		if (snapshot_find_living(totals, entry.processes[0]) &&
		    snapshot_find_living(totals, entry.processes[1]))
			recorder->overlaps[kept++] = entry;
	}
	recorder->overlap_count = kept;
}

/*
 * The store takes what has the same process, call site and place for one incident, unless its count
 * is higher. A third process at the same place is another one.
 */
static uint64_t recorder_overlaps_times(const struct recorder *recorder, uint64_t key)
{
	uint64_t times = 0;

	for (size_t i = 0; i < recorder->overlap_count; i++)
		times += recorder->overlaps[i].is_told && recorder->overlaps[i].key == key;
	return times;
}

static struct snapshot_party recorder_overlaps_party(const struct snapshot_buffer *buffer,
						     bool is_detailed)
{
	return (struct snapshot_party){
		.known = true,
		.time_ns = buffer->born_ns,
		.size = buffer->size,
		.thread = buffer->thread,
		.name = is_detailed ? buffer->name : NULL,
		.phase = is_detailed ? buffer->phase : NULL,
		.stack = is_detailed ? buffer->stack : NULL,
	};
}

/* Whether who may see one of them as its own may see the other. */
static bool recorder_overlaps_is_one_user(const struct snapshot_process *one,
					  const struct snapshot_process *other)
{
	return one->maker_id == other->maker_id &&
	       namespaces_is_same(one->namespaces, other->namespaces);
}

static void recorder_overlaps_tell(struct recorder *recorder, const struct snapshot *all,
				   const struct overlap *overlap, uint64_t key)
{
	const struct snapshot_buffer *first = overlap->first, *second = overlap->second;
	/* Whoever may see the incident is its process's user, who must not see another's names. */
	bool is_one_user = recorder_overlaps_is_one_user(&all->processes[first->process],
							 &all->processes[second->process]);
	const struct snapshot_incident incident = {
		.kind = types_incident_kind(TYPES_OVERLAP),
		.process = second->process,
		.device = second->device,
		.type = second->type,
		.has_address = true,
		.address = overlap->address,
		.size = second->size,
		.largest_free = UINT64_MAX,
		.count = recorder_overlaps_times(recorder, key),
		.time_ns = second->born_ns,
		.last_ns = second->born_ns,
		.first = recorder_overlaps_party(first, is_one_user),
		.second = recorder_overlaps_party(second, true),
		.has_other = true,
		.other = first->process,
	};

	recorder_add_news(recorder, TYPES_OVERLAP, 1, notice_new_incident(all, &incident, 1));
	if (recorder->config.store)
		store_put_incident(recorder->config.store, all, &incident);
}

/* Reports the pair if this is the second search that shows it. */
static void recorder_overlaps_see(struct recorder *recorder, const struct snapshot *all,
				  const struct overlap *overlap)
{
	const struct recorder_overlap pair = recorder_overlaps_new(all, overlap);
	struct recorder_overlap *entry = recorder_overlaps_get(recorder, &pair);
	bool is_same;

	if (!entry)
		return;
	is_same = entry->address == pair.address;
	entry->address = pair.address;
	entry->is_seen = true;
	if (entry->is_told || !is_same)
		return;
	*entry = pair;
	entry->is_seen = entry->is_told = true;
	recorder_overlaps_tell(recorder, all, overlap, pair.key);
}

static bool recorder_overlaps_is_told(const struct recorder *recorder, const struct snapshot *all,
				      const struct overlap *overlap)
{
	const struct recorder_overlap pair = recorder_overlaps_new(all, overlap);
	const struct recorder_overlap *entry = recorder_overlaps_find(recorder, &pair);

	return entry && entry->is_told;
}

/* False: another search has to show some of it again. */
static bool recorder_overlaps_compare(struct recorder *recorder, const struct snapshot *all)
{
	CLEANUP(overlap_deinit) struct overlaps overlaps = OVERLAPS_NULL;
	size_t kept = 0, known = 0;
	bool is_done = true;

	if (overlap_find(all, &overlaps) < 0)
		return true; /* no memory; perhaps when they have changed again */
	for (size_t i = 0; i < recorder->overlap_count; i++)
		recorder->overlaps[i].is_seen = false;
	for (size_t i = 0; i < overlaps.count; i++)
		recorder_overlaps_see(recorder, all, &overlaps.list[i]);
	for (size_t i = 0; i < recorder->overlap_count; i++) {
		struct recorder_overlap entry = recorder->overlaps[i];

		is_done = is_done && (entry.is_told || !entry.is_seen);
		if (entry.is_told || entry.is_seen)
			recorder->overlaps[known++] = entry;
	}
	recorder->overlap_count = known;
	for (size_t i = 0; i < overlaps.count; i++) {
		if (recorder_overlaps_is_told(recorder, all, &overlaps.list[i]))
			overlaps.list[kept++] = overlaps.list[i];
	}
	overlaps.count = kept;
	overlap_notes_set(collector_overlaps(recorder->config.collector), all, &overlaps);
	return is_done;
}

void recorder_find_overlaps(struct recorder *recorder, const struct snapshot *totals)
{
	static const struct overlaps too_many = {.is_cut = true};
	struct overlap_notes *notes = collector_overlaps(recorder->config.collector);
	CLEANUP(snapshot_cleanup) struct snapshot *all = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), spent, signature, count;

	recorder_overlaps_forget(recorder, totals);
	count = overlap_count(totals, &signature);
	if ((signature == recorder->overlaps_signature && !recorder->overlaps_again) ||
	    now < recorder->overlaps_after)
		return;
	recorder->overlaps_again = false;
	recorder->overlaps_signature = signature;
	if (count == 0 || count > OVERLAP_BUFFERS_MAX) {
		overlap_notes_set(notes, totals, count ? &too_many : NULL);
		return;
	}
	all = recorder_overlaps_read(recorder, totals);
	recorder->overlaps_again = all && !recorder_overlaps_compare(recorder, all);
	spent = clock_ns(CLOCK_MONOTONIC) - now;
	recorder->overlaps_after = now + spent + RECORDER_OVERLAPS_REST * spent;
}
