/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A budget as a file, ttmem.budget/1: JSON that people write, so a mistake is told with its line, and what
 * they have added beside the limits stays when the limits are updated.
 */

#include <stddef.h>
#include <stdio.h>

struct budget;
struct budget_file;
struct budget_summary;
struct budget_verdict;

#define BUDGET_FILE_MAX (1u << 20) /* bytes of such a file */
#define BUDGET_FILE_ERROR 512u     /* room for any reason */

/* An empty one, for a file that is not there yet. */
struct budget_file *budget_file_new(void);
struct budget_file *budget_file_free(struct budget_file *file);

/*
 * Reads the file at @path and adds its limits to @budget. -ENOENT: there is none; -EINVAL: @ret_error,
 * which has room for BUDGET_FILE_ERROR, says why and in which line. @ret_file may be NULL.
 */
int budget_file_load(const char *path, struct budget *budget, struct budget_file **ret_file,
		     char *ret_error);

/*
 * Sets each limit that the file has to what was found of it; those of which nothing was seen stay. Limits
 * that people wrote stay required, those that budget_file_fill() wrote optional.
 */
void budget_file_update(struct budget_file *file, const struct budget_verdict *verdicts,
			size_t count);

/* Adds a limit for each type that was held, to the file and to @budget; all optional. */
void budget_file_fill(struct budget_file *file, const struct budget_summary *summary,
		      struct budget *budget);

/* @file: a struct budget_file. */
void budget_file_write(const void *file, FILE *out);
