/* SPDX-License-Identifier: Apache-2.0 */

/* The command: prepares the environment, runs the parts in turn, prints. */

#include "cli/bench/bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "cli/bench/bench-measure.h"
#include "cli/bench/bench-report.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"

/*
 * The socket's server is forked before there is a book or a thread; the snapshot comes after the
 * events, because it reads what they wrote.
 */
static const struct bench_part *const bench_parts[] = {
	&bench_socket, &bench_calls,    &bench_floor, &bench_events,   &bench_threads,
	&bench_crowd,  &bench_snapshot, &bench_stack, &bench_children, &bench_python,
};

struct bench_row *bench_row_add(struct bench *bench, const char *name, uint64_t live)
{
	struct bench_row *row = &bench->rows[bench->row_count];

	if (bench->row_count == BENCH_ROWS_MAX)
		abort(); /* the list of rows has outgrown its limit */
	bench->row_count++;
	*row = (struct bench_row){.name = name, .live = live};
	return row;
}

struct bench_row *bench_row_find(struct bench *bench, const char *name, uint64_t live)
{
	for (size_t i = 0; i < bench->row_count; i++) {
		if (strcmp(bench->rows[i].name, name) == 0 && bench->rows[i].live == live)
			return &bench->rows[i];
	}
	return NULL;
}

void bench_figure_add(struct bench *bench, const char *name, uint64_t live, double value,
		      const char *unit)
{
	if (bench->figure_count == BENCH_FIGURES_MAX)
		abort(); /* the list of figures has outgrown its limit */
	bench->figures[bench->figure_count++] =
		(struct bench_figure){.name = name, .live = live, .value = value, .unit = unit};
}

const struct bench_figure *bench_figure_find(const struct bench *bench, const char *name,
					     uint64_t live)
{
	for (size_t i = 0; i < bench->figure_count; i++) {
		if (strcmp(bench->figures[i].name, name) == 0 && bench->figures[i].live == live)
			return &bench->figures[i];
	}
	return NULL;
}

void bench_note(struct bench *bench, const char *format, ...)
{
	char *note = bench->notes[bench->note_count];
	va_list arguments;

	if (bench->note_count == BENCH_NOTES_MAX - 1)
		return;
	va_start(arguments, format);
	(void)vsnprintf(note, sizeof(bench->notes[0]), format, arguments); /* cut if too long */
	va_end(arguments);
	for (size_t i = 0; i < bench->note_count; i++) {
		if (strcmp(bench->notes[i], note) == 0)
			return; /* already noted */
	}
	bench->note_count++;
}

/*
 * Before the first event: enables tracking, hides from daemons (what a measurement leaves behind is not a leak), and
 * drops the caller's settings.
 */
static void bench_environment(void)
{
	static const char *const dropped[] = {
		"TTMEM_OFFER",          "TTMEM_DEBUG",
		"TTMEM_PHASE",          "TTMEM_ROOM",
		"TTMEM_HISTORY",        "TTMEM_STACK_DEPTH",
		"TT_BUFFER_DEBUG_LOG",  "TT_ALLOC_TRACKING_DETAILED",
		"TT_ALLOC_STACK_TRACE",
	};

	/* There is no other thread yet. */
	setenv("TTMEM", "1", 1);           /* NOLINT(concurrency-mt-unsafe) */
	setenv("TTMEM_SOCKET", "none", 1); /* NOLINT(concurrency-mt-unsafe) */
	setenv("TTMEM_UNLISTED", "1", 1);  /* NOLINT(concurrency-mt-unsafe) */
	setenv("TTMEM_STACKS", "off", 1);  /* NOLINT(concurrency-mt-unsafe): rows of their own */
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		unsetenv(dropped[i]); /* NOLINT(concurrency-mt-unsafe) */
}

static void bench_progress(const struct bench *bench, unsigned int round)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (round < bench->rounds)
		fprintf(stderr, "\rround %u of %u ", round + 1, bench->rounds);
	else
		fputs("\r\033[K", stderr);
}

/* Other work disturbs the batches, and two threads at once need two CPUs to themselves. */
static void bench_look_around(struct bench *bench)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double load;

	if (processors < 2)
		bench_note(bench, "one processor: two threads never run at once here");
	if (getloadavg(&load, 1) == 1 && load > (double)processors / 2)
		bench_note(bench,
			   "the machine is busy (load %.1f on %ld processors): repeat the run",
			   load, processors);
}

static void bench_run(struct bench *bench)
{
	bench_look_around(bench);
	bench_measure_calibrate(bench);
	for (size_t i = 0; i < ARRAY_SIZE(bench_parts); i++)
		bench_parts[i]->open(bench);
	for (unsigned int round = 0; round < bench->rounds; round++) {
		bench_progress(bench, round);
		for (size_t i = 0; i < ARRAY_SIZE(bench_parts); i++)
			bench_parts[i]->round(bench);
	}
	bench_progress(bench, bench->rounds);
	for (size_t i = 0; i < ARRAY_SIZE(bench_parts); i++)
		bench_parts[i]->close();
}

static int bench_main(int argc, char **argv)
{
	static struct bench bench = {.rounds = BENCH_ROUNDS};
	bool is_json = false;
	const struct options_item items[] = {
		{.name = "json", .help = "a document for programs", .target = &is_json},
		{.name = "quick", .help = "fewer and smaller batches", .target = &bench.is_quick},
		{.name = "large", .help = "16 million buffers too", .target = &bench.is_large},
		{.name = "python", .help = "calls from Python too", .target = &bench.has_python},
	};
	const struct options options = {
		.command = "bench",
		.summary = "What tracking costs on this machine.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int r;

	/* For bench-children.c only. */
	if (argc > 1 && strcmp(argv[1], "--child") == 0) {
		bench_environment();
		return bench_children_run(argc - 2, argv + 2);
	}
	r = options_parse_only(&options, argc, argv);
	if (r)
		return options_exit(r);
	if (bench.is_quick)
		bench.rounds = BENCH_ROUNDS_QUICK;
	output_start();
	bench_environment();
	bench_run(&bench);
	if (is_json)
		bench_report_json(&bench, stdout);
	else
		bench_report_text(&bench, stdout);
	for (size_t i = 0; i < bench.row_count; i++) {
		free(bench.rows[i].means.values);
		free(bench.rows[i].samples.values);
	}
	return output_finish();
}

const struct command bench_command = {"bench", "what tracking costs on this machine", bench_main};
