/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Taking snapshots for a command: all sources, asked one after the other. */

#include "model/snapshot-request.h"

struct frames_one;
struct look;
struct namer;
struct daemon_client;
struct scan;
struct snapshot;

/* 0 or a negative errno. */
int look_new(struct look **ret_look);
struct look *look_free(struct look *look);

/* For who takes very many: processes are searched for only so often, see book_source_pace(). */
void look_pace(struct look *look, uint64_t ns);

/* A finished snapshot of this moment, the caller's. */
int look_take(struct look *look, const struct snapshot_request *request,
	      struct snapshot **ret_snapshot);

/* The books themselves, for commands that want more than a snapshot; they are as of the last time. */
struct scan *look_scan(struct look *look);
int look_refresh(struct look *look);

/*
 * For the native frames of stacks, in a request; NULL if there is no memory. Lives as long as the look. Each
 * call gives it new time to ask.
 */
struct namer *look_namer(struct look *look);

/* "function (file:line)", or what is known of it. */
void look_print_frame(const struct frames_one *frame);

/* The frames of a stack as in a snapshot_buffer, the innermost first, a line each. */
void look_print_stack(const char *stack, const char *indent);

/* The daemon. */
struct daemon_client *look_remote(struct look *look);

/* For locals that own one. */
void look_cleanup(struct look **look);
void look_cleanup_snapshot(struct snapshot **snapshot);

/* "note: ..." for each note, to stderr, for commands that print text. */
void look_print_notes(const struct snapshot *snapshot);
