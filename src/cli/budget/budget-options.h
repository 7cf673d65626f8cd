/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Options that `ttmem run` and `ttmem check` share. */

#include <stdbool.h>

#include "cli/budget/budget.h"

struct budget_result;

struct budget_options {
	struct budget limits; /* of --limit */
	const char *file;     /* of --budget; NULL = none */
	const char *junit;    /* of --junit; NULL = none */
	bool annotates;       /* --annotate github */
};

/* Parsers for the tables of options. */
int budget_options_limit(void *target, const char *text);    /* struct budget * */
int budget_options_annotate(void *target, const char *text); /* bool * */

/* Adds the limits of the file and then of the options. 0, or -1 after the reason was reported. */
int budget_options_load(const char *command, const struct budget_options *options,
			struct budget *budget);

/* Writes what was asked for, for CI systems. 0, or -1 after the reason was reported. */
int budget_options_write(const char *command, const struct budget_options *options,
			 const struct budget_result *result);
