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
#include "cli/common/must.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export.h"

/* 0 or a negative errno; the target's problem: set if it says more than that. */
static int export_file_write(const struct export_form *form, struct export_target *target,
			     export_course_fn *course, void *context)
{
	void *state = form->begin(target);
	int r = 0;

	if (form->event && course)
		r = course(context, form, state, target);
	if (r == 0 && *target->problem)
		r = -EIO;
	if (r == 0)
		form->finish(state);
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

struct export_file {
	const char *path;
	int fd;
};

/* Half a file must not look like one; but a device or a pipe stays. */
static void export_file_discard(void *context)
{
	const struct export_file *file = context;
	const char *path = file->path;
	struct stat written, named;

	if (fstat(file->fd, &written) == 0 && S_ISREG(written.st_mode) &&
	    lstat(path, &named) == 0 && named.st_ino == written.st_ino &&
	    named.st_dev == written.st_dev)
		(void)unlink(path); /* nothing more can be done */
}

static int export_file_named(const struct export_options *options, struct export_target *target,
			     export_course_fn *course, void *context)
{
	struct export_file file = {options->path, user_file_open(options->path, O_TRUNC, 0666)};
	CLEANUP_FCLOSE FILE *out = NULL;
	int r;

	if (file.fd < 0)
		return export_file_fail(options, target, file.fd);
	must_clean_up(export_file_discard, &file);
	target->out = out = must_have(fdopen(file.fd, "we"));
	r = export_file_write(options->form, target, course, context);
	must_clean_up(NULL, NULL);
	if (r == 0)
		return COMMAND_OK;
	export_file_discard(&file);
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
