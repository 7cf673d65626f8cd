/* SPDX-License-Identifier: Apache-2.0 */

/* Queries incidents and leak reports. */

#include "store/store-query.h"

#include <errno.h>
#include <sqlite3.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/sites/stack.h"
#include "store/store-reader.h"
#include "store/store-rows.h"

size_t store_query_limit(size_t limit)
{
	return limit ? bits_min(limit, STORE_LIMIT_MAX) : STORE_LIMIT_MAX;
}

void store_query_values(const struct store_filter *filter,
			struct store_value ret_values[STORE_QUERY_VALUES])
{
	bool is_first = !filter->after.major && !filter->after.minor;

	ret_values[0] = STORE_INT(filter->sees.may_see != NULL);
	ret_values[1] = STORE_INT(filter->pid);
	ret_values[2] = STORE_CUT(filter->since_ns);
	ret_values[3] = STORE_INT(is_first ? INT64_MAX : filter->after.major);
	ret_values[4] = STORE_INT(is_first ? INT64_MAX : filter->after.minor);
	/* One more, to know whether there is a next page. */
	ret_values[5] = STORE_INT((int64_t)store_query_limit(filter->limit) + 1);
}

/* total() does not fail where sum() overflows. */
#define STORE_SUM(column) "CAST(min(total(" column "), 4611686018427387903) AS INTEGER)"
#define STORE_OWN_LEAKS                                                                  \
	" FROM leaks AS k CROSS JOIN leak_sites AS l ON l.leak = k.id AND l.site = s.id" \
	" WHERE k.process = i.process"

static const char store_sql_incidents[] =
	"SELECT s.id, s.kind, s.type,"
	" ifnull((SELECT uid FROM owners WHERE id = s.uid), s.uid), s.comm, s.name, s.phase, "
	"s.stack, s.count, s.bytes,"
	" s.buffers, s.first_ns, s.last_ns,"
	" CASE WHEN s.kind = 'leak' THEN s.count"
	"  ELSE (SELECT count(DISTINCT process) FROM seen WHERE site = s.id) END,"
	" CASE WHEN ?2 <> 0 THEN (SELECT " STORE_SUM(
		"count") " FROM seen"
			 "  WHERE site = s.id AND process = i.process) END,"
			 " CASE WHEN ?2 <> 0 THEN (SELECT " STORE_SUM("l.bytes") STORE_OWN_LEAKS
	") END,"
	" CASE WHEN ?2 <> 0 THEN (SELECT " STORE_SUM("l.buffers") STORE_OWN_LEAKS
	") END, i.id, i.time_ns, i.last_ns, i.device, i.device_uid,"
	" i.address, i.size, i.largest_free, i.count, i.first_ns, i.first_thread, i.first_size,"
	" i.first_name, i.first_phase, i.first_stack, i.second_ns, i.second_thread, i.second_size,"
	" i.second_name, i.second_phase, i.second_stack, i.space,"
	" (SELECT group_concat(device) FROM (SELECT device FROM seen WHERE site = s.id AND"
	"  (?2 = 0 OR process = i.process) UNION SELECT i.device ORDER BY device)),"
	" i.size_per_bank, i.banks, i.bank_size, i.bank_free, i.explanation, " STORE_PROCESS_COLUMNS
	" FROM sites AS s CROSS JOIN incidents AS i ON i.id = (SELECT max(id) FROM incidents WHERE"
	"  site = s.id AND (?2 = 0 OR process IN (SELECT id FROM processes WHERE pid = ?2)))"
	" CROSS JOIN processes AS p ON p.id = i.process"
	" WHERE (NOT ?1 OR" STORE_SEES(
		"s.uid") ") AND s.last_ns >= ?3 AND (s.last_ns, s.id) < (?4, ?5)"
			 " AND (?7 IS NULL OR s.kind = ?7)"
			 " ORDER BY s.last_ns DESC, s.id DESC LIMIT ?6";

enum {
	STORE_COLUMN_PROCESSES = 13,
	STORE_COLUMN_OWN = 14,
	STORE_COLUMN_EXAMPLE = 17,
	STORE_COLUMN_FIRST = 26,
	STORE_COLUMN_SECOND = 32,
	STORE_COLUMN_SPACE = 38,
	STORE_COLUMN_DEVICES = 39,
	STORE_COLUMN_PER_BANK = 40,
	STORE_COLUMN_PROCESS = 45,
};

static uint32_t store_column_type(struct sqlite3_stmt *row, int at)
{
	int64_t type = sqlite3_column_int64(row, at);

	return type >= 0 && type < (int64_t)BOOK_TYPES ? (uint32_t)type : SNAPSHOT_TYPE_NONE;
}

static struct store_site store_column_site(struct store_reader *reader, struct sqlite3_stmt *row)
{
	const char *comm = store_column_text(row, 4), *kind = store_column_text(row, 1);

	return (struct store_site){
		.id = (int64_t)store_column(row, 0),
		.kind = kind ? kind : "",
		.type = store_column_type(row, 2),
		.user_id = (uint32_t)store_column(row, 3),
		.comm = comm ? comm : "",
		.name = store_column_text(row, 5),
		.phase = store_column_text(row, 6),
		.stack = stack_parse(&reader->stacks, store_column_text(row, 7)),
		.count = store_column(row, 8),
		.bytes = store_column(row, 9),
		.buffers = store_column(row, 10),
		.first_ns = store_column(row, 11),
		.last_ns = store_column(row, 12),
		.processes = bits_max(store_column(row, STORE_COLUMN_PROCESSES), 1),
		.devices = store_column_text(row, STORE_COLUMN_DEVICES),
	};
}

static struct snapshot_party store_column_party(struct store_reader *reader,
						struct sqlite3_stmt *row, int at)
{
	if (sqlite3_column_type(row, at) == SQLITE_NULL)
		return (struct snapshot_party){.known = false};
	return (struct snapshot_party){
		.known = true,
		.time_ns = store_column(row, at),
		.thread = (uint32_t)store_column(row, at + 1),
		.size = store_column(row, at + 2),
		.name = store_column_text(row, at + 3),
		.phase = store_column_text(row, at + 4),
		.stack = stack_parse(&reader->stacks, store_column_text(row, at + 5)),
	};
}

static struct store_incident store_column_incident(struct store_reader *reader,
						   struct sqlite3_stmt *row)
{
	int at = STORE_COLUMN_EXAMPLE;
	struct store_incident incident = {
		.site = store_column_site(reader, row),
		.process = store_column_process(row, STORE_COLUMN_PROCESS),
		.device_uid = store_column(row, at + 4),
	};

	incident.example = (struct snapshot_incident){
		.kind = incident.site.kind,
		.type = incident.site.type,
		.time_ns = store_column(row, at + 1),
		.last_ns = store_column(row, at + 2),
		.device = (uint32_t)store_column(row, at + 3),
		.has_address = sqlite3_column_type(row, at + 5) != SQLITE_NULL,
		.address = store_column(row, at + 5),
		.size = store_column(row, at + 6),
		.largest_free = sqlite3_column_type(row, at + 7) == SQLITE_NULL
					? UINT64_MAX
					: store_column(row, at + 7),
		.count = store_column(row, at + 8),
		.space = (uint32_t)store_column(row, STORE_COLUMN_SPACE),
		.size_per_bank = store_column(row, STORE_COLUMN_PER_BANK),
		.banks = (uint32_t)store_column(row, STORE_COLUMN_PER_BANK + 1),
		.bank_size = store_column(row, STORE_COLUMN_PER_BANK + 2),
		.bank_free = store_column(row, STORE_COLUMN_PER_BANK + 3),
		.explanation = store_column_text(row, STORE_COLUMN_PER_BANK + 4),
		.first = store_column_party(reader, row, STORE_COLUMN_FIRST),
		.second = store_column_party(reader, row, STORE_COLUMN_SECOND),
	};
	/* The oldest counts and reports are deleted before their examples. */
	incident.own_count = bits_max(store_column(row, STORE_COLUMN_OWN), incident.example.count);
	incident.own_bytes =
		bits_max(store_column(row, STORE_COLUMN_OWN + 1), incident.example.size);
	incident.own_buffers =
		bits_max(store_column(row, STORE_COLUMN_OWN + 2), incident.example.count);
	return incident;
}

/* The processes that held memory there, and the call sites. */
static int store_query_holders(struct store_reader *reader, const struct store_incident_rows *rows,
			       int64_t example)
{
	const struct store_value value = STORE_INT(example);
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(reader,
				     "SELECT h.type, h.used, h.buffers, " STORE_PROCESS_COLUMNS
				     " FROM holders AS h JOIN processes AS p ON p.id = h.process"
				     " WHERE h.incident = ?1 ORDER BY h.place",
				     &value, 1, &row);

	while (r == 0 && (r = store_reader_step(reader, row)) > 0) {
		struct store_holder holder = {
			.process = store_column_process(row, 3),
			.type = store_column_type(row, 0),
			.used = store_column(row, 1),
			.buffers = store_column(row, 2),
		};

		r = rows->holder(rows->context, &holder);
	}
	return r;
}

/* Parts: type, name, phase, bytes, buffers, oldest, stack, phases, name_count, names. */
static int store_query_parts(struct store_reader *reader, const char *sql, int64_t of,
			     int (*part)(void *context, const struct store_part *part),
			     void *context)
{
	const struct store_value value = STORE_INT(of);
	STORE_STATEMENT row = NULL;
	int r = part ? store_reader_prepare(reader, sql, &value, 1, &row) : 0;

	while (r == 0 && part && (r = store_reader_step(reader, row)) > 0) {
		struct store_part told = {
			.type = store_column_type(row, 0),
			.name = store_column_text(row, 1),
			.phase = store_column_text(row, 2),
			.bytes = store_column(row, 3),
			.buffers = store_column(row, 4),
			.oldest_ns = store_column(row, 5),
			.stack = stack_parse(&reader->stacks, store_column_text(row, 6)),
			.phases = store_column_text(row, 7),
			.name_count = store_column(row, 8),
			.names = store_column_text(row, 9),
		};

		r = part(context, &told);
	}
	return r;
}

static int store_query_incident(struct store_reader *reader, struct sqlite3_stmt *row,
				const struct store_incident_rows *rows)
{
	struct store_incident incident = store_column_incident(reader, row);
	int64_t example = (int64_t)store_column(row, STORE_COLUMN_EXAMPLE);
	int r = rows->incident ? rows->incident(rows->context, &incident) : 0;

	if (r == 0 && rows->holder)
		r = store_query_holders(reader, rows, example);
	if (r == 0)
		r = store_query_parts(
			reader,
			"SELECT type, name, phase, bytes, buffers, 0, stack, '', name_count, names"
			" FROM held"
			" WHERE incident = ?1 ORDER BY place",
			example, rows->part, rows->context);
	return r;
}

/* Between begin and end. 0: complete, 1: there may be more, or a negative errno. */
static int store_list_incidents(struct store_reader *reader, const struct store_filter *filter,
				const void *rows, struct store_cursor *next)
{
	size_t limit = store_query_limit(filter->limit), count = 0;
	struct store_value values[STORE_QUERY_VALUES + 1];
	STORE_STATEMENT row = NULL;
	int r;

	store_query_values(filter, values);
	values[STORE_QUERY_VALUES] = filter->kind ? STORE_TEXT(filter->kind) : STORE_NONE;
	r = store_reader_prepare(reader, store_sql_incidents, values, ARRAY_SIZE(values), &row);
	while (r == 0 && (r = store_reader_step(reader, row)) > 0) {
		if (count++ == limit)
			break;
		r = store_query_incident(reader, row, rows);
		if (r > 0)
			break; /* the next page begins with it */
		next->major = sqlite3_column_int64(row, 12);
		next->minor = sqlite3_column_int64(row, 0);
	}
	return r;
}

int store_query_page(struct store_reader *reader, const struct store_filter *filter,
		     const void *rows, store_query_list_fn *list, struct store_cursor *ret_next)
{
	struct store_cursor next = filter->after;
	int r = store_reader_begin(reader);

	if (r < 0)
		return r;
	next.more = false;
	reader->sees = filter->sees;
	if (r == 0) {
		r = store_reader_hurry(reader, filter->until_ms);
		if (r == 0)
			r = list(reader, filter, rows, &next);
		store_reader_end(reader);
		if (r < 0)
			return r;
		next.more = r > 0;
	}
	*ret_next = next;
	return 0;
}

int store_query_incidents(struct store_reader *reader, const struct store_filter *filter,
			  const struct store_incident_rows *rows, struct store_cursor *ret_next)
{
	return store_query_page(reader, filter, rows, store_list_incidents, ret_next);
}

int store_query_has_kind(struct store_reader *reader, const char *kind)
{
	struct store_value values[] = {STORE_TEXT(kind)};
	STORE_STATEMENT row = NULL;
	int r = store_reader_begin(reader);

	if (r != 0)
		return r < 0 ? r : 0; /* nothing was written yet */
	r = store_reader_prepare(reader, "SELECT 1 FROM sites WHERE kind = ?1 LIMIT 1", values,
				 ARRAY_SIZE(values), &row);
	if (r == 0)
		r = store_reader_step(reader, row);
	store_reader_end(reader);
	return r;
}

/* ?5: the first leak that may come; those with higher numbers were on earlier pages. */
static const char store_sql_leaks[] =
	"SELECT l.id, l.ended_ns, l.closed, l.exit_code, l.exit_signal, l.bytes, l.buffers,"
	" (SELECT ifnull(sum(c.rows), 0) FROM leak_chunks AS c WHERE c.leak = l.id),"
	" " STORE_PROCESS_COLUMNS " FROM leaks AS l CROSS JOIN processes AS p ON p.id = l.process"
	" WHERE (NOT ?1 OR" STORE_SEES("l.uid") ") AND (?2 = 0 OR p.pid = ?2) AND l.ended_ns >= ?3"
						" AND l.id <= ?5 ORDER BY l.id DESC LIMIT ?6";

static struct store_leak store_column_leak(struct sqlite3_stmt *row)
{
	return (struct store_leak){
		.id = (int64_t)store_column(row, 0),
		.process = store_column_process(row, 8),
		.ending = store_column_ending(row, 1),
		.bytes = store_column(row, 5),
		.buffers = store_column(row, 6),
		.listed = store_column(row, 7),
	};
}

/* The rows of one chunk from the place @next->major on, which moves on with each. */
static int store_query_chunk(struct store_reader *reader, struct sqlite3_stmt *row,
			     const struct store_leak_rows *rows, struct store_cursor *next)
{
	CLEANUP(store_rows_deinit) struct store_rows chunk = STORE_ROWS_NULL;
	int64_t first = sqlite3_column_int64(row, 0);
	int r = store_rows_unpack(&chunk, sqlite3_column_blob(row, 1),
				  (size_t)sqlite3_column_bytes(row, 1));

	if (r < 0)
		return r == -EBADMSG ? store_reader_damaged(reader) : r;
	/* Unpacking takes time that SQLite does not see. */
	r = store_reader_hurry(reader, 0);
	for (uint32_t i = 0; r == 0 && i < chunk.count; i++) {
		if (first + i < next->major)
			continue;
		if (rows->buffers_max && first + i >= rows->buffers_max)
			break;
		r = rows->buffer(rows->context, &chunk.buffers[i], chunk.device_uids[i]);
		next->major = first + i + (r == 0);
	}
	return r;
}

/* Return: as store_list_incidents(). */
static int store_query_buffers(struct store_reader *reader, int64_t leak,
			       const struct store_leak_rows *rows, struct store_cursor *next)
{
	int64_t most = rows->buffers_max ? (int64_t)rows->buffers_max : INT64_MAX;
	const struct store_value values[] = {STORE_INT(leak), STORE_INT(next->major),
					     STORE_INT(most)};
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(reader,
				     "SELECT first, data FROM leak_chunks WHERE leak = ?1"
				     " AND first + rows > ?2 AND first < ?3 ORDER BY first",
				     values, ARRAY_SIZE(values), &row);

	while (r == 0 && (r = store_reader_step(reader, row)) > 0)
		r = store_query_chunk(reader, row, rows, next);
	return r;
}

/* @next: where to begin in the leak; it is moved on. */
static int store_query_leak(struct store_reader *reader, struct sqlite3_stmt *row,
			    const struct store_leak_rows *rows, struct store_cursor *next)
{
	struct store_leak leak = store_column_leak(row);
	int64_t offset = next->minor == leak.id ? next->major : 0;
	int r;

	leak.offset = (uint64_t)offset;
	r = rows->leak ? rows->leak(rows->context, &leak) : 0;
	if (r != 0)
		return r;
	next->minor = leak.id;
	next->major = offset;
	if (offset == 0)
		r = store_query_parts(reader,
				      "SELECT s.type, l.name, s.phase, l.bytes, l.buffers,"
				      " l.oldest_ns, s.stack, l.phases, l.name_count, l.names"
				      " FROM leak_sites AS l"
				      " JOIN sites AS s ON s.id = l.site WHERE l.leak = ?1"
				      " ORDER BY l.bytes DESC",
				      leak.id, rows->part, rows->context);
	if (r == 0 && rows->buffer)
		r = store_query_buffers(reader, leak.id, rows, next);
	/* All of it has been told. */
	if (r == 0)
		next->major = 0;
	return r;
}

/*
 * A cursor is a leak, and in it the place of the first buffer of the next page; 0: the next page
 * begins after that leak. Return: as store_list_incidents().
 */
static int store_list_leaks(struct store_reader *reader, const struct store_filter *filter,
			    const void *rows, struct store_cursor *next)
{
	size_t limit = store_query_limit(filter->limit), count = 0;
	struct store_value values[STORE_QUERY_VALUES];
	STORE_STATEMENT row = NULL;
	int r;

	store_query_values(filter, values);
	if (filter->after.minor)
		values[4] = STORE_INT(filter->after.minor - (filter->after.major == 0));
	r = store_reader_prepare(reader, store_sql_leaks, values, ARRAY_SIZE(values), &row);
	while (r == 0 && (r = store_reader_step(reader, row)) > 0) {
		if (count++ == limit)
			break;
		r = store_query_leak(reader, row, rows, next);
	}
	return r;
}

int store_query_leaks(struct store_reader *reader, const struct store_filter *filter,
		      const struct store_leak_rows *rows, struct store_cursor *ret_next)
{
	return store_query_page(reader, filter, rows, store_list_leaks, ret_next);
}

/* Between begin and end. */
static int store_count(struct store_reader *reader, const char *sql, uint64_t *ret_count)
{
	STORE_STATEMENT row = NULL;
	int r = store_reader_prepare(reader, sql, NULL, 0, &row);

	if (r == 0)
		r = store_reader_step(reader, row);
	if (r > 0)
		*ret_count = store_column(row, 0);
	return r < 0 ? r : 0;
}

int store_query_count(struct store_reader *reader, const char *sql, const struct store_sees *sees,
		      uint64_t *ret_count)
{
	uint64_t count = 0;
	int r = store_reader_begin(reader);

	if (r == 0) {
		reader->sees = *sees;
		r = store_count(reader, sql, &count);
		store_reader_end(reader);
	}
	if (r < 0)
		return r;
	*ret_count = count;
	return 0;
}

int store_query_other_incidents(struct store_reader *reader, const struct store_sees *sees,
				uint64_t *ret_count)
{
	return store_query_count(
		reader,
		"SELECT count(*) FROM sites AS s WHERE NOT" STORE_SEES(
			"s.uid") " AND EXISTS (SELECT 1 FROM incidents WHERE site = s.id)",
		sees, ret_count);
}

int store_query_other_leaks(struct store_reader *reader, const struct store_sees *sees,
			    uint64_t *ret_count)
{
	return store_query_count(reader,
				 "SELECT count(*) FROM leaks AS l WHERE NOT" STORE_SEES("l.uid"),
				 sees, ret_count);
}
