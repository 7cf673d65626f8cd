/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem export: device memory in the formats of other tools. */

#include "cli/export/export.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export-file.h"
#include "cli/export/export-recording.h"
#include "cli/export/format/export-form.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "recording/read/recording.h"

#define EXPORT_ROWS 2000000u /* about 45 MB; others' reports of 17 GB could not be opened */

static const struct export_format *const export_reports[] = {&export_visualizer};
static const struct export_form *const export_forms[] = {
	&export_pprof,    &export_speedscope, &export_folded, &export_heaptrack, &export_firefox,
	&export_perfetto, &export_memory_viz, &export_chrome, &export_csv,
};

#define EXPORT_FORMATS                                                                      \
	"pprof, speedscope, folded, heaptrack, firefox, perfetto, memory_viz, chrome, csv " \
	"or ttnn-visualizer"

static int export_find_format(struct export_options *options, const char *text)
{
	for (size_t i = 0; text && i < ARRAY_SIZE(export_reports); i++) {
		if (strcmp(export_reports[i]->name, text) == 0)
			options->report = export_reports[i];
	}
	for (size_t i = 0; text && i < ARRAY_SIZE(export_forms); i++) {
		if (strcmp(export_forms[i]->name, text) == 0)
			options->form = export_forms[i];
	}
	if (options->report || options->form)
		return 0;
	if (!text)
		return options_mistake("export", "--format is missing; it expects " EXPORT_FORMATS);
	return options_mistake("export", "--format expects " EXPORT_FORMATS ", got \"%s\"", text);
}

/* What a report needs more than a file. */
static int export_check_report(const struct export_options *options)
{
	const struct filter *filter = &options->request.filter;

	if (!filter->pid && !options->from.file)
		return options_mistake("export", "ttnn-visualizer expects a process: PID");
	if (filter->has_type && filter->type > TYPES_TRACE)
		return options_mistake("export", "reports for ttnn-visualizer have no %s",
				       types_name(filter->type));
	if (!options->path)
		return options_mistake("export", "ttnn-visualizer expects a folder: -o FOLDER");
	return 0;
}

static int export_check(const struct export_options *options)
{
	if (options->report)
		return export_check_report(options);
	if (options->form->is_course && !options->from.file)
		return options_mistake("export",
				       "%s shows the course of events, and expects a recording",
				       options->form->name);
	return 0;
}

static int export_parse(struct export_options *options, int argc, char **argv)
{
	struct query query = {0};
	const char *format = NULL;
	const struct options_item items[] = {
		{0, "format", "FORMAT", "one of these", &format, options_text},
		{'o', "output", "PATH",
		 "where to write, not to standard output; for ttnn-visualizer a folder",
		 &options->path, options_text},
		OPTIONS_FROM(&options->from),
		{0, "pid", "PID", "only of this process"},
		{'d', "device", "DEV|UID", "only of this device; may be given again"},
		{0, "type", "TYPE", "only of this type of memory"},
		{0, "rows", "N", "for ttnn-visualizer and firefox: at most so many rows (2000000)",
		 &options->rows_max, options_u32},
	};
	const struct options table = {
		.command = "export",
		.arguments = "[FILE | PID]",
		.summary = "Device memory in the formats of other tools: what all processes, or "
			   "PID, hold now, or\n"
			   "what is in the recording FILE. A moment is shown by pprof, speedscope, "
			   "folded,\n"
			   "memory_viz and ttnn-visualizer; the course of events, which only a "
			   "recording has, by\n"
			   "heaptrack, firefox, perfetto, chrome and csv.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &query,
		.honours = QUERY_PID | QUERY_DEVICE | QUERY_TYPE,
	};
	int count, r = options_parse(&table, argc, argv, &count);

	if (r == 0)
		r = export_find_format(options, format);
	if (r != 0)
		return r;
	if (count > 1)
		return options_count(&table, "one recording or one process", count);
	/* A recording whose name is a number is "./123". */
	if (count == 1 && query_set(&query, query_find("pid", QUERY_PID), argv[0]) < 0)
		options->from.file = argv[0];
	options->request.filter = query.filter;
	return export_check(options);
}

static int export_write(const struct export_options *options, struct session *session,
			struct snapshot *snapshot)
{
	struct export_target target = {.snapshot = snapshot};

	if (options->report)
		return export_report(options, session_scan(session), snapshot);
	if (session_recording(session))
		return export_recording(options, session, snapshot);
	return export_file(options, &target, NULL, NULL);
}

static int export_take(struct export_options *options, struct session *session)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	struct asked_for asked = {
		.command = "export", .filter = &options->request.filter, .rows = true};
	int r;

	options->request.namer = session_namer(session);
	r = session_take(session, &options->request, &snapshot);
	if (r != 0)
		return output_fail("export", "cannot look at processes", r);
	asked_for_check(&asked, session, snapshot);
	if (asked.is_missing)
		return asked_for_exit(&asked, COMMAND_OK);
	return export_write(options, session, snapshot);
}

/* A report is of one process. */
static int export_refuse(size_t books)
{
	if (books > 1)
		return options_exit(options_mistake(
			"export",
			"the recording has several processes: choose one with --pid PID"));
	(void)fputs("ttmem export: there is no process in the recording\n", stderr);
	return COMMAND_FAILED;
}

static int export_run(int argc, char **argv)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct export_options options = {.request.buffers = true, .rows_max = EXPORT_ROWS};
	int r = export_parse(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	output_catch_stop();
	/* Formats with events have the whole course up to the end. */
	options.from.is_state = options.report || !options.form->event;
	r = session_start(&session, "export", &options.from, &options.request.filter);
	if (r != 0)
		return r;
	if (options.report && session_recording(session) &&
	    !export_recording_choose(&options, session_recording(session)))
		return export_refuse(recording_facts(session_recording(session))->books);
	return export_take(&options, session);
}

const struct command export_command = {
	.name = "export",
	.summary = "device memory in the formats of other tools",
	.run = export_run,
};
