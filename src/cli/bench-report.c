/* SPDX-License-Identifier: Apache-2.0 */

/* Printing: tables for people, one document for programs (docs/schema/bench.json). */

#include "cli/bench-report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "base/bits.h"
#include "base/table.h"
#include "book/clock.h"
#include "cli/bench-goals.h"
#include "cli/bench-measure.h"

double bench_report_p50(struct bench *bench, const char *name, uint64_t live)
{
	struct bench_row *row = bench_row_find(bench, name, live);

	return row ? bench_measure_quantile(&row->means, 0.5) : NAN;
}

double bench_report_p99(struct bench *bench, const char *name, uint64_t live)
{
	struct bench_row *row = bench_row_find(bench, name, live);

	return row ? bench_measure_quantile(&row->samples, 0.99) : NAN;
}

/* What both ratios are taken of. */
struct bench_report_measures {
	double getppid;
	double socket;
};

static struct bench_report_measures bench_report_measures(struct bench *bench)
{
	return (struct bench_report_measures){
		.getppid = bench_report_p50(bench, "getppid", 0),
		.socket = bench_report_p50(bench, "socket_baseline", 1000),
	};
}

static void bench_report_cell_ns(struct table *table, double ns)
{
	if (isnan(ns))
		table_text(table, "-");
	else if (ns < 1e4)
		table_format(table, "%.1f ns", ns);
	else if (ns < 1e6)
		table_format(table, "%.1f us", ns / 1e3);
	else
		table_format(table, "%.2f ms", ns / 1e6);
}

static void bench_report_cell(struct table *table, double value)
{
	if (isnan(value))
		table_text(table, "-");
	else
		table_format(table, value < 0.1 ? "%.3f" : value < 100 ? "%.2f" : "%.0f", value);
}

static void bench_report_cell_live(struct table *table, uint64_t live)
{
	if (live)
		table_format(table, "%" PRIu64, live);
	else
		table_text(table, "-");
}

static void bench_report_rows(struct bench *bench, FILE *out)
{
	static const struct table_column columns[] = {
		{.title = "name", .width = 26},
		{.title = "live", .width = 7, .right = true},
		{.title = "p50", .width = 9, .right = true},
		{.title = "p99", .width = 9, .right = true},
		{.title = "x getppid", .width = 9, .right = true},
		{.title = "x socket", .width = 9, .right = true},
		{.title = "within", .width = 6},
	};
	struct bench_report_measures measures = bench_report_measures(bench);
	struct table table;

	table_begin(&table, out, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < bench->row_count; i++) {
		struct bench_row *row = &bench->rows[i];
		double p50 = bench_measure_quantile(&row->means, 0.5);

		table_text(&table, row->name);
		bench_report_cell_live(&table, row->live);
		bench_report_cell_ns(&table, p50);
		bench_report_cell_ns(&table, bench_measure_quantile(&row->samples, 0.99));
		bench_report_cell(&table, p50 / measures.getppid);
		bench_report_cell(&table, p50 / measures.socket);
		table_text(&table, bench_goals_word(bench_goals_row(bench, row->name, row->live)));
	}
}

static void bench_report_goals(struct bench *bench, FILE *out)
{
	static const struct table_column columns[] = {
		{.title = "goal", .width = 33},
		{.title = "live", .width = 7, .right = true},
		{.title = "measured", .width = 9, .right = true},
		{.title = "must", .width = 6, .right = true},
		{.title = "aim", .width = 6, .right = true},
		{.title = "within", .width = 6},
	};
	struct table table;

	table_begin(&table, out, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < bench_goals_count; i++) {
		const struct bench_goal *goal = &bench_goals[i];
		const char *sign = goal->kind == BENCH_GOALS_TIMES ? ">=" : "<=";
		double value = bench_goals_value(bench, goal);

		table_text(&table, goal->what);
		bench_report_cell_live(&table, goal->live);
		bench_report_cell(&table, value);
		table_format(&table, "%s %g", sign, goal->must);
		table_format(&table, "%s %g", sign, goal->aim);
		table_text(&table, bench_goals_word(bench_goals_judge(goal, value)));
	}
}

void bench_report_text(struct bench *bench, FILE *out)
{
	bench_report_rows(bench, out);
	fputc('\n', out);
	bench_report_goals(bench, out);
	if (bench->note_count)
		fputc('\n', out);
	for (size_t i = 0; i < bench->note_count; i++)
		fprintf(out, "note: %s\n", bench->notes[i]);
}

/* A number; null if there is none. */
static json_t *bench_report_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *bench_report_json_rows(struct bench *bench)
{
	struct bench_report_measures measures = bench_report_measures(bench);
	json_t *rows = json_array();

	for (size_t i = 0; i < bench->row_count; i++) {
		struct bench_row *row = &bench->rows[i];
		double p50 = bench_measure_quantile(&row->means, 0.5);
		double p99 = bench_measure_quantile(&row->samples, 0.99);

		json_array_append_new(
			rows, json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "name", row->name, "live",
					(json_int_t)row->live, "ns_p50", bench_report_number(p50),
					"ns_p99", bench_report_number(p99), "x_getppid",
					bench_report_number(p50 / measures.getppid), "x_socket",
					bench_report_number(p50 / measures.socket)));
	}
	return rows;
}

static json_t *bench_report_json_figures(const struct bench *bench)
{
	json_t *figures = json_array();

	for (size_t i = 0; i < bench->figure_count; i++) {
		const struct bench_figure *figure = &bench->figures[i];

		json_array_append_new(figures,
				      json_pack("{s:s, s:I, s:o, s:s}", "name", figure->name,
						"live", (json_int_t)figure->live, "value",
						bench_report_number(figure->value), "unit",
						figure->unit));
	}
	return figures;
}

static json_t *bench_report_json_goals(struct bench *bench)
{
	json_t *goals = json_array();

	for (size_t i = 0; i < bench_goals_count; i++) {
		const struct bench_goal *goal = &bench_goals[i];
		double value = bench_goals_value(bench, goal);
		enum bench_goals_verdict verdict = bench_goals_judge(goal, value);

		json_array_append_new(goals, json_pack("{s:s, s:I, s:o, s:o, s:o, s:s?}", "what",
						       goal->what, "live", (json_int_t)goal->live,
						       "value", bench_report_number(value), "must",
						       bench_report_number(goal->must), "aim",
						       bench_report_number(goal->aim), "within",
						       verdict ? bench_goals_word(verdict) : NULL));
	}
	return goals;
}

/* The only document with numbers that are no integers, and a short one: so it is built and dumped. */
void bench_report_json(struct bench *bench, FILE *out)
{
	json_t *notes = json_array();
	json_t *document;

	for (size_t i = 0; i < bench->note_count; i++)
		json_array_append_new(notes, json_string(bench->notes[i]));
	document = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "schema", "ttmem.bench/1", "time_ns",
			     (json_int_t)clock_ns(CLOCK_REALTIME), "notes", notes, "rows",
			     bench_report_json_rows(bench), "figures",
			     bench_report_json_figures(bench), "goals",
			     bench_report_json_goals(bench));
	/* What cannot be written shows at the end, as with any other command. */
	(void)json_dumpf(document, out, JSON_COMPACT | JSON_REAL_PRECISION(5));
	fputc('\n', out);
	json_decref(document);
}
