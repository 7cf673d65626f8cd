/* SPDX-License-Identifier: Apache-2.0 */

/* What an argument names: FILE, or FILE@MOMENT where there is no file of that whole name. */

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "cli/diff/diff.h"
#include "recording/format/layout.h"

void diff_side_deinit(struct diff_side *side)
{
	summary_deinit(&side->summary);
	free(side->command);
	free(side->file);
	*side = (struct diff_side){.summary = SUMMARY_NULL};
}

/* Splits the argument, of which the side keeps a copy. */
static int diff_load_name(struct diff_side *side, const char *argument)
{
	char *file = strdup(argument), *at;

	side->file = file;
	if (!file)
		return -ENOMEM;
	at = strrchr(file, '@');
	if (!at || at == file || access(file, F_OK) == 0)
		return 0;
	*at = '\0';
	side->at = at + 1;
	return 0;
}

/* Everything that is not one is taken for a report, whose reader says what is wrong with it. */
static bool diff_is_recording(FILE *file)
{
	uint32_t magic = 0;

	return fread(&magic, sizeof(magic), 1, file) == 1 && le32toh(magic) == RECORDING_FRAME;
}

int diff_load(struct diff_side *side, const char *argument, char ret_why[DIFF_WHY])
{
	CLEANUP_FCLOSE FILE *file = NULL;
	int r = diff_load_name(side, argument);

	if (r == 0) {
		file = fopen(side->file, "re");
		r = file ? 0 : -errno;
	}
	if (r < 0) {
		(void)snprintf(ret_why, DIFF_WHY, "%s", user_file_error(r));
		return r;
	}
	if (diff_is_recording(file)) {
		r = diff_load_recording(side, ret_why);
	} else if (side->at) {
		(void)snprintf(ret_why, DIFF_WHY, "only a recording has moments, such as @%s",
			       side->at);
		return -EINVAL;
	} else {
		r = diff_load_run(side, ret_why);
	}
	if (r == 0)
		summary_finish(&side->summary);
	return r;
}
