/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes points.
 *
 * Every sample becomes a row for each series. When a sample falls into another ten seconds than the
 * one before, the ten seconds that ended become one row for each series, and likewise those become
 * minutes. The current ones are recorded in the database, so that a writer that is killed loses
 * none. After a clock is set back, points are written that already exist: then both count for the
 * maximum, and the newer one is the last.
 */

#include "store/store-series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process-id.h"
#include "store/store-db.h"
#include "store/store-item.h"
#include "store/store-record.h"

/* Longer than any name of a program that the kernel gives, even with every byte replaced. */
#define STORE_COMM_SIZE 48

struct store_known_process {
	struct process_id process;
	uint32_t uid;
	char comm[STORE_COMM_SIZE]; /* changes with exec */
	uint32_t at;                /* index in the item; not compared */
	int64_t id;
};

struct store_known_series {
	int64_t process; /* id in the database, 0 = a whole device */
	uint64_t device_uid;
	uint32_t device;
	uint32_t type;
	uint32_t at; /* index in the item; not compared */
	int64_t id;
};

static const struct {
	int64_t step;
	enum store_sql sql;
} store_rolls[STORE_ROLLS] = {
	{10, STORE_SQL_ROLL_10},
	{60, STORE_SQL_ROLL_60},
};

void store_series_forget(struct store_series *series)
{
	free(series->processes);
	free(series->lines);
	*series = STORE_SERIES_NULL;
}

static int store_compare(uint64_t a, uint64_t b)
{
	return bits_compare(a, b);
}

static int store_compare_processes(const void *left, const void *right)
{
	const struct store_known_process *a = left, *b = right;
	int r = process_id_compare(a->process, b->process);

	if (r == 0)
		r = store_compare(a->uid, b->uid);
	return r ? r : strcmp(a->comm, b->comm);
}

static int store_compare_lines(const void *left, const void *right)
{
	const struct store_known_series *a = left, *b = right;
	int r = store_compare((uint64_t)a->process, (uint64_t)b->process);

	if (r == 0)
		r = store_compare(a->device, b->device);
	if (r == 0)
		r = store_compare(a->device_uid, b->device_uid);
	return r ? r : store_compare(a->type, b->type);
}

/* @ret_ids: the database id of each of the item's processes. */
static int store_series_processes(struct store_series *series, struct store_db *db,
				  const struct store_item *item, int64_t *ret_ids)
{
	CLEANUP_FREE struct store_known_process *list =
		calloc(item->process_count + 1, sizeof(*list));
	size_t old = 0;

	if (!list)
		return store_db_fail(db, STORE_TROUBLE_AGAIN, "out of memory");
	for (uint32_t i = 0; i < item->process_count; i++) {
		const struct store_item_process *process = &item->processes[i];

		list[i] = (struct store_known_process){
			.process = process->id,
			.uid = process->uid,
			.at = i,
		};
		(void)strncpy(list[i].comm, store_item_text(item, process->comm),
			      sizeof(list[i].comm) - 1); /* the rest is already 0 */
	}
	qsort(list, item->process_count, sizeof(*list), store_compare_processes);
	for (size_t i = 0; i < item->process_count; i++) {
		int c = -1;

		while (old < series->process_count &&
		       (c = store_compare_processes(&series->processes[old], &list[i])) < 0)
			old++;
		if (old < series->process_count && c == 0) {
			list[i].id = series->processes[old].id;
		} else {
			int r = store_record_process(db, item, list[i].at, &list[i].id);

			if (r < 0)
				return r;
		}
		ret_ids[list[i].at] = list[i].id;
	}
	free(series->processes);
	series->processes = cleanup_steal(list);
	series->process_count = item->process_count;
	return 0;
}

static int store_series_find(struct store_db *db, struct store_known_series *line, int64_t t)
{
	int r = store_db_run(db, STORE_SQL_SERIES_FIND,
			     STORE_VALUES(STORE_INT(line->process), STORE_INT(line->device),
					  STORE_BITS(line->device_uid), STORE_INT(line->type)),
			     &line->id);

	if (r == 0)
		r = store_db_run(db, STORE_SQL_SERIES_ADD,
				 STORE_VALUES(STORE_INT(line->process), STORE_INT(line->device),
					      STORE_BITS(line->device_uid), STORE_INT(line->type),
					      STORE_INT(t)),
				 &line->id);
	return r < 0 ? r : 0;
}

/* @ids: as above. Leaves the series in series->lines, with their indices in the item. */
static int store_series_lines(struct store_series *series, struct store_db *db,
			      const struct store_item *item, const int64_t *ids, int64_t t)
{
	CLEANUP_FREE struct store_known_series *list =
		calloc(item->sample_count + 1, sizeof(*list));
	size_t old = 0;

	if (!list)
		return store_db_fail(db, STORE_TROUBLE_AGAIN, "out of memory");
	for (uint32_t i = 0; i < item->sample_count; i++) {
		const struct store_item_sample *sample = &item->samples[i];

		list[i] = (struct store_known_series){
			.process = sample->process == STORE_ITEM_NONE ? 0 : ids[sample->process],
			.device = sample->device,
			.device_uid = sample->device_uid,
			.type = sample->type,
			.at = i,
		};
	}
	qsort(list, item->sample_count, sizeof(*list), store_compare_lines);
	for (size_t i = 0; i < item->sample_count; i++) {
		int c = -1;

		while (old < series->line_count &&
		       (c = store_compare_lines(&series->lines[old], &list[i])) < 0)
			old++;
		if (old < series->line_count && c == 0) {
			list[i].id = series->lines[old].id;
		} else {
			int r = store_series_find(db, &list[i], t);

			if (r < 0)
				return r;
		}
	}
	free(series->lines);
	series->lines = cleanup_steal(list);
	series->line_count = item->sample_count;
	return 0;
}

/* Writes the coarser points that are complete at time @t. */
static int store_series_roll(struct store_series *series, struct store_db *db, int64_t t)
{
	for (size_t i = 0; i < STORE_ROLLS; i++) {
		int64_t step = store_rolls[i].step, begin = t - t % step;
		int r = 0;

		if (series->rolling[i] < 0)
			r = store_db_run(db, STORE_SQL_ROLLING_GET, STORE_VALUES(STORE_INT(step)),
					 &series->rolling[i]);
		if (r >= 0 && series->rolling[i] == begin)
			return 0; /* then all coarser ones continue as well */
		if (r >= 0 && series->rolling[i] >= 0)
			r = store_db_run(db, store_rolls[i].sql,
					 STORE_VALUES(STORE_INT(series->rolling[i])), NULL);
		if (r >= 0 && series->rolling[i] >= 0 && i == STORE_ROLLS - 1)
			r = store_db_run(db, STORE_SQL_SERIES_TOUCH,
					 STORE_VALUES(STORE_INT(series->rolling[i])), NULL);
		if (r >= 0)
			r = store_db_run(db, STORE_SQL_ROLLING_SET,
					 STORE_VALUES(STORE_INT(step), STORE_INT(begin)), NULL);
		if (r < 0)
			return r;
		series->rolling[i] = begin;
	}
	return 0;
}

int store_series_write(struct store_series *series, struct store_db *db,
		       const struct store_item *item)
{
	CLEANUP_FREE int64_t *ids = calloc(item->process_count + 1, sizeof(*ids));
	int64_t t = (int64_t)(item->time_ns / NS_PER_S);
	int r;

	if (!ids)
		return store_db_fail(db, STORE_TROUBLE_AGAIN, "out of memory");
	r = store_series_roll(series, db, t);
	if (r == 0)
		r = store_series_processes(series, db, item, ids);
	if (r == 0)
		r = store_series_lines(series, db, item, ids, t);
	for (size_t i = 0; r >= 0 && i < series->line_count; i++) {
		const struct store_item_sample *sample = &item->samples[series->lines[i].at];

		r = store_db_run(db, STORE_SQL_POINT_ADD,
				 STORE_VALUES(STORE_INT(t), STORE_INT(series->lines[i].id),
					      STORE_CUT(sample->used), STORE_CUT(sample->buffers)),
				 NULL);
	}
	return r < 0 ? r : 0;
}
