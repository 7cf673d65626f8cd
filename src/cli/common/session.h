/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Takes snapshots for a command, from all sources in turn. */

#include <stdio.h>

#include "model/snapshot-request.h"

struct filter;
struct stack;
struct call_site;
struct options_from;
struct recording;
struct recording_moment;
struct session;
struct site_rows;
struct namer;
struct daemon_client;
struct scan;
struct snapshot;

/* 0 or a negative errno. */
int session_new(struct session **ret_session);
struct session *session_free(struct session *session);

/*
 * The same for @command, or of a moment of a recording. @filter: whose peak is meant by "peak"; NULL
 * = all. Returns 0, or an exit code after the mistake was reported.
 */
int session_start(struct session **ret_session, const char *command,
		  const struct options_from *from, const struct filter *filter);

/* The recording, or NULL: then there is neither a daemon nor anything else of this machine. */
struct recording *session_recording(struct session *session);

/* Another moment of the same recording; until then, the moment of now. */
int session_move(struct session *session, const struct recording_moment *moment);
const struct recording_moment *session_moment(const struct session *session);

/* CLOCK_REALTIME: now, or the moment. */
uint64_t session_now(const struct session *session);

/* For text: a line that says of which recording and moment it is; nothing if it is of now. */
void session_print_moment(const struct session *session);

/* For frequent snapshots: limits how often processes are searched for, see book_source_pace(). */
void session_pace(struct session *session, uint64_t ns);

/* A finished snapshot of this moment, owned by the caller. */
int session_take(struct session *session, const struct snapshot_request *request,
		 struct snapshot **ret_snapshot);

/* The books themselves, for commands that need more than a snapshot; as of the last refresh. */
struct scan *session_scan(struct session *session);
int session_refresh(struct session *session);

/*
 * Names for the native frames of stacks, for a request; NULL if out of memory. Lives as long as the
 * session. Each call restarts its time limit.
 */
struct namer *session_namer(struct session *session);

/*
 * A tip for TTMEM_SKIP_FRAMES, at the end of what is shown, if one of its lists has a frame that most rows
 * were allocated through.
 */
void session_find_tip(const struct site_rows *rows);
void session_print_tip(FILE *out);

/* Prints the stack of a snapshot_buffer, innermost frame first, one per line. */
void session_print_stack(FILE *out, const struct stack *stack, const char *indent);

/*
 * Prints the names of a call site below it, if it has several: the largest, and how many more there
 * are. @listed: how many are in @names.
 */
void session_print_names(FILE *out, const struct call_site *names, size_t listed, size_t count,
			 const char *indent);

/* The session's daemon client; NULL for a recording. */
struct daemon_client *session_remote(struct session *session);

/* For CLEANUP(). */
void session_cleanup(struct session **session);

/* Prints "note: ..." to stderr for each note, for commands that print text. */
void session_print_notes(const struct snapshot *snapshot);
