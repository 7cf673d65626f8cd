/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by top-command.c (the command), top-incidents.c (the daemon's records, as rows), top-charts.c
 * (its time series, as charts), top-processes.c (their parents, and signals) and top-recording.c (a
 * recording instead of this machine).
 */

#include <stdint.h>

#include "base/process-id.h"
#include "recording/read/recording.h"
#include "tui/model.h"

struct incident_rows;
struct daemon_client;
struct session;
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

/* For tui_options; the context is not used. */
int top_send(void *context, struct process_id process, int signal);
uint32_t top_parent_of(void *context, uint32_t pid);

/* Moments of a recording. */
struct top_recording {
	struct model_recording keys;
	struct recording_moment peak;
	uint64_t *incidents; /* owned */
};

/* Moves the session to the end. 0 or a negative errno; deinit it in any case. */
int top_recording_init(struct top_recording *recording, struct session *session);
void top_recording_deinit(struct top_recording *recording);

/* CLOCK_REALTIME. 0 or a negative errno. */
int top_recording_move(struct session *session, const struct recording_moment *peak,
		       uint64_t at_ns);

/* Adds what was before the snapshot's moment, which is drawn as @until_ns (CLOCK_MONOTONIC). */
int top_recording_charts(struct session *session, const struct snapshot *snapshot,
			 uint64_t until_ns, struct series_set *set);
