/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem export: what a process holds, as a report that another tool can open. */

#include "cli/export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export-folder.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"

#define EXPORT_ROWS 2000000u /* about 45 MB; others' reports of 17 GB could not be opened */

struct export_options {
	const struct export_format *format;
	const char *path;
	struct snapshot_request request;
	uint32_t rows_max;
};

static int export_parse_format(void *target, const char *text)
{
	static const struct export_format *const formats[] = {&export_visualizer};
	struct export_options *options = target;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (strcmp(formats[i]->name, text) == 0) {
			options->format = formats[i];
			return 0;
		}
	}
	return -EINVAL;
}

static int export_parse(struct export_options *options, int argc, char **argv)
{
	struct filter *filter = &options->request.filter;
	const struct options_item items[] = {
		{0, "format", "ttnn-visualizer", "which tool is to open it", options,
		 export_parse_format},
		{'o', "output", "FOLDER", "where to write; an earlier export there is replaced",
		 &options->path, options_text},
		{'d', "device", "DEV|UID", "only of this device; may be given again", filter,
		 options_device},
		{0, "type", "TYPE", "only DRAM, L1, SYSTEM_MEMORY, L1_SMALL or TRACE", filter,
		 options_type},
		{0, "rows", "N", "at most so many rows (2000000): older operations are merged",
		 &options->rows_max, options_u32},
	};
	const struct options table = {
		.command = "export",
		.arguments = "PID",
		.summary = "The live buffers of a process, as a report for another tool.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int count, r = options_parse(&table, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 1)
		return options_mistake("export", count ? "one process, please" : "which process?");
	if (options_pid(filter, argv[0]) < 0)
		return options_mistake("export", "\"%s\" is not a process id", argv[0]);
	if (filter->has_type && filter->type > TYPES_TRACE)
		return options_mistake("export", "these reports have no %s",
				       types_name(filter->type));
	if (!options->format)
		return options_mistake("export", "which format? --format ttnn-visualizer");
	if (!options->path)
		return options_mistake("export", "which folder? -o FOLDER");
	return 0;
}

/* Index of the process; false if it has no book that we may read. */
static bool export_find_process(const struct snapshot *snapshot, uint32_t pid, uint32_t *ret_index)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process->pid == pid && process->alive && process->books) {
			*ret_index = (uint32_t)i;
			return true;
		}
	}
	return false;
}

static int export_read_marks(struct session *session, uint32_t pid, struct snapshot *snapshot,
			     struct mark_list *marks, uint64_t *ret_lost)
{
	const struct scan *scan = session_scan(session);
	int r = 0;

	*ret_lost = 0;
	for (size_t i = 0; r == 0 && i < scan->count; i++) {
		struct scan_book *book = scan->books[i];
		uint64_t lost = 0;

		if (book->gone || !book->alive || book->owner.pid != pid)
			continue;
		r = book_marks_read(book, snapshot, marks, &lost);
		*ret_lost += lost;
	}
	return r;
}

static void export_tell_notes(const struct export_job *job, uint64_t lost_marks)
{
	const struct export_operations *operations = &job->operations;

	session_print_notes(job->snapshot);
	if (operations->other)
		fprintf(stderr,
			"note: without %" PRIu64 " of type CB or KERNEL, which the format does not "
			"have\n",
			operations->other);
	if (job->guessed > job->unbanked)
		fprintf(stderr,
			"note: %" PRIu64 " buffers do not tell their share of a bank: taken as "
			"spread evenly\n",
			job->guessed - job->unbanked);
	if (job->unbanked)
		fprintf(stderr,
			"note: %" PRIu64 " buffers are on devices whose banks are not known: taken "
			"as in one bank\n",
			job->unbanked);
	if (operations->list[0].merged)
		fprintf(stderr,
			"note: the %zu oldest operations are merged into one, so that the report "
			"has at most %" PRIu64 " rows and %u operations\n",
			operations->list[0].merged, job->rows_max, EXPORT_OPERATIONS_MAX);
	if (lost_marks)
		fprintf(stderr,
			"note: %" PRIu64 " older marks were overwritten: their operations are in "
			"the first ones\n",
			lost_marks);
}

static int export_fail(const struct export_options *options, int r, const char *problem)
{
	char path[1024];

	text_escape(options->path, path, sizeof(path));
	if (r == EXPORT_FOLDER_OTHER)
		fprintf(stderr,
			"ttmem export: %s is there and is not an earlier export of yours: it stays "
			"as it is; choose another name\n",
			path);
	else if (problem && *problem)
		fprintf(stderr, "ttmem export: %s: %s\n", path, problem);
	else
		fprintf(stderr, "ttmem export: %s: %s\n", path, user_file_error(r));
	return COMMAND_FAILED;
}

static int export_write(const struct export_options *options, struct export_job *job)
{
	CLEANUP(export_folder_deinit) struct export_folder folder = EXPORT_FOLDER_NULL;
	int r = export_folder_begin(&folder, options->path, options->format->is_report);

	job->folder = folder.folder;
	if (r == 0)
		r = options->format->write(job);
	return r == 0 ? export_folder_finish(&folder, options->format->is_report) : r;
}

static void export_tell(const struct export_options *options, const struct export_job *job)
{
	size_t operations = job->operations.count, buffers = job->operations.buffer_count;

	text_put(stdout, options->path);
	printf(": %zu operation%s, %zu live buffer%s, %" PRIu64 " row%s, %" PRIu64
	       " source file%s\n",
	       operations, operations == 1 ? "" : "s", buffers, buffers == 1 ? "" : "s", job->rows,
	       job->rows == 1 ? "" : "s", job->file_count, job->file_count == 1 ? "" : "s");
}

/* Everything after the snapshot. Return: exit code. */
static int export_process(const struct export_options *options, struct session *session,
			  struct snapshot *snapshot, uint32_t process)
{
	CLEANUP(book_marks_deinit) struct mark_list marks = MARK_LIST_NULL;
	struct export_job job = {
		.snapshot = snapshot,
		.process = process,
		.rows_max = options->rows_max,
	};
	uint64_t lost = 0;
	int r = export_read_marks(session, options->request.filter.pid, snapshot, &marks, &lost);

	if (r == 0)
		r = export_operations_find(snapshot, process, &marks, &job.operations);
	if (r < 0)
		return output_fail("export", "cannot look at processes", r);
	export_sources_init(&job.sources, &snapshot->processes[process]);
	r = export_write(options, &job);
	if (r == 0) {
		export_tell_notes(&job, lost);
		export_tell(options, &job);
	}
	export_operations_deinit(&job.operations);
	return r == 0 ? output_finish() : export_fail(options, r, job.problem);
}

static int export_run(int argc, char **argv)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct export_options options = {.request.buffers = true, .rows_max = EXPORT_ROWS};
	struct asked_for asked = {
		.command = "export", .filter = &options.request.filter, .rows = true};
	uint32_t process;
	int r = export_parse(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	output_catch_stop();
	r = session_new(&session);
	if (r == 0) {
		options.request.namer = session_namer(session);
		r = session_take(session, &options.request, &snapshot);
	}
	if (r != 0)
		return output_fail("export", "cannot look at processes", r);
	asked_for_check(&asked, session, snapshot);
	if (asked.is_missing)
		return asked_for_exit(&asked, COMMAND_OK);
	if (!export_find_process(snapshot, options.request.filter.pid, &process)) {
		fprintf(stderr, "ttmem export: process %" PRIu32 " has no book that can be read\n",
			options.request.filter.pid);
		return COMMAND_FAILED;
	}
	return export_process(&options, session, snapshot, process);
}

const struct command export_command = {
	.name = "export",
	.summary = "a process's buffers as a report for another tool",
	.run = export_run,
};
