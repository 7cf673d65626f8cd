/* SPDX-License-Identifier: Apache-2.0 */

/* A writer, its book and a recorder in one process, so that a test decides when each of them acts. */

#include "recording/testing/testing-recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/write/index.h"
#include "book/write/intern.h"
#include "book/write/writer.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"

#define RECORDING_ROUND 1000u /* operations between two rounds */

void testing_recording_start(struct testing_recording *recording, const char *path,
			     uint32_t ring_events, bool is_new)
{
	static const char *const argv[] = {"a-program", "with", "arguments", NULL};
	const struct recorder_options options = {.argv = argv};
	int fd;

	*recording = (struct testing_recording){.rng = testing_rng_new(), .devices = 2};
	recording->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(recording->fd >= 0);
	testing_book_init(&recording->book, TESTING_SIZE, ring_events);
	testing_book_write(&recording->book);
	testing_book_read(&recording->book);
	fd = fcntl(recording->book.fd, F_DUPFD_CLOEXEC, 0);
	assert(fd >= 0 && scan_book_new_consume(&recording->scan, fd) == 0);
	recording->scan->alive = true;
	recording->scan->owner.id.pid = 1234;
	recording->scan->owner.ns_pid = 7;
	(void)snprintf(recording->scan->owner.comm, sizeof(recording->scan->owner.comm), "tester");
	assert(recorder_new(&recording->recorder, recording->fd, &options) == 0);
	assert(recorder_add(recording->recorder, recording->scan, is_new) == 0);
}

static uint32_t recording_stack(struct testing_recording *recording)
{
	struct book_frame frames[3];

	for (uint32_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = (struct book_frame){
			.value = 0x1000 + testing_below(&recording->rng, 4) * 16,
			.module = 0,
		};
	return intern_stack_mixed(recording->book.writer, frames, ARRAY_SIZE(frames), 0);
}

static void recording_op(struct testing_recording *recording)
{
	static const uint8_t kinds[] = {
		TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC,  TESTING_ALLOC,
		TESTING_ALLOC, TESTING_FREE,  TESTING_FREE,  TESTING_FREE,   TESTING_FREE,
		TESTING_FREE,  TESTING_FREE,  TESTING_FREE,  TESTING_HOOKED, TESTING_FAILED,
	};
	struct testing_rng *rng = &recording->rng;
	struct testing_op op = {
		.kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))],
		.device = testing_below(rng, recording->devices),
		.buffer = {.address = (uint64_t)testing_below(rng, 500) * 4096,
			   .size = 32 * (1 + testing_below(rng, 4)),
			   .type = testing_below(rng, 3),
			   .name = testing_below(rng, TESTING_TEXTS),
			   .phase = testing_below(rng, 5),
			   .thread = 1 + testing_below(rng, 4),
			   .stack = recording_stack(recording),
			   .space = testing_below(rng, 2)},
	};

	if (op.kind == TESTING_FREE && testing_below(rng, 8) == 0)
		op.buffer.type = INDEX_ANY;
	if (testing_below(rng, 3000) == 0)
		op.kind = testing_below(rng, 2) ? TESTING_RESET_PEAK : TESTING_FREE_ALL;
	testing_op_do(recording->book.writer, &op);
}

void testing_recording_act(struct testing_recording *recording, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		recording_op(recording);
}

void testing_recording_fill(struct testing_recording *recording, uint64_t bytes)
{
	char text[BOOK_NAME_MAX + 1] = "";

	for (uint64_t done = 0; done < bytes; done += BOOK_NAME_MAX) {
		for (uint32_t i = 0; i < BOOK_NAME_MAX; i++)
			text[i] = (char)(1 + testing_below(&recording->rng, 127));
		(void)intern_string(recording->book.writer, text, BOOK_NAME_MAX);
	}
}

void testing_recording_finish(struct testing_recording *recording, bool is_ended)
{
	const struct ending ended = {.ended_ns = 1, .status = 9, .has_status = true};

	if (is_ended) {
		recording->scan->alive = false;
		assert(recorder_end_book(recording->recorder, recording->scan, &ended, NULL) == 0);
	}
	assert(recorder_finish(recording->recorder, "ended", NULL) == 0);
}

void testing_recording_deinit(struct testing_recording *recording)
{
	recorder_free(recording->recorder);
	scan_book_free(recording->scan);
	testing_book_deinit(&recording->book);
	close(recording->fd);
}

void testing_recording_make(const char *path, uint32_t events)
{
	struct testing_recording recording;
	unsigned int wait_ms;

	testing_recording_start(&recording, path, 16384, true);
	for (uint32_t done = 0; done < events; done += RECORDING_ROUND) {
		testing_recording_act(&recording, RECORDING_ROUND);
		assert(recorder_round(recording.recorder, &wait_ms) == 0);
	}
	testing_recording_finish(&recording, true);
	testing_recording_deinit(&recording);
}
