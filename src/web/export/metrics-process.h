/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Metrics of the largest processes, and of all others together. Part of metrics.h. */

struct exposition;
struct metrics_input;

void metrics_process_write(struct exposition *to, const struct metrics_input *input);
