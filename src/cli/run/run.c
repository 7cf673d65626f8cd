/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `ttmem run`: options, exit code, and where the report goes. The summary goes to standard error,
 * so that the command's own output can still be piped.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/budget/budget-options.h"
#include "cli/budget/budget-output.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/run/run-black-box.h"
#include "cli/run/run-family.h"
#include "cli/run/run-limits.h"
#include "cli/run/run-record.h"
#include "cli/run/run-report.h"
#include "cli/run/run-shim.h"
#include "model/types.h"

struct run_options {
	bool fail_on_leak;
	bool strict_close;
	bool require_tracking;
	bool no_require_tracking;
	bool quiet;
	uint32_t ignored;
	const char *baseline;
	const char *json;
	const char *markdown;
	bool metal;
	const char *record;
	uint64_t record_max;
	const char *black_box; /* folder; NULL = none */
	struct budget_options budget;
};

/* What the run is judged by. */
struct run_checks {
	struct baseline *baseline;
	struct budget_result limits;
};

/* As long as it can be: a recorder that shares two cores with its command is late at times. */
#define RUN_HISTORY "1048576"

static int run_ignore(void *target, const char *text)
{
	uint32_t *ignored = target;
	uint32_t type;
	int r = types_parse(text, &type);

	if (r == 0)
		*ignored |= 1u << type;
	return r;
}

static int run_black_box_folder(void *target, const char *text)
{
	*(const char **)target = *text ? text : ".";
	return 0;
}

static const char run_summary[] =
	"Runs COMMAND with tracking on, and tells at the end what it and all its "
	"descendants\nheld at most and what they left behind. A leak is a buffer "
	"that holds device memory\nwhen its process ends. The exit code is "
	"COMMAND's own if that is not 0 (128 + N if\nsignal N killed it), else 86 "
	"on a leak with --fail-on-leak or if a limit is\nexceeded, else 87 if "
	"nothing was tracked or tracking gave up and\n--require-tracking, --fail-on-leak, "
	"--baseline, --limit or --budget was given, else 0.";

/* Whether options go together. 0, or -EINVAL after the mistake was reported. */
static int run_check_options(const struct run_options *run)
{
	const struct budget_options *budget = &run->budget;

	if (run->require_tracking && run->no_require_tracking)
		return options_mistake("run",
				       "--require-tracking or --no-require-tracking, not both");
	if ((budget->junit || budget->annotates) && !run->fail_on_leak && !budget->file &&
	    budget->limits.count == 0)
		return options_mistake("run", "--junit and --annotate need --fail-on-leak, --limit "
					      "or --budget");
	if (run->record_max && !run->record)
		return options_mistake("run", "--max-size needs --record");
	return 0;
}

/* What remains in argv is the command. */
static int run_parse(struct run_options *run, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "fail-on-leak", NULL, "exit with 86 if anything was left behind",
		 &run->fail_on_leak, NULL},
		{0, "baseline", "FILE", "leaks in FILE (an earlier --json) are known: no failure",
		 &run->baseline, options_text},
		{0, "ignore", "TYPE", "buffers of that type are no leaks; may be given again",
		 &run->ignored, run_ignore},
		{0, "limit", "LIMIT=SIZE",
		 "exit with 86 if a process held more: DRAM=4G, 0:L1=1M, phase:decode=2G, "
		 "site:load=1G; may be given again",
		 &run->budget.limits, budget_options_limit},
		{0, "budget", "FILE", "the same with limits from FILE (ttmem.budget/1)",
		 &run->budget.file, options_text},
		{0, "strict-close", NULL,
		 "also report what was live when its device was closed, as a leak would be",
		 &run->strict_close, NULL},
		{0, "require-tracking", NULL,
		 "exit with 87 if nothing was tracked, or not all; a check such as --fail-on-leak "
		 "implies it",
		 &run->require_tracking, NULL},
		{0, "no-require-tracking", NULL, "do not, whatever is checked",
		 &run->no_require_tracking, NULL},
		{0, "json", "FILE", "write the report as JSON (- is standard output)", &run->json,
		 options_text},
		{0, "markdown", "FILE", "write a summary for a merge request", &run->markdown,
		 options_text},
		{0, "junit", "FILE", "write a test case for leaks and each limit, as JUnit does",
		 &run->budget.junit, options_text},
		{0, "annotate", "github",
		 "mark the code that leaked or exceeded a limit, in GitHub's way",
		 &run->budget.annotates, budget_options_annotate},
		{0, "metal", NULL, "track a tt-metal that was not built for ttmem", &run->metal,
		 NULL},
		{0, "record", "FILE", "record every event of every process into FILE", &run->record,
		 options_text},
		{0, "max-size", "SIZE", "of that file, such as 2G: there the recording ends",
		 &run->record_max, options_size},
		{0, "black-box", "[=FOLDER]",
		 "record the last minute of a process that fails to allocate, is killed or leaks",
		 &run->black_box, run_black_box_folder},
		{'q', "quiet", NULL, "no summary on standard error", &run->quiet, NULL},
	};
	const struct options options = {
		.command = "run",
		.shows_sizes = true,
		.arguments = "[--] COMMAND [ARGUMENT]...",
		.summary = run_summary,
		.items = items,
		.count = ARRAY_SIZE(items),
		.stop_at_first = true,
	};
	int count;
	int r = options_parse(&options, argc, argv, &count);

	if (r == 0 && count == 0)
		r = options_mistake("run", "expects a command to run, got nothing");
	return r == 0 ? run_check_options(run) : r;
}

/* A check that looked at nothing must not pass. */
static bool run_requires_tracking(const struct report *report, const struct run_options *options)
{
	return options->require_tracking ||
	       (!options->no_require_tracking &&
		(options->fail_on_leak || options->baseline || report->limits->budget.count > 0));
}

static int run_exit_code(const struct report *report, const struct run_options *options)
{
	const struct ending *command = &report->family->command;

	if (ending_signal(command))
		return 128 + ending_signal(command);
	if (WEXITSTATUS(command->status) != 0)
		return WEXITSTATUS(command->status);
	if (options->fail_on_leak && (report->new_buffers || report->held_buffers))
		return COMMAND_EXCEEDED;
	if (report->limits->failed)
		return COMMAND_EXCEEDED;
	/* Processes that could not be judged may have leaked, or held too much. */
	if ((options->fail_on_leak || report->limits->budget.count > 0) &&
	    (report->family->refused || report->family->trouble))
		return COMMAND_EXCEEDED;
	return (!report->is_tracked || report->family->gave_up) &&
			       run_requires_tracking(report, options)
		       ? COMMAND_UNTRACKED
		       : 0;
}

/* Even if the summary is not wanted: it is the reason for the exit code. */
static void run_tell_untracked(const struct family *family)
{
	(void)fputs("ttmem run: ", stderr);
	if (family->gave_up) {
		fprintf(stderr, "tracking gave up in process %" PRIu32 ": ", family->gave_up_pid);
		text_put(stderr, family->gave_up);
		(void)fputs("; not everything was checked", stderr);
	} else {
		(void)fputs("nothing was tracked, so nothing was checked", stderr);
	}
	fprintf(stderr, " (exit code %d; --no-require-tracking accepts it)\n", COMMAND_UNTRACKED);
}

static void run_judge_limits(const struct family *family, const struct run_options *options,
			     struct budget_result *limits)
{
	run_limits_summarise(family, &limits->summary);
	budget_result_judge(limits);
	/* Whoever accepts that nothing is tracked is not told of it as an error. */
	limits->summary.is_tracked |= options->no_require_tracking;
	if (options->no_require_tracking)
		limits->summary.gave_up = NULL;
}

static void run_write_json(const void *report, FILE *out)
{
	report_json(report, out);
}

static void run_write_markdown(const void *report, FILE *out)
{
	report_markdown(report, out);
}

/* Writes all that was asked for. 0, or -1 after the reason was reported. */
static int run_write(const struct report *report, const struct run_options *options)
{
	if (options->json && output_write_file("run", options->json, run_write_json, report) < 0)
		return -1;
	if (options->markdown &&
	    output_write_file("run", options->markdown, run_write_markdown, report) < 0)
		return -1;
	if (options->budget.annotates && options->fail_on_leak)
		report_github(report, stderr);
	return budget_options_write("run", &options->budget, report->limits);
}

static int run_tell(struct family *family, const struct run_options *options,
		    struct run_checks *checks, char **argv, uint64_t started_ns)
{
	CLEANUP_FREE char *leaks = NULL;
	struct report report;
	int code;

	run_limits_find_gave_up(family);
	run_judge_limits(family, options, &checks->limits);
	report_init(&report, family, options->ignored, checks->baseline);
	leaks = report_leak_lines(&report);
	if (options->fail_on_leak)
		checks->limits.leaks = leaks;
	report.limits = &checks->limits;
	report.argv = argv;
	report.has_shim = options->metal;
	report.duration_ns = clock_ns(CLOCK_MONOTONIC) - started_ns;
	code = run_exit_code(&report, options);
	if (!options->quiet)
		report_text(&report, stderr);
	else
		budget_put_text(report.limits, false, stderr); /* the reason for the exit code */
	if (run_write(&report, options) < 0)
		code = code ? code : 1;
	if (code == COMMAND_UNTRACKED && family->command.status == 0)
		run_tell_untracked(family);
	report_deinit(&report);
	return code;
}

/* Exit codes as in a shell for a command that cannot be run. */
static int run_refuse(const char *command, int error)
{
	fprintf(stderr, "ttmem run: %s: %s\n", command, strerrordesc_np(-error));
	return error == -ENOENT ? 127 : 126;
}

/* The library to preload; NULL = none. 0, or -1 after the reason was reported. */
static int run_find_shim(const struct run_options *options, char **ret_shim)
{
	const char *name, *reason;

	if (!options->metal || shim_find(ret_shim, &name, &reason) == 0)
		return 0;
	fprintf(stderr, "ttmem run: --metal: %s: %s\n", name, reason);
	return -1;
}

/* 0, or -1 after the reason was reported. */
static int run_start_record(struct family *family, const struct run_options *options, char **argv)
{
	if (options->black_box) {
		family->black_box = run_black_box_new(options->black_box);
		if (!family->black_box)
			return -1;
	}
	if (!options->record)
		return 0;
	family->record =
		run_record_new(options->record, (const char *const *)argv, options->record_max);
	/* Unless the user knows better. */
	if (family->record && setenv("TTMEM_HISTORY", RUN_HISTORY, 0) < 0)
		family->record = run_record_end(family->record, true);
	return family->record ? 0 : -1;
}

/* 0, or -1 after the reason was reported. */
static int run_load_checks(const struct run_options *options, struct run_checks *checks)
{
	char error[256];

	if (options->baseline &&
	    baseline_load(options->baseline, &checks->baseline, error, sizeof(error)) < 0) {
		fprintf(stderr, "ttmem run: baseline %s: %s\n", options->baseline, error);
		return -1;
	}
	return budget_options_load("run", &options->budget, &checks->limits.budget);
}

static void run_clean_up(void *family)
{
	family_free(family);
}

static int run_command_of(const struct run_options *options, struct run_checks *checks, char **argv,
			  const char *shim)
{
	uint64_t started_ns = clock_ns(CLOCK_MONOTONIC);
	struct family *family;
	int code, r = family_new(&family);

	if (r < 0)
		return output_fail("run", "no socket for the books", r);
	family->shim = shim;
	family->strict_close = options->strict_close;
	if (run_start_record(family, options, argv) < 0) {
		run_black_box_free(family->black_box, true);
		family_free(family);
		return COMMAND_USAGE;
	}
	r = family_run(family, (const char *const *)argv);
	family->record = run_record_end(family->record, options->quiet);
	family->black_box = run_black_box_free(family->black_box, options->quiet);
	must_clean_up(run_clean_up, family); /* not before: the command is never abandoned */
	if (r < 0)
		code = run_refuse(argv[0], r);
	else
		code = run_tell(family, options, checks, argv, started_ns);
	must_clean_up(NULL, NULL);
	family_free(family);
	return code;
}

static int run_run(int argc, char **argv)
{
	struct run_options options = {0};
	struct run_checks checks = {.limits = BUDGET_RESULT_NULL};
	CLEANUP_FREE char *shim = NULL;
	int code, r = run_parse(&options, argc, argv);

	if (r != 0)
		code = options_exit(r);
	else if (run_find_shim(&options, &shim) < 0 || run_load_checks(&options, &checks) < 0)
		code = COMMAND_USAGE;
	else
		code = run_command_of(&options, &checks, argv, shim);
	baseline_free(checks.baseline);
	budget_result_deinit(&checks.limits);
	budget_deinit(&options.budget.limits);
	return code;
}

const struct command run_command = {
	.name = "run",
	.summary = "run a program with tracking on; leaks and peaks at the end",
	.run = run_run,
};
