/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Queries time series. First the matching series are found. If they are few, each of their points
 * is looked up by its key; otherwise all points of that time are scanned.
 */

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pool.h"
#include "store/store-reader.h"

#define STORE_LINES_FEW 16u

struct store_line {
	int64_t id;
	uint32_t device;
	uint32_t type;
	uint64_t device_uid;
	struct store_process process;
};

static const struct store_resolution {
	uint32_t step;
	const char *first, *last; /* its first and last time */
	const char *after;        /* the first time after ?1 */
	const char *point;        /* for ?1 = t, ?2 = series */
	const char *points;       /* after (?1, ?2), up to ?3 */
} store_resolutions[] = {
#define RESOLUTION(seconds, table)                                                             \
	{                                                                                      \
		.step = (seconds), .first = "SELECT min(t) FROM " table,                       \
		.last = "SELECT max(t) FROM " table,                                           \
		.after = "SELECT min(t) FROM " table " WHERE t > ?1",                          \
		.point = "SELECT t, series, used, used_max, buffers, buffers_max FROM " table  \
			 " WHERE t = ?1 AND series = ?2",                                      \
		.points = "SELECT t, series, used, used_max, buffers, buffers_max FROM " table \
			  " WHERE (t, series) > (?1, ?2) AND t <= ?3 ORDER BY t, series",      \
	}
	RESOLUTION(1, "points_1"),
	RESOLUTION(10, "points_10"),
	RESOLUTION(60, "points_60"),
#undef RESOLUTION
};

/* The state of one query. */
struct store_asking {
	struct store_reader *reader;
	const struct store_series_query *query;
	int (*row)(void *context, const struct store_point *point);
	void *context;

	struct pool texts;
	struct store_line *lines; /* sorted by id */
	size_t line_count, line_capacity;
	const struct store_resolution *resolution;
	int64_t from, to; /* seconds */
	size_t limit, count;
	struct store_cursor next;
};

static const char *store_asking_text(struct store_asking *asking, const char *text)
{
	return text ? pool_text(&asking->texts, text, strlen(text)) : NULL;
}

static int store_asking_add(struct store_asking *asking, struct sqlite3_stmt *row)
{
	struct store_line *line = array_grow(asking->lines, &asking->line_capacity,
					     asking->line_count + 1, sizeof(*line));
	struct store_process process = {0};

	if (!line)
		return -ENOMEM;
	asking->lines = line;
	if (sqlite3_column_type(row, 4) != SQLITE_NULL)
		process = store_column_process(row, 4);
	process.comm = store_asking_text(asking, process.comm);
	process.user = store_asking_text(asking, process.user);
	process.container = store_asking_text(asking, process.container);
	process.source = store_asking_text(asking, process.source);
	line[asking->line_count++] = (struct store_line){
		.id = (int64_t)store_column(row, 0),
		.device = (uint32_t)store_column(row, 1),
		.device_uid = store_column(row, 2),
		.type = (uint32_t)store_column(row, 3),
		.process = process,
	};
	return 0;
}

static int store_asking_find_lines(struct store_asking *asking)
{
	const struct store_series_query *query = asking->query;
	const struct store_value values[] = {
		STORE_INT(query->whole_devices),
		STORE_INT(query->process.pid),
		STORE_CUT(query->process.start_ticks),
		query->device == STORE_ANY ? STORE_NONE : STORE_INT(query->device),
		STORE_BITS(query->device_uid),
		query->type == STORE_ANY ? STORE_NONE : STORE_INT(query->type),
	};
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(
		asking->reader,
		"SELECT s.id, s.device, s.device_uid, s.type, " STORE_PROCESS_COLUMNS
		" FROM series AS s LEFT JOIN processes AS p ON p.id = s.process"
		" WHERE (?1 = 0 OR s.process = 0) AND (?2 = 0 OR p.pid = ?2)"
		" AND (?3 = 0 OR p.start_ticks = ?3) AND (?4 IS NULL OR s.device = ?4)"
		" AND (?5 = 0 OR s.device_uid = ?5) AND (?6 IS NULL OR s.type = ?6) ORDER BY s.id",
		values, ARRAY_SIZE(values), &row);

	while (r == 0 && (r = store_reader_step(asking->reader, row)) > 0)
		r = store_asking_add(asking, row);
	return r;
}

/* 1 and a number, 0 if there is none, or a negative errno. */
static int store_asking_after(struct store_asking *asking, const char *sql, int64_t after,
			      int64_t *ret_number)
{
	const struct store_value value = STORE_INT(after);
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(asking->reader, sql, &value, after >= 0, &row);

	if (r == 0)
		r = store_reader_step(asking->reader, row);
	if (r <= 0 || sqlite3_column_type(row, 0) == SQLITE_NULL)
		return r < 0 ? r : 0;
	*ret_number = sqlite3_column_int64(row, 0);
	return 1;
}

static int store_asking_number(struct store_asking *asking, const char *sql, int64_t *ret_number)
{
	return store_asking_after(asking, sql, -1, ret_number);
}

/*
 * Chooses the finest resolution that reaches back as far as requested, or as far as there is any
 * data. A coarser point begins earlier than the points it was made from, which is ignored here.
 */
static int store_asking_choose(struct store_asking *asking)
{
	int64_t first[ARRAY_SIZE(store_resolutions)], oldest = INT64_MAX;
	int64_t from = store_db_cut(asking->query->from_ns / NS_PER_S);

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		int r;

		first[i] = INT64_MAX;
		if (asking->query->step_s == store_resolutions[i].step) {
			asking->resolution = &store_resolutions[i];
			return 0;
		}
		r = store_asking_number(asking, store_resolutions[i].first, &first[i]);
		if (r < 0)
			return r;
		if (r > 0)
			first[i] -= first[i] % 60;
		oldest = first[i] < oldest ? first[i] : oldest;
	}
	if (asking->query->step_s != 0)
		return -EINVAL;
	for (size_t i = ARRAY_SIZE(first); i-- > 0;) {
		if (first[i] <= (from > oldest ? from : oldest))
			asking->resolution = &store_resolutions[i];
	}
	return 0;
}

/* Limits the query to times with points. 1, 0 if there are none, or a negative errno. */
static int store_asking_clip(struct store_asking *asking)
{
	const struct store_series_query *query = asking->query;
	int64_t step = asking->resolution->step, first = 0, last = 0;
	int r = store_asking_number(asking, asking->resolution->first, &first);

	if (r > 0)
		r = store_asking_number(asking, asking->resolution->last, &last);
	if (r <= 0)
		return r;
	asking->from = store_db_cut(query->from_ns / NS_PER_S);
	asking->from -= asking->from % step;
	asking->to = query->to_ns ? store_db_cut(query->to_ns / NS_PER_S) : last;
	asking->from = (int64_t)bits_max((uint64_t)asking->from, (uint64_t)first);
	asking->to = (int64_t)bits_min((uint64_t)asking->to, (uint64_t)last);
	if (asking->next.major > asking->from)
		asking->from = asking->next.major;
	return 1;
}

/* 1: stop. */
static int store_asking_tell(struct store_asking *asking, const struct store_line *line,
			     struct sqlite3_stmt *row)
{
	struct store_point point = {
		.series = line->id,
		.process = line->process,
		.device = line->device,
		.device_uid = line->device_uid,
		.type = line->type,
		.time_ns = store_column(row, 0) * NS_PER_S,
		.step_s = asking->resolution->step,
		.used = store_column(row, 2),
		.used_max = store_column(row, 3),
		.buffers = store_column(row, 4),
		.buffers_max = store_column(row, 5),
	};

	if (asking->count++ == asking->limit)
		return 1;
	asking->next.major = sqlite3_column_int64(row, 0);
	asking->next.minor = line->id;
	return asking->row(asking->context, &point);
}

/* Looks up the points of one time by key. 0, 1: stop, or a negative errno. */
static int store_asking_look_at(struct store_asking *asking, struct sqlite3_stmt *row, int64_t t,
				bool *ret_found)
{
	struct store_cursor after = asking->next;
	int r = 0;

	*ret_found = false;
	for (size_t i = 0; r == 0 && i < asking->line_count; i++) {
		const struct store_line *line = &asking->lines[i];

		if (t == after.major && line->id <= after.minor)
			continue;
		(void)sqlite3_reset(row); /* no error is pending; nor can these fail */
		(void)sqlite3_bind_int64(row, 1, t);
		(void)sqlite3_bind_int64(row, 2, line->id);
		r = store_reader_step(asking->reader, row);
		if (r > 0) {
			*ret_found = true;
			r = store_asking_tell(asking, line, row);
		}
	}
	return r;
}

/* Goes from one time to the next; where nothing is found, skips to the next time with any point. */
static int store_asking_look_up(struct store_asking *asking)
{
	STORE_STATEMENT row = NULL;
	int64_t t = asking->from;
	bool found;
	int r = store_reader_prepare(asking->reader, asking->resolution->point, NULL, 0, &row);

	while (r == 0 && t <= asking->to) {
		r = store_asking_look_at(asking, row, t, &found);
		if (r == 0 && found) {
			t += asking->resolution->step;
		} else if (r == 0) {
			r = store_asking_after(asking, asking->resolution->after, t, &t);
			if (r <= 0)
				return r;
			r = 0;
		}
	}
	return r;
}

static int store_compare_ids(const void *key, const void *element)
{
	int64_t a = *(const int64_t *)key, b = ((const struct store_line *)element)->id;

	return (a > b) - (a < b);
}

/* Scans all points of the time. */
static int store_asking_go_through(struct store_asking *asking)
{
	bool is_first = asking->next.major < asking->from;
	const struct store_value values[] = {
		STORE_INT(asking->from),
		STORE_INT(is_first ? 0 : asking->next.minor),
		STORE_INT(asking->to),
	};
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(asking->reader, asking->resolution->points, values,
				     ARRAY_SIZE(values), &row);

	while (r == 0 && (r = store_reader_step(asking->reader, row)) > 0) {
		int64_t id = sqlite3_column_int64(row, 1);
		const struct store_line *line = bsearch(&id, asking->lines, asking->line_count,
							sizeof(*line), store_compare_ids);

		r = line ? store_asking_tell(asking, line, row) : 0;
	}
	return r;
}

/* 0: complete, 1: there may be more, or a negative errno. */
static int store_asking_run(struct store_asking *asking)
{
	int r = store_asking_find_lines(asking);

	if (r < 0 || asking->line_count == 0)
		return r;
	r = store_asking_choose(asking);
	if (r < 0 || !asking->resolution)
		return r;
	r = store_asking_clip(asking);
	if (r <= 0)
		return r;
	return asking->line_count <= STORE_LINES_FEW ? store_asking_look_up(asking)
						     : store_asking_go_through(asking);
}

int store_query_series(struct store_reader *reader, const struct store_series_query *query,
		       int (*row)(void *context, const struct store_point *point), void *context,
		       struct store_cursor *ret_next)
{
	struct store_asking asking = {
		.reader = reader,
		.query = query,
		.row = row,
		.context = context,
		.texts = POOL_NULL,
		.limit = query->limit ? bits_min(query->limit, STORE_LIMIT_MAX) : STORE_LIMIT_MAX,
		.next = query->after,
	};
	int r = store_reader_begin(reader);

	if (r < 0)
		return r;
	asking.next.more = false;
	if (r == 0) {
		r = store_asking_run(&asking);
		store_reader_end(reader);
		asking.next.more = r > 0;
	}
	free(asking.lines);
	pool_deinit(&asking.texts);
	if (r < 0)
		return r;
	*ret_next = asking.next;
	return 0;
}

int store_query_series_from(struct store_reader *reader, uint64_t *ret_time_ns)
{
	struct store_asking asking = {.reader = reader};
	int64_t oldest = INT64_MAX;
	int r = store_reader_begin(reader);

	*ret_time_ns = 0;
	if (r != 0)
		return r < 0 ? r : 0;
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(store_resolutions); i++) {
		int64_t first;

		r = store_asking_number(&asking, store_resolutions[i].first, &first);
		if (r > 0 && first < oldest)
			oldest = first;
	}
	store_reader_end(reader);
	if (r >= 0 && oldest >= 0 && oldest < INT64_MAX)
		*ret_time_ns = (uint64_t)oldest * NS_PER_S;
	return r < 0 ? r : 0;
}
