/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Incidents as they appear in the books. A book counts repeats in the entry they belong to, so what is
 * new is found by comparing with what was told before; an entry is recognised by what it says.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "book/read/view.h"
#include "daemon/notify/notice.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/tracked.h"
#include "daemon/symbols/symbols-namer.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "store/store.h"

/* More than that are not read to name the call sites of a full device. */
#define RECORDER_FAILURE_BUFFERS_MAX (UINT64_C(1) << 20)

/* Of what an ended process left, so many are looked at: the largest. The counters know the rest. */
#define TYPES_LEAK_BUFFERS_MAX (UINT32_C(1) << 20)

/* Failed allocations of one book that get a paragraph when one of them is new. */
#define RECORDER_EXPLAINED 4u

/* Different incidents of one book. */
#define RECORDER_TOLD_MAX (BOOK_INCIDENT_KINDS * BOOK_INCIDENTS_PER_KIND)

static struct snapshot *recorder_read_once(struct tracked *tracked,
					   const struct snapshot_request *wish, struct view *view,
					   struct namer *namer)
{
	struct snapshot_request request = *wish;
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));

	if (!snapshot)
		return NULL;
	request.namer = namer;
	if (tracked_collect(tracked, &request, view, snapshot) < 0 ||
	    snapshot->process_count == 0 || snapshot_finish(snapshot) < 0)
		return snapshot_free(snapshot);
	/* Who may see it later is decided by who made the book. */
	snapshot->processes[0].user_id = tracked->maker;
	return snapshot;
}

static struct snapshot *recorder_read_named(struct tracked *tracked,
					    const struct snapshot_request *wish, struct view *view,
					    struct symbols *symbols)
{
	bool lives = !tracked_has_ended(tracked);
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = symbols};
	struct snapshot *snapshot;

	if (!symbols)
		return recorder_read_once(tracked, wish, view, NULL);
	symbols_namer_init(&namer, symbols, !lives);
	snapshot = recorder_read_once(tracked, wish, view, &namer.namer);
	if (snapshot && symbols_namer_learn(&namer, SYMBOLS_NAMER_NOTES_MAX)) {
		snapshot_free(snapshot);
		snapshot = recorder_read_once(tracked, wish, view, &namer.namer);
	}
	return snapshot;
}

struct snapshot *recorder_read(struct tracked *tracked, bool buffers, struct view *view,
			       struct symbols *symbols)
{
	const struct snapshot_request wish = {
		.buffers = buffers,
		.incidents = true,
		.limit = buffers ? TYPES_LEAK_BUFFERS_MAX : 0,
		.sorted = true,
		.order = SNAPSHOT_BY_SIZE,
	};

	return recorder_read_named(tracked, &wish, view, symbols);
}

struct snapshot *recorder_read_peaks(struct tracked *tracked, struct view *view,
				     struct symbols *symbols)
{
	static const struct snapshot_request wish = {
		.buffers = true, .at_peak = true, .peak_slots_max = RECORDER_PEAK_SLOTS_MAX};

	return recorder_read_named(tracked, &wish, view, symbols);
}

static uint64_t recorder_text_hash(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

static uint64_t recorder_key(const struct snapshot_incident *incident)
{
	const uint64_t parts[] = {
		recorder_text_hash(incident->kind),
		incident->device,
		incident->type,
		incident->address,
		incident->size,
		recorder_text_hash(incident->second.name),
		recorder_text_hash(incident->second.phase),
		recorder_text_hash(incident->first.name),
		incident->second.stack_key,
		incident->first.stack_key, /* one closing ends the buffers of many */
		incident->space,
	};

	return hash_bytes(parts, sizeof(parts));
}

/* What is known of an incident; a new entry if need be. NULL: no memory, or no library's doing. */
static struct tracked_told *recorder_told(struct tracked *tracked,
					  const struct snapshot_incident *incident)
{
	uint64_t key = recorder_key(incident);
	struct tracked_told *told;

	for (size_t i = 0; i < tracked->told_count; i++) {
		if (tracked->told[i].key == key)
			return &tracked->told[i];
	}
	/* An entry says the same for ever, so there are not more than a book has room for. */
	if (tracked->told_count >= RECORDER_TOLD_MAX)
		return NULL;
	told = array_grow(tracked->told, &tracked->told_capacity, tracked->told_count + 1,
			  sizeof(*told));
	if (!told)
		return NULL; /* told when there is memory again */
	tracked->told = told;
	told += tracked->told_count++;
	*told = (struct tracked_told){.key = key};
	return told;
}

/* Gives the incident its process's place in a snapshot of everybody. False: it is not there any more. */
static bool recorder_move(const struct snapshot_process *process, const struct snapshot *all,
			  struct snapshot_incident *incident)
{
	const struct snapshot_process *found = snapshot_find_process(all, process->id);

	if (found)
		incident->process = (uint32_t)(found - all->processes);
	return found;
}

/* Whether everybody's books may be read because of this user's failure. */
static bool recorder_may_read_all(struct recorder *recorder, uint32_t user, uint64_t now)
{
	bool may;

	pthread_mutex_lock(&recorder->lock);
	may = quota_rate_has(&recorder->failures, user, 0, now);
	pthread_mutex_unlock(&recorder->lock);
	return may;
}

static void recorder_has_read_all(struct recorder *recorder, uint32_t user, uint64_t since)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&recorder->lock);
	quota_rate_pay(&recorder->failures, user, now - since, now);
	pthread_mutex_unlock(&recorder->lock);
}

/*
 * A filter for the device in @row. @number is what the process of the incident calls it: if it has just
 * ended, nothing else tells its card. Some rows of other cards may come along; they are told apart by
 * row later. False: there are too many buffers.
 */
static bool recorder_filter_row(const struct snapshot *all, uint32_t row, uint32_t number,
				struct filter *ret_filter)
{
	const struct snapshot_device *device = &all->devices[row];
	uint64_t buffers = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		buffers = merge_add(buffers, device->memory[type].buffers);
	*ret_filter = (struct filter){
		.device_count = 2,
		.devices = {{.by_id = device->unique_id != 0,
			     .value = device->unique_id ? device->unique_id : device->device},
			    {.value = number}},
	};
	return buffers <= RECORDER_FAILURE_BUFFERS_MAX;
}

/*
 * Who holds what on the device of an incident, now; the incident becomes one of the answer. NULL: no memory, or its
 * process is not there any more.
 */
static struct snapshot *recorder_read_device(struct recorder *recorder, struct tracked *tracked,
					     const struct snapshot_process *process,
					     struct snapshot_incident *incident)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct snapshot_request request = {0};
	/* Even if it has just ended: it is who could not get its memory. */
	const struct collector_wish wish = {.request = &request, .also = tracked};
	struct collector *collector = recorder->config.collector;
	struct snapshot *all = NULL;
	uint32_t row;

	if (collector_totals(collector, clock_ns(CLOCK_MONOTONIC), &all) < 0)
		return NULL;
	if (!recorder_move(process, all, incident)) {
		all = snapshot_free(all);
		if (collector_read(collector, &wish, &all) < 0 ||
		    !recorder_move(process, all, incident))
			return snapshot_free(all);
	}
	if (!snapshot_find_row(all, incident->process, incident->device, &row) ||
	    !recorder_filter_row(all, row, incident->device, &request.filter))
		return all;
	request.buffers = true;
	/* Names as far as they are known: who holds what is true for a moment only. */
	if (recorder->config.symbols) {
		symbols_namer_init(&namer, recorder->config.symbols, false);
		request.namer = &namer.namer;
	}
	all = snapshot_free(all);
	if (collector_read(collector, &wish, &all) < 0 || !recorder_move(process, all, incident))
		return snapshot_free(all);
	return all;
}

/* Explains a failed allocation; the text is the answer's. NULL: no memory, or there is nothing to read. */
static struct snapshot *recorder_explain(struct recorder *recorder, struct tracked *tracked,
					 struct view *view, struct snapshot_incident *incident)
{
	static const struct snapshot_request wish = {.incidents = true,
						     .explained = RECORDER_EXPLAINED,
						     .peak_slots_max = RECORDER_PEAK_SLOTS_MAX};
	struct snapshot *snapshot =
		recorder_read_named(tracked, &wish, view, recorder->config.symbols);

	for (size_t i = 0; snapshot && i < snapshot->incident_count; i++) {
		if (recorder_key(&snapshot->incidents[i]) == recorder_key(incident))
			incident->explanation = snapshot->incidents[i].explanation;
	}
	return snapshot;
}

/* An allocation has failed: who holds what on that device? */
static void recorder_put_failure(struct recorder *recorder, struct tracked *tracked,
				 struct view *view, const struct snapshot *snapshot,
				 const struct snapshot_incident *incident)
{
	struct snapshot_incident moved = *incident;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct snapshot *all = NULL, *explained = NULL;

	if (recorder_may_read_all(recorder, tracked->maker, now)) {
		explained = recorder_explain(recorder, tracked, view, &moved);
		all = recorder_read_device(recorder, tracked,
					   &snapshot->processes[incident->process], &moved);
		recorder_has_read_all(recorder, tracked->maker, now);
	}
	if (all) {
		store_put_failure(recorder->config.store, all, &moved);
	} else {
		moved.process = incident->process;
		store_put_incident(recorder->config.store, snapshot, &moved);
	}
	snapshot_free(all);
	snapshot_free(explained);
}

/*
 * How many of @more are counted. What an older book has from before the daemon ran was counted by the one before, if
 * there was one; people hear of it all the same.
 */
static uint64_t recorder_counted(const struct recorder *recorder, const struct tracked *tracked,
				 const struct snapshot_incident *incident, uint64_t told,
				 uint64_t more)
{
	if (!tracked->is_older || told > 0)
		return more;
	return incident->last_ns >= recorder->since_ns ? 1 : 0;
}

/*
 * People hear of it the first time, and then whenever it has become twice as often: an application that
 * makes one mistake in a loop does not fill the log with it.
 */
static void recorder_tell_incident(struct recorder *recorder, struct tracked *tracked,
				   const struct snapshot *snapshot,
				   const struct snapshot_incident *incident,
				   struct tracked_told *told)
{
	uint64_t more = bits_max(incident->count, 1) - told->count;
	uint64_t counted = recorder_counted(recorder, tracked, incident, told->count, more);
	uint32_t kind = types_find_incident_kind(incident->kind);
	struct notice *notice = NULL;

	/* What happened before we ran is not in the last minute. */
	if (kind == BOOK_INCIDENT_ALLOC_FAILED && counted > 0 && recorder->config.happened)
		recorder->config.happened(recorder->config.context, tracked, false);
	told->count += more;
	if (told->count / 2 >= told->told) {
		notice = notice_new_incident(snapshot, incident, told->count - told->told);
		told->told = told->count;
	}
	recorder_add_news(recorder, kind, counted, notice);
}

void recorder_join(struct recorder *recorder, struct snapshot *snapshot)
{
	struct snapshot *totals =
		recorder->config.collector ? collector_latest(recorder->config.collector) : NULL;

	snapshot_take_joins(totals, snapshot);
	snapshot_free(totals);
}

void recorder_look_into(struct recorder *recorder, struct tracked *tracked, struct view *view)
{
	/* The whole log has to be read to find what closing freed: once, when nothing is added any more. */
	bool ended = tracked_has_ended(tracked);
	const struct snapshot_request wish = {
		.incidents = true, .held_at_close = ended && recorder->config.strict_close};
	struct snapshot *snapshot =
		recorder_read_named(tracked, &wish, view, recorder->config.symbols);

	if (!snapshot)
		return;
	recorder_join(recorder, snapshot);
	for (size_t i = 0; i < snapshot->incident_count; i++) {
		const struct snapshot_incident *incident = &snapshot->incidents[i];
		uint32_t kind = types_find_incident_kind(incident->kind);
		struct tracked_told *told;

		if (kind == TYPES_LEAK)
			continue; /* whoever judges the dead tells more of it */
		told = recorder_told(tracked, incident);
		if (!told || bits_max(incident->count, 1) <= told->count)
			continue;
		recorder_tell_incident(recorder, tracked, snapshot, incident, told);
		if (recorder->config.store && kind == BOOK_INCIDENT_ALLOC_FAILED)
			recorder_put_failure(recorder, tracked, view, snapshot, incident);
		else if (recorder->config.store)
			store_put_incident(recorder->config.store, snapshot, incident);
	}
	snapshot_free(snapshot);
}
