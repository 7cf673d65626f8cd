/* SPDX-License-Identifier: Apache-2.0 */

/* Sums of call sites from a recording whose chunks contradict each other. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-hostile.h"
#include "recording/testing/testing-recording.h"

#define TEST_EVENTS 20000u
#define TEST_TIMES 20u
#define TEST_PATCH 14u /* bytes of a hostile recording with one patch, see testing-hostile.h */

/* Allocations and frees on the first device, at several times. */
static void test_sum(const char *path, uint64_t ret_sums[TEST_TIMES])
{
	struct recording_moment moment = {.book = RECORDING_NONE, .device = RECORDING_NONE};
	const struct recording_facts *facts;
	struct recording *recording = NULL;
	char why[RECORDING_WHY_SIZE];

	assert(recording_open(&recording, path, why) == 0);
	facts = recording_facts(recording);
	for (uint32_t k = 0; k < TEST_TIMES; k++) {
		struct recording_site *sites = NULL;
		size_t count = 0;

		ret_sums[k] = 0;
		moment.time_ns =
			facts->start_ns + (facts->end_ns - facts->start_ns) * (k + 1) / TEST_TIMES;
		assert(recording_sites(recording, 0, 0, &moment, &sites, &count) == 0);
		for (size_t i = 0; i < count; i++)
			ret_sums[k] += sites[i].allocs + sites[i].frees;
		free(sites);
	}
	recording_free(recording);
}

/* A patch that gives a chunk another last event. */
static void test_misnumber(const struct testing_chunks *good, size_t chunk,
			   uint8_t ret_patch[TEST_PATCH])
{
	const uint64_t last = good->chunks[chunk].head.entry.last - 1;
	const uint8_t head[TEST_PATCH - sizeof(last)] = {
		[1] = (uint8_t)chunk,
		[3] = offsetof(struct recording_entry, last),
		[5] = sizeof(last),
	};

	memcpy(ret_patch, head, sizeof(head));
	memcpy(ret_patch + sizeof(head), &last, sizeof(last));
}

/* Without the keyframe of the same event there is nothing to go on from: all events are added up. */
UNIT(call_sites_without_their_keyframe_are_added_up_from_the_start)
{
	struct testing_chunks good = {0};
	char path[256], hostile[64];
	uint64_t want[TEST_TIMES], sums[TEST_TIMES];
	size_t patched = 0;

	snprintf(path, sizeof(path), "%s/good.ttrec", getenv("TMPDIR"));
	testing_recording_make(path, TEST_EVENTS);
	testing_chunks_read(&good, path);
	assert(testing_chunks_count(&good, RECORDING_SITES) > 0);
	test_sum(path, want);
	assert(want[TEST_TIMES - 1] > 0);
	for (size_t i = 0; i < good.count && i <= UINT8_MAX; i++) {
		uint8_t patch[TEST_PATCH];
		int fd;

		if (good.chunks[i].head.entry.kind != RECORDING_SITES)
			continue;
		test_misnumber(&good, i, patch);
		fd = testing_hostile_new(&good, patch, sizeof(patch));
		snprintf(hostile, sizeof(hostile), "/proc/self/fd/%d", fd);
		test_sum(hostile, sums);
		assert(memcmp(sums, want, sizeof(sums)) == 0);
		close(fd);
		patched++;
	}
	assert(patched > 0);
	testing_chunks_deinit(&good);
}
