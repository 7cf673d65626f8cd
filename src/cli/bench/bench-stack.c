/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events with stacks, as chosen by default, by frame pointers and by unwind tables, in processes of
 * their own, because whether and how stacks are taken is chosen once per process. The calls are made below more frames
 * than are kept, so every event walks the full depth.
 *
 * Allocating a million buffers takes longer than measuring with them, so a process with many live
 * ones measures several batches, and there are fewer such processes.
 */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "book/format/layout.h"
#include "cli/bench/bench-book.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_STACK_WARM 8192u
#define BENCH_STACK_PAIRS 12288u
#define BENCH_STACK_DEPTH 20u
#define BENCH_STACK_BATCHES 4u  /* per process */
#define BENCH_STACK_SAMPLES 64u /* per process */
#define BENCH_STACK_EVERY 10u   /* rounds, with many live buffers */
#define BENCH_STACK_MANY 10000u

/* A row, and the name of its child. */
struct bench_stack_kind {
	const char *name;
	const char *what;
};

static const struct bench_stack_kind bench_stack_kinds[] = {
	{"event_default", BENCH_STACK_WHAT "auto"},
	{"event_stack", BENCH_STACK_WHAT "fp"},
	{"event_stack_unwind", BENCH_STACK_WHAT "unwind"},
};

static const uint32_t bench_stack_live[] = {1000, 100000, 1000000};

static unsigned int bench_stack_rounds;

static void bench_stack_open(struct bench *bench)
{
	bench_stack_rounds = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bench_stack_kinds); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(bench_stack_live); k++)
			bench_row_add(bench, bench_stack_kinds[i].name, bench_stack_live[k]);
	}
}

static void bench_stack_one(struct bench *bench, const struct bench_stack_kind *kind, uint32_t live)
{
	struct bench_row *row = bench_row_find(bench, kind->name, live);
	double values[BENCH_STACK_BATCHES + BENCH_STACK_SAMPLES];
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu32, live);
	if (!bench_children_ask(kind->what, text, ARRAY_SIZE(values), values)) {
		bench_note(bench, "%s with %s live is missing: not every event had its stack",
			   kind->name, text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		bench_measure_add(i < BENCH_STACK_BATCHES ? &row->means : &row->samples, values[i]);
}

static void bench_stack_round(struct bench *bench)
{
	bool is_for_many = bench_stack_rounds++ % BENCH_STACK_EVERY == 0;

	for (size_t i = 0; i < ARRAY_SIZE(bench_stack_kinds); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(bench_stack_live); k++) {
			if (bench_stack_live[k] < BENCH_STACK_MANY || is_for_many)
				bench_stack_one(bench, &bench_stack_kinds[i], bench_stack_live[k]);
		}
	}
}

static void bench_stack_close(void)
{
}

const struct bench_part bench_stack = {
	.open = bench_stack_open,
	.round = bench_stack_round,
	.close = bench_stack_close,
};

/* A measurement is valid only if every event had its stack. */
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
		/* The first call from here sees a new stack, which most events do not. */
		if (i > 0)
			printf("%.3f\n", bench_measure_span(&bench, from, to));
	}
}

/* Taking the frame address makes the compiler keep a frame; using it later prevents a tail call. */
/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void bench_stack_below(uint32_t depth, struct bench_load *load)
{
	void *volatile frame = __builtin_frame_address(0);

	if (depth > 0) {
		bench_stack_below(depth - 1, load);
	} else {
		for (uint32_t i = 0; i < BENCH_STACK_BATCHES; i++)
			bench_stack_batch(load);
		bench_stack_samples(load);
	}
	(void)frame;
}

int bench_stack_run(const char *how, const char *live)
{
	static const uint32_t device = BENCH_DEVICE_EVENT;
	struct bench_load load;
	uint64_t count;
	int r;

	if (!live || text_parse_u64(live, &count) < 0 || count == 0 || count > UINT32_MAX / 2)
		return 2;
	setenv("TTMEM_STACKS", how, 1); /* NOLINT(concurrency-mt-unsafe): no other thread */
	r = bench_load_init(&load, &device, 1, 0, (uint32_t)count,
			    BENCH_STACK_WARM + BENCH_STACK_PAIRS);
	if (r < 0)
		return 1;
	bench_stack_below(BENCH_STACK_DEPTH, &load);
	bench_load_deinit(&load);
	if (!bench_stack_is_whole())
		return 1;
	return 0;
}
