/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files in the formats of other tools: where they go, and what is told if that fails. */

#include "cli/export/format/export-form.h"

struct export_options;

/*
 * Feeds @form with the course of events; @context is its own. May end early with -EIO if writing has failed
 * or the target has a problem. 0 or a negative errno.
 */
typedef int export_course_fn(void *context, const struct export_form *form, void *state,
			     const struct export_target *target);

/*
 * Writes a file of what the target has; its out and rows_max are set here. @course: NULL = there is none.
 * Return: exit code.
 */
int export_file(const struct export_options *options, struct export_target *target,
		export_course_fn *course, void *context);
