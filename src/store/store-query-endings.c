/* SPDX-License-Identifier: Apache-2.0 */

/* Queries processes that have ended, and runs of the daemon. */

#include <sqlite3.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "store/store-query.h"

struct endings_rows {
	int (*row)(void *context, const struct store_ended *ended);
	void *context;
};

/* Whether a report is about this end is told by what identifies both. */
static const char store_sql_endings[] =
	"SELECT e.id, e.ended_ns, e.closed, e.exit_code, e.exit_signal, l.bytes, l.buffers,"
	" " STORE_PROCESS_COLUMNS " FROM endings AS e CROSS JOIN processes AS p ON p.id = e.process"
	" LEFT JOIN leaks AS l ON l.identity = e.identity"
	" WHERE (NOT ?1 OR" STORE_SEES("e.uid") ") AND (?2 = 0 OR p.pid = ?2) AND e.ended_ns >= ?3"
						" AND e.id < ?5 ORDER BY e.id DESC LIMIT ?6";

static int store_list_endings(struct store_reader *reader, const struct store_filter *filter,
			      const void *rows, struct store_cursor *next)
{
	const struct endings_rows *to = rows;
	size_t limit = store_query_limit(filter->limit), count = 0;
	struct store_value values[STORE_QUERY_VALUES];
	STORE_STATEMENT row = NULL;
	int r;

	store_query_values(filter, values);
	r = store_reader_prepare(reader, store_sql_endings, values, ARRAY_SIZE(values), &row);
	while (r == 0 && (r = store_reader_step(reader, row)) > 0) {
		const struct store_ended ended = {
			.process = store_column_process(row, 7),
			.ending = store_column_ending(row, 1),
			.bytes = store_column(row, 5),
			.buffers = store_column(row, 6),
		};

		if (count++ == limit)
			break;
		r = to->row(to->context, &ended);
		if (r == 0)
			next->minor = sqlite3_column_int64(row, 0);
	}
	return r;
}

int store_query_endings(struct store_reader *reader, const struct store_filter *filter,
			int (*row)(void *context, const struct store_ended *ended), void *context,
			struct store_cursor *ret_next)
{
	const struct endings_rows rows = {.row = row, .context = context};

	return store_query_page(reader, filter, &rows, store_list_endings, ret_next);
}

int store_query_other_endings(struct store_reader *reader, const struct store_sees *sees,
			      uint64_t *ret_count)
{
	return store_query_count(reader,
				 "SELECT count(*) FROM endings AS e WHERE NOT" STORE_SEES("e.uid"),
				 sees, ret_count);
}

/* Between begin and end. */
static int store_list_runs(struct store_reader *reader, uint64_t from_ns, uint64_t to_ns,
			   int (*fn)(void *context, const struct store_run *run), void *context)
{
	const struct store_value values[] = {STORE_CUT(from_ns), STORE_CUT(to_ns)};
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(reader,
				     "SELECT start_ns, ifnull(end_ns, 0), state FROM runs"
				     " WHERE start_ns <= ?2 AND max(start_ns, ifnull(end_ns, 0)) >="
				     " ?1 ORDER BY start_ns",
				     values, ARRAY_SIZE(values), &row);

	while (r == 0 && (r = store_reader_step(reader, row)) > 0) {
		const struct store_run run = {
			.start_ns = store_column(row, 0),
			.end_ns = store_column(row, 1),
			.state = (enum store_run_state)sqlite3_column_int(row, 2),
		};

		r = fn(context, &run);
	}
	return r < 0 ? r : 0;
}

int store_query_runs(struct store_reader *reader, uint64_t from_ns, uint64_t to_ns,
		     int (*row)(void *context, const struct store_run *run), void *context)
{
	int r = store_reader_begin(reader);

	if (r != 0)
		return r < 0 ? r : 0; /* nothing was written yet */
	r = store_list_runs(reader, from_ns, to_ns, row, context);
	store_reader_end(reader);
	return r;
}
