/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.leaks/1 of a recording: what the processes that had ended by a moment left. */

struct emit;
struct query;
struct recording;
struct scan;
struct snapshot;

/*
 * @scan: its books at that moment. @snapshot: of that moment, with the buffers of ended processes and with names; it is sorted. 0 or a
 * negative errno.
 */
int recorded_leaks_document(struct emit *json, struct snapshot *snapshot,
			    const struct recording *recording, const struct scan *scan,
			    const struct query *query);
