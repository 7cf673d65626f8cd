/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events with stacks, in a process of their own: whether stacks are taken is decided once. The calls come
 * from below more frames than are kept, so every event walks all that it may.
 */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "book/layout.h"
#include "cli/bench-book.h"
#include "cli/bench-load.h"
#include "cli/bench-measure.h"

#define BENCH_STACK_WARM 8192u
#define BENCH_STACK_PAIRS 12288u
#define BENCH_STACK_DEPTH 20u

/* A measurement is only one if every event had its stack. */
static bool bench_stack_is_whole(void)
{
	CLEANUP_CLOSE int fd = bench_book_open();
	uint64_t lost = 1;

	return fd >= 0 &&
	       pread(fd, &lost, sizeof(lost), offsetof(struct book_header, lost_stacks)) ==
		       (ssize_t)sizeof(lost) &&
	       lost == 0;
}

static void bench_stack_pairs(const struct bench_load *load, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		bench_load_free(load, load->script[i].freed);
		bench_load_alloc(load, load->script[i].allocated, NULL);
	}
}

static void bench_stack_batch(struct bench_load *load)
{
	uint64_t from;

	bench_load_draw(load, BENCH_STACK_WARM + BENCH_STACK_PAIRS, 1);
	bench_stack_pairs(load, 0, BENCH_STACK_WARM);
	from = bench_measure_busy_ns();
	bench_stack_pairs(load, BENCH_STACK_WARM, BENCH_STACK_WARM + BENCH_STACK_PAIRS);
	printf("%.3f\n",
	       (double)(bench_measure_busy_ns() - from) / (double)(2 * BENCH_STACK_PAIRS));
}

static void bench_stack_samples(struct bench_load *load)
{
	static struct bench bench;

	bench_measure_calibrate(&bench);
	bench_load_draw(load, (1 + BENCH_STACK_SAMPLES) * BENCH_SAMPLE_EVERY, 1);
	for (size_t i = 0; i <= BENCH_STACK_SAMPLES; i++) {
		size_t at = i * BENCH_SAMPLE_EVERY;
		uint64_t from, to;

		bench_stack_pairs(load, at, at + BENCH_SAMPLE_EVERY - 1);
		at += BENCH_SAMPLE_EVERY - 1;
		bench_load_free(load, load->script[at].freed);
		from = bench_measure_ticks();
		bench_load_alloc(load, load->script[at].allocated, NULL);
		to = bench_measure_ticks();
		/* The first call from here is a first sight, which is not what most events are. */
		if (i > 0)
			printf("%.3f\n", bench_measure_span(&bench, from, to));
	}
}

/* Frames: asking for its address makes the compiler keep one, using it later that it is no jump. */
/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void bench_stack_below(uint32_t depth, struct bench_load *load)
{
	void *volatile frame = __builtin_frame_address(0);

	if (depth > 0) {
		bench_stack_below(depth - 1, load);
	} else {
		bench_stack_batch(load);
		bench_stack_samples(load);
	}
	(void)frame;
}

int bench_stack_run(void)
{
	static const uint32_t device = BENCH_DEVICE_EVENT;
	struct bench_load load;
	int r;

	setenv("TTMEM_STACKS", "fp", 1); /* NOLINT(concurrency-mt-unsafe): no other thread */
	r = bench_load_init(&load, &device, 1, 0, BENCH_STACK_LIVE,
			    BENCH_STACK_WARM + BENCH_STACK_PAIRS);
	if (r < 0)
		return 1;
	bench_stack_below(BENCH_STACK_DEPTH, &load);
	bench_load_deinit(&load);
	if (!bench_stack_is_whole())
		return 1;
	return 0;
}
