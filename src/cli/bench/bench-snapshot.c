/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading: a whole snapshot of the device with a million live buffers, every row checked, as any
 * reader takes it from a live process, compared with a plain pread() of the same bytes. Both write
 * into memory that has been touched before.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "cli/bench/bench-book.h"
#include "cli/bench/bench-measure.h"

#define BENCH_SNAPSHOT_DEVICE (BENCH_DEVICE_EVENT + 2)
#define BENCH_SNAPSHOT_LIVE 1000000u

struct bench_snapshot_state {
	int fd;
	struct file_fd file;
	struct reader reader;
	struct view view;
	uint32_t directory[BOOK_SEGMENTS_MAX];
	uint64_t bytes;
	uint8_t *copy;
	struct bench_row *row; /* NULL: not measured */
	struct bench_row *plain;
};

static struct bench_snapshot_state bench_snapshot_state = {.fd = -1};

static bool bench_snapshot_take(struct bench_snapshot_state *state)
{
	const struct view *view = &state->view;

	return view_read(&state->view, &state->reader, BENCH_SNAPSHOT_DEVICE, VIEW_LIVING) == 0 &&
	       view->rows_exact && view->adds_up && view->live == BENCH_SNAPSHOT_LIVE;
}

/* Reads the records of the shard in file order, a segment at a time. */
static bool bench_snapshot_copy(const struct bench_snapshot_state *state)
{
	const uint64_t segment = (uint64_t)BOOK_SEGMENT_UNITS * BOOK_UNIT;
	uint64_t done = 0;

	for (uint32_t i = 0; done < state->bytes; i++) {
		uint64_t length = state->bytes - done < segment ? state->bytes - done : segment;
		off_t offset = (off_t)book_unit_offset(state->directory[i]);

		if (pread(state->fd, state->copy + done, length, offset) != (ssize_t)length)
			return false;
		done += length;
	}
	return true;
}

static bool bench_snapshot_prepare(struct bench_snapshot_state *state)
{
	struct book_shard page;

	state->fd = bench_book_open();
	if (state->fd < 0 || file_fd_init(&state->file, state->fd) < 0 ||
	    reader_init(&state->reader, &state->file.file) != 0)
		return false;
	if (file_read(&state->file.file, book_shard_offset(BENCH_SNAPSHOT_DEVICE), &page,
		      sizeof(page)) < 0)
		return false;
	memcpy(state->directory, page.directory, sizeof(state->directory));
	state->bytes = page.slots * sizeof(struct book_record);
	state->copy = malloc(state->bytes);
	return state->copy && bench_snapshot_copy(state) && bench_snapshot_take(state);
}

static void bench_snapshot_open(struct bench *bench)
{
	struct bench_snapshot_state *state = &bench_snapshot_state;

	if (!bench_snapshot_prepare(state)) {
		bench_note(bench, "snapshot is missing: the book could not be read");
		return;
	}
	state->row = bench_row_add(bench, "snapshot", BENCH_SNAPSHOT_LIVE);
	state->plain = bench_row_add(bench, "snapshot_pread", BENCH_SNAPSHOT_LIVE);
}

static void bench_snapshot_round(struct bench *bench)
{
	struct bench_snapshot_state *state = &bench_snapshot_state;
	uint64_t start, between, end;
	bool works;

	if (!state->row)
		return;
	start = bench_measure_busy_ns();
	works = bench_snapshot_copy(state);
	between = bench_measure_busy_ns();
	works = bench_snapshot_take(state) && works;
	end = bench_measure_busy_ns();
	if (!works) {
		bench_note(bench, "a snapshot was not exact");
		return;
	}
	bench_measure_add(&state->plain->means, (double)(between - start));
	bench_measure_add(&state->plain->samples, (double)(between - start));
	bench_measure_add(&state->row->means, (double)(end - between));
	bench_measure_add(&state->row->samples, (double)(end - between));
}

static void bench_snapshot_close(void)
{
	struct bench_snapshot_state *state = &bench_snapshot_state;

	view_deinit(&state->view);
	if (state->reader.file)
		reader_deinit(&state->reader);
	free(state->copy);
	if (state->fd >= 0)
		close(state->fd);
}

const struct bench_part bench_snapshot = {
	.open = bench_snapshot_open,
	.round = bench_snapshot_round,
	.close = bench_snapshot_close,
};
