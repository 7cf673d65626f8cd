/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one place that decides what is counted where several sources tell of one process. What a process keeps
 * in its own book is counted; tt-metal's regions are counted for living processes without a book and
 * compared for those with one; the driver only tells who else has a device open. Nothing is ever
 * counted twice, and nothing of the dead.
 */

struct snapshot;

/* Turns the claims of a snapshot into processes, parts and differences. 0 or -ENOMEM. */
int resolve_claims(struct snapshot *snapshot);
