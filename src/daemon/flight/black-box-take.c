/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file of everything that is kept. Each book is a job of its own, and after every job come the
 * rounds that are due: whoever looks at the past makes nobody else's rings overrun.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/worker.h"
#include "daemon/flight/black-box-private.h"
#include "daemon/symbols/symbols-namer.h"

#define TAKE_NAME "flight-recording" /* not one of the names that are taken for books */

struct take {
	struct worker_job job;
	struct black_box *box;
	struct flight_writing *writing;
	struct symbols_namer namer;
	uint64_t serial; /* of the book that was written last */
	struct black_box_file file;
	size_t capacity; /* of its owners */

	/* Under the box's lock: whoever comes last frees it. */
	bool is_done, is_left;
	int result;
};

static void take_free(struct take *take)
{
	if (take->writing)
		(void)flight_file_end(take->writing); /* nobody wants the file */
	if (take->file.fd >= 0)
		(void)close(take->file.fd); /* likewise */
	symbols_namer_deinit(&take->namer);
	free(take->file.owners);
	free(take);
}

static int take_begin(struct take *take)
{
	const struct black_box_config *config = &take->box->config;
	uint64_t now = clock_ns(CLOCK_REALTIME);
	struct flight_file file = {
		.reason = "looked at",
		.size_max = config->size_max,
		.since_ns = now - bits_min(now, config->time_ns),
	};

	if (config->symbols) {
		symbols_namer_init(&take->namer, config->symbols, false);
		file.namer = &take->namer.namer;
	}
	take->file.until_ns = now;
	take->file.from_ns = black_box_from(take->box);
	take->file.fd = memfd_create(TAKE_NAME, MFD_CLOEXEC);
	if (take->file.fd < 0)
		return -errno;
	return flight_file_begin(take->box->flight, take->file.fd, &file, &take->writing);
}

/* The first book that came after the last one that was written; NULL = that was the last. */
static const struct black_box_entry *take_next(const struct take *take)
{
	const struct black_box_entry *next = NULL;

	for (size_t i = 0; i < take->box->count; i++) {
		const struct black_box_entry *entry = &take->box->entries[i];

		/* One that has ended may have lost its place just now. */
		if (entry->has_ended && !flight_keeps(take->box->flight, entry->book))
			continue;
		if (entry->serial > take->serial && (!next || entry->serial < next->serial))
			next = entry;
	}
	return next;
}

static int take_add(struct take *take, const struct black_box_entry *entry)
{
	struct black_box_owner *owner = array_grow(take->file.owners, &take->capacity,
						   take->file.count + 1, sizeof(*owner));

	if (!owner)
		return -ENOMEM;
	take->file.owners = owner;
	owner += take->file.count++;
	*owner = entry->owner;
	take->serial = entry->serial;
	return flight_file_add(take->writing, entry->book,
			       entry->has_ended ? &entry->ending : NULL);
}

static void take_done(struct take *take, int result)
{
	struct black_box *box = take->box;
	bool is_left;

	/* What is there is as good as a whole file; books that are not in it are not known. */
	if (take->writing) {
		int r = flight_file_end(take->writing);

		take->writing = NULL;
		if (result == 0 && r != -EFBIG)
			result = r;
	}
	pthread_mutex_lock(&box->lock);
	take->result = result;
	take->is_done = true;
	is_left = take->is_left;
	pthread_cond_broadcast(&box->taken);
	pthread_mutex_unlock(&box->lock);
	if (is_left)
		take_free(take);
}

static bool take_is_left(struct take *take)
{
	bool is_left;

	pthread_mutex_lock(&take->box->lock);
	is_left = take->is_left;
	pthread_mutex_unlock(&take->box->lock);
	return is_left;
}

static void take_run(struct worker_job *job)
{
	struct take *take = container_of(job, struct take, job);
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct black_box_entry *entry;
	int r = take->writing ? 0 : take_begin(take);

	entry = r == 0 && !take_is_left(take) ? take_next(take) : NULL;
	if (entry)
		r = take_add(take, entry);
	if (r == -EFBIG) {
		/* The rest does not fit. */
		r = 0;
		entry = NULL;
	}
	take->file.cost_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (r < 0 || !entry)
		take_done(take, r);
	else if (!worker_put(take->box->worker, &take->job))
		take_done(take, -ECANCELED);
}

/* The lock is held. */
static int take_wait(struct take *take, uint64_t timeout_ns)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	const struct timespec deadline = {.tv_sec = (time_t)(until / NS_PER_S),
					  .tv_nsec = (long)(until % NS_PER_S)};
	int r = 0;

	while (!take->is_done && r == 0)
		r = pthread_cond_timedwait(&take->box->taken, &take->box->lock, &deadline);
	return take->is_done ? take->result : -ETIME;
}

int black_box_take(struct black_box *box, uint64_t timeout_ns, struct black_box_file *ret_file)
{
	struct take *take = calloc(1, sizeof(*take));
	bool is_done;
	int r;

	if (!take)
		return -ENOMEM;
	take->box = box;
	take->file.fd = -1;
	take->job.run = take_run;
	if (!worker_put(box->worker, &take->job)) {
		take_free(take);
		return -ECANCELED;
	}
	pthread_mutex_lock(&box->lock);
	r = take_wait(take, timeout_ns);
	is_done = take->is_done;
	take->is_left = true;
	if (r == 0) {
		*ret_file = take->file;
		take->file.fd = -1;
		take->file.owners = NULL;
	}
	pthread_mutex_unlock(&box->lock);
	/* Else the thread is still at it, and frees it. */
	if (is_done)
		take_free(take);
	if (r == 0 && ret_file->count == 0) {
		(void)close(ret_file->fd); /* an empty file */
		ret_file->fd = -1;
	}
	return r;
}
