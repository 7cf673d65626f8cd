/* SPDX-License-Identifier: Apache-2.0 */

/* Prints tables for people, or one document for programs (docs/schema/bench.json). */

#include "cli/bench/bench-report.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/table.h"
#include "cli/bench/bench-goals.h"
#include "cli/bench/bench-measure.h"
#include "cli/common/output.h"

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

/* What is printed, from what was measured. */
static void bench_report_finish(struct bench *bench)
{
	double getppid = bench_report_p50(bench, "getppid", 0);
	double floor = bench_report_p50(bench, "floor", 0);
	double socket = bench_report_p50(bench, "socket_baseline", 1000);

	bench_machine_look(&bench->machine);
	for (struct bench_row *row = bench->rows; row < bench->rows + bench->row_count; row++) {
		row->p50 = bench_measure_quantile(&row->means, 0.5);
		row->p99 = bench_measure_quantile(&row->samples, 0.99);
		row->x_getppid = row->p50 / getppid;
		row->x_floor = row->p50 / floor;
		row->x_socket = row->p50 / socket;
	}
	bench->result_count = 0;
	for (size_t i = 0; i < bench_goals_count; i++) {
		const struct bench_goal *goal = &bench_goals[i];
		double value = bench_goals_value(bench, goal);

		assert(bench->result_count < BENCH_RESULTS_MAX);
		if (bench_goals_is_wanted(bench, goal))
			bench->results[bench->result_count++] =
				(struct bench_result){goal, value, bench_goals_judge(goal, value)};
	}
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

static void bench_report_cell_word(struct table *table, uint32_t verdict)
{
	const char *word = bench_goals_word(verdict);

	table_text(table, word ? word : "");
}

static void bench_report_rows(struct bench *bench, FILE *out)
{
	static const struct table_column columns[] = {
		{"name"},
		{"live", true},
		{"p50", true},
		{"p99", true},
		{"x getppid", true, .order = 2},
		{"x floor", true, .order = 1},
		{"x socket", true, .order = 3},
		{"within"},
	};
	struct table table;

	table_begin(&table, out, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < bench->row_count; i++) {
		const struct bench_row *row = &bench->rows[i];

		table_text(&table, row->name);
		bench_report_cell_live(&table, row->live);
		bench_report_cell_ns(&table, row->p50);
		bench_report_cell_ns(&table, row->p99);
		bench_report_cell(&table, row->x_getppid);
		bench_report_cell(&table, row->x_floor);
		bench_report_cell(&table, row->x_socket);
		bench_report_cell_word(&table, bench_goals_row(bench, row->name, row->live));
	}
	table_end(&table);
}

static void bench_report_goals(struct bench *bench, FILE *out)
{
	static const struct table_column columns[] = {
		{"goal", .cut = true}, {"live", true}, {"measured", true},
		{"must", true},        {"aim", true},  {"within"},
	};
	struct table table;

	table_begin(&table, out, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < bench->result_count; i++) {
		const struct bench_goal *goal = bench->results[i].goal;
		const char *sign = bench_goals_is_minimum(goal) ? ">=" : "<=";

		table_text(&table, goal->what);
		bench_report_cell_live(&table, goal->live);
		bench_report_cell(&table, bench->results[i].value);
		table_format(&table, "%s %g", sign, goal->must);
		table_format(&table, "%s %g", sign, goal->aim);
		bench_report_cell_word(&table, bench->results[i].verdict);
	}
	table_end(&table);
}

void bench_report_text(struct bench *bench, FILE *out)
{
	bench_report_finish(bench);
	bench_machine_text(&bench->machine, out);
	fputc('\n', out);
	bench_report_rows(bench, out);
	fputc('\n', out);
	bench_report_goals(bench, out);
	if (bench->note_count)
		fputc('\n', out);
	for (size_t i = 0; i < bench->note_count; i++)
		fprintf(out, "note: %s\n", bench->notes[i]);
}

#define ROW struct bench_row

static const struct field bench_report_row[] = {
	FIELD("name", TEXT, name),
	FIELD("live", NUMBER, live),
	FIELD_OR_NULL("ns_p50", DOUBLE, p50),
	FIELD_OR_NULL("ns_p99", DOUBLE, p99),
	FIELD_OR_NULL("x_getppid", DOUBLE, x_getppid),
	FIELD_OR_NULL("x_floor", DOUBLE, x_floor),
	FIELD_OR_NULL("x_socket", DOUBLE, x_socket),
	FIELD_END,
};

#undef ROW
#define ROW struct bench_figure

static const struct field bench_report_figure[] = {
	FIELD("name", TEXT, name),
	FIELD("live", NUMBER, live),
	FIELD("value", DOUBLE, value),
	FIELD("unit", TEXT, unit),
	FIELD_END,
};

static void bench_report_put_notes(struct emit *json, const char *key, const void *context)
{
	const struct bench *bench = context;

	emit_open_array(json, key);
	for (size_t i = 0; i < bench->note_count; i++)
		emit_string(json, NULL, bench->notes[i]);
	emit_close_array(json);
}

#undef ROW
#define ROW struct bench_result
#define GOAL(...) FIELD_VIA(goal, struct bench_goal, __VA_ARGS__)

static const struct field bench_report_result[] = {
	GOAL("what", TEXT, what),
	GOAL("live", NUMBER, live),
	FIELD_OR_NULL("value", DOUBLE, value),
	GOAL("must", DOUBLE, must),
	GOAL("aim", DOUBLE, aim),
	FIELD_OR_NULL("within", NAME, verdict, .names = bench_goals_word),
	FIELD_END,
};

#undef ROW
#define ROW struct bench

static const struct field bench_report_members[] = {
	FIELD_STRUCT("machine", machine, bench_machine_fields),
	FIELD_CODED("notes", bench_report_put_notes),
	FIELD_ARRAY("rows", rows, row_count, bench_report_row),
	FIELD_ARRAY("figures", figures, figure_count, bench_report_figure),
	FIELD_ARRAY("goals", results, result_count, bench_report_result),
	FIELD_END,
};

void bench_report_json(struct bench *bench, FILE *out)
{
	struct emit json = EMIT_INIT(out);

	bench_report_finish(bench);
	document_open(&json, "ttmem.bench/1", clock_ns(CLOCK_REALTIME));
	fields_put(&json, bench_report_members, bench);
	emit_close_object(&json);
	emit_end(&json);
}
