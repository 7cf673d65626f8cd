/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was live at peaks. Of the living, each new peak is looked at while their books still know it; of
 * the ended, what was live at the highest moments is kept here, in memory. Each user has a share of our
 * time and of that memory: who has the most loses the oldest first.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/hash.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/registry/tracked.h"
#include "model/sites/stack.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "store/store.h"

/* A number that changes whenever a peak of the process does. */
static uint64_t recorder_peaks_signature(const struct snapshot_process *process)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			sum = hash_fold(sum ^ process->parts[i].memory[type].peak, HASH_K1) + i;
	}
	return sum;
}

/* Whether there is more time left than that, of the user and of all. */
static bool recorder_peaks_begin(struct recorder *recorder, uint32_t user, uint64_t reserve)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool may;

	pthread_mutex_lock(&recorder->lock);
	may = quota_rate_has(&recorder->peaks, user, reserve, now) &&
	      quota_rate_has(&recorder->all_peaks, 0, reserve, now);
	pthread_mutex_unlock(&recorder->lock);
	return may;
}

static void recorder_peaks_pay(struct recorder *recorder, uint32_t user, uint64_t start_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&recorder->lock);
	quota_rate_pay(&recorder->peaks, user, now - start_ns, now);
	quota_rate_pay(&recorder->all_peaks, 0, now - start_ns, now);
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_peaks_look(struct recorder *recorder, struct tracked *tracked, struct view *view,
			 const struct snapshot_process *process)
{
	uint64_t signature = recorder_peaks_signature(process), start = clock_ns(CLOCK_MONOTONIC);

	if (signature == tracked->peaks_signature)
		return;
	/* Half of the time is for those that end: theirs is the last chance. */
	if (!recorder_peaks_begin(recorder, tracked->maker, RECORDER_PEAK_BURST_NS / 2))
		return;
	/* If it cannot be read at all, it is tried again with the next peak. */
	if (tracked_keep_peaks(tracked, view) != -EAGAIN)
		tracked->peaks_signature = signature;
	recorder_peaks_pay(recorder, tracked->maker, start);
}

static size_t recorder_peaks_weight(const struct snapshot *snapshot)
{
	size_t bytes = sizeof(*snapshot) + snapshot->peak_count * sizeof(struct snapshot_peak);

	for (size_t i = 0; i < snapshot->process_count; i++)
		bytes += snapshot->processes[i].part_count * sizeof(struct snapshot_part);
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *row = &snapshot->buffers[i];

		bytes += sizeof(*row) + (row->name ? strlen(row->name) : 0) +
			 (row->stack ? row->stack->count * sizeof(struct frame) : 0);
	}
	return bytes;
}

static void recorder_peaks_drop(struct recorder *recorder, size_t index)
{
	struct recorder_ended *ended = &recorder->ended_peaks[index];

	quota_give(&recorder->ended_bytes, ended->maker, ended->bytes);
	snapshot_free(ended->snapshot);
	memmove(ended, ended + 1,
		(recorder->ended_count - index - 1) * sizeof(*recorder->ended_peaks));
	recorder->ended_count--;
}

/* The oldest of the user who has the most bytes. */
static size_t recorder_peaks_victim(const struct recorder *recorder)
{
	uint64_t most = quota_most(&recorder->ended_bytes);
	size_t victim = 0;

	while (victim + 1 < recorder->ended_count &&
	       quota_used(&recorder->ended_bytes, recorder->ended_peaks[victim].maker) != most)
		victim++;
	return victim;
}

/* Takes the snapshot in any case. Called with the lock held. */
static void recorder_peaks_add(struct recorder *recorder, const struct tracked *tracked,
			       struct snapshot *snapshot)
{
	struct recorder_ended *list = array_grow(recorder->ended_peaks, &recorder->ended_capacity,
						 recorder->ended_count + 1, sizeof(*list));
	struct recorder_ended ended = {
		.snapshot = snapshot,
		.maker = tracked->maker,
		.bytes = recorder_peaks_weight(snapshot),
	};

	_Static_assert(sizeof(ended.namespaces) == sizeof(tracked->namespaces), "namespaces");
	memcpy(ended.namespaces, tracked->namespaces, sizeof(ended.namespaces));
	if (!list || ended.bytes > RECORDER_PEAKS_BYTES_MAX / 4 ||
	    quota_add(&recorder->ended_bytes, ended.maker, ended.bytes) < 0) {
		recorder->ended_peaks = list ? list : recorder->ended_peaks;
		snapshot_free(snapshot);
		return;
	}
	recorder->ended_peaks = list;
	list[recorder->ended_count++] = ended;
	while (recorder->ended_count > RECORDER_PEAKS_MAX ||
	       recorder->ended_bytes.used > RECORDER_PEAKS_BYTES_MAX)
		recorder_peaks_drop(recorder, recorder_peaks_victim(recorder));
}

void recorder_peaks_judge(struct recorder *recorder, struct tracked *tracked, struct view *view)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	struct snapshot *snapshot;

	if (!recorder_peaks_begin(recorder, tracked->maker, 0))
		return;
	snapshot = recorder_read_peaks(tracked, view, recorder->config.symbols);
	recorder_peaks_pay(recorder, tracked->maker, start);
	if (!snapshot || snapshot->peak_count == 0) {
		snapshot_free(snapshot);
		return;
	}
	recorder_join(recorder, snapshot);
	snapshot_sort_peaks(snapshot);
	pthread_mutex_lock(&recorder->lock);
	recorder_peaks_add(recorder, tracked, snapshot);
	pthread_mutex_unlock(&recorder->lock);
}

int recorder_peaks_ended(struct recorder *recorder, const struct store_sees *sees,
			 struct snapshot ***ret_list, size_t *ret_count)
{
	struct snapshot **list;

	*ret_count = 0;
	pthread_mutex_lock(&recorder->lock);
	list = calloc(recorder->ended_count + 1, sizeof(struct snapshot *));
	for (size_t i = recorder->ended_count; list && i > 0; i--) {
		const struct recorder_ended *ended = &recorder->ended_peaks[i - 1];

		if (!sees->may_see || sees->may_see(sees->context, ended->maker, ended->namespaces))
			list[(*ret_count)++] = snapshot_ref(ended->snapshot);
	}
	pthread_mutex_unlock(&recorder->lock);
	*ret_list = list;
	return list ? 0 : -ENOMEM;
}

void recorder_peaks_free(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->ended_count; i++)
		snapshot_free(recorder->ended_peaks[i].snapshot);
	free(recorder->ended_peaks);
	quota_deinit(&recorder->ended_bytes);
}
