/* SPDX-License-Identifier: Apache-2.0 */

/* Goals: which rows have one, and how given figures are judged. Nothing is measured. */

#include "cli/bench/bench-goals.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "cli/bench/bench-measure.h"
#include "cli/bench/bench-report.h"
#include "cli/bench/bench.h"

static const uint64_t goals_live[] = {1000, 100000, 1000000};

/* A run in which getppid takes 100 ns and floor 10. */
static struct bench *goals_bench(void)
{
	static struct bench bench;

	bench_measure_add(&bench_row_add(&bench, "getppid", 0)->means, 100);
	bench_measure_add(&bench_row_add(&bench, "floor", 0)->means, 10);
	return &bench;
}

static void goals_free(struct bench *bench)
{
	for (size_t i = 0; i < bench->row_count; i++)
		free(bench->rows[i].means.values);
}

static enum bench_goals_verdict goals_verdict(struct bench *bench, const char *name, uint64_t live,
					      double ns)
{
	struct bench_row *row = bench_row_find(bench, name, live);

	if (!row)
		row = bench_row_add(bench, name, live);
	row->means.count = 0;
	bench_measure_add(&row->means, ns);
	return bench_goals_row(bench, name, live);
}

UNIT(rows_with_stacks_are_judged_at_every_size)
{
	static const struct {
		const char *name;
		double must[3], aim[3]; /* ns */
	} rows[] = {
		{"event_default", {100, 170, 260}, {80, 170, 260}},
		{"event_default_changing", {100, 170, 260}, {80, 170, 260}},
		{"event_stack", {70, 120, 270}, {50, 90, 200}},
		{"event_stack_changing", {70, 120, 270}, {50, 90, 200}},
		{"event_stack_unwind", {220, 270, 420}, {170, 210, 320}},
		{"event_stack_unwind_changing", {220, 270, 420}, {170, 210, 320}},
	};
	struct bench *bench = goals_bench();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(goals_live); k++) {
			const char *name = rows[i].name;
			uint64_t live = goals_live[k];

			assert(bench_goals_row(bench, name, live) == BENCH_GOALS_UNKNOWN);
			assert(goals_verdict(bench, name, live, rows[i].aim[k] - 1) ==
			       BENCH_GOALS_AIM);
			if (rows[i].aim[k] < rows[i].must[k])
				assert(goals_verdict(bench, name, live, rows[i].aim[k] + 1) ==
				       BENCH_GOALS_MUST);
			assert(goals_verdict(bench, name, live, rows[i].must[k] - 1) <=
			       BENCH_GOALS_MUST);
			assert(goals_verdict(bench, name, live, rows[i].must[k] + 1) ==
			       BENCH_GOALS_MISSED);
		}
	}
	goals_free(bench);
}

/* What a stack may add to an event is counted in floors, and so are event and mesh. */
UNIT(rows_are_judged_by_the_floor)
{
	static const struct {
		const char *name;
		double must, aim; /* ns, with an event of 20 */
	} rows[] = {
		{"event", 30, 24},
		{"mesh32_per_device", 30, 25},
		{"event_stack", 55, 45},
		{"event_stack_changing", 55, 45},
		{"event_stack_unwind", 100, 80},
		{"event_stack_unwind_changing", 100, 80},
	};
	struct bench *bench = goals_bench();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)goals_verdict(bench, "event", 1000, 20);
		assert(goals_verdict(bench, rows[i].name, 1000, rows[i].aim - 1) ==
		       BENCH_GOALS_AIM);
		assert(goals_verdict(bench, rows[i].name, 1000, rows[i].aim + 1) ==
		       BENCH_GOALS_MUST);
		assert(goals_verdict(bench, rows[i].name, 1000, rows[i].must + 1) ==
		       BENCH_GOALS_MISSED);
	}
	goals_free(bench);
}

UNIT(each_goal_is_printed_with_what_was_measured)
{
	static const char cells[] = "1000      2.00    <= 3  <= 2.4  aim\n";
	struct bench *bench = goals_bench();
	char *text = NULL, *row;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)goals_verdict(bench, "event", 1000, 20);
	bench_report_text(bench, out);
	assert(fclose(out) == 0);
	row = strstr(text, "\nevent / floor ");
	assert(row);
	row += strcspn(row, "0123456789");
	assert(strncmp(row, cells, strlen(cells)) == 0);
	free(text);
	goals_free(bench);
}

/* A goal for a row that is never measured would never be reported. */
UNIT(every_goal_names_a_measured_row)
{
	struct bench *bench = goals_bench();

	bench_stack.open(bench);
	for (size_t i = 0; i < bench_goals_count; i++) {
		if (strncmp(bench_goals[i].row, "event_stack", strlen("event_stack")) == 0 ||
		    strncmp(bench_goals[i].row, "event_default", strlen("event_default")) == 0)
			assert(bench_goals_is_wanted(bench, &bench_goals[i]));
	}
	bench_stack.close();
	goals_free(bench);
}
