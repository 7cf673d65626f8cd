/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by top-command.c (the command), top-incidents.c (the daemon's records, as rows) and
 * top-charts.c (its time series, as charts).
 */

#include <stdint.h>

struct incident_rows;
struct daemon_client;
struct series_set;
struct snapshot;

/* Adds leaks and incidents, newest first. 0, a daemon_client_outcome, or a negative errno. */
int top_past(struct daemon_client *remote, struct incident_rows *incident_rows);

/*
 * Adds what the daemon knows of the minutes before @until_ns (CLOCK_MONOTONIC). Return: likewise;
 * @set then has what had arrived.
 */
int top_charts(struct daemon_client *remote, const struct snapshot *snapshot, uint64_t until_ns,
	       struct series_set *set);
