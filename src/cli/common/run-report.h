/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files that `ttmem run --json` has written (ttmem.run/1), for commands that read them again. */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* What a file is told that is none, by commands that take recordings as well. */
#define RUN_REPORT_NONE "neither a recording nor a report of `ttmem run --json` (ttmem.run/1)"

/*
 * The document, which has lists of processes and peaks. 0, or -EINVAL with one line for users, which
 * is safe for a terminal. daemon_pages_unload() frees it.
 */
int run_report_load(const char *path, json_t **ret_document, char *ret_why, size_t size);

/* The same for any JSON. @otherwise: what to say of a file that is none. json_decref() frees it. */
int run_report_read(const char *path, const char *otherwise, json_t **ret_document, char *ret_why,
		    size_t size);

/* Where a row's memory is. 0 or -EINVAL. */
int run_report_place(const json_t *row, uint32_t *ret_device, uint32_t *ret_type);
