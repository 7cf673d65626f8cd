/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the daemon has recorded of processes over time, for judging growth. Without one nothing is done. */

struct growth;
struct daemon_client;
struct snapshot;

/*
 * Judges the sites of the processes that hold most by their past. @snapshot: the last that was added to
 * @growth. 0 or -ENOMEM.
 */
int growth_daemon_recall(struct daemon_client *remote, const struct snapshot *snapshot,
			 struct growth *growth);

/*
 * Adds a trend over the last hour for each process with growing sites. @snapshot has the start times.
 * 0 or a negative errno.
 */
int growth_daemon_trends(struct daemon_client *remote, const struct snapshot *snapshot,
			 struct growth *growth);
