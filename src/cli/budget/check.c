/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem check: whether a run has kept to its budget, and a budget from a run. */

#include <errno.h>
#include <stdio.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/budget/budget-file.h"
#include "cli/budget/budget-options.h"
#include "cli/budget/budget-output.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "recording/read/recording.h"

struct check {
	const char *path; /* of the report or recording */
	struct budget_options options;
	bool update, json, quiet;
	struct budget_file *file; /* to update; owned */
	bool is_new;              /* it has no limits yet */
	struct budget_result result;
	bool is_over, is_unmatched; /* a limit; for JSON */
};

static int check_parse(struct check *check, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "budget", "FILE", "limits from FILE (ttmem.budget/1)", &check->options.file,
		 options_text},
		{0, "limit", "LIMIT=SIZE",
		 "DRAM=4G, 0:L1=1M, phase:decode=2G, site:load=1G; may be given again",
		 &check->options.limits, budget_options_limit},
		{0, "update", NULL,
		 "do not check: set the limits in the budget to what the run held", &check->update,
		 NULL},
		{0, "json", NULL, "as JSON", &check->json, NULL},
		{0, "junit", "FILE", "write a test case for each limit, as JUnit does",
		 &check->options.junit, options_text},
		{0, "annotate", "github", "mark the code that exceeded a limit, in GitHub's way",
		 &check->options.annotates, budget_options_annotate},
		{'q', "quiet", NULL, "print only limits that are not kept", &check->quiet, NULL},
	};
	const struct options options = {
		.command = "check",
		.shows_sizes = true,
		.arguments = "FILE",
		.summary =
			"Compares a run with limits. FILE is a recording, or what `ttmem run "
			"--json` has written. A\nlimit is [DEVICE:]TYPE, "
			"[DEVICE:][TYPE:]phase:NAME or [DEVICE:][TYPE:]site:NAME: no process\n"
			"may have held more on a device, of a type. Of phases and call sites a "
			"recording knows the\nhighest moment, a report only what was live at the "
			"peaks. A call site is matched by any\nframe of its stack. The exit code "
			"is 86 if a limit is "
			"exceeded or matches nothing,\n87 if nothing was tracked in the run, else "
			"0.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int count;
	int r = options_parse(&options, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 1)
		return options_count(&options, "one file, a recording or a report of ttmem run",
				     count);
	check->path = argv[0];
	if (!check->options.file && check->options.limits.count == 0)
		return options_mistake("check",
				       "needs limits: --budget FILE or --limit LIMIT=SIZE");
	if (check->update && (!check->options.file || check->options.limits.count > 0))
		return options_mistake("check",
				       "--update writes the file of --budget, and takes no "
				       "--limit");
	return 0;
}

/* The budget to update, read or new. 0, or a code after the reason was reported. */
static int check_open_budget(struct check *check)
{
	char error[BUDGET_FILE_ERROR];
	int r = budget_file_load(check->options.file, &check->result.budget, &check->file, error);

	if (r == -EINVAL) {
		fprintf(stderr, "ttmem check: budget %s: %s\n", check->options.file, error);
		return COMMAND_USAGE;
	}
	if (r == -ENOENT)
		check->file = budget_file_new();
	return 0;
}

/* A new file gets the types that were held; one that is there keeps its choice of limits. */
static void check_fill_budget(struct check *check)
{
	struct budget_result *result = &check->result;
	struct budget_file *file = check->file;

	budget_result_judge(result);
	check->is_new = result->budget.count == 0;
	if (check->is_new)
		budget_file_fill(file, &result->summary, &result->budget);
	else
		budget_file_update(file, result->verdicts, result->budget.count);
}

/* "site:load  1.0 GiB, was 4.0 GiB". */
static void check_put_updated(const struct budget_limit *limit,
			      const struct budget_verdict *verdict)
{
	char now[TEXT_NUMBER_SIZE], before[TEXT_NUMBER_SIZE];

	(void)fputs("  ", stdout);
	text_put(stdout, limit->key);
	text_size(limit->bytes, before);
	if (!verdict)
		printf("  %s, new\n", before);
	else if (verdict->moment && verdict->bytes == limit->bytes)
		printf("  %s, as before\n", before);
	else if (verdict->moment)
		printf("  %s, was %s\n", text_size(verdict->bytes, now), before);
	else
		printf("  %s, left as it is: nothing of it was seen\n", before);
}

/* What was written, and into which file. */
static void check_put_update(const struct check *check)
{
	const struct budget_result *result = &check->result;

	text_put(stdout, check->options.file);
	(void)fputs(result->budget.count ? ":\n" : ": no limits, nothing was held\n", stdout);
	for (size_t i = 0; i < result->budget.count; i++)
		check_put_updated(&result->budget.limits[i],
				  check->is_new ? NULL : &result->verdicts[i]);
}

static int check_update(struct check *check)
{
	int r;

	if (!check->result.summary.is_tracked) {
		fprintf(stderr, "ttmem check: nothing was tracked: no budget comes from that\n");
		return COMMAND_UNTRACKED;
	}
	if (check->result.summary.gave_up) {
		fprintf(stderr, "ttmem check: tracking gave up: no budget comes from that\n");
		return COMMAND_UNTRACKED;
	}
	check_fill_budget(check);
	r = output_write_file("check", check->options.file, budget_file_write, check->file);
	if (r < 0)
		return COMMAND_FAILED;
	if (!check->quiet)
		check_put_update(check);
	return output_finish();
}

#define ROW struct check

static const struct field check_members[] = {
	FIELD("file", TEXT, path, .says = "the report or recording that was checked"),
	FIELD("tracked", BOOL, result.summary.is_tracked,
	      .says = "false: nothing was tracked, so nothing was checked"),
	FIELD("over", BOOL, is_over, .says = "a limit is exceeded"),
	FIELD("unmatched", BOOL, is_unmatched, .is_later = true,
	      .says = "a limit that is not optional matches nothing"),
	FIELD_MORE_OF(result, budget_result_fields),
	FIELD_END,
};

const struct document check_document = {
	.schema = "ttmem.check/1",
	.title = "ttmem check --json: whether a run has kept to its limits",
	.members = check_members,
	.has = DOCUMENT_LIST,
};

static void check_put_json(struct check *check)
{
	const struct budget_summary *summary = &check->result.summary;
	const struct document_about about = {
		.time_ns = clock_ns(CLOCK_REALTIME),
		.is_partial = summary->is_incomplete || summary->is_cut || summary->gave_up,
	};
	struct emit json = EMIT_INIT(stdout);

	check->is_over = check->result.over > 0;
	check->is_unmatched = check->result.failed > check->result.over;
	document_put_about(&json, &check_document, &about, check);
}

static int check_exit_code(const struct budget_result *result)
{
	if (result->failed)
		return COMMAND_EXCEEDED;
	if (!result->summary.is_tracked) {
		fprintf(stderr, "ttmem check: nothing was tracked, so nothing was checked\n");
		return COMMAND_UNTRACKED;
	}
	if (result->summary.gave_up) {
		(void)fputs("ttmem check: tracking gave up, so not everything was checked: ",
			    stderr);
		text_put(stderr, result->summary.gave_up);
		(void)fputc('\n', stderr);
		return COMMAND_UNTRACKED;
	}
	/* What could not be looked at may have held more. */
	if (result->summary.is_incomplete) {
		fprintf(stderr, "ttmem check: not all processes of the run could be looked at\n");
		return COMMAND_EXCEEDED;
	}
	if (result->summary.is_cut) {
		fprintf(stderr, "ttmem check: the end of the recording is missing\n");
		return COMMAND_EXCEEDED;
	}
	return COMMAND_OK;
}

static int check_judge(struct check *check)
{
	struct budget_result *result = &check->result;
	int code;

	budget_result_judge(result);
	if (check->json)
		check_put_json(check);
	else
		budget_put_text(result, !check->quiet, stdout);
	code = output_finish();
	if (budget_options_write("check", &check->options, result) < 0 && code == COMMAND_OK)
		code = COMMAND_FAILED;
	return code ? code : check_exit_code(result);
}

/* The limits come first: which phases and call sites to look for in a recording is told by them. */
static int check_load_budget(struct check *check)
{
	if (check->update)
		return check_open_budget(check);
	return budget_options_load("check", &check->options, &check->result.budget) < 0
		       ? COMMAND_USAGE
		       : 0;
}

static int check_load(struct check *check)
{
	struct budget_summary *summary = &check->result.summary;
	char error[BUDGET_FILE_ERROR];
	int code = check_load_budget(check);

	if (code != 0)
		return code;
	if (recording_is_file(check->path))
		return budget_summary_load_recording(check->path, &check->result.budget, summary);
	if (budget_summary_load(check->path, summary, error, sizeof(error)) == 0)
		return 0;
	fprintf(stderr, "ttmem check: %s: %s\n", check->path, error);
	return COMMAND_USAGE;
}

static int check_run(int argc, char **argv)
{
	struct check check = {.result = BUDGET_RESULT_NULL};
	int code, r = check_parse(&check, argc, argv);

	if (r != 0) {
		budget_deinit(&check.options.limits);
		return options_exit(r);
	}
	output_start();
	code = check_load(&check);
	if (code == 0)
		code = check.update ? check_update(&check) : check_judge(&check);
	budget_file_free(check.file);
	budget_result_deinit(&check.result);
	budget_deinit(&check.options.limits);
	return code;
}

const struct command check_command = {
	.name = "check",
	.summary = "whether a run has kept to its limits; a budget from a run",
	.run = check_run,
};
