/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The limits of `ttmem run`: what its processes held, for cli/budget. */

struct budget_summary;
struct family;

void run_limits_summarise(const struct family *family, struct budget_summary *summary);

/* Whether the tracking of one of the family gave up: sets its gave_up, which the others look at. */
void run_limits_find_gave_up(struct family *family);
