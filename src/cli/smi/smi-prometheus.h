/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All machines that a Prometheus scrapes, in one table. */

#include <stdbool.h>

struct document;

extern const struct document prometheus_document;

/* Queries and prints. Return: exit code; 1 if it, or one of the machines, does not answer. */
int smi_prometheus_run(const char *url, bool as_json);
