/* SPDX-License-Identifier: Apache-2.0 */

/* How numbers, rows and goals of a run with given figures are printed. Nothing is measured. */

#include "cli/bench/bench-report.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "cli/bench/bench-measure.h"
#include "cli/bench/bench.h"

static struct bench bench;

static void add(const char *name, uint64_t live, double ns)
{
	struct bench_row *row = bench_row_add(&bench, name, live);

	bench_measure_add(&row->means, ns);
	bench_measure_add(&row->samples, 2 * ns);
}

/* A run in which getppid takes 100 ns, floor 10 and the socket 1000. */
static void begin(void)
{
	add("getppid", 0, 100);
	add("floor", 0, 10);
	add("socket_baseline", 1000, 1000);
}

static void end(void)
{
	for (size_t i = 0; i < bench.row_count; i++) {
		free(bench.rows[i].means.values);
		free(bench.rows[i].samples.values);
	}
}

/* What @report prints; freed by the caller. */
static char *print(void (*report)(struct bench *bench, FILE *out))
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert(out);
	report(&bench, out);
	assert(fclose(out) == 0);
	return text;
}

/* Whether a line of @text has exactly these words. */
static bool has_line(const char *text, const char *words)
{
	char line[512];

	while (*text) {
		size_t used = 0, length = strcspn(text, "\n");

		for (size_t i = 0; i < length && used + 1 < sizeof(line); i++) {
			if (text[i] != ' ' || (used > 0 && line[used - 1] != ' '))
				line[used++] = text[i];
		}
		while (used > 0 && line[used - 1] == ' ')
			used--;
		line[used] = '\0';
		if (strcmp(line, words) == 0)
			return true;
		text += length + (text[length] == '\n');
	}
	return false;
}

UNIT(times_and_ratios_are_printed_in_fitting_units)
{
	char *text;

	begin();
	add("a", 5, 9.9);
	add("b", 0, 9999);
	add("c", 0, 10000);
	add("d", 0, 999999);
	add("e", 0, 1000000);
	(void)bench_row_add(&bench, "empty", 7);
	text = print(bench_report_text);
	/* p50, p99 and what they are of getppid, floor and socket */
	assert(has_line(text, "a 5 9.9 ns 19.8 ns 0.099 0.99 0.010"));
	assert(has_line(text, "b - 9999.0 ns 20.0 us 99.99 1000 10.00"));
	assert(has_line(text, "c - 10.0 us 20.0 us 100 1000 10.00"));
	assert(has_line(text, "d - 1000.0 us 2.00 ms 10000 100000 1000"));
	assert(has_line(text, "e - 1.00 ms 2.00 ms 10000 100000 1000"));
	assert(has_line(text, "empty 7 - - - - -"));
	assert(has_line(text, "floor - 10.0 ns 20.0 ns 0.10 1.00 0.010"));
	free(text);
	end();
}

UNIT(without_a_row_to_compare_with_there_is_no_ratio)
{
	char *text;

	add("a", 1, 50);
	text = print(bench_report_text);
	assert(has_line(text, "a 1 50.0 ns 100.0 ns - - -"));
	free(text);
	end();
}

UNIT(goals_are_judged_in_the_text)
{
	char *text;

	begin();
	add("event", 1000, 40); /* of getppid 0.4 or less is the aim; 4 floors are too much */
	add("event", 1000000, 300);
	bench_figure_add(&bench, "threads_2_total", 0, 0.5, "x");
	bench_figure_add(&bench, "first_one", 3, 2.5, "us");
	text = print(bench_report_text);
	assert(has_line(text, "event 1000 40.0 ns 80.0 ns 0.40 4.00 0.040 missed"));
	assert(has_line(text, "event / getppid 1000 0.40 <= 0.5 <= 0.4 aim"));
	assert(has_line(text, "event / floor 1000 4.00 <= 3 <= 2.4 missed"));
	assert(has_line(text, "event / getppid 1000000 3.00 <= 2.5 <= 1.9 missed"));
	assert(has_line(text, "socket_baseline / event 1000 25.00 >= 15 >= 25 aim"));
	assert(has_line(text, "event, p99 / p50 1000 2.00 <= 5 <= 3 aim"));
	assert(has_line(text, "threads_2_total - 0.50 >= 0.6 >= 0.6 missed"));
	assert(has_line(text, "threads_4_total - - >= 0.6 >= 0.6"));
	/* A goal of a row that was not measured is left out. */
	assert(!strstr(text, "python_event / getppid") && !strstr(text, "note:"));
	free(text);
	end();
}

UNIT(notes_follow_the_tables)
{
	char *text;

	begin();
	for (unsigned int i = 0; i < BENCH_NOTES_MAX; i++) {
		bench_note(&bench, "number %u", i);
		bench_note(&bench, "number 0"); /* is noted once */
	}
	text = print(bench_report_text);
	assert(strstr(text, "\n\nnote: number 0\nnote: number 1\n"));
	assert(strstr(text, "note: number 14\n") && !strstr(text, "number 15"));
	free(text);
	end();
}

static const json_t *find(const json_t *list, const char *key, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, key)), name) == 0)
			return row;
	}
	return NULL;
}

static bool is_number(const json_t *row, const char *key, double value)
{
	return fabs(json_number_value(json_object_get(row, key)) - value) < 1e-9;
}

UNIT(the_document_has_rows_figures_and_goals)
{
	const json_t *row;
	json_t *document;
	char *text;

	begin();
	add("event", 1000, 40);
	bench_figure_add(&bench, "first_one", 3, 2.5, "us");
	bench_figure_add(&bench, "other", 0, 4, "KiB");
	bench_note(&bench, "one");
	text = print(bench_report_json);
	document = json_loads(text, 0, NULL);
	assert(document);
	assert(strcmp(json_string_value(json_object_get(document, "schema")), "ttmem.bench/1") ==
	       0);
	assert(json_array_size(json_object_get(document, "notes")) == 1);
	assert(json_array_size(json_object_get(document, "rows")) == 4);
	row = find(json_object_get(document, "rows"), "name", "event");
	assert(is_number(row, "live", 1000) && is_number(row, "ns_p50", 40));
	assert(is_number(row, "ns_p99", 80) && is_number(row, "x_getppid", 0.4));
	assert(is_number(row, "x_floor", 4) && is_number(row, "x_socket", 0.04));
	assert(json_array_size(json_object_get(document, "figures")) == 2);
	row = find(json_object_get(document, "figures"), "name", "first_one");
	assert(is_number(row, "live", 3) && is_number(row, "value", 2.5));
	assert(strcmp(json_string_value(json_object_get(row, "unit")), "us") == 0);
	row = find(json_object_get(document, "goals"), "what", "event / floor");
	assert(is_number(row, "value", 4) && is_number(row, "must", 3) &&
	       is_number(row, "aim", 2.4));
	assert(strcmp(json_string_value(json_object_get(row, "within")), "missed") == 0);
	row = find(json_object_get(document, "goals"), "what", "threads_4_total");
	assert(json_is_null(json_object_get(row, "value")));
	assert(json_is_null(json_object_get(row, "within")));
	assert(!find(json_object_get(document, "goals"), "what", "python_event / getppid"));
	json_decref(document);
	free(text);
	end();
}

UNIT(a_quantile_is_one_of_the_values)
{
	struct bench_series series = {0};

	assert(isnan(bench_measure_quantile(&series, 0.5)));
	for (int i = 4; i > 0; i--)
		bench_measure_add(&series, i);
	assert(bench_measure_quantile(&series, 0) == 1 &&
	       bench_measure_quantile(&series, 0.5) == 3);
	assert(bench_measure_quantile(&series, 0.99) == 4 &&
	       bench_measure_quantile(&series, 1) == 4);
	free(series.values);
}

UNIT(what_timing_costs_is_left_out)
{
	bench.ticks_per_ns = 2;
	bench.timer_ns = 10;
	assert(bench_measure_span(&bench, 100, 160) == 20);
	assert(bench_measure_span(&bench, 100, 120) == 0 && bench_measure_span(&bench, 9, 9) == 0);
}
