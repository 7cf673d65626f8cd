/* SPDX-License-Identifier: Apache-2.0 */

/* Reports that are folders: of one process, sorted into operations. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export.h"
#include "cli/export/visualizer/export-folder.h"
#include "model/snapshot.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"

/* Index of the process; false if it has no book that we may read. */
static bool export_report_find_process(const struct snapshot *snapshot, uint32_t pid,
				       uint32_t *ret_index)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process->id.pid == pid && process->books) {
			*ret_index = (uint32_t)i;
			return true;
		}
	}
	return false;
}

static int export_report_read_marks(const struct scan *scan, uint32_t pid,
				    struct snapshot *snapshot, struct mark_list *marks,
				    uint64_t *ret_lost)
{
	int r = 0;

	*ret_lost = 0;
	for (size_t i = 0; r == 0 && i < scan->count; i++) {
		struct scan_book *book = scan->books[i];
		uint64_t lost = 0;

		if (book->gone || (!book->alive && !book->recorded) || book->owner.id.pid != pid)
			continue;
		r = book_marks_read(book, snapshot, marks, &lost);
		*ret_lost += lost;
	}
	return r;
}

static void export_report_tell_notes(const struct export_job *job, uint64_t lost_marks)
{
	const struct export_operations *operations = &job->operations;
	uint64_t spread = job->guessed - job->unbanked;

	session_print_notes(job->snapshot);
	if (operations->other)
		fprintf(stderr,
			"note: without %" PRIu64 " of type CB or KERNEL, which the format does not "
			"have\n",
			operations->other);
	if (job->guessed > job->unbanked)
		fprintf(stderr,
			"note: %" PRIu64 " buffer%s not tell %s share of a bank: taken as "
			"spread evenly\n",
			spread, spread == 1 ? " does" : "s do", spread == 1 ? "its" : "their");
	if (job->unbanked)
		fprintf(stderr,
			"note: %" PRIu64 " buffer%s on devices whose banks are not known: taken "
			"as in one bank\n",
			job->unbanked, job->unbanked == 1 ? " is" : "s are");
	if (operations->list[0].merged)
		fprintf(stderr,
			"note: the %zu oldest operations are merged into one, so that the report "
			"has at most %" PRIu64 " rows and %u operations\n",
			operations->list[0].merged, job->rows_max, EXPORT_OPERATIONS_MAX);
	if (lost_marks)
		fprintf(stderr,
			"note: %" PRIu64 " older mark%s overwritten: %s in the first ones\n",
			lost_marks, lost_marks == 1 ? " was" : "s were",
			lost_marks == 1 ? "its operation is" : "their operations are");
}

static int export_report_fail(const struct export_options *options, int r, const char *problem)
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

static void export_report_discard(void *folder)
{
	export_folder_deinit(folder);
}

static int export_report_write(const struct export_options *options, struct export_job *job)
{
	CLEANUP(export_folder_deinit) struct export_folder folder = EXPORT_FOLDER_NULL;
	int r = export_folder_begin(&folder, options->path, options->report->is_report);

	must_clean_up(export_report_discard, &folder);
	job->folder = folder.folder;
	if (r == 0)
		r = options->report->write(job);
	must_clean_up(NULL, NULL);
	return r == 0 ? export_folder_finish(&folder, options->report->is_report) : r;
}

static void export_report_tell(const struct export_options *options, const struct export_job *job)
{
	size_t operations = job->operations.count, buffers = job->operations.buffer_count;

	text_put(stdout, options->path);
	printf(": %zu operation%s, %zu live buffer%s, %" PRIu64 " row%s, %" PRIu64
	       " source file%s\n",
	       operations, operations == 1 ? "" : "s", buffers, buffers == 1 ? "" : "s", job->rows,
	       job->rows == 1 ? "" : "s", job->file_count, job->file_count == 1 ? "" : "s");
}

/* Everything after the snapshot. Return: exit code. */
static int export_report_process(const struct export_options *options, const struct scan *scan,
				 struct snapshot *snapshot, uint32_t process)
{
	CLEANUP(book_marks_deinit) struct mark_list marks = MARK_LIST_NULL;
	struct export_job job = {
		.snapshot = snapshot,
		.process = process,
		.rows_max = options->rows_max,
	};
	uint64_t lost = 0;
	int r = export_report_read_marks(scan, options->request.filter.pid, snapshot, &marks,
					 &lost);

	if (r < 0)
		return output_fail("export", "cannot look at processes", r);
	job.operations = export_operations_find(snapshot, process, &marks);
	/* Whoever made a recording says which process it is of, and so whose files would be read. */
	if (!options->from.file)
		export_sources_init(&job.sources, &snapshot->processes[process]);
	r = export_report_write(options, &job);
	if (r == 0) {
		export_report_tell_notes(&job, lost);
		export_report_tell(options, &job);
	}
	export_operations_deinit(&job.operations);
	return r == 0 ? output_finish() : export_report_fail(options, r, job.problem);
}

int export_report(const struct export_options *options, const struct scan *scan,
		  struct snapshot *snapshot)
{
	uint32_t process;

	if (export_report_find_process(snapshot, options->request.filter.pid, &process))
		return export_report_process(options, scan, snapshot, process);
	fprintf(stderr, "ttmem export: process %" PRIu32 " has no book that can be read\n",
		options->request.filter.pid);
	return COMMAND_FAILED;
}
