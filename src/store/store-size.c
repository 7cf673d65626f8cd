/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits the size of the file. This needs no clock: rows are deleted in their own order. The limit
 * applies to the pages in use; the file itself is shrunk only where it exceeds the configured size
 * or is half empty, because the next rows go into its free pages.
 *
 * A disk on which other files leave little room is different from our own limit: then points are
 * deleted, so that the file need not grow, but records are not; they wait until there is room.
 */

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/bits.h"
#include "store/store-private.h"

#define STORE_ROW_BYTES 40u /* approximate size of a point */

/*
 * In sixteenths of our limit: pages in use that start a clean-up, and that end it; size of the
 * file.
 */
#define STORE_USED_MOST 13u
#define STORE_USED_GOAL 12u
#define STORE_FILE_MOST 14u

struct store_sizes {
	uint64_t used;  /* pages in use */
	uint64_t file;  /* all pages */
	uint64_t total; /* including the log, on disk */
	uint64_t limit;
	uint64_t most, goal; /* for pages in use */
	bool by_disk;        /* the disk sets the limit */
};

/* One for each resolution, finest first. */
static const struct {
	unsigned int
		floor; /* sixteenths of the limit that it may keep while coarser ones have more */
	const char *count;
	const char *drop; /* the first ?1 rows, and those of the same time as the last */
} store_levels[] = {
#define LEVEL(table, least)                                                      \
	{                                                                        \
		.floor = (least), .count = "SELECT count(*) FROM " table,        \
		.drop = "DELETE FROM " table " WHERE t <= (SELECT t FROM " table \
			" ORDER BY t LIMIT 1 OFFSET ?1)",                        \
	}
	LEVEL("points_1", 1),
	LEVEL("points_10", 2),
	LEVEL("points_60", 4),
#undef LEVEL
};

/* Deletes the oldest eighth of a table of points, if it has more than its floor. 1: it did. */
static int store_size_drop_points(struct store *store, size_t level, uint64_t floor)
{
	int64_t rows = 0;
	int r = store_keep_ask(store, store_levels[level].count, &rows);

	if (r < 0 || rows == 0 || (uint64_t)rows * STORE_ROW_BYTES <= floor)
		return r;
	r = store_db_ask(&store->db, store_levels[level].drop,
			 STORE_VALUES(STORE_INT(rows <= 64 ? rows - 1 : rows / 8)), NULL);
	return r < 0 ? r : 1;
}

/* Deletes the least valuable rows. 1: there were some. */
static int store_size_drop(struct store *store, const struct store_sizes *sizes)
{
	/* More than their share first, so that they do not cost points. */
	int r = store_keep_drop_lists(store, store->config.size_max / STORE_LISTS_SHARE);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(store_levels); i++)
		r = store_size_drop_points(store, i, sizes->limit / 16 * store_levels[i].floor);
	if (r == 0 && !sizes->by_disk)
		r = store_keep_drop_lists(store, 0);
	if (r == 0 && !sizes->by_disk)
		r = store_keep_drop_records(store);
	for (size_t i = 0; r == 0 && !sizes->by_disk && i < ARRAY_SIZE(store_levels); i++)
		r = store_size_drop_points(store, i, 0);
	if (r > 0) {
		int swept = store_keep_sweep(store);

		if (swept < 0)
			return swept;
	}
	return r;
}

static uint64_t store_size_of(const struct store *store, const char *ending)
{
	char path[4096];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s%s", store->path, ending) >= (int)sizeof(path) ||
	    stat(path, &st) < 0)
		return 0;
	return (uint64_t)st.st_size;
}

/* The limit, by our own setting or by the disk's free space, half of which is left to others. */
static void store_size_limits(struct store *store, struct store_sizes *sizes)
{
	struct statvfs disk;
	uint64_t room, reserve;

	sizes->by_disk = false;
	sizes->limit = store->config.size_max;
	sizes->most = sizes->limit / 16 * STORE_USED_MOST;
	sizes->goal = sizes->limit / 16 * STORE_USED_GOAL;
	if (statvfs(store->config.folder, &disk) < 0)
		return;
	room = sizes->file + disk.f_bavail * disk.f_frsize / 2;
	/* For the log and for one transaction; twice that stays free on the disk. */
	reserve = bits_min(room / 16, UINT64_C(8) << 20);
	if (room - reserve >= sizes->most)
		return;
	sizes->by_disk = true;
	sizes->limit = room;
	sizes->most = room - reserve;
	sizes->goal = room - 2 * reserve;
}

static int store_size_measure(struct store *store, struct store_sizes *ret_sizes)
{
	int64_t pages = 0, empty = 0;
	int r = store_keep_ask(store, "PRAGMA page_count", &pages);

	if (r == 0)
		r = store_keep_ask(store, "PRAGMA freelist_count", &empty);
	if (r < 0)
		return r;
	ret_sizes->used = (uint64_t)(pages - empty) * STORE_PAGE;
	ret_sizes->file = (uint64_t)pages * STORE_PAGE;
	ret_sizes->total = store_size_of(store, "") + store_size_of(store, "-wal");
	store_size_limits(store, ret_sizes);
	store->limit = ret_sizes->limit;
	pthread_mutex_lock(&store->lock);
	store->health.size = ret_sizes->total;
	store->health.size_limit = ret_sizes->limit;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

/* Returns pages to the disk where the file is too large or mostly empty. */
static int store_size_vacuum(struct store *store, const struct store_sizes *sizes)
{
	uint64_t most = store->config.size_max / 16 * STORE_FILE_MOST;

	if (sizes->file > most && sizes->file > sizes->used)
		return store_keep_ask(store, "PRAGMA incremental_vacuum(4096)", NULL);
	/* Gradually, and never the last megabyte. */
	if (sizes->file - sizes->used > sizes->file / 2 && sizes->file > (UINT64_C(1) << 20))
		return store_keep_ask(store, "PRAGMA incremental_vacuum(256)", NULL);
	return 0;
}

int store_size(struct store *store)
{
	struct store_sizes sizes;
	int r = store_size_measure(store, &sizes);

	if (r == 0 && sizes.used > sizes.most) {
		uint64_t goal = sizes.goal;

		do {
			r = store_size_drop(store, &sizes);
			if (r <= 0)
				break;
			r = store_size_measure(store, &sizes);
		} while (r == 0 && sizes.used > goal);
	}
	return r < 0 ? r : store_size_vacuum(store, &sizes);
}
