/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events of one thread on one device: with 1,000, 100,000 and 1,000,000 live buffers, with names,
 * and while they are recorded. The first part of each batch is not timed: it refills the caches that earlier work has
 * evicted.
 */

#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"
#include "cli/bench/bench-recorder.h"

#define BENCH_EVENTS_SIZES 3u
#define BENCH_EVENTS_NAMED 3u /* rows after those of the sizes */
#define BENCH_EVENTS_RECORDED 4u
#define BENCH_EVENTS_ROWS 5u
#define BENCH_EVENTS_PAIRS 24576u
#define BENCH_EVENTS_BLOCK 32u /* named allocations timed together */

static const uint32_t bench_events_live[BENCH_EVENTS_SIZES] = {1000, 100000, 1000000};

/* Untimed steps. A million buffers fit into no cache, so there is nothing to warm up. */
static const size_t bench_events_warm[BENCH_EVENTS_ROWS] = {8192, 65536, 8192, 8192, 8192};
static const uint32_t bench_events_device[BENCH_EVENTS_ROWS] = {
	BENCH_DEVICE_EVENT, BENCH_DEVICE_EVENT + 1, BENCH_DEVICE_EVENT + 2, BENCH_DEVICE_NAMED,
	BENCH_DEVICE_RECORDED};

/* Names as models use them. */
static const char *const bench_events_names[] = {
	"weights",  "layer.0.attention.wq", "layer.17.attention.wo",     "layer.31.feed_forward.w1",
	"kv_cache", "activations",          "model.embed_tokens.weight", "tmp",
};

static struct bench_load bench_events_loads[BENCH_EVENTS_ROWS];
static struct bench_row *bench_events_rows[BENCH_EVENTS_ROWS];

static const char *bench_events_name(size_t i)
{
	return bench_events_names[i % (sizeof(bench_events_names) / sizeof(char *))];
}

static void bench_events_add(struct bench *bench, uint32_t i, const char *name, uint32_t live)
{
	int r = bench_load_init(&bench_events_loads[i], &bench_events_device[i], 1, 0, live,
				bench_events_warm[i] + BENCH_EVENTS_PAIRS);

	if (r < 0)
		bench_note(bench, "%s with %u live is missing: no room for so many", name, live);
	else
		bench_events_rows[i] = bench_row_add(bench, name, live);
}

static void bench_events_open(struct bench *bench)
{
	for (uint32_t i = 0; i < BENCH_EVENTS_SIZES; i++)
		bench_events_add(bench, i, "event", bench_events_live[i]);
	bench_events_add(bench, BENCH_EVENTS_NAMED, "event_named", bench_events_live[0]);
	/* Last, because it starts with the book as it is then. */
	if (bench_recorder_start())
		bench_events_add(bench, BENCH_EVENTS_RECORDED, "event_recorded",
				 bench_events_live[0]);
	else
		bench_note(bench, "event_recorded is missing: no process for the recorder");
}

static void bench_events_pair(const struct bench_load *load, size_t i)
{
	bench_load_free(load, load->script[i].freed);
	bench_load_alloc(load, load->script[i].allocated, NULL);
}

static void bench_events_batch(struct bench_load *load, struct bench_row *row, size_t warm,
			       size_t pairs)
{
	uint64_t from;

	bench_load_draw(load, warm + pairs, 1);
	for (size_t i = 0; i < warm; i++)
		bench_events_pair(load, i);
	from = bench_measure_busy_ns();
	for (size_t i = warm; i < warm + pairs; i++)
		bench_events_pair(load, i);
	bench_measure_add(&row->means,
			  (double)(bench_measure_busy_ns() - from) / (double)(2 * pairs));
}

static void bench_events_timed_free(struct bench *bench, const struct bench_load *load,
				    struct bench_row *row, uint32_t number)
{
	uint64_t from = bench_measure_ticks();

	bench_load_free(load, number);
	bench_measure_add(&row->samples, bench_measure_span(bench, from, bench_measure_ticks()));
}

static void bench_events_timed_alloc(struct bench *bench, const struct bench_load *load,
				     struct bench_row *row, uint32_t number, const char *name)
{
	uint64_t from = bench_measure_ticks();

	bench_load_alloc(load, number, name);
	bench_measure_add(&row->samples, bench_measure_span(bench, from, bench_measure_ticks()));
}

/* One free and one allocation in 128 events are timed. */
static void bench_events_sample(struct bench *bench, struct bench_load *load, struct bench_row *row,
				size_t warm, size_t pairs)
{
	bench_load_draw(load, warm + pairs, 1);
	for (size_t i = 0; i < warm; i++)
		bench_events_pair(load, i);
	for (size_t i = warm; i < warm + pairs; i++) {
		const struct bench_load_pair *pair = &load->script[i];

		if (i % BENCH_SAMPLE_EVERY == 0)
			bench_events_timed_free(bench, load, row, pair->freed);
		else
			bench_load_free(load, pair->freed);
		if (i % BENCH_SAMPLE_EVERY == BENCH_SAMPLE_EVERY / 2)
			bench_events_timed_alloc(bench, load, row, pair->allocated, NULL);
		else
			bench_load_alloc(load, pair->allocated, NULL);
	}
}

/*
 * Only allocations have names, so only they are timed: a block of frees, then a block of
 * allocations.
 */
static void bench_events_named(struct bench *bench, struct bench_load *load, struct bench_row *row,
			       size_t warm, size_t pairs)
{
	double spent = 0;

	bench_load_draw(load, warm + pairs, BENCH_EVENTS_BLOCK);
	for (size_t at = 0; at < warm + pairs; at += BENCH_EVENTS_BLOCK) {
		const struct bench_load_pair *block = &load->script[at];
		uint64_t from;

		for (size_t i = 0; i < BENCH_EVENTS_BLOCK; i++)
			bench_load_free(load, block[i].freed);
		from = bench_measure_ticks();
		for (size_t i = 0; i < BENCH_EVENTS_BLOCK; i++)
			bench_load_alloc(load, block[i].allocated, bench_events_name(i));
		if (at >= warm)
			spent += bench_measure_span(bench, from, bench_measure_ticks());
	}
	bench_measure_add(&row->means, spent / (double)pairs);
}

static void bench_events_named_sample(struct bench *bench, struct bench_load *load,
				      struct bench_row *row, size_t pairs)
{
	bench_load_draw(load, pairs, 1);
	for (size_t i = 0; i < pairs; i++) {
		const char *name = bench_events_name(i / BENCH_SAMPLE_EVERY);

		bench_load_free(load, load->script[i].freed);
		if (i % BENCH_SAMPLE_EVERY == 0)
			bench_events_timed_alloc(bench, load, row, load->script[i].allocated, name);
		else
			bench_load_alloc(load, load->script[i].allocated, name);
	}
}

static void bench_events_row(struct bench *bench, uint32_t i, size_t pairs)
{
	struct bench_load *load = &bench_events_loads[i];
	struct bench_row *row = bench_events_rows[i];
	size_t warm = bench_events_warm[i];

	if (i == BENCH_EVENTS_NAMED) {
		bench_events_named(bench, load, row, warm, pairs);
		bench_events_named_sample(bench, load, row, pairs);
		return;
	}
	if (i == BENCH_EVENTS_RECORDED && !bench_recorder_go()) {
		bench_note(bench, "event_recorded is not complete: its recorder is gone");
		return;
	}
	bench_events_batch(load, row, warm, pairs);
	bench_events_sample(bench, load, row, warm, pairs);
	if (i == BENCH_EVENTS_RECORDED)
		bench_recorder_pause();
}

static void bench_events_round(struct bench *bench)
{
	size_t pairs = bench->is_quick ? BENCH_EVENTS_PAIRS / 4 : BENCH_EVENTS_PAIRS;

	for (uint32_t i = 0; i < BENCH_EVENTS_ROWS; i++) {
		if (bench_events_rows[i])
			bench_events_row(bench, i, pairs);
	}
}

static void bench_events_close(void)
{
	for (uint32_t i = 0; i < BENCH_EVENTS_ROWS; i++)
		bench_load_deinit(&bench_events_loads[i]);
	bench_recorder_end();
}

const struct bench_part bench_events = {
	.open = bench_events_open,
	.round = bench_events_round,
	.close = bench_events_close,
};
