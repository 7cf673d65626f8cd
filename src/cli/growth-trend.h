/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How processes have grown over the last hour, as far as the daemon has recorded it. */

struct growth;
struct daemon_client;
struct snapshot;

/*
 * Adds a trend for each process with growing sites; none without a daemon. @snapshot has the start
 * times. 0 or -ENOMEM.
 */
int growth_trend_ask(struct daemon_client *remote, const struct snapshot *snapshot,
		     struct growth *growth);
