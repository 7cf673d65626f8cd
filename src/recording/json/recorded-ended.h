/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.ended/1 of a recording: all processes that had ended by its end, newest first. */

struct emit;
struct query;
struct recording;
struct scan;
struct snapshot;

/* @end: totals of the end. @scan: its books. 0 or -ENOMEM. */
int recorded_ended_document(struct emit *json, const struct snapshot *end,
			    const struct recording *recording, const struct scan *scan,
			    const struct query *query);
