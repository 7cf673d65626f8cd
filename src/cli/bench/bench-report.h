/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The results of the benchmark, for people and for programs. */

#include <stdio.h>

#include "cli/bench/bench.h"

/* A row's values in ns; NAN if there are none. */
double bench_report_p50(struct bench *bench, const char *name, uint64_t live);
double bench_report_p99(struct bench *bench, const char *name, uint64_t live);

void bench_report_text(struct bench *bench, FILE *out);
void bench_report_json(struct bench *bench, FILE *out);
