/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How processes have grown over the last hour, as far as the daemon remembers it. */

struct growth;
struct daemon_client;
struct snapshot;

/*
 * Adds a trend for each process that has growing sites; none if nobody can be asked. @snapshot tells
 * when they began. 0 or -ENOMEM.
 */
int growth_trend_ask(struct daemon_client *remote, const struct snapshot *snapshot,
		     struct growth *growth);
