/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by top-command.c (the command) and top-incidents.c (the daemon's records, as rows). */

struct incident_rows;
struct daemon_client;

/* Adds leaks and incidents, newest first. 0, a daemon_client_outcome, or a negative errno. */
int top_past(struct daemon_client *remote, struct incident_rows *incident_rows);
