/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem diff: reads both, compares them, and judges if that was asked for. */

#include "cli/diff/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "model/query.h"

/* As those of ttmem run. */
#define DIFF_EXCEEDED 86
#define DIFF_UNTRACKED 87

/* How much more is allowed: of one of the two kinds. */
struct diff_limit {
	bool is_set;
	bool is_percent;
	double percent;
	uint64_t bytes;
};

struct diff_command {
	struct query query;
	struct diff_limit limit;
	bool json;
	bool all;
	const char *before, *after;
};

/* "64M", or "5%". */
static int diff_parse_limit(void *target, const char *text)
{
	struct diff_limit limit = {.is_set = true};
	char *end;
	int r;

	if (!strchr(text, '%')) {
		r = text_parse_size(text, &limit.bytes);
	} else {
		limit.is_percent = true;
		limit.percent = strtod(text, &end);
		r = end == text || strcmp(end, "%") != 0 || !(limit.percent >= 0) ? -EINVAL : 0;
	}
	if (r == 0)
		*(struct diff_limit *)target = limit;
	return r;
}

static int diff_parse(struct diff_command *command, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "by", "site|phase|name", "what rows are of (site)"},
		{0, "fail-above", "SIZE|PERCENT%",
		 "exit with 86 if a peak, or what is there at the end, has grown by more",
		 &command->limit, diff_parse_limit},
		{'a', "all", NULL, "all rows, not only the largest changes", &command->all, NULL},
		{0, "json", NULL, "as JSON", &command->json, NULL},
	};
	const struct options options = {
		.command = "diff",
		.arguments = "BEFORE AFTER",
		.summary = "What has changed from one run to another, or from one moment to "
			   "another. Each is a\nfile of `ttmem run --json`, a recording, or "
			   "RECORDING@MOMENT, as in run.ttrec@peak.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &command->query,
		.honours = QUERY_BY,
		.shows_sizes = true,
	};
	int count = 0, r = options_parse(&options, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 2)
		return options_count(&options, "two files to compare", count);
	command->before = argv[0];
	command->after = argv[1];
	return 0;
}

static bool diff_has_grown(const struct diff_limit *limit, const struct summary_amount *value)
{
	uint64_t before = value->before, after = value->after;

	if (!value->is_known || after <= before)
		return false;
	if (!limit->is_percent)
		return after - before > limit->bytes;
	return (double)(after - before) > (double)before * limit->percent / 100;
}

static bool diff_is_exceeded(const struct diff_limit *limit, const struct summary_changes *totals)
{
	for (size_t i = 0; i < totals->count; i++) {
		const struct summary_amount *values = totals->list[i].values;

		if (diff_has_grown(limit, &values[SUMMARY_PEAK]) ||
		    diff_has_grown(limit, &values[SUMMARY_END]))
			return true;
	}
	return false;
}

static void diff_deinit(struct diff *diff)
{
	summary_changes_deinit(&diff->totals);
	summary_changes_deinit(&diff->rows);
	diff_side_deinit(&diff->sides[0]);
	diff_side_deinit(&diff->sides[1]);
}

/* 0, or the exit code after the reason was reported. */
static int diff_load_both(struct diff *diff, const struct diff_command *command)
{
	const char *arguments[] = {command->before, command->after};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(arguments); i++) {
		diff->sides[i].summary.kind = command->query.by;
		r = diff_load(&diff->sides[i], arguments[i]);
	}
	return r;
}

static void diff_compare(struct diff *diff, const struct diff_command *command)
{
	const struct diff_side *before = &diff->sides[0], *after = &diff->sides[1];
	diff->totals = summary_diff(&before->summary.totals, &after->summary.totals, true);
	diff->rows = summary_diff(&before->summary.rows, &after->summary.rows, false);
	diff->by = command->query.by;
	diff->is_limited = command->limit.is_set;
	diff->is_exceeded = diff->is_limited && diff_is_exceeded(&command->limit, &diff->totals);
	if (command->query.by == GROUP_SITE && before->has_stacks != after->has_stacks &&
	    before->summary.rows.count > 0 && after->summary.rows.count > 0)
		(void)snprintf(diff->note, sizeof(diff->note),
			       "%s has no call stacks, so no call site is in both; try --by name",
			       before->has_stacks ? "the second" : "the first");
}

static int diff_exit(const struct diff *diff)
{
	int r = output_finish();

	if (r != COMMAND_OK || !diff->is_limited)
		return r;
	if (diff->is_exceeded) {
		fprintf(stderr, "ttmem diff: memory has grown by more than --fail-above allows\n");
		return DIFF_EXCEEDED;
	}
	if (!diff->sides[0].is_tracked || !diff->sides[1].is_tracked) {
		fprintf(stderr, "ttmem diff: nothing was tracked, so nothing was checked\n");
		return DIFF_UNTRACKED;
	}
	return COMMAND_OK;
}

static int diff_run(int argc, char **argv)
{
	CLEANUP(diff_deinit) struct diff diff = {.is_limited = false};
	struct diff_command command = {.query.by = GROUP_SITE};
	int r = diff_parse(&command, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = diff_load_both(&diff, &command);
	if (r != 0)
		return r;
	diff_compare(&diff, &command);
	if (!command.json)
		output_page();
	if (command.json)
		diff_json(&diff, clock_ns(CLOCK_REALTIME), stdout);
	else
		diff_text(&diff, command.all);
	return diff_exit(&diff);
}

const struct command diff_command = {
	.name = "diff",
	.summary = "what has changed from one run to another?",
	.run = diff_run,
};
