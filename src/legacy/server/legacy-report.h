/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The old server's reports, from a finished snapshot: what is left, with each buffer's history; the
 * summary with the grand total that people used to add up by hand; and the periodic statistics.
 * Devices have the numbers that the processes use. Only live processes count.
 */

#include <stdio.h>

struct legacy_history;
struct snapshot;

/* answers/remaining-report.h with a history; NULL = none. 0 or -ENOMEM. */
int legacy_report_remaining(FILE *out, const struct snapshot *snapshot,
			    struct legacy_history *history);

void legacy_report_summary(FILE *out, const struct snapshot *snapshot);
void legacy_report_statistics(FILE *out, const struct snapshot *snapshot);

/* What a server prints at its end. */
void legacy_report_goodbye(FILE *out, const struct snapshot *snapshot,
			   struct legacy_history *history);
