/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `ttmem run`: options, exit code, and where the report goes. The summary goes to standard error,
 * so that the command's own output can still be piped.
 */

#include <errno.h>
#include <fcntl.h>
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
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/run/run-black-box.h"
#include "cli/run/run-family.h"
#include "cli/run/run-record.h"
#include "cli/run/run-report.h"
#include "cli/run/run-shim.h"
#include "model/types.h"

/* Exit codes, unless the command itself fails. */
#define RUN_LEAKED 86
#define RUN_UNTRACKED 87

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
	const char *metal_shim;
	const char *record;
	uint64_t record_max;
	const char *black_box; /* folder; NULL = none */
};

/* As long as it can be: a recorder that shares two cores with its command is late at times. */
#define RUN_HISTORY "1048576"

static int run_size(void *target, const char *text)
{
	return text_parse_size(text, target);
}

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

/* Options that do not go together. */
static int run_check(const struct run_options *run)
{
	if (run->require_tracking && run->no_require_tracking)
		return options_mistake("run",
				       "--require-tracking or --no-require-tracking, not both");
	if (run->record_max && !run->record)
		return options_mistake("run", "--max-size is for --record");
	if (run->metal && run->metal_shim)
		return options_mistake("run", "--metal or --metal-shim, not both");
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
		{0, "strict-close", NULL,
		 "also report what was live when its device was closed, as a leak would be",
		 &run->strict_close, NULL},
		{0, "require-tracking", NULL,
		 "exit with 87 if nothing was tracked; a check such as --fail-on-leak implies it",
		 &run->require_tracking, NULL},
		{0, "no-require-tracking", NULL, "do not, whatever is checked",
		 &run->no_require_tracking, NULL},
		{0, "json", "FILE", "write the report as JSON (- is standard output)", &run->json,
		 options_text},
		{0, "markdown", "FILE", "write a summary for a merge request", &run->markdown,
		 options_text},
		{0, "metal", NULL, "track a tt-metal that was not built for ttmem", &run->metal,
		 NULL},
		{0, "metal-shim", "FILE", "the same with FILE, built from tt-metal's headers",
		 &run->metal_shim, options_text},
		{0, "record", "FILE",
		 "record every event of every process into FILE, see ttmem record", &run->record,
		 options_text},
		{0, "max-size", "SIZE", "of that file, such as 2G: there the recording ends",
		 &run->record_max, run_size},
		{0, "black-box", "[=FOLDER]",
		 "keep the last minute of a process as a recording if an allocation fails, a "
		 "signal kills "
		 "it or it leaves something",
		 &run->black_box, run_black_box_folder},
		{'q', "quiet", NULL, "no summary on standard error", &run->quiet, NULL},
	};
	const struct options options = {
		.command = "run",
		.shows_sizes = true,
		.arguments = "[--] COMMAND [ARGUMENT]...",
		.summary =
			"Runs COMMAND with tracking on, and tells at the end what it and all its "
			"descendants\nheld at most and what they left behind. A leak is a buffer "
			"that holds device memory\nwhen its process ends. The exit code is "
			"COMMAND's own if that is not 0 (128 + N if\nsignal N killed it), else 86 "
			"on a leak with --fail-on-leak, else 87 if nothing was\ntracked and "
			"--require-tracking, --fail-on-leak or --baseline was given, else 0.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.stop_at_first = true,
	};
	int count;
	int r = options_parse(&options, argc, argv, &count);

	if (r == 0 && count == 0)
		r = options_mistake("run", "what shall be run?");
	return r == 0 ? run_check(run) : r;
}

/* A check that looked at nothing must not pass. */
static bool run_requires_tracking(const struct run_options *options)
{
	return options->require_tracking ||
	       (!options->no_require_tracking && (options->fail_on_leak || options->baseline));
}

/* Writes one form of the report. 0, or -1 after the reason was reported. */
static int run_write(const struct report *report, const char *path,
		     void (*write_report)(const struct report *report, FILE *out))
{
	CLEANUP_FCLOSE FILE *file = NULL;
	FILE *out = stdout;

	if (strcmp(path, "-") != 0) {
		int fd = user_file_open(path, O_TRUNC, 0666);

		file = fd < 0 ? NULL : fdopen(fd, "w");
		if (!file) {
			fprintf(stderr, "ttmem run: %s: %s\n", path,
				user_file_error(fd < 0 ? fd : -errno));
			return -1;
		}
		out = file;
	}
	write_report(report, out);
	if (fflush(out) != 0 || ferror(out)) {
		fprintf(stderr, "ttmem run: %s: cannot be written\n", path);
		return -1;
	}
	return 0;
}

static int run_exit_code(const struct report *report, const struct run_options *options)
{
	int status = report->family->status;

	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	if (WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	/* Processes that could not be judged may have leaked. */
	if (options->fail_on_leak && (report->new_buffers || report->held_buffers ||
				      report->family->refused || report->family->trouble))
		return RUN_LEAKED;
	return !report->is_tracked && run_requires_tracking(options) ? RUN_UNTRACKED : 0;
}

/* Even if the summary is not wanted: it is the reason for the exit code. */
static void run_tell_untracked(void)
{
	fprintf(stderr,
		"ttmem run: nothing was tracked, so nothing was checked (exit code %d; "
		"--no-require-tracking accepts it)\n",
		RUN_UNTRACKED);
}

static int run_tell(struct family *family, const struct run_options *options,
		    const struct baseline *baseline, char **argv, uint64_t started_ns)
{
	struct report report;
	int code;

	if (report_init(&report, family, options->ignored, baseline) < 0) {
		fprintf(stderr, "ttmem run: out of memory\n");
		return 1;
	}
	report.argv = argv;
	report.duration_ns = clock_ns(CLOCK_MONOTONIC) - started_ns;
	code = run_exit_code(&report, options);
	if (!options->quiet)
		report_text(&report, stderr);
	if ((options->json && run_write(&report, options->json, report_json) < 0) ||
	    (options->markdown && run_write(&report, options->markdown, report_markdown) < 0))
		code = code ? code : 1;
	if (code == RUN_UNTRACKED && family->status == 0)
		run_tell_untracked();
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
	const char *name = options->metal_shim, *reason;
	int r = 0;

	if (name)
		r = shim_find(name, ret_shim, &reason);
	else if (options->metal)
		r = shim_find_installed(ret_shim, &name, &reason);
	if (r == 0)
		return 0;
	fprintf(stderr, "ttmem run: --%s: %s: %s\n", options->metal ? "metal" : "metal-shim", name,
		reason);
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

static int run_run(int argc, char **argv)
{
	struct run_options options = {0};
	struct baseline *baseline = NULL;
	struct family *family;
	CLEANUP_FREE char *shim = NULL;
	uint64_t started_ns = clock_ns(CLOCK_MONOTONIC);
	char error[256];
	int r, code;

	r = run_parse(&options, argc, argv);
	if (r != 0)
		return options_exit(r);
	if (run_find_shim(&options, &shim) < 0)
		return COMMAND_USAGE;
	if (options.baseline &&
	    baseline_load(options.baseline, &baseline, error, sizeof(error)) < 0) {
		fprintf(stderr, "ttmem run: baseline %s: %s\n", options.baseline, error);
		return COMMAND_USAGE;
	}
	r = family_new(&family);
	if (r < 0) {
		baseline_free(baseline);
		return output_fail("run", "no socket for the books", r);
	}
	family->shim = shim;
	family->strict_close = options.strict_close;
	r = run_start_record(family, &options, argv);
	if (r < 0) {
		run_black_box_free(family->black_box, true);
		family_free(family);
		baseline_free(baseline);
		return COMMAND_USAGE;
	}
	r = family_run(family, (const char *const *)argv);
	family->record = run_record_end(family->record, options.quiet);
	family->black_box = run_black_box_free(family->black_box, options.quiet);
	if (r < 0)
		code = run_refuse(argv[0], r);
	else
		code = run_tell(family, &options, baseline, argv, started_ns);
	family_free(family);
	baseline_free(baseline);
	return code;
}

const struct command run_command = {
	.name = "run",
	.summary = "run a program with tracking on; leaks and peaks at the end",
	.run = run_run,
};
