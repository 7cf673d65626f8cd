/* SPDX-License-Identifier: Apache-2.0 */

/* A file that could not be completed is removed, unless it is not an ordinary one. */

#include "cli/export/export-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export.h"

/* 0 or a negative errno; @problem: set if it says more than that. */
static int export_file_write(const struct export_form *form, struct export_target *target,
			     export_course_fn *course, void *context)
{
	void *state = NULL;
	int r = form->begin(target, &state);

	if (r == 0 && form->event && course)
		r = course(context, form, state, target->out);
	if (r == 0)
		r = form->finish(state);
	if (form->free)
		form->free(state);
	/* It tells why writing has failed, if it did before. */
	if ((r == 0 || r == -EIO) && fflush(target->out) != 0)
		r = -errno;
	if (r == 0 && ferror(target->out))
		r = -EIO;
	return r;
}

static int export_file_fail(const struct export_options *options,
			    const struct export_target *target, int r)
{
	const char *file = options->path ? options->path : "standard output";
	char path[1024];

	if (r == -EBADMSG && options->from.file)
		file = options->from.file; /* nothing is wrong with what was written */
	text_escape(file, path, sizeof(path));
	fprintf(stderr, "ttmem export: %s: %s\n", path,
		target->problem[0] ? target->problem
		: r == -EINTR      ? "stopped"
				   : user_file_error(r));
	return COMMAND_FAILED;
}

/* Half a file must not look like one; but a device or a pipe stays. */
static void export_file_discard(const char *path, FILE *file)
{
	struct stat written, named;

	if (fstat(fileno(file), &written) == 0 && S_ISREG(written.st_mode) &&
	    lstat(path, &named) == 0 && named.st_ino == written.st_ino &&
	    named.st_dev == written.st_dev)
		(void)unlink(path); /* nothing more can be done */
}

static int export_file_named(const struct export_options *options, struct export_target *target,
			     export_course_fn *course, void *context)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	int r, fd = user_file_open(options->path, O_TRUNC, 0666);

	if (fd < 0)
		return export_file_fail(options, target, fd);
	file = fdopen(fd, "we");
	if (!file) {
		close(fd);
		return export_file_fail(options, target, -ENOMEM);
	}
	target->out = file;
	r = export_file_write(options->form, target, course, context);
	if (r == 0)
		return COMMAND_OK;
	export_file_discard(options->path, file);
	return export_file_fail(options, target, r);
}

int export_file(const struct export_options *options, struct export_target *target,
		export_course_fn *course, void *context)
{
	int r;

	target->rows_max = options->rows_max;
	session_print_notes(target->snapshot);
	if (options->path)
		return export_file_named(options, target, course, context);
	if (options->form->is_binary && output_is_terminal()) {
		fprintf(stderr, "ttmem export: this format is not for terminals: -o FILE\n");
		return COMMAND_FAILED;
	}
	target->out = stdout;
	r = export_file_write(options->form, target, course, context);
	if (r < 0 && !output_is_broken())
		return export_file_fail(options, target, r);
	return output_finish();
}
