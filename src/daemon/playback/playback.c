/* SPDX-License-Identifier: Apache-2.0 */

/* Snapshots of any moment of a recording. */

#include "daemon/playback/playback.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "model/health.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/read/recording-source.h"
#include "source/collect.h"
#include "source/proc/proc.h"
#include "source/source.h"

/* Each book is a file in memory, and there may be more than the thousand of a shell. */
static void playback_raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* then restoring says what is missing */
}

int playback_init(struct playback *playback, const char *path, char ret_why[RECORDING_WHY_SIZE])
{
	*playback = (struct playback){.recording = NULL};
	(void)pthread_mutex_init(&playback->lock, NULL); /* cannot fail on Linux */
	playback_raise_limits();
	return recording_open(&playback->recording, path, ret_why);
}

void playback_deinit(struct playback *playback)
{
	while (playback->count > 0)
		source_free(playback->moments[--playback->count].source);
	snapshot_free(playback->end);
	recording_free(playback->recording);
	pthread_mutex_destroy(&playback->lock);
}

static void playback_put_first(struct playback *playback, size_t from, struct playback_moment one)
{
	for (size_t i = from; i > 0; i--)
		playback->moments[i] = playback->moments[i - 1];
	playback->moments[0] = one;
}

int playback_books(struct playback *playback, uint64_t time_ns, struct source **ret_source)
{
	const struct recording_moment moment = {
		.time_ns = time_ns, .book = RECORDING_NONE, .device = RECORDING_NONE};
	struct playback_moment one = {.time_ns = time_ns};
	size_t i = 0;
	int r = 0;

	while (i < playback->count && playback->moments[i].time_ns != time_ns)
		i++;
	if (i < playback->count) {
		one = playback->moments[i];
	} else {
		/* What is dropped first makes room for what is restored. */
		if (playback->count == PLAYBACK_MOMENTS)
			source_free(playback->moments[--playback->count].source);
		r = recording_source_new(&one.source, playback->recording, &moment);
		if (r < 0)
			return r;
		i = playback->count++;
	}
	playback_put_first(playback, i, one);
	*ret_source = one.source;
	return 0;
}

static struct snapshot_reach playback_reach_of(const struct playback *playback)
{
	return (struct snapshot_reach){
		.exact_from_ns = recording_facts(playback->recording)->start_ns,
	};
}

static void playback_tell(const struct playback *playback, const struct snapshot_request *request,
			  struct snapshot *snapshot)
{
	recording_tell(playback->recording, snapshot);
	if (request->at_ns)
		snapshot->moment = (struct snapshot_moment){
			.kind = SNAPSHOT_MOMENT_EXACT,
			.asked_ns = request->at_ns,
			.reach = playback_reach_of(playback),
		};
}

int playback_take(struct playback *playback, const struct snapshot_request *request,
		  struct snapshot **ret_snapshot)
{
	struct snapshot_request complete = *request;
	struct collect_sources sources;
	const struct snapshot *totals;
	struct source *source = NULL;
	int r = 0;

	/* A page knows nothing of other processes' devices: they are the same in all moments. */
	if (request->limit && !request->totals) {
		r = playback_end(playback, &totals);
		complete.totals = totals;
	}
	if (r == 0)
		r = playback_books(playback,
				   request->at_ns ? request->at_ns
						  : recording_facts(playback->recording)->end_ns,
				   &source);
	if (r < 0)
		return r;
	complete.ended = true;
	complete.namer = request->unnamed ? NULL : recording_namer(playback->recording);
	recording_source_sources(source, &sources);
	r = collect_machine(&sources, &complete, ret_snapshot);
	if (r == 0)
		playback_tell(playback, request, *ret_snapshot);
	return r;
}

int playback_end(struct playback *playback, const struct snapshot **ret_snapshot)
{
	const struct snapshot_request totals = {.buffers = false};
	int r = playback->end ? 0 : playback_take(playback, &totals, &playback->end);

	*ret_snapshot = playback->end;
	return r;
}

static int playback_snapshot(void *context, const struct snapshot_request *request,
			     struct snapshot **ret_snapshot)
{
	struct playback *playback = context;
	const struct snapshot *end;
	int r;

	pthread_mutex_lock(&playback->lock);
	if (request->at_ns || request->buffers || request->is_own) {
		r = playback_take(playback, request, ret_snapshot);
	} else {
		/* What listeners get again and again. */
		r = playback_end(playback, &end);
		if (r == 0)
			*ret_snapshot = snapshot_ref(playback->end);
	}
	pthread_mutex_unlock(&playback->lock);
	return r;
}

static int playback_reach(void *context, const struct query_asker *asker,
			  struct snapshot_reach *ret_reach)
{
	(void)asker; /* whoever is let in sees all */
	*ret_reach = playback_reach_of(context);
	return 0;
}

static void playback_health(void *context, struct health *ret_health)
{
	const struct playback *playback = context;
	const struct recording_facts *facts = recording_facts(playback->recording);
	const char *slash = strrchr(facts->path, '/');

	*ret_health = (struct health){
		.store_runs = true,
		.books = facts->books,
		.start_ns = facts->start_ns,
		.recording = recording_describe(playback->recording),
		.version = DAEMON_VERSION,
	};
	if (slash)
		ret_health->recording.file = slash + 1;
}

static void playback_user_name(void *context, uint32_t user, char *ret_name, size_t size)
{
	(void)context; /* the system's database */
	proc_user_name(user, ret_name, size);
}

void playback_provide(struct playback *playback, struct web_provider *ret_provider)
{
	*ret_provider = (struct web_provider){
		.context = playback,
		.snapshot = playback_snapshot,
		.reach = playback_reach,
		.leaks = playback_leaks,
		.ended = playback_ended,
		.incidents = playback_incidents,
		.series = playback_series,
		.moments = playback_moments,
		.peaks = playback_peaks,
		.growth = playback_growth,
		.commands = playback_commands,
		.user_name = playback_user_name,
		.health = playback_health,
	};
}
