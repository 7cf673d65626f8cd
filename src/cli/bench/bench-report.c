/* SPDX-License-Identifier: Apache-2.0 */

/* Prints tables for people, or one document for programs (docs/schema/bench.json). */

#include "cli/bench/bench-report.h"

#include <inttypes.h>
#include <math.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/table.h"
#include "cli/bench/bench-goals.h"
#include "cli/bench/bench-machine.h"
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

/* The denominators of the ratios. */
struct bench_report_measures {
	double getppid;
	double floor;
	double socket;
};

static struct bench_report_measures bench_report_measures(struct bench *bench)
{
	return (struct bench_report_measures){
		.getppid = bench_report_p50(bench, "getppid", 0),
		.floor = bench_report_p50(bench, "floor", 0),
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
		{"name"},
		{"live", true},
		{"p50", true},
		{"p99", true},
		{"x getppid", true, .order = 2},
		{"x floor", true, .order = 1},
		{"x socket", true, .order = 3},
		{"within"},
	};
	struct bench_report_measures measures = bench_report_measures(bench);
	struct table table;

	table_begin(&table, out, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < bench->row_count; i++) {
		struct bench_row *row = &bench->rows[i];
		double p50 = bench_measure_quantile(&row->means, 0.5);

		table_text(&table, row->name);
		bench_report_cell_live(&table, row->live);
		bench_report_cell_ns(&table, p50);
		bench_report_cell_ns(&table, bench_measure_quantile(&row->samples, 0.99));
		bench_report_cell(&table, p50 / measures.getppid);
		bench_report_cell(&table, p50 / measures.floor);
		bench_report_cell(&table, p50 / measures.socket);
		table_text(&table, bench_goals_word(bench_goals_row(bench, row->name, row->live)));
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
	for (size_t i = 0; i < bench_goals_count; i++) {
		const struct bench_goal *goal = &bench_goals[i];
		const char *sign = bench_goals_is_minimum(goal) ? ">=" : "<=";
		double value = bench_goals_value(bench, goal);

		if (!bench_goals_is_wanted(bench, goal))
			continue;
		table_text(&table, goal->what);
		bench_report_cell_live(&table, goal->live);
		bench_report_cell(&table, value);
		table_format(&table, "%s %g", sign, goal->must);
		table_format(&table, "%s %g", sign, goal->aim);
		table_text(&table, bench_goals_word(bench_goals_judge(goal, value)));
	}
	table_end(&table);
}

void bench_report_text(struct bench *bench, FILE *out)
{
	struct bench_machine machine;

	bench_machine_look(&machine);
	bench_machine_text(&machine, out);
	fputc('\n', out);
	bench_report_rows(bench, out);
	fputc('\n', out);
	bench_report_goals(bench, out);
	if (bench->note_count)
		fputc('\n', out);
	for (size_t i = 0; i < bench->note_count; i++)
		fprintf(out, "note: %s\n", bench->notes[i]);
}

static void bench_report_json_rows(struct bench *bench, struct emit *json)
{
	struct bench_report_measures measures = bench_report_measures(bench);

	emit_open_array(json, "rows");
	for (size_t i = 0; i < bench->row_count; i++) {
		struct bench_row *row = &bench->rows[i];
		double p50 = bench_measure_quantile(&row->means, 0.5);

		emit_open_object(json, NULL);
		emit_string(json, "name", row->name);
		emit_u64(json, "live", row->live);
		emit_double(json, "ns_p50", p50);
		emit_double(json, "ns_p99", bench_measure_quantile(&row->samples, 0.99));
		emit_double(json, "x_getppid", p50 / measures.getppid);
		emit_double(json, "x_floor", p50 / measures.floor);
		emit_double(json, "x_socket", p50 / measures.socket);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void bench_report_json_figures(const struct bench *bench, struct emit *json)
{
	emit_open_array(json, "figures");
	for (size_t i = 0; i < bench->figure_count; i++) {
		const struct bench_figure *figure = &bench->figures[i];

		emit_open_object(json, NULL);
		emit_string(json, "name", figure->name);
		emit_u64(json, "live", figure->live);
		emit_double(json, "value", figure->value);
		emit_string(json, "unit", figure->unit);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void bench_report_json_goals(struct bench *bench, struct emit *json)
{
	emit_open_array(json, "goals");
	for (size_t i = 0; i < bench_goals_count; i++) {
		const struct bench_goal *goal = &bench_goals[i];
		double value = bench_goals_value(bench, goal);
		enum bench_goals_verdict verdict = bench_goals_judge(goal, value);

		if (!bench_goals_is_wanted(bench, goal))
			continue;
		emit_open_object(json, NULL);
		emit_string(json, "what", goal->what);
		emit_u64(json, "live", goal->live);
		emit_double(json, "value", value);
		emit_double(json, "must", goal->must);
		emit_double(json, "aim", goal->aim);
		emit_string(json, "within", verdict ? bench_goals_word(verdict) : NULL);
		emit_close_object(json);
	}
	emit_close_array(json);
}

void bench_report_json(struct bench *bench, FILE *out)
{
	struct emit json = EMIT_INIT(out);
	struct bench_machine machine;

	bench_machine_look(&machine);
	emit_open_object(&json, NULL);
	emit_string(&json, "schema", "ttmem.bench/1");
	emit_u64(&json, "time_ns", clock_ns(CLOCK_REALTIME));
	bench_machine_json(&machine, &json);
	emit_open_array(&json, "notes");
	for (size_t i = 0; i < bench->note_count; i++)
		emit_string(&json, NULL, bench->notes[i]);
	emit_close_array(&json);
	bench_report_json_rows(bench, &json);
	bench_report_json_figures(bench, &json);
	bench_report_json_goals(bench, &json);
	emit_close_object(&json);
	emit_end(&json);
}
