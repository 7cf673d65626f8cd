/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Metrics of the largest processes, and of all others together. Part of metrics.h. */

#include <stdint.h>

struct exposition;
struct snapshot;

/* @wanted: how many processes have rows of their own. */
void metrics_process_write(struct exposition *to, const struct snapshot *snapshot, uint32_t wanted);
