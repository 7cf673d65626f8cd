/* SPDX-License-Identifier: Apache-2.0 */

/* A recorder that ends at any of its writes leaves a file that opens, with everything before it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recording.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"

#define TEST_ROUNDS 16u
#define TEST_SEED 12345u /* so that every run does the same */

/* The write that is the last one, counted from 1, and whether it is cut; 0 = none. */
static uint32_t kill_at;
static bool is_cut;
static uint32_t writes;

/* In front of libc's. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's begin with __ */
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	ssize_t n = syscall(SYS_pwrite64, fd, bytes,
			    ++writes == kill_at && is_cut ? length / 2 : length, offset);

	if (writes == kill_at)
		_exit(0);
	return n;
}

static const char *test_path(void)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/test.ttrec", unit_dir());
	return path;
}

/* With rings so short that there are many gaps and keyframes. Return: events in the file. */
static uint64_t test_record(void)
{
	struct testing_recording recording;
	unsigned int wait_ms;
	uint64_t events;

	testing_recording_start(&recording, test_path(), BOOK_RING_MIN, true);
	recording.rng = (struct testing_rng){TEST_SEED};
	for (uint32_t i = 0; i < TEST_ROUNDS; i++) {
		testing_recording_act(&recording, i % 2 ? 3000 : 600);
		assert(recorder_round(recording.recorder, &wait_ms) == 0);
	}
	testing_recording_finish(&recording, true);
	events = recorder_sums(recording.recorder)->events;
	testing_recording_deinit(&recording);
	return events;
}

static void test_record_until(uint32_t n, bool cut)
{
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (pid == 0) {
		writes = 0;
		kill_at = n;
		is_cut = cut;
		(void)test_record();
		_exit(1);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
}

static int test_count(void *context, const struct recording_event *event)
{
	uint64_t *events = context;

	*events += event->event != NULL;
	return 0;
}

/* Opens it, goes through it, makes its book again as it was at the end. Return: events in it. */
static uint64_t test_read(bool is_complete)
{
	struct recording_moment end;
	struct recording *recording;
	char why[RECORDING_WHY_SIZE];
	struct scan_book *book;
	uint64_t events = 0;

	assert(recording_open(&recording, test_path(), why) == 0);
	assert(recording_facts(recording)->is_complete == is_complete);
	assert(recording_walk(recording, &RECORDING_FILTER_ALL, NULL, NULL, test_count, &events) ==
	       0);
	assert(events == recording_facts(recording)->events);
	if (recording_facts(recording)->books > 0 &&
	    recording_find(recording, "end", &RECORDING_FILTER_ALL, &end, why) == 0) {
		assert(recording_restore(recording, 0, &end, &book) == 0);
		scan_book_free(book);
	}
	recording_free(recording);
	return events;
}

UNIT(a_recorder_killed_at_any_write_leaves_all_before_it)
{
	uint64_t all = test_record(), last = 0;
	uint32_t count = writes;
	struct recording *recording;
	char why[RECORDING_WHY_SIZE];

	assert(test_read(true) == all && count > 50);
	/* The first chunk alone makes a file a recording; half of it does not. */
	test_record_until(1, true);
	assert(recording_open(&recording, test_path(), why) == -EBADMSG);
	for (uint32_t n = 2; n <= count; n++) {
		uint64_t events;

		test_record_until(n, true);
		assert(test_read(false) == last);
		test_record_until(n, false);
		events = test_read(n == count);
		assert(events >= last);
		last = events;
	}
	assert(last == all);
}
