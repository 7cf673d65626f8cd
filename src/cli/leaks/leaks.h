/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the command "ttmem leaks" (leaks.c) and its short and tabular forms (leaks-*.c). */

#include <stdbool.h>
#include <stdint.h>

#include "answers/ended.h"
#include "base/table.h"

/* One line per process. @now_ns: CLOCK_REALTIME. */
void leaks_summary_begin(struct table *table, unsigned int width);
void leaks_summary_row(struct table *table, const struct leaks_row *leak, uint64_t now_ns);

/* A row per call site, or with @summary per process. */
void leaks_csv_begin(bool summary);
void leaks_csv_rows(const struct leaks_row *leak, bool summary);
