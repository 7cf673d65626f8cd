/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading: a whole snapshot of a device with many live buffers, every row checked, as any reader
 * takes it from a live process, compared with a plain pread() of the same bytes. Both write into
 * memory that has been touched before.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "cli/bench/bench-book.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_SNAPSHOT_SMALL 10000u
#define BENCH_SNAPSHOT_LARGE 16000000u
#define BENCH_SNAPSHOT_LARGE_EVERY 5u /* rounds: one takes half a second */
#define BENCH_SNAPSHOT_TIMES 20u      /* in a round, of the small one */

struct bench_snapshot_state {
	uint32_t device;
	uint32_t live;
	uint32_t times; /* in a round */
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

/* The second one's buffers are those of the row event. */
static struct bench_snapshot_state bench_snapshot_states[] = {
	{BENCH_DEVICE_SMALL, BENCH_SNAPSHOT_SMALL, BENCH_SNAPSHOT_TIMES, .fd = -1},
	{BENCH_DEVICE_EVENT + 2, 1000000, 1, .fd = -1},
	{BENCH_DEVICE_LARGE, BENCH_SNAPSHOT_LARGE, 1, .fd = -1},
};
static unsigned int bench_snapshot_rounds;

static bool bench_snapshot_take(struct bench_snapshot_state *state)
{
	const struct view *view = &state->view;

	return view_read(&state->view, &state->reader, state->device, VIEW_LIVING) == 0 &&
	       view->rows_exact && view->adds_up && view->live == state->live;
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
	if (file_read(&state->file.file, book_shard_offset(state->device), &page, sizeof(page)) < 0)
		return false;
	memcpy(state->directory, page.directory, sizeof(state->directory));
	state->bytes = page.slots * sizeof(struct book_record);
	state->copy = malloc(state->bytes);
	return state->copy && bench_snapshot_copy(state) && bench_snapshot_take(state);
}

/* Random slots die and are reused in the other rows; here only how many there are matters. */
static void bench_snapshot_fill(const struct bench_snapshot_state *state)
{
	for (uint32_t i = 0; i < state->live; i++)
		ttmem_alloc(state->device, bench_load_type(i), bench_load_address(i),
			    bench_load_size(i), NULL);
}

static void bench_snapshot_add(struct bench *bench, struct bench_snapshot_state *state)
{
	if (!bench_snapshot_prepare(state)) {
		bench_note(bench, "snapshot of %u buffers is missing: no room, or not readable",
			   state->live);
		return;
	}
	state->row = bench_row_add(bench, "snapshot", state->live);
	state->plain = bench_row_add(bench, "snapshot_pread", state->live);
}

static void bench_snapshot_open(struct bench *bench)
{
	bench_snapshot_rounds = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bench_snapshot_states); i++) {
		struct bench_snapshot_state *state = &bench_snapshot_states[i];

		if (state->live == BENCH_SNAPSHOT_LARGE && !bench->is_large)
			continue;
		if (state->device >= BENCH_DEVICE_SMALL)
			bench_snapshot_fill(state);
		bench_snapshot_add(bench, state);
	}
}

static void bench_snapshot_one(struct bench *bench, struct bench_snapshot_state *state)
{
	uint64_t start = bench_measure_busy_ns(), between, end;
	double plain, whole;
	bool works = true;

	for (uint32_t i = 0; i < state->times; i++)
		works = bench_snapshot_copy(state) && works;
	between = bench_measure_busy_ns();
	for (uint32_t i = 0; i < state->times; i++)
		works = bench_snapshot_take(state) && works;
	end = bench_measure_busy_ns();
	if (!works) {
		bench_note(bench, "a snapshot was not exact");
		return;
	}
	plain = (double)(between - start) / state->times;
	whole = (double)(end - between) / state->times;
	bench_measure_add(&state->plain->means, plain);
	bench_measure_add(&state->plain->samples, plain);
	bench_measure_add(&state->row->means, whole);
	bench_measure_add(&state->row->samples, whole);
}

static void bench_snapshot_round(struct bench *bench)
{
	bool is_for_large = bench_snapshot_rounds++ % BENCH_SNAPSHOT_LARGE_EVERY == 0;

	for (size_t i = 0; i < ARRAY_SIZE(bench_snapshot_states); i++) {
		struct bench_snapshot_state *state = &bench_snapshot_states[i];

		if (state->row && (state->live < BENCH_SNAPSHOT_LARGE || is_for_large))
			bench_snapshot_one(bench, state);
	}
}

static void bench_snapshot_close(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bench_snapshot_states); i++) {
		struct bench_snapshot_state *state = &bench_snapshot_states[i];

		view_deinit(&state->view);
		if (state->reader.file)
			reader_deinit(&state->reader);
		free(state->copy);
		if (state->fd >= 0)
			close(state->fd);
	}
}

const struct bench_part bench_snapshot = {
	.open = bench_snapshot_open,
	.round = bench_snapshot_round,
	.close = bench_snapshot_close,
};
