/* SPDX-License-Identifier: Apache-2.0 */

/* A thread of its own has only one thing to do: to drop what nobody uses. */

#include "daemon/flight/moment-cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/process-id.h"
#include "base/threads/worker.h"
#include "daemon/flight/black-box.h"
#include "daemon/flight/moment-source.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "source/collect.h"
#include "source/source.h"

struct moment_cache_one {
	uint64_t time_ns;
	struct source *source;
};

struct moment_cache {
	struct black_box *box;
	struct worker *worker;

	pthread_mutex_t lock; /* for the rest; held as long as a moment takes */
	bool has_file;
	struct black_box_file file;
	struct recording *recording;                           /* of it; NULL = it has no books */
	struct moment_cache_one moments[MOMENT_CACHE_MOMENTS]; /* the last used first */
	size_t count;
	uint64_t used_ns;  /* CLOCK_MONOTONIC */
	uint64_t again_ns; /* likewise: when there may be another file */
};

static void moment_cache_drop_last(struct moment_cache *cache)
{
	source_free(cache->moments[--cache->count].source);
}

/* Moments refer to nothing of the file: they stay. */
static void moment_cache_drop_file(struct moment_cache *cache)
{
	cache->recording = recording_free(cache->recording);
	if (cache->has_file && cache->file.fd >= 0)
		(void)close(cache->file.fd); /* it was written by someone else */
	free(cache->file.owners);
	cache->file = (struct black_box_file){.fd = -1};
	cache->has_file = false;
}

static uint64_t moment_cache_tick(void *context, uint64_t now_ns)
{
	struct moment_cache *cache = context;
	uint64_t next = CLOCK_NEVER;

	pthread_mutex_lock(&cache->lock);
	if (cache->has_file || cache->count > 0) {
		next = cache->used_ns + MOMENT_CACHE_IDLE_NS;
		if (next <= now_ns) {
			while (cache->count > 0)
				moment_cache_drop_last(cache);
			moment_cache_drop_file(cache);
			next = CLOCK_NEVER;
		}
	}
	pthread_mutex_unlock(&cache->lock);
	return next;
}

int moment_cache_new(struct moment_cache **ret_cache, struct black_box *box)
{
	struct moment_cache *cache = calloc(1, sizeof(*cache));
	int r;

	if (!cache)
		return -ENOMEM;
	cache->box = box;
	cache->file.fd = -1;
	(void)pthread_mutex_init(&cache->lock, NULL); /* cannot fail on Linux */
	r = worker_new(&cache->worker, &(struct worker_config){.name = "moments",
							       .tick = moment_cache_tick,
							       .context = cache});
	if (r < 0) {
		moment_cache_free(cache);
		return r;
	}
	*ret_cache = cache;
	return 0;
}

struct moment_cache *moment_cache_free(struct moment_cache *cache)
{
	if (!cache)
		return NULL;
	if (cache->worker)
		worker_free(cache->worker);
	while (cache->count > 0)
		moment_cache_drop_last(cache);
	moment_cache_drop_file(cache);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
	return NULL;
}

/* Until there may be another file. */
static int moment_cache_wait(const struct moment_cache *cache)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct timespec until = {.tv_sec = (time_t)(cache->again_ns / NS_PER_S),
				 .tv_nsec = (long)(cache->again_ns % NS_PER_S)};

	if (cache->again_ns > now + MOMENT_CACHE_WAIT_NS)
		return -EAGAIN;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	return 0;
}

static int moment_cache_open(struct moment_cache *cache)
{
	char path[32], why[RECORDING_WHY_SIZE];

	cache->has_file = true;
	if (cache->file.fd < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", cache->file.fd); /* fits */
	return recording_open(&cache->recording, path, why);
}

/* A file with everything up to @time_ns. */
static int moment_cache_renew(struct moment_cache *cache, uint64_t time_ns)
{
	int r;

	if (cache->has_file && cache->file.until_ns >= time_ns)
		return 0;
	r = moment_cache_wait(cache);
	if (r < 0)
		return r;
	moment_cache_drop_file(cache);
	r = black_box_take(cache->box, MOMENT_CACHE_TAKE_NS, &cache->file);
	if (r == 0)
		r = moment_cache_open(cache);
	cache->again_ns =
		clock_ns(CLOCK_MONOTONIC) + bits_max(MOMENT_CACHE_AGAIN_MS * (NS_PER_S / 1000),
						     MOMENT_CACHE_SHARE * cache->file.cost_ns);
	if (r < 0) {
		/* Without the time it is still being written. */
		cache->again_ns += r == -ETIME ? MOMENT_CACHE_TAKE_NS : 0;
		moment_cache_drop_file(cache);
		return r == -ETIME ? -EAGAIN : r;
	}
	return 0;
}

/* The first one stays, whatever it takes. */
static void moment_cache_trim(struct moment_cache *cache)
{
	uint64_t size = 0;
	size_t books = 0;

	for (size_t i = 1; i < cache->count; i++) {
		size += moment_source_size(cache->moments[i].source);
		books += moment_source_books(cache->moments[i].source);
		if (size > MOMENT_CACHE_SIZE || books > MOMENT_CACHE_BOOKS) {
			while (cache->count > i)
				moment_cache_drop_last(cache);
		}
	}
}

static void moment_cache_put_first(struct moment_cache *cache, size_t from,
				   struct moment_cache_one one)
{
	for (size_t i = from; i > 0; i--)
		cache->moments[i] = cache->moments[i - 1];
	cache->moments[0] = one;
}

/* Leaves the moment as the first one. */
static int moment_cache_restore(struct moment_cache *cache, uint64_t time_ns)
{
	struct moment_cache_one one = {.time_ns = time_ns};
	int r;

	for (size_t i = 0; i < cache->count; i++) {
		if (cache->moments[i].time_ns == time_ns) {
			moment_cache_put_first(cache, i, cache->moments[i]);
			return 0;
		}
	}
	r = moment_cache_renew(cache, time_ns);
	if (r < 0)
		return r;
	r = moment_source_new(&one.source, cache->recording, &cache->file, time_ns);
	if (r < 0)
		return r;
	if (cache->count == MOMENT_CACHE_MOMENTS)
		moment_cache_drop_last(cache);
	moment_cache_put_first(cache, cache->count++, one);
	moment_cache_trim(cache);
	return 0;
}

static int moment_cache_collect(struct moment_cache *cache, const struct snapshot_request *request,
				struct snapshot **ret_snapshot)
{
	struct source *source = cache->moments[0].source;
	struct collect_sources sources;
	size_t books = moment_source_books(source);

	/* If nothing is known of anybody, sums are better. */
	if (books > 0 && moment_source_unknown(source) == books)
		return -ENODATA;
	moment_source_sources(source, &sources);
	return collect_machine(&sources, request, ret_snapshot);
}

int moment_cache_snapshot(struct moment_cache *cache, const struct snapshot_request *request,
			  struct snapshot **ret_snapshot)
{
	uint64_t from = moment_cache_from(cache);
	int r;

	if (request->at_ns < from)
		return -ENODATA;
	pthread_mutex_lock(&cache->lock);
	r = moment_cache_restore(cache, request->at_ns);
	if (r == 0)
		r = moment_cache_collect(cache, request, ret_snapshot);
	cache->used_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&cache->lock);
	worker_poke(cache->worker);
	if (r == 0)
		(*ret_snapshot)->moment = (struct snapshot_moment){
			.kind = SNAPSHOT_MOMENT_EXACT,
			.asked_ns = request->at_ns,
			.reach = {.exact_from_ns = from},
		};
	return r;
}

int moment_cache_read(struct moment_cache *cache, uint64_t until_ns,
		      int (*fn)(void *context, struct recording *recording,
				const struct black_box_file *file),
		      void *context)
{
	int r;

	pthread_mutex_lock(&cache->lock);
	r = moment_cache_renew(cache, until_ns);
	if (r == 0 && cache->recording)
		r = fn(context, cache->recording, &cache->file);
	cache->used_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&cache->lock);
	worker_poke(cache->worker);
	return r;
}

uint64_t moment_cache_from(const struct moment_cache *cache)
{
	return black_box_from(cache->box);
}

struct moment_cache_owners {
	int (*fn)(void *context, struct process_id process);
	void *context;
};

static int moment_cache_owners(void *context, struct recording *recording,
			       const struct black_box_file *file)
{
	const struct moment_cache_owners *owners = context;
	int r = 0;

	for (size_t i = 0; r == 0 && i < recording_facts(recording)->books; i++) {
		const struct recording_book *book = &recording_owner(recording, i)->book;

		r = owners->fn(owners->context, recording_process(book));
	}
	return r;
}

int moment_cache_kept(struct moment_cache *cache, uint64_t until_ns,
		      int (*fn)(void *context, struct process_id process), void *context)
{
	struct moment_cache_owners owners = {.fn = fn, .context = context};

	return moment_cache_read(cache, until_ns, moment_cache_owners, &owners);
}
