/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The writer thread. It takes what waits, writes it in one transaction, and then deletes what is
 * too old or too much. A failure has one of a few consequences:
 *
 *	an item that cannot be written		it is skipped and counted
 *	the file is locked, or no memory	everything is put back; retry in a second
 *	the disk is full, or no access		everything is put back, the file is closed
 *	the file is not the one on disk		the one on disk is opened
 *	damage of any kind			the file is set aside and a new one created
 *
 * A full disk leaves the file where it is: its contents are still good, and can be read meanwhile.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "store/store-item.h"
#include "store/store-private.h"
#include "store/store-quarantine.h"
#include "store/store-record.h"

#define STORE_IDLE_MS 10000u
#define STORE_AGAIN_MS 1000u
#define STORE_TRIES 2u /* with the current file, and with a new one */

void store_writer_now(const struct store *store, struct store_now *ret_now)
{
	if (store->config.hooks.clock) {
		store->config.hooks.clock(store->config.hooks.context, ret_now);
		return;
	}
	ret_now->real_ns = clock_ns(CLOCK_REALTIME);
	ret_now->boot_ns = clock_ns(CLOCK_BOOTTIME);
}

int store_writer_fault(struct store *store, enum store_step step)
{
	int code = 0;

	if (store->config.hooks.fault)
		code = store->config.hooks.fault(store->config.hooks.context, step);
	return code ? store_db_fail_code(&store->db, code) : 0;
}

/* Reports why something failed, unless that was reported and nothing has succeeded since. */
__attribute__((format(printf, 2, 3))) static void store_writer_tell(struct store *store,
								    const char *format, ...)
{
	struct store_now now;
	char reason[sizeof(store->health.reason)];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(reason, sizeof(reason), format, arguments); /* may be cut */
	va_end(arguments);
	store_writer_now(store, &now);
	pthread_mutex_lock(&store->lock);
	if (!store->is_told || strcmp(reason, store->health.reason) != 0) {
		memcpy(store->health.reason, reason, sizeof(reason));
		store->health.reason_ns = now.real_ns;
		store->health.reasons++;
	}
	pthread_mutex_unlock(&store->lock);
	store->is_told = true;
}

static void store_writer_set_running(struct store *store, bool running)
{
	pthread_mutex_lock(&store->lock);
	store->health.running = running;
	pthread_mutex_unlock(&store->lock);
	store_queue_stall(&store->queue, !running);
}

/* Makes the folder and its parents. Failures show when the file is created. */
static void store_writer_make_folder(const struct store *store)
{
	CLEANUP_FREE char *path = strdup(store->config.folder);

	if (!path)
		return;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(path, 0755); /* shared folders; most exist */
		*p = '/';
	}
	(void)mkdir(path, 0700); /* private: it shows which programs all users run */
}

/* How large the log may grow before it is written into the database: not all of a small disk. */
static uint64_t store_writer_log_max(const struct store *store)
{
	uint64_t most = store->config.size_max / 16;
	struct statvfs disk;

	if (statvfs(store->config.folder, &disk) == 0)
		most = bits_min(most, disk.f_bavail * disk.f_frsize / 16);
	return bits_min(bits_max(most, UINT64_C(16) * STORE_PAGE), UINT64_C(1000) * STORE_PAGE);
}

static int store_writer_connect(struct store *store)
{
	int r = store_writer_fault(store, STORE_STEP_OPEN);

	store_writer_make_folder(store);
	if (r == 0)
		r = store_db_open(&store->db, store->path, store_writer_log_max(store));
	return r;
}

/* Moves a damaged file out of the way; store->files is held. 0 or a negative errno. */
static int store_writer_move(struct store *store)
{
	struct store_now now;
	char name[64];
	int r;

	store_db_close(&store->db, true);
	if (store->db.is_fresh) {
		/* It is empty, and must not push out files that are not. */
		store->db.is_fresh = false;
		store_quarantine_remove(store->config.folder);
		return 0;
	}
	store_writer_now(store, &now);
	r = store_aside(store->config.folder, now.real_ns, name, sizeof(name));
	if (r < 0)
		return r;
	store_writer_tell(store, "%s: %s; set aside as %s", STORE_FILE, store->db.message, name);
	pthread_mutex_lock(&store->lock);
	store->health.set_aside++;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

static void store_writer_disconnect(struct store *store)
{
	pthread_rwlock_wrlock(&store->files);
	store_reader_part_all(store); /* the last connection to close it empties the log */
	store_db_close(&store->db, false);
	pthread_rwlock_unlock(&store->files);
}

/*
 * Opens the file. @damaged: set the existing one aside first. Return: whether it is open; if not,
 * the time of the next attempt is set.
 */
static bool store_writer_open(struct store *store, bool damaged)
{
	int r = -EIO; /* a file that cannot be set aside cannot be replaced */

	store_series_forget(&store->series);
	for (unsigned int i = 0; i < STORE_TRIES; i++) {
		pthread_rwlock_wrlock(&store->files);
		store_reader_part_all(store);
		if (!damaged || store_writer_move(store) == 0)
			r = store_writer_connect(store);
		pthread_rwlock_unlock(&store->files);
		/* Takes a while, during which readers may read. */
		if (r == 0)
			r = store_db_verify(&store->db);
		damaged = r < 0 && store->db.trouble == STORE_TROUBLE_DAMAGED;
		if (!damaged)
			break;
	}
	if (r < 0)
		store_writer_disconnect(store);
	__atomic_store_n(&store->suspect, false, __ATOMIC_RELAXED); /* was about the old file */
	store->kept_boot_ns = 0;
	store->run_is_written = false;
	if (store->db.handle) {
		store_runs_begin(store);
		store_writer_set_running(store, true);
		return true;
	}
	store_writer_tell(store, "%s: %s", STORE_FILE, store->db.message);
	store->retry_ms = clock_ms(CLOCK_MONOTONIC) + store->config.retry_ms;
	store_writer_set_running(store, false);
	return false;
}

/* After a failure. Return: whether to retry at once. */
static bool store_writer_recover(struct store *store)
{
	switch (store->db.trouble) {
	case STORE_TROUBLE_AGAIN:
		store->retry_ms = clock_ms(CLOCK_MONOTONIC) + STORE_AGAIN_MS;
		break;
	case STORE_TROUBLE_FULL:
	case STORE_TROUBLE_CLOSED:
		store_writer_disconnect(store);
		store->retry_ms = clock_ms(CLOCK_MONOTONIC) + store->config.retry_ms;
		break;
	case STORE_TROUBLE_MOVED:
		store_writer_tell(store, "%s: %s", STORE_FILE, store->db.message);
		pthread_rwlock_wrlock(&store->files);
		store_db_close(&store->db, true);
		pthread_rwlock_unlock(&store->files);
		return store_writer_open(store, false);
	case STORE_TROUBLE_ITEM: /* of a statement that cannot fail */
	case STORE_TROUBLE_DAMAGED:
		return store_writer_open(store, true);
	}
	store_writer_tell(store, "%s: %s", STORE_FILE, store->db.message);
	store_writer_set_running(store, false);
	return false;
}

static int store_writer_item(struct store *store, const struct store_item *item)
{
	struct store_db *db = &store->db;
	int r = store_db_run(db, STORE_SQL_ITEM_BEGIN, NULL, 0, NULL);

	if (r < 0)
		return r;
	r = store_writer_fault(store, STORE_STEP_ITEM);
	if (r == 0) {
		switch (item->kind) {
		case STORE_ITEM_SAMPLE:
			r = store_series_write(&store->series, db, item);
			break;
		case STORE_ITEM_INCIDENT:
			r = store_record_incident(db, item);
			break;
		case STORE_ITEM_LEAK:
			r = store_record_leak(db, item);
			break;
		case STORE_ITEM_ENDING:
			r = store_record_ending(db, item);
			break;
		}
	}
	if (r < 0 && db->trouble == STORE_TROUBLE_ITEM) {
		store_writer_tell(store, "an item was not written: %s", db->message);
		store_series_forget(&store->series);
		pthread_mutex_lock(&store->lock);
		store->health.refused++;
		pthread_mutex_unlock(&store->lock);
		r = store_db_run(db, STORE_SQL_ITEM_ROLLBACK, NULL, 0, NULL);
	}
	if (r < 0)
		return r;
	return store_db_run(db, STORE_SQL_ITEM_COMMIT, NULL, 0, NULL);
}

/* One transaction. 0, or -EIO with nothing written. */
static int store_writer_batch(struct store *store, const struct store_item *list)
{
	uint64_t count = 0, records = 0;
	int r = store_db_run(&store->db, STORE_SQL_BEGIN, NULL, 0, NULL);

	for (const struct store_item *item = list; r >= 0 && item; item = item->next) {
		r = store_writer_item(store, item);
		count++;
		records += item->kind == STORE_ITEM_INCIDENT || item->kind == STORE_ITEM_LEAK;
	}
	if (r >= 0)
		r = store_writer_fault(store, STORE_STEP_COMMIT);
	if (r >= 0)
		r = store_db_run(&store->db, STORE_SQL_COMMIT, NULL, 0, NULL);
	if (r < 0) {
		store_db_rollback(&store->db);
		store_series_forget(&store->series);
		return r;
	}
	store->db.is_fresh = false;
	store->is_told = false;
	pthread_mutex_lock(&store->lock);
	store->health.written += count;
	store->health.records += records;
	store->health.batches++;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

/* Cuts @list after one transaction's worth. Return: the rest. */
static struct store_item *store_writer_cut(const struct store *store, struct store_item *list)
{
	/* Large enough to be fast, small enough that the size limit holds between two of them. */
	uint64_t bytes = 0, most = bits_min(store->limit / 32, UINT64_C(4) << 20);
	struct store_item *rest;

	for (bytes = list->bytes; list->next; list = list->next) {
		bytes += list->next->bytes;
		if (bytes > most)
			break;
	}
	rest = list->next;
	list->next = NULL;
	return rest;
}

/* Writes what waits in a lane. Return: false if it has to wait. */
static bool store_writer_lane(struct store *store, enum store_lane_kind lane)
{
	struct store_item *list = store_queue_take(&store->queue, lane);

	while (list) {
		struct store_item *rest = store_writer_cut(store, list);
		bool is_written = false;
		int r;

		for (unsigned int i = 0; !is_written && i < STORE_TRIES; i++) {
			is_written = store_writer_batch(store, list) == 0;
			if (!is_written && !store_writer_recover(store))
				break;
		}
		if (!is_written && store->retry_ms) {
			store_queue_put_back(&store->queue, lane, rest);
			store_queue_put_back(&store->queue, lane, list);
			return false;
		}
		/* If not written, it has damaged two files in turn: it would damage all others. */
		r = store_keep(store);
		store_queue_finish(&store->queue, lane, list, !is_written);
		list = rest;
		if (r < 0 && !store_writer_recover(store)) {
			store_queue_put_back(&store->queue, lane, list);
			return false;
		}
	}
	return true;
}

static void store_writer_turn(struct store *store)
{
	if (!store->db.handle && !store_writer_open(store, false))
		return;
	if (store->config.hooks.busy)
		store->config.hooks.busy(store->config.hooks.context);
	/* Relaxed: only a hint; the writer reads nothing that the reader wrote. */
	if (__atomic_load_n(&store->suspect, __ATOMIC_RELAXED)) {
		(void)store_db_fail(&store->db, STORE_TROUBLE_DAMAGED, "damaged"); /* see below */
		if (!store_writer_recover(store))
			return;
	}
	store_writer_set_running(store, true);
	store_runs_begin(store); /* unless that succeeded when the file was opened */
	if (!store_writer_lane(store, STORE_LANE_RECORDS) ||
	    !store_writer_lane(store, STORE_LANE_SAMPLES))
		return;
	if (store_keep(store) < 0)
		(void)store_writer_recover(store); /* retried next time */
}

void *store_writer_main(void *argument)
{
	struct store *store = argument;
	bool going;

	store_writer_turn(store);
	do {
		uint64_t now = clock_ms(CLOCK_MONOTONIC), idle = STORE_IDLE_MS;

		if (store->retry_ms > now)
			idle = store->retry_ms - now;
		going = store_queue_wait(&store->queue, store->config.batch_ms, (uint32_t)idle);
		/* At the end there is one more try in any case. */
		if (going && store->retry_ms > clock_ms(CLOCK_MONOTONIC))
			continue;
		store->retry_ms = 0;
		store_writer_turn(store);
		/* One turn is a batch, so that no user's records delay those of others for long. */
	} while (going || (!store->retry_ms && store_queue_is_waiting(&store->queue)));
	store_series_forget(&store->series);
	store_runs_end(store);
	store_db_close(&store->db, false);
	return NULL;
}
