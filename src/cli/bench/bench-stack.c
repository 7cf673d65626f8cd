/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events with stacks, as chosen by default, by frame pointers and by unwind tables, in processes of
 * their own, because whether and how stacks are taken is chosen once per process. The calls are made
 * below more frames than are kept, so every stack has the full depth.
 *
 * A stack that repeats costs less than one that has changed since the last event, so both are
 * measured. A changing one is called from several places in turn, so that the library's own callers
 * are the same each time and only the frames further out differ.
 *
 * Allocating a million buffers takes longer than measuring with them, so a process with many live
 * ones measures several batches, and there are fewer such processes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "book/format/layout.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "cli/bench/bench-book.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_STACK_WARM 8192u
#define BENCH_STACK_PAIRS 12288u
#define BENCH_STACK_DEPTH 20u
#define BENCH_STACK_KEPT 16u    /* frames, by default */
#define BENCH_STACK_BATCHES 4u  /* per process */
#define BENCH_STACK_SAMPLES 64u /* per process */
#define BENCH_STACK_EVERY 10u   /* rounds, with many live buffers */
#define BENCH_STACK_MANY 10000u

/* More than the library tries to remember a stack for, and few enough to be known all the time. */
#define BENCH_STACK_PLACES 8u

struct bench_stack_kind {
	const char *name; /* of the row, and after BENCH_STACK_WHAT of its child */
	const char *how;  /* TTMEM_STACKS */
	bool is_changing;
};

static const struct bench_stack_kind bench_stack_kinds[] = {
	{"event_default", "auto", false},
	{"event_default_changing", "auto", true},
	{"event_stack", "fp", false},
	{"event_stack_changing", "fp", true},
	{"event_stack_unwind", "unwind", false},
	{"event_stack_unwind_changing", "unwind", true},
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
	char what[64], text[32];

	(void)snprintf(what, sizeof(what), BENCH_STACK_WHAT "%s", kind->name);
	(void)snprintf(text, sizeof(text), "%" PRIu32, live);
	if (!bench_children_ask(what, text, ARRAY_SIZE(values), values)) {
		bench_note(bench, "%s with %s live is missing: not every event had its whole stack",
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

/* Whether every live buffer of the device has a stack with all its frames. */
static bool bench_stack_is_deep(struct reader *reader)
{
	struct book_frame frames[BENCH_STACK_KEPT];
	struct view_iterator it = {0};
	struct book_stack head;
	struct view view = VIEW_NULL;
	bool is_deep = view_read(&view, reader, BENCH_DEVICE_EVENT, VIEW_LIVING) == 0;

	while (is_deep && view_next(&view, &it))
		is_deep = reader_stack(reader, it.record->stack, &head, frames, BENCH_STACK_KEPT) ==
			  BENCH_STACK_KEPT;
	view_deinit(&view);
	return is_deep;
}

/*
 * A measurement is valid only if every event had its stack, and these were not cut short. Of many
 * buffers some are from before the measurement.
 */
static bool bench_stack_is_whole(uint64_t live)
{
	CLEANUP_CLOSE int fd = bench_book_open();
	struct reader reader;
	struct file_fd file;
	bool is_whole;

	if (fd < 0 || file_fd_init(&file, fd) < 0 || reader_init(&reader, &file.file) != 0)
		return false;
	is_whole = reader.header.lost_stacks == 0 &&
		   (live >= BENCH_STACK_MANY || bench_stack_is_deep(&reader));
	reader_deinit(&reader);
	return is_whole;
}

typedef void bench_stack_call(const struct bench_load *load, uint32_t number);

/* Taking the frame address makes the compiler keep a frame; using it later prevents a tail call. */
static __attribute__((noinline)) void bench_stack_free(const struct bench_load *load,
						       uint32_t number)
{
	void *volatile frame = __builtin_frame_address(0);

	bench_load_free(load, number);
	(void)frame;
}

static __attribute__((noinline)) void bench_stack_alloc(const struct bench_load *load,
							uint32_t number)
{
	void *volatile frame = __builtin_frame_address(0);

	bench_load_alloc(load, number, NULL);
	(void)frame;
}

static __attribute__((noinline)) void bench_stack_nothing(const struct bench_load *load,
							  uint32_t number)
{
	void *volatile frame = __builtin_frame_address(0);

	(void)load;
	(void)number;
	(void)frame;
}

/* What follows the call is different in each case, so that the compiler merges none. */
#define BENCH_STACK_PLACE(place)                     \
	case place:                                  \
		call(load, number);                  \
		__asm__ volatile("" : : "i"(place)); \
		break

/* Calls from one of several places. */
static __attribute__((noinline)) void bench_stack_from(size_t place, bench_stack_call *call,
						       const struct bench_load *load,
						       uint32_t number)
{
	void *volatile frame = __builtin_frame_address(0);

	switch (place % BENCH_STACK_PLACES) {
		BENCH_STACK_PLACE(0);
		BENCH_STACK_PLACE(1);
		BENCH_STACK_PLACE(2);
		BENCH_STACK_PLACE(3);
		BENCH_STACK_PLACE(4);
		BENCH_STACK_PLACE(5);
		BENCH_STACK_PLACE(6);
		BENCH_STACK_PLACE(7);
	}
	(void)frame;
}

/* A load, and how it is called. */
struct bench_stack_load {
	struct bench_load load;
	bool is_changing;
};

static __attribute__((noinline)) void bench_stack_pairs(const struct bench_stack_load *stack,
							size_t from, size_t to)
{
	void *volatile frame = __builtin_frame_address(0);
	const struct bench_load *load = &stack->load;

	for (size_t i = from; i < to; i++) {
		const struct bench_load_pair *pair = &load->script[i];

		if (stack->is_changing) {
			bench_stack_from(i, bench_stack_free, load, pair->freed);
			bench_stack_from(i, bench_stack_alloc, load, pair->allocated);
		} else {
			bench_load_free(load, pair->freed);
			bench_load_alloc(load, pair->allocated, NULL);
		}
	}
	(void)frame;
}

/* What the benchmark's own calls take for so many pairs, in ns. */
static uint64_t bench_stack_calls(const struct bench_stack_load *stack, size_t pairs)
{
	uint64_t from = bench_measure_busy_ns();

	for (size_t i = 0; stack->is_changing && i < 2 * pairs; i++)
		bench_stack_from(i / 2, bench_stack_nothing, &stack->load, 0);
	return bench_measure_busy_ns() - from;
}

static __attribute__((noinline)) void bench_stack_batch(struct bench_stack_load *stack)
{
	void *volatile frame = __builtin_frame_address(0);
	uint64_t from, spent;

	bench_load_draw(&stack->load, BENCH_STACK_WARM + BENCH_STACK_PAIRS, 1);
	bench_stack_pairs(stack, 0, BENCH_STACK_WARM);
	from = bench_measure_busy_ns();
	bench_stack_pairs(stack, BENCH_STACK_WARM, BENCH_STACK_WARM + BENCH_STACK_PAIRS);
	spent = bench_measure_busy_ns() - from;
	spent -= bench_stack_calls(stack, BENCH_STACK_PAIRS);
	printf("%.3f\n", (double)spent / (double)(2 * BENCH_STACK_PAIRS));
	(void)frame;
}

/* Events are timed once each place has been called from here: the first see new stacks. */
static __attribute__((noinline)) void bench_stack_samples(struct bench_stack_load *stack)
{
	void *volatile frame = __builtin_frame_address(0);
	static struct bench bench;
	const struct bench_load *load = &stack->load;

	bench_measure_calibrate(&bench);
	bench_load_draw(&stack->load,
			(BENCH_STACK_PLACES + BENCH_STACK_SAMPLES) * BENCH_SAMPLE_EVERY, 1);
	for (size_t i = 0; i < BENCH_STACK_PLACES + BENCH_STACK_SAMPLES; i++) {
		size_t at = i * BENCH_SAMPLE_EVERY;
		uint64_t from, to;

		bench_stack_pairs(stack, at, at + BENCH_SAMPLE_EVERY - 1);
		at += BENCH_SAMPLE_EVERY - 1;
		bench_load_free(load, load->script[at].freed);
		from = bench_measure_ticks();
		if (stack->is_changing)
			bench_stack_from(i, bench_stack_alloc, load, load->script[at].allocated);
		else
			bench_load_alloc(load, load->script[at].allocated, NULL);
		to = bench_measure_ticks();
		if (i >= BENCH_STACK_PLACES)
			printf("%.3f\n", bench_measure_span(&bench, from, to));
	}
	(void)frame;
}

/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void bench_stack_below(uint32_t depth,
							struct bench_stack_load *stack)
{
	void *volatile frame = __builtin_frame_address(0);

	if (depth > 0) {
		bench_stack_below(depth - 1, stack);
	} else {
		for (uint32_t i = 0; i < BENCH_STACK_BATCHES; i++)
			bench_stack_batch(stack);
		bench_stack_samples(stack);
	}
	(void)frame;
}

static const struct bench_stack_kind *bench_stack_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(bench_stack_kinds); i++) {
		if (strcmp(bench_stack_kinds[i].name, name) == 0)
			return &bench_stack_kinds[i];
	}
	return NULL;
}

int bench_stack_run(const char *name, const char *live)
{
	static const uint32_t device = BENCH_DEVICE_EVENT;
	const struct bench_stack_kind *kind = bench_stack_kind(name);
	struct bench_stack_load stack;
	uint64_t count;
	int r;

	if (!kind || !live || text_parse_u64(live, &count) < 0 || count == 0 ||
	    count > UINT32_MAX / 2)
		return 2;
	stack.is_changing = kind->is_changing;
	setenv("TTMEM_STACKS", kind->how, 1); /* NOLINT(concurrency-mt-unsafe): no other thread */
	r = bench_load_init(&stack.load, &device, 1, 0, (uint32_t)count,
			    BENCH_STACK_WARM + BENCH_STACK_PAIRS);
	if (r < 0)
		return 1;
	bench_stack_below(BENCH_STACK_DEPTH, &stack);
	bench_load_deinit(&stack.load);
	if (!bench_stack_is_whole(count))
		return 1;
	return 0;
}
