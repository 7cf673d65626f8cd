/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Metrics of cards as the driver reports them: what they are, how they do, sensors and limits. */

struct exposition;
struct snapshot;

void metrics_card_write(struct exposition *to, const struct snapshot *snapshot);
