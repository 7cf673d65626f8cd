/* SPDX-License-Identifier: Apache-2.0 */

/* What an argument names: FILE, or FILE@MOMENT where there is no file of that whole name. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/diff/diff.h"
#include "recording/read/recording.h"

void diff_side_deinit(struct diff_side *side)
{
	summary_deinit(&side->summary);
	free(side->words);
	free(side->argument);
	*side = (struct diff_side){.summary = SUMMARY_NULL};
}

/* Splits the argument, of which the side keeps a copy. */
static void diff_load_name(struct diff_side *side, const char *argument)
{
	char *file = must_copy(argument), *at = strrchr(file, '@');

	side->file = side->argument = file;
	if (!at || at == file || access(file, F_OK) == 0)
		return;
	*at = '\0';
	side->at = at + 1;
}

int diff_fail(const char *file, const char *why)
{
	char shown[TEXT_ESCAPE_SIZE(256)], reason[TEXT_ESCAPE_SIZE(DIFF_WHY)];

	text_escape(file, shown, sizeof(shown));
	text_escape(why, reason, sizeof(reason));
	fprintf(stderr, "ttmem diff: %s: %s\n", shown, reason);
	return COMMAND_FAILED;
}

static int diff_load_report(struct diff_side *side)
{
	char why[DIFF_WHY];
	int r = -EINVAL;

	if (side->at)
		(void)snprintf(why, sizeof(why), "only a recording has moments, such as @%s",
			       side->at);
	else
		r = diff_load_run(side, why);
	return r < 0 ? diff_fail(side->file, why) : 0;
}

int diff_load(struct diff_side *side, const char *argument)
{
	int r;

	diff_load_name(side, argument);
	if (access(side->file, R_OK) < 0)
		return diff_fail(side->file, user_file_error(-errno));
	/* Everything that is not one is taken for a report, whose reader says what is wrong with it. */
	r = recording_is_file(side->file) ? diff_load_recording(side) : diff_load_report(side);
	if (r == 0)
		summary_finish(&side->summary);
	return r;
}
