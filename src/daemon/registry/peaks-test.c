/* SPDX-License-Identifier: Apache-2.0 */

/* A peak never falls. */

#include "daemon/registry/peaks.h"

#include "base/testing/unit.h"
#include "model/snapshot.h"

#define CARD UINT64_C(7)

/*
 * A machine with one device that these processes use; a peak of 0 is not known. The driver has it
 * if its id is CARD.
 */
static uint64_t peak_of(struct peaks *peaks, uint64_t id, uint64_t time_ns,
			const uint64_t (*processes)[2], size_t count)
{
	struct snapshot *snapshot = snapshot_new(time_ns);
	uint64_t found;

	assert(snapshot);
	for (size_t i = 0; i < count; i++) {
		const struct snapshot_process identity = {.id.pid = (uint32_t)i + 1,
							  .comm = "c",
							  .user = "u",
							  .source = "book",
							  .alive = true};
		struct snapshot_part *part;
		uint32_t index;

		assert(snapshot_add_process(snapshot, &identity, &index) == 0);
		part = snapshot_part(snapshot, index, 0);
		assert(part);
		part->facts.unique_id = id;
		part->memory[0].used = processes[i][0];
		part->memory[0].peak = processes[i][1];
		part->memory[0].peak_is_unknown = processes[i][1] == 0;
	}
	if (id == CARD)
		assert(snapshot_add_card(snapshot, &(struct snapshot_card){.unique_id = id}) == 0);
	assert(snapshot_finish(snapshot) == 0 && snapshot->device_count == 1);
	peaks_apply(peaks, snapshot);
	found = snapshot->devices[0].memory[0].peak_is_unknown
			? UINT64_MAX
			: snapshot->devices[0].memory[0].peak;
	snapshot_free(snapshot);
	return found;
}

static uint64_t peak(struct peaks *peaks, const uint64_t (*processes)[2], size_t count)
{
	return peak_of(peaks, CARD, 1, processes, count);
}

UNIT(a_peak_is_the_most_that_was_ever_seen_or_told)
{
	struct peaks peaks;

	peaks_init(&peaks);
	assert(peak(&peaks, NULL, 0) == UINT64_MAX);
	/* A book and a region, which knows no peak. */
	assert(peak(&peaks, (const uint64_t[][2]){{50, 60}, {70, 0}}, 2) == 120);
	assert(peak(&peaks, (const uint64_t[][2]){{50, 60}, {10, 0}}, 2) == 120);
	/* One process is left, and knows its own. */
	assert(peak(&peaks, (const uint64_t[][2]){{50, 60}}, 1) == 120);
	assert(peak(&peaks, (const uint64_t[][2]){{50, 200}}, 1) == 200);
	assert(peak(&peaks, NULL, 0) == 200);
	peaks_deinit(&peaks);
}

UNIT(a_peak_stays_when_the_device_gets_an_id)
{
	struct peaks peaks;

	peaks_init(&peaks);
	assert(peak_of(&peaks, 0, 1, (const uint64_t[][2]){{50, 0}, {70, 0}}, 2) == 120);
	assert(peak(&peaks, (const uint64_t[][2]){{50, 60}}, 1) == 120);
	assert(peak(&peaks, NULL, 0) == 120);
	peaks_deinit(&peaks);
}

UNIT(made_up_ids_leave_room_for_the_cards)
{
	static const uint64_t one[][2] = {{50, 0}}, less[][2] = {{10, 0}};
	struct peaks peaks;
	uint64_t later = 1 + PEAKS_KEEP_NS + 1;

	peaks_init(&peaks);
	for (uint64_t id = 1000; id < 1000 + 2 * PEAKS_MAX; id++)
		(void)peak_of(&peaks, id, 1, one, 1);
	assert(peaks.count <= PEAKS_MAX);
	assert(peak(&peaks, one, 1) == 50 && peak(&peaks, less, 1) == 50);
	/* Once they are gone, others that the driver does not have get room too. */
	assert(peak_of(&peaks, 999, later, one, 1) == 50);
	assert(peak_of(&peaks, 999, later, less, 1) == 50);
	peaks_deinit(&peaks);
}
