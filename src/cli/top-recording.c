/* SPDX-License-Identifier: Apache-2.0 */

/* What "ttmem top" needs of a recording: where its keys can go, and charts that end at a moment. */

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/session.h"
#include "cli/top-command.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/series.h"

#define TOP_SAMPLES 1024u /* of a chart, from the start of the recording to its end */
#define TOP_PARTS 256u    /* devices of processes that are looked at: the first screen waits */

void top_recording_deinit(struct top_recording *recording)
{
	free(recording->incidents);
	*recording = (struct top_recording){.incidents = NULL};
}

static int top_recording_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static uint64_t top_recording_cut(const struct recording_facts *facts, uint64_t time_ns)
{
	return bits_min(bits_max(time_ns, facts->start_ns), facts->end_ns);
}

/* The session is at the end. */
static int top_recording_incidents(struct top_recording *recording, struct session *session)
{
	const struct recording_facts *facts = recording_facts(session_recording(session));
	const struct snapshot_request request = {.incidents = true, .unnamed = true};
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	int r = session_take(session, &request, &snapshot);

	if (r < 0)
		return r;
	recording->incidents = calloc(snapshot->incident_count + 1, sizeof(uint64_t));
	if (!recording->incidents)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->incident_count; i++)
		recording->incidents[i] = top_recording_cut(facts, snapshot->incidents[i].time_ns);
	qsort(recording->incidents, snapshot->incident_count, sizeof(uint64_t),
	      top_recording_compare);
	recording->keys.incidents = recording->incidents;
	recording->keys.incident_count = snapshot->incident_count;
	return 0;
}

int top_recording_init(struct top_recording *recording, struct session *session)
{
	struct recording *file = session_recording(session);
	const struct recording_facts *facts = recording_facts(file);
	const struct recording_moment end = {
		.time_ns = facts->end_ns, .book = RECORDING_NONE, .device = RECORDING_NONE};
	uint64_t bytes;
	int r;

	*recording = (struct top_recording){.peak = end};
	/* Of a recording without any memory the end is as good as any moment. */
	r = recording_peak(file, &RECORDING_FILTER_ALL, &recording->peak, &bytes);
	if (r == -ENOENT)
		recording->peak = end;
	else if (r < 0)
		return r;
	recording->peak.time_ns = top_recording_cut(facts, recording->peak.time_ns);
	recording->keys = (struct model_recording){
		.start_ns = facts->start_ns,
		.end_ns = facts->end_ns,
		.peak_ns = recording->peak.time_ns,
	};
	r = session_move(session, &end);
	return r < 0 ? r : top_recording_incidents(recording, session);
}

int top_recording_move(struct session *session, const struct recording_moment *peak, uint64_t at_ns)
{
	const struct recording_moment moment = {
		.time_ns = at_ns, .book = RECORDING_NONE, .device = RECORDING_NONE};

	if (session_moment(session)->time_ns == at_ns)
		return 0;
	/* The peak is after a certain event; others may have the same time. */
	return session_move(session, at_ns == peak->time_ns ? peak : &moment);
}

/* Sums of several timelines; all have the same times. */
struct top_sums {
	struct recording_sample samples[TOP_SAMPLES];
	uint64_t values[TOP_SAMPLES][SERIES_LINES];
	unsigned int parts; /* so far */
};

static void top_sums_add(struct top_sums *sums, struct recording *recording, uint32_t pid,
			 uint32_t device)
{
	const struct recording_filter filter = {.pid = pid, .device = device};

	if (sums->parts++ >= TOP_PARTS ||
	    recording_timeline(recording, &filter, NULL, sums->samples, TOP_SAMPLES) < 0)
		return; /* then the chart lacks it */
	for (size_t i = 0; i < TOP_SAMPLES; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			uint32_t folded = types_folded(type);
			uint64_t *value =
				&sums->values[i][folded == TYPES_DRAM ? SERIES_DRAM : SERIES_L1];

			if (folded == TYPES_DRAM || folded == TYPES_L1)
				*value = merge_add(*value, sums->samples[i].high[type]);
		}
	}
}

/* Gives what was before the moment, and begins anew. @until_ns: the moment, CLOCK_MONOTONIC. */
static void top_sums_give(struct top_sums *sums, const struct series_key *key, uint64_t moment_ns,
			  uint64_t until_ns, struct series_set *set)
{
	for (size_t i = 0; i < TOP_SAMPLES; i++) {
		uint64_t time_ns = sums->samples[i].time_ns;
		struct series_sample sample = {
			.values = {sums->values[i][SERIES_DRAM], sums->values[i][SERIES_L1]}};

		sums->values[i][SERIES_DRAM] = sums->values[i][SERIES_L1] = 0;
		if (time_ns >= moment_ns || moment_ns - time_ns >= until_ns)
			continue;
		sample.time_ns = until_ns - (moment_ns - time_ns);
		(void)series_add(set, key, &sample); /* else it is missing */
	}
}

/* All that is held on a device, by whatever number its processes call it. */
static void top_sums_add_device(struct top_sums *sums, struct recording *recording,
				const struct snapshot *snapshot, size_t row)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			if (process->parts[k].row == row)
				top_sums_add(sums, recording, process->id.pid,
					     process->parts[k].device);
		}
	}
}

int top_recording_charts(struct session *session, const struct snapshot *snapshot,
			 uint64_t until_ns, struct series_set *set)
{
	struct recording *recording = session_recording(session);
	CLEANUP_FREE struct top_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct series_key key = model_process_key(process);

		for (size_t k = 0; k < process->part_count; k++)
			top_sums_add(sums, recording, process->id.pid, process->parts[k].device);
		top_sums_give(sums, &key, snapshot->time_ns, until_ns, set);
	}
	sums->parts = 0;
	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct series_key key = model_device_key(&snapshot->devices[i]);

		top_sums_add_device(sums, recording, snapshot, i);
		top_sums_give(sums, &key, snapshot->time_ns, until_ns, set);
	}
	return 0;
}
