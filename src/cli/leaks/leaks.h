/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the command "ttmem leaks" (leaks.c) and its short and tabular forms (leaks-*.c). */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

#define LEAKS_HOW_SIZE 96

/* "SIGKILL", "exit code 1", "in order", "exec", "died". Returns @ret_text. */
const char *leaks_how(const json_t *process, char ret_text[LEAKS_HOW_SIZE]);

/* One line per process. @now_ns: CLOCK_REALTIME. */
void leaks_summary_begin(struct table *table, unsigned int width);
void leaks_summary_row(struct table *table, const json_t *process, uint64_t now_ns);

/* A row per call site, or with @summary per process. */
void leaks_csv_begin(bool summary);
void leaks_csv_rows(const json_t *process, bool summary);
