/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one place that decides what is counted if several sources report one process. A process's own
 * book is counted; tt-metal's regions are counted for living processes without a book and compared
 * for those with one; the driver only shows who else has a device open. Nothing is counted twice,
 * and nothing of exited processes.
 */

struct join;
struct snapshot;

/* Turns the claims of a snapshot into processes, parts and differences. 0 or -ENOMEM. */
int resolve_claims(struct snapshot *snapshot, struct join *join);

/*
 * When devices have been merged: those whose regions may lack processes have at least what was
 * summed up.
 */
void resolve_bounds(struct snapshot *snapshot);
