/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hostile recordings (recording/testing/testing-hostile.h describes the input). Whatever they contain,
 * every question is answered or refused, and nothing crashes or hangs.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "model/sites/namer.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/read/recording-source.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-hostile.h"
#include "recording/testing/testing-recorder.h"
#include "source/collect.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_SAMPLES 16u

/* A recording with a bit of everything; its bytes in memory. */
static struct testing_chunks *fuzz_new(void)
{
	struct testing_chunks *chunks = calloc(1, sizeof(*chunks));
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct testing_book book;
	char folder[] = "/tmp/recording-fuzz-XXXXXX";

	assert(chunks && mkdtemp(folder));
	assert(setenv("TMPDIR", folder, 1) == 0);
	testing_book_open(&book);
	testing_recorder_init(&recorder);
	testing_recorded_init(&recorded, &recorder, &book, 77);
	for (uint32_t i = 0; i < 60; i++) {
		struct testing_op op = {
			.kind = i % 3 == 2 ? TESTING_FREE : TESTING_ALLOC,
			.device = i % 2,
			.buffer = testing_buffer(i % 3, 0x1000 * (i % 7), 64 + i),
		};

		op.buffer.name = i % TESTING_TEXTS;
		testing_op_do(book.writer, &op);
		if (i % 20 != 19)
			continue;
		writer_mark(book.writer, intern_string(book.writer, "mark", 4), 1, 0);
		if (i == 19)
			testing_recorded_bytes(&recorded);
		for (uint32_t device = 0; device < 2; device++) {
			if (i == 39 && device == 1) {
				testing_recorded_gap(&recorded, device);
				continue;
			}
			testing_recorded_events(&recorded, device, 1000);
			testing_recorded_keyframe(&recorded, device);
		}
	}
	testing_recorded_json(
		&recorded, RECORDING_NAMES,
		"{\"files\":[{\"path\":\"a\",\"build_id\":\"\",\"names\":[{\"address\":1,"
		"\"frames\":[{\"function\":\"f\",\"file\":null,\"line\":1}]}]}]}");
	testing_recorded_ended(&recorded, 0);
	testing_recorder_end(&recorder);
	testing_chunks_read(chunks, recorder.path);
	unlink(recorder.path);
	rmdir(folder);
	testing_recorded_deinit(&recorded);
	testing_recorder_deinit(&recorder);
	testing_book_deinit(&book);
	return chunks;
}

static int fuzz_event(void *context, const struct recording_event *event)
{
	uint64_t *count = context;

	assert(!event->event != !event->gap && event->hot);
	return ++*count > 100000;
}

/* A source as every command uses it. */
static void fuzz_collect(struct recording *recording, const struct recording_moment *moment,
			 bool at_peak)
{
	const struct snapshot_request request = {.buffers = true,
						 .incidents = true,
						 .ended = true,
						 .at_peak = at_peak,
						 .namer = recording_namer(recording)};
	struct collect_sources sources;
	struct snapshot *snapshot = NULL;
	struct source *source = NULL;

	if (recording_source_new(&source, recording, moment) < 0)
		return;
	recording_source_sources(source, &sources);
	if (collect_machine(&sources, &request, &snapshot) == 0)
		snapshot_free(snapshot);
	source_free(source);
}

static bool fuzz_has(void *context, size_t set, const struct book_record *record)
{
	return record->stack % 2;
}

static void fuzz_ask(struct recording *recording, size_t which)
{
	static const char *const texts[] = {"start", "end",     "peak",   "failed",
					    "mark",  "weights", "0.00001"};
	struct recording_sample samples[FUZZ_SAMPLES];
	struct recording_moment moment;
	struct recording_site *sites = NULL;
	char why[RECORDING_WHY_SIZE];
	uint64_t count = 0;
	size_t site_count;
	const struct recording_sets sets = {.count = 1, .has = fuzz_has};
	struct recording_most most[BOOK_TYPES];
	bool is_exact;

	(void)recording_timeline(recording, &RECORDING_FILTER_ALL, NULL, samples, FUZZ_SAMPLES);
	(void)recording_walk(recording, &RECORDING_FILTER_ALL, NULL, NULL, fuzz_event, &count);
	/* Two of them are enough for one input: a state is much work. */
	for (size_t i = 0; i < 2; i++) {
		const char *text = texts[(which + i) % ARRAY_SIZE(texts)];

		if (recording_find(recording, text, &RECORDING_FILTER_ALL, &moment, why) < 0)
			continue;
		fuzz_collect(recording, &moment, which % 2);
		if (recording_sites(recording, 0, 1, &moment, &sites, &site_count) == 0)
			free(sites);
		(void)recording_most(recording, 0, 1, &sets, most, &is_exact);
	}
	moment = (struct recording_moment){.time_ns = UINT64_MAX, .device = 0, .number = 7};
	fuzz_collect(recording, &moment, false);
	(void)recording_walk(recording, &RECORDING_FILTER_ALL, &moment, NULL, fuzz_event, &count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct testing_chunks *good;
	struct recording *recording = NULL;
	char path[64], why[RECORDING_WHY_SIZE];
	int fd;

	if (!good)
		good = fuzz_new();
	fd = testing_hostile_new(good, data, size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (recording_open(&recording, path, why) == 0)
		fuzz_ask(recording, size);
	recording_free(recording);
	close(fd);
	return 0;
}
