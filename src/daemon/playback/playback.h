/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording as the provider of an HTTP server: the same documents as of a running daemon, of any
 * moment in the file, and of its last one where no moment is asked for. Processes that had ended by
 * then are in them, as with "--from" in the command.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/read/recording.h"
#include "web/server/web.h"

struct emit;
struct source;
struct snapshot;
struct snapshot_request;

#define PLAYBACK_MOMENTS 4u /* that stay restored: two cursors, and where they just were */

struct playback_moment {
	uint64_t time_ns;
	struct source *source;
};

struct playback {
	pthread_mutex_t lock; /* for everything: recordings are read by one thread at a time */
	struct recording *recording;
	struct playback_moment moments[PLAYBACK_MOMENTS]; /* the last used first */
	size_t count;
	struct snapshot *end; /* totals of the last moment; NULL = not read yet */
};

/* 0 or a negative errno, then with one line for users in @ret_why. Deinit it in any case. */
int playback_init(struct playback *playback, const char *path, char ret_why[RECORDING_WHY_SIZE]);
void playback_deinit(struct playback *playback);

/* All functions of a server that shows it; those for signing in are left to the caller. */
void playback_provide(struct playback *playback, struct web_provider *ret_provider);

/*
 * With the lock held. The books at a moment, which stay the playback's; a snapshot of them. 0 or a
 * negative errno.
 */
int playback_books(struct playback *playback, uint64_t time_ns, struct source **ret_source);
int playback_take(struct playback *playback, const struct snapshot_request *request,
		  struct snapshot **ret_snapshot);
int playback_end(struct playback *playback, const struct snapshot **ret_snapshot);

/* For the provider: see web/server/web.h. */
web_answer_fn playback_leaks, playback_ended, playback_incidents, playback_series, playback_moments,
	playback_peaks, playback_growth, playback_commands;
