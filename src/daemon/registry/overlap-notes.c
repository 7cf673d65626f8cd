/* SPDX-License-Identifier: Apache-2.0 */

/* Processes are kept by pid and start, because indices differ from one snapshot to the next. */

#include "daemon/registry/overlap-notes.h"

#include "base/bits.h"
#include "model/snapshot.h"

void overlap_notes_init(struct overlap_notes *notes)
{
	*notes = (struct overlap_notes){0};
	(void)pthread_mutex_init(&notes->lock, NULL); /* cannot fail on Linux */
}

void overlap_notes_deinit(struct overlap_notes *notes)
{
	pthread_mutex_destroy(&notes->lock);
}

void overlap_notes_set(struct overlap_notes *notes, const struct snapshot *snapshot,
		       const struct overlaps *overlaps)
{
	size_t count = overlaps ? bits_min(overlaps->count, OVERLAP_PAIRS_MAX) : 0;

	pthread_mutex_lock(&notes->lock);
	for (size_t i = 0; i < count; i++) {
		const struct overlap *overlap = &overlaps->list[i];

		notes->pairs[i] = (struct overlap_notes_pair){
			.device_uid = snapshot->devices[overlap->row].unique_id,
			.device = snapshot->devices[overlap->row].device,
			.first = snapshot->processes[overlap->first->process].id,
			.second = snapshot->processes[overlap->second->process].id,
		};
	}
	notes->count = count;
	notes->is_cut = overlaps && overlaps->is_cut;
	pthread_mutex_unlock(&notes->lock);
}

static const struct snapshot_device *overlap_notes_device(const struct snapshot *snapshot,
							  const struct overlap_notes_pair *pair)
{
	for (size_t i = 0; i < snapshot->device_count; i++) {
		if (snapshot->devices[i].unique_id == pair->device_uid &&
		    (pair->device_uid || snapshot->devices[i].device == pair->device))
			return &snapshot->devices[i];
	}
	return NULL;
}

void overlap_notes_apply(struct overlap_notes *notes, struct snapshot *snapshot)
{
	size_t found = 0;

	pthread_mutex_lock(&notes->lock);
	for (size_t i = 0; i < notes->count; i++) {
		const struct overlap_notes_pair *pair = &notes->pairs[i];
		const struct snapshot_device *device = overlap_notes_device(snapshot, pair);

		if (!device || !snapshot_find_living(snapshot, pair->first) ||
		    !snapshot_find_living(snapshot, pair->second))
			continue;
		if (found++ < OVERLAP_NOTES_MAX)
			overlap_note(snapshot, device->device, pair->first.pid, pair->second.pid);
	}
	overlap_note_rest(snapshot, found - bits_min(found, OVERLAP_NOTES_MAX), notes->is_cut);
	pthread_mutex_unlock(&notes->lock);
}
