/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem record: the events of processes that run already, into a file. It begins with what their
 * books still know, and ends with them, or when told to.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/record-file.h"
#include "cli/common/session.h"
#include "recording/write/recorder.h"
#include "source/books/follow.h"
#include "source/books/scan.h"

#define RECORD_SCAN_NS UINT64_C(200000000)
#define RECORD_SCAN_SHARE 20u              /* scanning may take 1/20 of the time */
#define RECORD_SCAN_MAX_NS (10 * NS_PER_S) /* but new processes must be found eventually */
#define RECORD_REDRAW_NS UINT64_C(250000000)

struct record_options {
	uint32_t pid; /* 0 = all */
	bool all;
	const char *output;
	uint32_t seconds;
	uint64_t size_max;
};

/* A book that is recorded. */
struct record_book {
	struct scan_book *book; /* the scan's */
	int pid_fd;             /* -1 = its owner has ended */
};

struct record {
	const struct record_options *options;
	struct session *session;
	struct recorder *recorder;
	struct record_book *books;
	size_t count, capacity;
	struct pollfd *fds; /* capacity of them */
	uint64_t next_scan, drawn_ns;
	bool is_terminal;
};

static bool record_knows(const struct record *record, const struct scan_book *book)
{
	for (size_t i = 0; i < record->count; i++) {
		if (record->books[i].book == book)
			return true;
	}
	return false;
}

static int record_add(struct record *record, struct scan_book *book, const struct proc *proc)
{
	struct record_book *books =
		array_grow(record->books, &record->capacity, record->count + 1, sizeof(*books));
	struct pollfd *fds;
	int r;

	if (!books)
		return -ENOMEM;
	record->books = books;
	fds = reallocarray(record->fds, record->capacity, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	record->fds = fds;
	r = recorder_add(record->recorder, book, book->first_pass > 1);
	if (r < 0)
		return r;
	books[record->count++] = (struct record_book){
		.book = book,
		.pid_fd = follow_open_owner(book, proc),
	};
	return 0;
}

/* Takes book @i out; how its owner ended is known only to its parent. */
static int record_end_book(struct record *record, size_t i)
{
	const struct ending ending = {.ended_ns = clock_ns(CLOCK_REALTIME)};
	struct record_book *one = &record->books[i];
	int r;

	one->book->alive = false;
	one->book->ignored = true; /* not again, while another process holds it */
	r = recorder_end_book(record->recorder, one->book, &ending, session_namer(record->session));
	if (one->pid_fd >= 0)
		(void)close(one->pid_fd); /* nothing was written to it */
	*one = record->books[--record->count];
	return r;
}

/* Books that are new, and those that nobody has any more, which the next scan would take away. */
static int record_scan(struct record *record)
{
	struct scan *scan = session_scan(record->session);
	uint64_t start = clock_ns(CLOCK_MONOTONIC), took;
	int r = session_refresh(record->session);

	for (size_t i = 0; i < scan->count && r == 0; i++) {
		struct scan_book *book = scan->books[i];

		if (book->gone || !book->alive || book->ignored || record_knows(record, book) ||
		    (record->options->pid && book->owner.id.pid != record->options->pid))
			continue;
		r = record_add(record, book, &scan->proc);
	}
	for (size_t i = record->count; i > 0 && r == 0; i--) {
		if (record->books[i - 1].book->gone)
			r = record_end_book(record, i - 1);
	}
	took = clock_ns(CLOCK_MONOTONIC) - start;
	record->next_scan = start + bits_max(RECORD_SCAN_NS, bits_min(took * RECORD_SCAN_SHARE,
								      RECORD_SCAN_MAX_NS));
	return r;
}

/* Waits, but not for longer than until an owner has ended. */
static int record_wait(struct record *record, unsigned int wait_ms)
{
	int r = 0;

	for (size_t i = 0; i < record->count; i++)
		record->fds[i] = (struct pollfd){.fd = record->books[i].pid_fd, .events = POLLIN};
	if (poll(record->fds, record->count, (int)wait_ms) < 0 && errno != EINTR)
		return -errno;
	for (size_t i = record->count; i > 0 && r == 0; i--) {
		if (record->books[i - 1].pid_fd < 0 || record->fds[i - 1].revents)
			r = record_end_book(record, i - 1);
	}
	return r;
}

static void record_draw(struct record *record)
{
	const struct recorder_sums *sums = recorder_sums(record->recorder);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	char size[TEXT_NUMBER_SIZE];

	if (!record->is_terminal || now - record->drawn_ns < RECORD_REDRAW_NS)
		return;
	record->drawn_ns = now;
	fprintf(stderr, "\r%" PRIu64 " event%s, %s, lag %" PRIu64 " event%s", sums->events,
		sums->events == 1 ? "" : "s", text_size(sums->bytes, size), sums->waiting,
		sums->waiting == 1 ? "" : "s");
	if (sums->missed)
		fprintf(stderr, ", %" PRIu64 " missed", sums->missed);
	fputs("  (Ctrl-C ends it)\033[K", stderr);
}

static bool record_is_over(const struct record *record)
{
	return output_is_stopped() || (record->count == 0 && record->options->pid);
}

/* Return: why it ended, or a negative errno in @ret_result. */
static const char *record_loop(struct record *record, int *ret_result)
{
	uint64_t end = record->options->seconds
			       ? clock_ns(CLOCK_MONOTONIC) + record->options->seconds * NS_PER_S
			       : UINT64_MAX;
	unsigned int wait_ms = 0;
	int r = 0;

	while (r == 0 && !record_is_over(record)) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (now >= end) {
			*ret_result = 0;
			return "seconds";
		}
		if (now >= record->next_scan)
			r = record_scan(record);
		if (r == 0)
			r = recorder_round(record->recorder, &wait_ms);
		record_draw(record);
		if (r == 0)
			r = record_wait(record, wait_ms);
	}
	*ret_result = r;
	if (r < 0)
		return r == -EFBIG ? "size" : "failed";
	return output_is_stopped() ? "interrupted" : "ended";
}

static int record_finish(struct record *record, const char *path, const char *reason, int result)
{
	int r = recorder_finish(record->recorder, reason, session_namer(record->session));

	result = result < 0 ? result : r;
	if (record->drawn_ns)
		fputs("\r\033[K", stderr);
	record_file_tell("record", path, recorder_sums(record->recorder), result);
	return result < 0 && result != -EFBIG ? COMMAND_FAILED : COMMAND_OK;
}

/* 0, or an exit code after the reason was reported. */
static int record_find(struct record *record)
{
	struct scan *scan = session_scan(record->session);
	int r = session_refresh(record->session);

	if (r < 0)
		return output_fail("record", "cannot look at processes", r);
	if (!record->options->pid)
		return 0;
	for (size_t i = 0; i < scan->count; i++) {
		if (scan->books[i]->owner.id.pid == record->options->pid && scan->books[i]->alive)
			return 0;
	}
	fprintf(stderr,
		proc_start_ticks(&scan->proc, record->options->pid)
			? "ttmem record: process %" PRIu32
			  " is not tracked, or you may not see it: \"ttmem doctor\" says why\n"
			: "ttmem record: there is no process %" PRIu32 "\n",
		record->options->pid);
	return COMMAND_FAILED;
}

static int record_open(const struct record_options *options, char *ret_path, size_t size)
{
	char what[16] = "all";

	if (options->output) {
		(void)snprintf(ret_path, size, "%s", options->output);
		return record_file_open("record", options->output);
	}
	if (options->pid)
		(void)snprintf(what, sizeof(what), "%" PRIu32, options->pid);
	return record_file_make("record", what, ret_path, size);
}

static void record_deinit(struct record *record)
{
	recorder_free(record->recorder);
	for (size_t i = 0; i < record->count; i++) {
		if (record->books[i].pid_fd >= 0)
			(void)close(record->books[i].pid_fd); /* nothing was written to it */
	}
	free(record->books);
	free(record->fds);
	session_free(record->session);
}

static int record_go(struct record *record)
{
	const struct recorder_options options = {.size_max = record->options->size_max};
	CLEANUP_CLOSE int fd = -1;
	const char *reason;
	char path[4096];
	int r, result;

	r = record_find(record);
	if (r != 0)
		return r;
	fd = record_open(record->options, path, sizeof(path));
	if (fd < 0)
		return COMMAND_FAILED;
	r = recorder_new(&record->recorder, fd, &options);
	if (r < 0)
		return output_fail("record", path, r);
	r = record_scan(record);
	if (r < 0)
		return record_finish(record, path, "failed", r);
	reason = record_loop(record, &result);
	return record_finish(record, path, reason, result);
}

static int record_parse(struct record_options *record, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "all", NULL, "every process that is tracked, also those that start meanwhile",
		 &record->all, NULL},
		{'o', "output", "FILE", "into this file, which is overwritten", &record->output,
		 options_text},
		{0, "seconds", "N", "end after that", &record->seconds, options_u32},
		{0, "max-size", "SIZE", "end before the file becomes larger, such as 2G",
		 &record->size_max, options_size},
	};
	const struct options options = {
		.command = "record",
		.shows_sizes = true,
		.arguments = "PID",
		.summary =
			"Records every event of process PID into a file, from as far back as its "
			"history reaches\nuntil it ends or Ctrl-C: what was live at any moment, by "
			"whom and why. The file is\nttmem-PID.ttrec in the current folder, or one "
			"with a number if that exists.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int count;
	int r = options_parse(&options, argc, argv, &count);

	if (r != 0)
		return r;
	if (count == 1 && record->all)
		return options_mistake("record", "PID or --all, not both");
	if (count > 1 || (count == 0 && !record->all))
		return options_count(&options, "one process id, or --all", count);
	if (count == 1 && options_u32(&record->pid, argv[0]) < 0)
		return options_mistake("record", "expects a process id, got \"%s\"", argv[0]);
	return 0;
}

static int record_run(int argc, char **argv)
{
	struct record_options options = {0};
	struct record record = {.options = &options, .is_terminal = isatty(STDERR_FILENO) == 1};
	int r = record_parse(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	output_catch_stop();
	r = session_new(&record.session);
	if (r < 0)
		return output_fail("record", "cannot look at processes", r);
	r = record_go(&record);
	record_deinit(&record);
	return r;
}

const struct command record_command = {
	.name = "record",
	.summary = "record all events of a process into a file",
	.run = record_run,
};
