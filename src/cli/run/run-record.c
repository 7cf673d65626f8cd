/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A recording that fails does not end the command: it is told at the end, as the command's output
 * is its own until then.
 */

#include "cli/run/run-record.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "cli/common/frame-names.h"
#include "cli/common/record-file.h"
#include "recording/write/recorder.h"

struct run_record {
	struct recorder *recorder;
	const char *path;
	int fd;
	int error; /* of the first call that failed */
};

struct run_record *run_record_new(const char *path, const char *const *argv, uint64_t size_max)
{
	const struct recorder_options options = {.argv = argv, .size_max = size_max};
	struct run_record *record = calloc(1, sizeof(*record));
	struct recorder_sums nothing = {0};
	int r;

	if (!record)
		return NULL;
	record->path = path;
	record->fd = record_file_open("run", path);
	if (record->fd < 0) {
		free(record);
		return NULL;
	}
	r = recorder_new(&record->recorder, record->fd, &options);
	if (r < 0) {
		record_file_tell("run", path, &nothing, r);
		(void)close(record->fd); /* there is nothing in it */
		free(record);
		return NULL;
	}
	return record;
}

struct run_record *run_record_end(struct run_record *record, bool quiet)
{
	struct frame_names *names = NULL;
	int r;

	if (!record)
		return NULL;
	/* Names are better than none, but not needed. */
	(void)!frame_names_new(&names);
	r = recorder_finish(record->recorder, record->error ? "failed" : "ended",
			    names ? frame_names_namer(names) : NULL);
	frame_names_free(names);
	r = record->error ? record->error : r;
	if (!quiet || r < 0)
		record_file_tell("run", record->path, recorder_sums(record->recorder), r);
	recorder_free(record->recorder);
	(void)close(record->fd); /* every write was checked */
	free(record);
	return NULL;
}

void run_record_add(struct run_record *record, struct scan_book *book)
{
	if (record && !record->error)
		record->error = recorder_add(record->recorder, book, true);
}

int run_record_round(struct run_record *record, int wait_ms)
{
	unsigned int wait = 0;

	if (!record || record->error)
		return wait_ms;
	record->error = recorder_round(record->recorder, &wait);
	return record->error ? wait_ms : (int)bits_min(wait, (uint64_t)wait_ms);
}

void run_record_book_ended(struct run_record *record, struct scan_book *book,
			   const struct ending *ending, struct namer *namer)
{
	int r;

	if (!record)
		return;
	/* Also after a failure: the recorder must not keep the book. */
	r = recorder_end_book(record->recorder, book, ending, namer);
	if (!record->error)
		record->error = r;
}
