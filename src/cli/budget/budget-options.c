/* SPDX-License-Identifier: Apache-2.0 */

/* Limits from the command line and from a file, and output for CI systems. */

#include "cli/budget/budget-options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/budget/budget-file.h"
#include "cli/budget/budget-output.h"
#include "cli/common/output.h"

int budget_options_limit(void *target, const char *text)
{
	return budget_add_text(target, text);
}

int budget_options_annotate(void *target, const char *text)
{
	bool *annotates = target;

	if (strcmp(text, "github") != 0)
		return -EINVAL;
	*annotates = true;
	return 0;
}

int budget_options_load(const char *command, const struct budget_options *options,
			struct budget *budget)
{
	char error[BUDGET_FILE_ERROR];
	if (options->file) {
		int r = budget_file_load(options->file, budget, NULL, error);
		if (r == -ENOENT)
			(void)snprintf(error, sizeof(error), "%s", strerrordesc_np(ENOENT));
		if (r < 0) {
			fprintf(stderr, "ttmem %s: budget %s: %s\n", command, options->file, error);
			return -1;
		}
	}
	/* What was typed counts instead of what is in the file. */
	budget_add_all(budget, &options->limits);
	return 0;
}

int budget_options_write(const char *command, const struct budget_options *options,
			 const struct budget_result *result)
{
	if (options->annotates)
		budget_put_github(result, stderr);
	if (!options->junit)
		return 0;
	return output_write_file(command, options->junit, budget_put_junit, result);
}
