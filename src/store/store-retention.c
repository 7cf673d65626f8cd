/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deletes what is too old, and rows beyond their number; store-size.c limits the bytes.
 *
 * Age depends on the clock, and clocks are set. If the clock has moved differently from the time
 * that passed, it is not trusted for an hour: until then nothing counts as too old, so that a
 * mistake that is noticed does no harm. The same applies if it is far from the file's newest time
 * when the file is opened. Rows whose time is further in the future than they would be kept come
 * from a wrong clock, and are deleted as well; everything in between stays, so a clock that is set
 * back a little loses nothing.
 */

#include <errno.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/clock.h"
#include "store/store-private.h"

#define STORE_KEEP_EVERY_NS (10 * NS_PER_S)
#define STORE_SWEEP_EVERY_NS (600 * NS_PER_S)
#define STORE_CLOCK_SLACK_NS (60 * NS_PER_S)
#define STORE_CLOCK_DOUBT_NS (3600 * NS_PER_S)
#define STORE_SLICE_ROWS 20000 /* deleted in one transaction */
#define STORE_SLICES 50u       /* in one go; the rest next time */
/* One for each resolution. */
static const struct {
	uint64_t seconds;
	const char *expire; /* before ?1, but at most ?2 rows plus those of the last one's time */
	const char *expire_ahead;
} store_ages[] = {
#define AGE(table, kept)                                                                           \
	{                                                                                          \
		.seconds = (kept),                                                                 \
		.expire =                                                                          \
			"DELETE FROM " table " WHERE t < ?1 AND t <= ifnull((SELECT t FROM " table \
			" ORDER BY t LIMIT 1 OFFSET ?2), ?1)",                                     \
		.expire_ahead = "DELETE FROM " table " WHERE t > ?1",                              \
	}
	AGE("points_1", 3600),
	AGE("points_10", 86400),
	AGE("points_60", 30 * 86400),
#undef AGE
};

int store_keep_ask(struct store *store, const char *sql, int64_t *ret_number)
{
	int r = store_db_ask(&store->db, sql, NULL, 0, ret_number);

	return r < 0 ? r : 0;
}

static uint64_t store_apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The newest time in the file, 0 if it is empty. */
static int store_keep_newest(struct store *store, uint64_t *ret_ns)
{
	int64_t points = 0, sites = 0;
	int r = store_keep_ask(store, "SELECT ifnull(max(t), 0) FROM points_1", &points);

	if (r == 0)
		r = store_keep_ask(store, "SELECT ifnull(max(last_ns), 0) FROM sites", &sites);
	if (r == 0)
		*ret_ns = bits_max((uint64_t)points * NS_PER_S, (uint64_t)sites);
	return r;
}

/* Checks whether the clock was set. 0 or -EIO. */
static int store_keep_clock(struct store *store, const struct store_now *now)
{
	struct store_clock *clock = &store->clock;
	uint64_t newest = 0;

	if (!clock->started) {
		int r = store_keep_newest(store, &newest);

		if (r < 0)
			return r;
		if (newest && store_apart(newest, now->real_ns) > STORE_CLOCK_DOUBT_NS)
			clock->believed_boot_ns = now->boot_ns + STORE_CLOCK_DOUBT_NS;
		clock->started = true;
	} else if (store_apart(now->real_ns, clock->last.real_ns + now->boot_ns -
						     clock->last.boot_ns) > STORE_CLOCK_SLACK_NS) {
		clock->believed_boot_ns = now->boot_ns + STORE_CLOCK_DOUBT_NS;
	}
	clock->last = *now;
	return 0;
}

/* Deletes in slices, each in its own transaction, so that the log stays short. */
static int store_keep_expire_points(struct store *store, uint64_t now_s)
{
	struct store_db *db = &store->db;

	for (size_t i = 0; i < ARRAY_SIZE(store_ages); i++) {
		uint64_t kept = bits_min(store_ages[i].seconds, store->config.keep_s);
		const struct store_value values[] = {
			STORE_CUT(now_s > kept ? now_s - kept : 0),
			STORE_INT(STORE_SLICE_ROWS),
		};
		const struct store_value ahead = STORE_CUT(now_s + kept);
		int r = 0;

		for (unsigned int k = 0; k < STORE_SLICES; k++) {
			r = store_db_ask(db, store_ages[i].expire, values, 2, NULL);
			if (r < 0)
				return r;
			if (store_db_changes(db) == 0)
				break;
		}
		r = store_db_ask(db, store_ages[i].expire_ahead, &ahead, 1, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static int store_keep_expire_records(struct store *store, uint64_t now_ns)
{
	uint64_t kept = bits_min(store->config.keep_s, STORE_NUMBER_MAX / NS_PER_S) * NS_PER_S;
	const struct store_value values[] = {
		STORE_CUT(now_ns > kept ? now_ns - kept : 0),
		STORE_CUT(now_ns + kept),
	};
	static const char *const statements[] = {
		"DELETE FROM leaks WHERE ended_ns < ?1 OR ended_ns > ?2",
		"DELETE FROM sites WHERE last_ns < ?1 OR last_ns > ?2",
		"DELETE FROM endings WHERE ended_ns < ?1 OR ended_ns > ?2",
		"DELETE FROM runs WHERE state <> 0 AND (start_ns < ?1 OR start_ns > ?2)",
	};

	for (size_t i = 0; i < ARRAY_SIZE(statements); i++) {
		int r = store_db_ask(&store->db, statements[i], values, 2, NULL);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Deletes rows beyond a maximum number. @sql: counts them, then deletes ?1 of them. */
static int store_keep_bound(struct store *store, const char *const sql[2], int64_t most)
{
	int64_t count = 0;
	int r = store_keep_ask(store, sql[0], &count);

	if (r < 0 || count <= most)
		return r;
	r = store_db_ask(&store->db, sql[1], STORE_VALUES(STORE_INT(count - most)), NULL);
	return r < 0 ? r : 0;
}

/*
 * Records are deleted from the user who has the most, so that no user can push out records of
 * others. Not a struct quota: the records are in the file, where SQLite counts them.
 */
static const char *const store_leaks_bound[] = {
	"SELECT count(*) FROM leaks",
	"DELETE FROM leaks WHERE id IN (SELECT id FROM leaks WHERE uid ="
	" (SELECT uid FROM leaks GROUP BY uid ORDER BY count(*) DESC LIMIT 1)"
	" ORDER BY id LIMIT ?1)",
};
static const char *const store_sites_bound[] = {
	"SELECT count(*) FROM sites",
	"DELETE FROM sites WHERE id IN (SELECT id FROM sites WHERE uid ="
	" (SELECT uid FROM sites GROUP BY uid ORDER BY count(*) DESC LIMIT 1)"
	" ORDER BY last_ns LIMIT ?1)",
};
static const char *const store_endings_bound[] = {
	"SELECT count(*) FROM endings",
	"DELETE FROM endings WHERE id IN (SELECT id FROM endings WHERE uid ="
	" (SELECT uid FROM endings GROUP BY uid ORDER BY count(*) DESC LIMIT 1)"
	" ORDER BY id LIMIT ?1)",
};
static const char *const store_runs_bound[] = {
	"SELECT count(*) FROM runs",
	"DELETE FROM runs WHERE id IN (SELECT id FROM runs ORDER BY id LIMIT ?1)",
};
static const char *const store_seen_bound[] = {
	"SELECT count(*) FROM seen",
	"DELETE FROM seen WHERE process IN (SELECT process FROM"
	" (SELECT process, sum(count(*)) OVER (ORDER BY process) - count(*) AS before"
	"  FROM seen JOIN sites ON sites.id = site WHERE uid = (SELECT uid FROM seen"
	"   JOIN sites ON sites.id = site GROUP BY uid ORDER BY count(*) DESC LIMIT 1)"
	"  GROUP BY process) WHERE before < ?1)",
};

/*
 * Lists of buffers: their bytes, then deletes ?1 bytes of them or a little more, but only of that
 * user; the sums stay.
 */
static const char *const store_lists_bound[] = {
	"SELECT ifnull(sum(bytes), 0) FROM leak_chunks",
	"DELETE FROM leak_chunks WHERE leak IN (SELECT leak FROM"
	" (SELECT leak, sum(bytes) OVER (ORDER BY leak) - bytes AS before FROM"
	"  (SELECT leak, sum(bytes) AS bytes FROM leak_chunks WHERE leak IN"
	"   (SELECT id FROM leaks WHERE uid = (SELECT l.uid FROM leak_chunks AS c JOIN leaks AS l"
	"    ON l.id = c.leak GROUP BY l.uid ORDER BY sum(c.bytes) DESC LIMIT 1))"
	"   GROUP BY leak)) WHERE before < ?1)",
};

int store_keep_drop_lists(struct store *store, uint64_t most)
{
	int64_t bytes = 0, more;
	int r = store_keep_ask(store, store_lists_bound[0], &bytes);

	if (r < 0 || (uint64_t)bytes <= most)
		return r;
	more = (int64_t)bits_min((uint64_t)bytes - most, (uint64_t)bytes / 8 + 1);
	r = store_db_ask(&store->db, store_lists_bound[1], STORE_VALUES(STORE_INT(more)), NULL);
	return r < 0 ? r : 1;
}

int store_keep_drop_records(struct store *store)
{
	int64_t leaks = 0, sites = 0, endings = 0;
	int r = store_keep_ask(store, store_leaks_bound[0], &leaks);

	if (r == 0)
		r = store_keep_ask(store, store_sites_bound[0], &sites);
	if (r == 0)
		r = store_keep_ask(store, store_endings_bound[0], &endings);
	if (r == 0 && endings)
		r = store_keep_bound(store, store_endings_bound, endings - endings / 8 - 1);
	if (r == 0 && leaks)
		r = store_keep_bound(store, store_leaks_bound, leaks - leaks / 8 - 1);
	if (r == 0 && sites)
		r = store_keep_bound(store, store_sites_bound, sites - sites / 8 - 1);
	return r < 0 ? r : leaks + sites + endings > 0;
}

static int store_keep_bounds(struct store *store)
{
	int r = store_keep_bound(store, store_leaks_bound, STORE_LEAKS_MAX);

	if (r == 0)
		r = store_keep_bound(store, store_sites_bound, STORE_SITES_MAX);
	if (r == 0)
		r = store_keep_bound(store, store_seen_bound, STORE_SEEN_MAX);
	if (r == 0)
		r = store_keep_bound(store, store_endings_bound, STORE_ENDINGS_MAX);
	if (r == 0)
		r = store_keep_bound(store, store_runs_bound, STORE_RUNS_MAX);
	if (r < 0)
		return r;
	do {
		r = store_keep_drop_lists(store, store->config.size_max / STORE_LISTS_SHARE);
	} while (r > 0);
	return r;
}

/*
 * Removes series without points and unreferenced processes. last_t of a series is up to two minutes
 * behind, so it is compared with the oldest point of all.
 */
int store_keep_sweep(struct store *store)
{
	static const char *const statements[] = {
		"DELETE FROM series WHERE last_t + 120 < ifnull((SELECT min(t) FROM"
		" (SELECT min(t) AS t FROM points_1 UNION ALL SELECT min(t) FROM points_10"
		"  UNION ALL SELECT min(t) FROM points_60)), 4611686018427387903)",
		"DELETE FROM sites WHERE id NOT IN (SELECT site FROM incidents)"
		" AND id NOT IN (SELECT site FROM leak_sites)",
		"DELETE FROM processes WHERE id NOT IN (SELECT process FROM series"
		" UNION ALL SELECT process FROM leaks UNION ALL SELECT process FROM incidents"
		" UNION ALL SELECT process FROM holders UNION ALL SELECT process FROM seen"
		" UNION ALL SELECT process FROM endings)",
		"DELETE FROM owners WHERE id NOT IN (SELECT uid FROM sites"
		" UNION ALL SELECT uid FROM leaks UNION ALL SELECT uid FROM endings)",
	};

	for (size_t i = 0; i < ARRAY_SIZE(statements); i++) {
		int r = store_db_ask(&store->db, statements[i], NULL, 0, NULL);

		if (r < 0)
			return r;
	}
	/* Ids of deleted rows may be reused. */
	store_series_forget(&store->series);
	return 0;
}

/* Someone may have removed or replaced the file. */
static int store_keep_check_place(struct store *store)
{
	struct stat st;

	if (stat(store->path, &st) < 0 || st.st_ino != store->db.inode)
		return store_db_fail(&store->db, STORE_TROUBLE_MOVED,
				     "is no longer the file that was opened");
	return 0;
}

int store_keep(struct store *store)
{
	struct store_now now;
	uint64_t since = store->kept_boot_ns;
	int r;

	store_writer_now(store, &now);
	r = store_keep_clock(store, &now);
	if (r == 0)
		r = store_writer_fault(store, STORE_STEP_KEEP);
	if (r < 0 || (since && now.boot_ns < since + STORE_KEEP_EVERY_NS))
		return r < 0 ? r : store_size(store);

	store->kept_boot_ns = bits_max(now.boot_ns, 1);
	r = store_keep_check_place(store);
	if (r == 0 && now.boot_ns >= store->clock.believed_boot_ns) {
		r = store_keep_expire_points(store, now.real_ns / NS_PER_S);
		if (r == 0)
			r = store_keep_expire_records(store, now.real_ns);
	}
	if (r == 0)
		r = store_keep_bounds(store);
	if (r == 0 &&
	    (!since || now.boot_ns / STORE_SWEEP_EVERY_NS != since / STORE_SWEEP_EVERY_NS))
		r = store_keep_sweep(store);
	return r < 0 ? r : store_size(store);
}
