/* SPDX-License-Identifier: Apache-2.0 */

/* Recording a book while one allocation fails: the failure is told, or everything is in the file. */

#include "recording/write/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "model/sites/namer.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-recording.h"
#include "recording/testing/testing-replay.h"
#include "source/books/scan.h"

static struct testing_recording world;
static uint64_t events, sites; /* that the file has with enough memory */

static size_t name_it(struct namer *namer, const struct namer_place *place,
		      struct namer_name *ret_names, size_t max)
{
	(void)namer;
	(void)place;
	(void)max;
	ret_names[0] = (struct namer_name){"function", "file", 7};
	return 1;
}

/* A file of the book as it is. */
static int record(struct recorder *recorder)
{
	struct namer namer = {.find = name_it};
	const struct ending ended = {0};
	unsigned int wait_ms;
	int r = recorder_add(recorder, world.scan, false);

	if (r == 0)
		r = recorder_round(recorder, &wait_ms);
	if (r == 0)
		r = recorder_end_book(recorder, world.scan, &ended, &namer);
	return r == 0 ? recorder_finish(recorder, "ended", &namer) : r;
}

static int try_to_record(void *context)
{
	const struct recorder_options options = {0};
	struct recorder *recorder = NULL;
	struct testing_chunks chunks;
	int r;

	(void)context;
	assert(ftruncate(world.fd, 0) == 0 && lseek(world.fd, 0, SEEK_SET) == 0);
	r = recorder_new(&recorder, world.fd, &options);
	if (r == 0)
		r = record(recorder);
	unit_memory_spare();
	if (r == 0) {
		assert(events == 0 || recorder_sums(recorder)->events == events);
		events = recorder_sums(recorder)->events;
		assert(recorder_sums(recorder)->unreadable == 0);
		/* The end and all before it are there. */
		testing_chunks_read(&chunks, unit_path("recording"));
		assert(chunks.torn == 0 && testing_chunks_count(&chunks, RECORDING_END) == 1);
		assert(testing_chunks_count(&chunks, RECORDING_ENDED) == 1);
		assert(sites == 0 || sites == testing_chunks_count(&chunks, RECORDING_SITES));
		sites = testing_chunks_count(&chunks, RECORDING_SITES);
		testing_chunks_deinit(&chunks);
	}
	recorder_free(recorder);
	return r;
}

UNIT(a_book_is_recorded_whole_or_not)
{
	struct book_module module = {.base = 0x400000, .size = 0x10000};
	struct book_frame frame = {.value = 0x100};

	testing_recording_start(&world, unit_path("recording"), 4096, true);
	recorder_drop_book(world.recorder, world.scan);
	module.path = intern_string(world.book.writer, "/a.so", 5);
	frame.module = intern_module(world.book.writer, &module);
	assert(intern_stack_mixed(world.book.writer, &frame, 1, 0));
	testing_recording_act(&world, 500);
	world.scan->alive = false;
	assert(try_to_record(NULL) == 0 && events >= 400 && sites > 0);
	assert(unit_memory_sweep(try_to_record, NULL) > 10);
	testing_recording_deinit(&world);
}
