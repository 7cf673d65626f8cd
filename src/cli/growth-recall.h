/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The past of processes, as the daemon has recorded it, for judging growth. */

struct growth;
struct daemon_client;
struct snapshot;

/*
 * Judges the sites of the processes that hold most by their past; does nothing without a daemon.
 * @snapshot: the last that was added to @growth. 0 or -ENOMEM.
 */
int growth_recall_ask(struct daemon_client *remote, const struct snapshot *snapshot,
		      struct growth *growth);
