/* SPDX-License-Identifier: Apache-2.0 */

/* Opens and closes the store, and queues what others put; store-writer.c does the work. */

#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/threads/pthreads.h"
#include "store/store-item.h"
#include "store/store-private.h"

#define STORE_BATCH_MS 1000u
#define STORE_RETRY_MS 60000u
#define STORE_QUEUE_ITEMS 8192u
#define STORE_QUEUE_BYTES (UINT64_C(32) << 20)

static void store_free(struct store **store)
{
	if (!*store)
		return;
	free((*store)->path);
	free((char *)(uintptr_t)(*store)->config.folder); /* our own copy */
	free(*store);
}

/* Replaces 0 by the default. */
static struct store_config store_config_complete(const struct store_config *config)
{
	struct store_config complete = *config;
	struct rlimit files;

	if (!complete.size_max)
		complete.size_max = STORE_SIZE_DEFAULT;
	complete.size_max = bits_max(complete.size_max, STORE_SIZE_MIN);
	if (getrlimit(RLIMIT_FSIZE, &files) == 0)
		complete.size_max = bits_min(complete.size_max, files.rlim_cur);
	if (!complete.keep_s)
		complete.keep_s = STORE_KEEP_DEFAULT;
	if (!complete.batch_ms)
		complete.batch_ms = STORE_BATCH_MS;
	if (!complete.retry_ms)
		complete.retry_ms = STORE_RETRY_MS;
	if (!complete.queue_items)
		complete.queue_items = STORE_QUEUE_ITEMS;
	if (!complete.queue_bytes)
		complete.queue_bytes = STORE_QUEUE_BYTES;
	return complete;
}

static int store_init_locks(struct store *store)
{
	pthread_rwlockattr_t attributes;
	int r = -pthread_mutex_init(&store->lock, NULL);

	if (r < 0)
		return r;
	r = -pthread_rwlockattr_init(&attributes);
	if (r == 0) {
		/* Overlapping queries must not keep the writer out forever. */
		r = -pthread_rwlockattr_setkind_np(&attributes,
						   PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
		if (r == 0)
			r = -pthread_rwlock_init(&store->files, &attributes);
		(void)pthread_rwlockattr_destroy(&attributes); /* cannot fail */
	}
	if (r < 0)
		(void)pthread_mutex_destroy(&store->lock); /* nobody holds it */
	return r;
}

static void store_deinit_locks(struct store *store)
{
	(void)pthread_rwlock_destroy(&store->files); /* nobody holds them */
	(void)pthread_mutex_destroy(&store->lock);
}

static int store_init(struct store *store)
{
	int r = store_init_locks(store);

	if (r < 0)
		return r;
	store_queue_init(&store->queue, store->config.queue_items, store->config.queue_bytes);
	r = pthreads_start(&store->thread, "ttmem-store", store_writer_main, store);
	if (r < 0) {
		store_queue_deinit(&store->queue);
		store_deinit_locks(store);
	}
	return r;
}

/**
 * store_open() - start recording
 * @config: what to keep, and where
 * @ret_store: the store, until store_close()
 *
 * Only the writer's thread accesses the folder: problems with it neither fail nor delay the caller.
 *
 * Return: 0 or a negative errno.
 */
int store_open(const struct store_config *config, struct store **ret_store)
{
	CLEANUP(store_free) struct store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return -ENOMEM;
	store->config = store_config_complete(config);
	store->config.folder = strdup(config->folder);
	if (!store->config.folder ||
	    asprintf(&store->path, "%s/%s", config->folder, STORE_FILE) < 0) {
		store->path = NULL; /* undefined after a failure */
		return -ENOMEM;
	}
	store->series = STORE_SERIES_NULL;
	store->limit = store->health.size_limit = store->config.size_max;
	r = store_init(store);
	if (r < 0)
		return r;
	*ret_store = cleanup_steal(store);
	return 0;
}

struct store *store_close(struct store *store)
{
	if (!store)
		return NULL;
	assert(!store->readers);
	store_queue_stop(&store->queue);
	(void)pthread_join(store->thread, NULL); /* ours, and not joined yet */
	store_queue_deinit(&store->queue);
	store_deinit_locks(store);
	store_free(&store);
	return NULL;
}

void store_put_sample(struct store *store, const struct snapshot *snapshot)
{
	store_queue_put_consume(&store->queue, STORE_LANE_SAMPLES, store_item_sample(snapshot));
}

void store_put_incident(struct store *store, const struct snapshot *snapshot,
			const struct snapshot_incident *incident)
{
	/* Leaks have their own reports. */
	if (incident->kind && strcmp(incident->kind, "leak") == 0)
		return;
	store_queue_put_consume(&store->queue, STORE_LANE_RECORDS,
				store_item_incident(snapshot, incident));
}

void store_put_failure(struct store *store, const struct snapshot *snapshot,
		       const struct snapshot_incident *incident)
{
	store_queue_put_consume(&store->queue, STORE_LANE_RECORDS,
				store_item_failure(snapshot, incident));
}

void store_put_leak(struct store *store, const struct snapshot *snapshot, uint32_t process,
		    const struct ending *ending)
{
	/* Others' reports must fit too, into the queue and into the file. */
	size_t most = bits_min(store->config.queue_bytes / 8, store->config.size_max / 16);
	struct store_item *item = NULL;
	int r = store_item_leak(snapshot, process, ending, most, &item);

	if (item && item->bytes > store_queue_room(&store->queue, item->processes[0].uid) / 2)
		store_item_drop_rows(item);
	if (item || r < 0)
		store_queue_put_consume(&store->queue, STORE_LANE_RECORDS, item);
}

void store_put_ending(struct store *store, const struct snapshot *snapshot, uint32_t process,
		      const struct ending *ending)
{
	store_queue_put_consume(&store->queue, STORE_LANE_RECORDS,
				store_item_ending(snapshot, process, ending));
}

int store_flush(struct store *store, uint32_t timeout_ms)
{
	return store_queue_flush(&store->queue, timeout_ms);
}

void store_health(struct store *store, struct store_health *ret_health)
{
	struct store_queue *queue = &store->queue;

	pthread_mutex_lock(&store->lock);
	*ret_health = store->health;
	pthread_mutex_unlock(&store->lock);

	pthread_mutex_lock(&queue->lock);
	for (size_t i = 0; i < STORE_LANES; i++) {
		ret_health->queued += queue->kinds[i].load.items;
		ret_health->queued_bytes += queue->kinds[i].load.bytes;
	}
	ret_health->dropped_leaks = queue->dropped_leaks;
	ret_health->dropped_records =
		queue->dropped_leaks + queue->dropped_incidents + queue->dropped_endings;
	ret_health->dropped_samples = queue->dropped_samples;
	ret_health->joined = queue->joined;
	ret_health->cut = queue->cut;
	pthread_mutex_unlock(&queue->lock);
}
