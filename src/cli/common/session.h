/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Taking snapshots for a command: all sources, asked one after the other. */

#include "model/snapshot-request.h"

struct frames_one;
struct session;
struct namer;
struct daemon_client;
struct scan;
struct snapshot;

/* 0 or a negative errno. */
int session_new(struct session **ret_look);
struct session *session_free(struct session *session);

/* For who takes very many: processes are searched for only so often, see book_source_pace(). */
void session_pace(struct session *session, uint64_t ns);

/* A finished snapshot of this moment, the caller's. */
int session_take(struct session *session, const struct snapshot_request *request,
		 struct snapshot **ret_snapshot);

/* The books themselves, for commands that want more than a snapshot; they are as of the last time. */
struct scan *session_scan(struct session *session);
int session_refresh(struct session *session);

/*
 * For the native frames of stacks, in a request; NULL if there is no memory. Lives as long as the look. Each
 * call gives it new time to ask.
 */
struct namer *session_namer(struct session *session);

/* "function (file:line)", or what is known of it. */
void session_print_frame(const struct frames_one *frame);

/* The frames of a stack as in a snapshot_buffer, the innermost first, a line each. */
void session_print_stack(const char *stack, const char *indent);

/* The daemon. */
struct daemon_client *session_remote(struct session *session);

/* For locals that own one. */
void session_cleanup(struct session **session);
void session_cleanup_snapshot(struct snapshot **snapshot);

/* "note: ..." for each note, to stderr, for commands that print text. */
void session_print_notes(const struct snapshot *snapshot);
