/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What no event can go below on this machine: one time stamp of the book's clock, one event stored
 * into a ring in a shared mapping, and its number published. No lock, no lookup, no record, no
 * counters. The ring is as large as that of a device.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/book-clock.h"
#include "book/format/layout.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_FLOOR_RING 16384u /* events, as a device has by default */
#define BENCH_FLOOR_WARM 16384u
#define BENCH_FLOOR_EVENTS 49152u /* as many as a batch of the row event */

/* Shared with nobody, but mapped as if it were. */
struct bench_floor_book {
	uint64_t head __attribute__((aligned(CACHE_LINE)));
	struct book_event ring[BENCH_FLOOR_RING] __attribute__((aligned(CACHE_LINE)));
};

static struct bench_floor_book *bench_floor_book;
static struct bench_row *bench_floor_row;
static uint32_t bench_floor_clock;
static uint64_t bench_floor_head;

static struct bench_floor_book *bench_floor_map(void)
{
	CLEANUP_CLOSE int fd = memfd_create("bench-floor", MFD_CLOEXEC);
	struct bench_floor_book *book;

	if (fd < 0 || ftruncate(fd, sizeof(*book)) < 0)
		return NULL;
	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	return book == MAP_FAILED ? NULL : book;
}

static void bench_floor_open(struct bench *bench)
{
	bench_floor_book = bench_floor_map();
	bench_floor_clock = book_clock_choose();
	if (bench_floor_book)
		bench_floor_row = bench_row_add(bench, "floor", 0);
	else
		bench_note(bench, "floor is missing: no memory");
}

static inline void bench_floor_event(uint32_t number)
{
	uint64_t head = ++bench_floor_head;
	struct book_event *event = &bench_floor_book->ring[head % BENCH_FLOOR_RING];
	uint64_t time = book_clock_read(bench_floor_clock);

	event->time = time;
	event->op_slot = number << 8 | BOOK_OP_ALLOC;
	event->stack = 0;
	event->record = (struct book_record){
		.address = bench_load_address(number),
		.size = bench_load_size(number),
		.birth = time,
		.meta = book_meta(bench_load_type(number), 0, 1),
	};
	__atomic_store_n(&bench_floor_book->head, head, __ATOMIC_RELEASE);
}

static void bench_floor_round(struct bench *bench)
{
	uint32_t count = bench->is_quick ? BENCH_FLOOR_EVENTS / 4 : BENCH_FLOOR_EVENTS;
	uint64_t from;

	if (!bench_floor_row)
		return;
	for (uint32_t i = 0; i < BENCH_FLOOR_WARM; i++)
		bench_floor_event(i);
	from = bench_measure_busy_ns();
	for (uint32_t i = 0; i < count; i++)
		bench_floor_event(i);
	bench_measure_add(&bench_floor_row->means,
			  (double)(bench_measure_busy_ns() - from) / count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t start;

		if (i % BENCH_SAMPLE_EVERY) {
			bench_floor_event(i);
			continue;
		}
		start = bench_measure_ticks();
		bench_floor_event(i);
		bench_measure_add(&bench_floor_row->samples,
				  bench_measure_span(bench, start, bench_measure_ticks()));
	}
}

static void bench_floor_close(void)
{
	if (bench_floor_book)
		(void)munmap(bench_floor_book, sizeof(*bench_floor_book)); /* ours and whole */
}

const struct bench_part bench_floor = {
	.open = bench_floor_open,
	.round = bench_floor_round,
	.close = bench_floor_close,
};
