/* SPDX-License-Identifier: Apache-2.0 */

/* Names of frames, written by a recorder that asks a namer of ours, and read again. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "model/sites/namer.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-recorder.h"
#include "recording/testing/testing-recording.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"

#define FRAMES 3u

static struct testing_recording written;
static unsigned int asked;

/* Two names for even addresses, the outer one without a file; none for those that are divided by 7. */
static size_t name_it(struct namer *namer, const struct namer_place *place,
		      struct namer_name *ret_names, size_t max)
{
	static char function[64], file[64];

	(void)namer;
	assert(max >= 2 && place->process.pid == (written.scan->alive ? 1234 : 0));
	asked++;
	if (place->address % 7 == 0)
		return 0;
	snprintf(function, sizeof(function), "f%" PRIu64, place->address);
	snprintf(file, sizeof(file), "%s.c", place->path);
	ret_names[0] = (struct namer_name){function, file, (uint32_t)place->address};
	ret_names[1] = (struct namer_name){.function = "outer"};
	return place->address % 2 == 0 ? 2 : 1;
}

static struct namer ours = {.find = name_it};
static struct recording *recording;

static uint32_t module_of(const char *path, uint8_t id_length)
{
	struct book_module module = {.base = 0x400000, .size = 0x10000};

	module.path = intern_string(written.book.writer, path, strlen(path));
	module.build_id_length = id_length;
	for (uint8_t i = 0; i < id_length; i++)
		module.build_id[i] = (uint8_t)(0xa0 + i);
	return intern_module(written.book.writer, &module);
}

/* A stack whose frames return to just after these addresses. */
static void stack(uint32_t module, uint64_t first)
{
	struct book_frame frames[FRAMES];

	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i] = (struct book_frame){.value = first + i + 1, .module = module};
	assert(intern_stack_mixed(written.book.writer, frames, FRAMES, 0));
}

/* Two files, one of them with a build id; addresses 20 to 22 are in both. */
static void begin(void)
{
	uint32_t a, b;

	testing_recording_start(&written, unit_path("recording"), 4096, true);
	a = module_of("/a.so", 3);
	b = module_of("/b.so", 0);
	stack(a, 20);
	stack(b, 20);
	stack(a, 10);
	stack(a, 21); /* some are asked for again */
	testing_recording_act(&written, 100);
}

static void end_with(struct namer *namer)
{
	char why[RECORDING_WHY_SIZE];

	assert(recorder_finish(written.recorder, "ended", namer) == 0);
	assert(recording_open(&recording, unit_path("recording"), why) == 0);
}

static void end(void)
{
	recording = recording_free(recording);
	testing_recording_deinit(&written);
}

static const uint8_t id[] = {0xa0, 0xa1, 0xa2};

/* How many names a place has; at most @max are wanted. */
static size_t find(const char *path, uint32_t id_length, uint64_t address,
		   struct namer_name *ret_names, size_t max)
{
	struct namer *namer = recording_namer(recording);
	const struct namer_place place = {
		.path = path,
		.build_id = id,
		.build_id_length = id_length,
		.address = address,
		.book = scan_book_number((struct book_id){.inode = 1},
					 recording_owner(recording, 0)->book.start_ticks),
	};

	assert(namer && namer == recording_namer(recording));
	return namer->find(namer, &place, ret_names, max);
}

UNIT(names_are_those_of_the_namer)
{
	struct namer_name names[NAMER_NAMES_MAX];

	begin();
	end_with(&ours);
	assert(asked == 10); /* 20 to 23 and 10 to 12 in one file, 20 to 22 in the other */
	assert(find("/a.so", 3, 20, names, 16) == 2);
	assert(strcmp(names[0].function, "f20") == 0 && names[0].line == 20);
	assert(strcmp(names[0].file, "/a.so.c") == 0);
	assert(strcmp(names[1].function, "outer") == 0 && !names[1].file && names[1].line == 0);
	assert(find("/b.so", 0, 20, names, 16) == 2 && strcmp(names[0].file, "/b.so.c") == 0);
	assert(find("/a.so", 3, 23, names, 16) == 1 && strcmp(names[0].function, "f23") == 0);
	assert(find("/a.so", 3, 10, names, 1) == 1 && strcmp(names[0].function, "f10") == 0);
	assert(find("/a.so", 3, 10, names, 0) == 0);
	end();
}

UNIT(other_places_have_no_names)
{
	struct namer_name names[NAMER_NAMES_MAX];

	begin();
	end_with(&ours);
	assert(find("/a.so", 3, 21, names, 16) == 0); /* the namer had none */
	assert(find("/a.so", 3, 24, names, 16) == 0 && find("/b.so", 0, 10, names, 16) == 0);
	assert(find("/a.so", 2, 20, names, 16) == 0 && find("/a.so", 0, 20, names, 16) == 0);
	assert(find("/b.so", 3, 20, names, 16) == 0 && find("/c.so", 3, 20, names, 16) == 0);
	assert(find(NULL, 0, 20, names, 16) == 0);
	end();
}

UNIT(without_a_namer_there_are_no_names)
{
	struct namer_name names[NAMER_NAMES_MAX];
	struct testing_chunks chunks;

	begin();
	end_with(NULL);
	testing_chunks_read(&chunks, unit_path("recording"));
	assert(testing_chunks_count(&chunks, RECORDING_NAMES) == 0);
	testing_chunks_deinit(&chunks);
	assert(find("/a.so", 3, 20, names, 16) == 0 && asked == 0);
	end();
}

/* They are written once, however often they are asked for. */
UNIT(names_are_written_once_for_each_stack)
{
	struct testing_chunks chunks;
	const struct ending ended = {0};
	const struct testing_chunk *chunk;

	begin();
	written.scan->alive = false;
	assert(recorder_end_book(written.recorder, written.scan, &ended, &ours) == 0);
	end_with(&ours);
	assert(asked == 10);
	testing_chunks_read(&chunks, unit_path("recording"));
	assert(testing_chunks_count(&chunks, RECORDING_NAMES) == 1);
	chunk = testing_chunks_find(&chunks, RECORDING_NAMES, 0);
	assert(chunk->head.entry.count == 8); /* 21 has none, in both files */
	testing_chunks_deinit(&chunks);
	end();
}

/* Far more stacks than one step of the tour takes. */
UNIT(every_stack_gets_its_names)
{
	struct namer_name names[NAMER_NAMES_MAX];
	char text[32];
	uint32_t module;

	begin();
	module = module_of("/c.so", 0);
	for (uint64_t i = 0; i < 1000; i++)
		stack(module, 1000 + FRAMES * i);
	end_with(&ours);
	for (uint64_t i = 1000; i < 4000; i++) {
		snprintf(text, sizeof(text), "f%" PRIu64, i);
		assert(find("/c.so", 0, i, names, 16) == (i % 7 == 0 ? 0 : 2 - i % 2));
		assert(i % 7 == 0 || strcmp(names[0].function, text) == 0);
	}
	end();
}

static int read_names(void *context)
{
	struct namer_name names[NAMER_NAMES_MAX];
	struct recording *opened = NULL;
	char why[RECORDING_WHY_SIZE];
	struct namer *namer;
	size_t count = 0;

	(void)context;
	if (recording_open(&opened, unit_path("recording"), why) < 0)
		return -ENOMEM;
	recording = opened;
	namer = recording_namer(opened);
	if (namer)
		count = find("/b.so", 0, 22, names, 16);
	assert(count == 0 ||
	       (count == 2 && (!names[0].function || !strcmp(names[0].function, "f22"))));
	recording_free(opened);
	return count > 0 ? 0 : -ENOMEM;
}

UNIT(without_memory_frames_have_no_names)
{
	begin();
	end_with(&ours);
	recording_free(recording);
	assert(unit_memory_sweep(read_names, NULL) > 8);
	recording = NULL;
	end();
}

/* A file with names that anybody may have written. */
static struct recording *with_names(const char *json)
{
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct testing_book book;
	struct recording *opened;
	char why[RECORDING_WHY_SIZE];

	testing_recorder_init(&recorder);
	testing_book_open(&book);
	testing_recorded_init(&recorded, &recorder, &book, 77);
	testing_recorded_bytes(&recorded);
	testing_recorded_json(&recorded, RECORDING_NAMES, json);
	testing_recorder_end(&recorder);
	assert(recording_open(&opened, recorder.path, why) == 0);
	testing_recorded_deinit(&recorded);
	testing_book_deinit(&book);
	testing_recorder_deinit(&recorder);
	return opened;
}

UNIT(names_that_make_no_sense_are_left_out)
{
	struct namer_name names[NAMER_NAMES_MAX + 4];

	recording = with_names(
		"{\"files\":[7,{\"names\":8},{\"path\":\"/a.so\",\"names\":[9,{\"address\":1},"
		"{\"address\":2,\"frames\":[]},{\"address\":3,\"frames\":[{}]},"
		"{\"address\":4,\"frames\":[{\"function\":5,\"file\":\"x.c\",\"line\":\"a\"},7,"
		"{\"function\":\"g\",\"line\":6}]}]},{\"names\":[{\"address\":5,\"frames\":[{}]}]}]"
		"}");
	assert(find("/a.so", 0, 1, names, 16) == 0 && find("/a.so", 0, 2, names, 16) == 0);
	assert(find("/a.so", 0, 3, names, 16) == 1 && !names[0].function && !names[0].file);
	assert(find("/a.so", 0, 4, names, 16) == 3 && !names[0].function && names[0].line == 0);
	assert(strcmp(names[0].file, "x.c") == 0 && !names[1].file);
	assert(strcmp(names[2].function, "g") == 0 && names[2].line == 6);
	assert(find(NULL, 0, 5, names, 16) == 1);
	recording_free(recording);
	recording = with_names("no JSON");
	assert(find("/a.so", 0, 1, names, 16) == 0);
	recording_free(recording);
}

UNIT(a_place_has_at_most_sixteen_names)
{
	struct namer_name names[NAMER_NAMES_MAX + 4];

	recording = with_names("{\"files\":[{\"path\":\"/a\",\"names\":[{\"address\":1,\"frames\":["
			       "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}]}]}");
	assert(find("/a", 0, 1, names, NAMER_NAMES_MAX + 4) == NAMER_NAMES_MAX);
	recording_free(recording);
}
