/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.series/1 of a recording: from its index, and from its events if they are not too many. */

struct emit;
struct query;
struct recording;
struct snapshot;

/*
 * @end: totals of the last moment, with the processes that had ended. Without a step, one is chosen that
 * gives a chart enough points; any step becomes longer if there would be too many. 0 or a negative errno.
 */
int recorded_series_document(struct emit *json, struct recording *recording,
			     const struct snapshot *end, const struct query *query);
