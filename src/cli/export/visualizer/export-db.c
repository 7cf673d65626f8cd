/* SPDX-License-Identifier: Apache-2.0 */

/* SQLite without a journal: an export that fails is thrown away as a whole. */

#include "cli/export/visualizer/export-db.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/process/late-library.h"
#include "cli/common/must.h"

#define EXPORT_DB_COLUMNS_MAX 32u

static const char *const export_db_libraries[] = {"libsqlite3.so.0"};

#define EXPORT_DB_CALLS(X) \
	X(bind_double)     \
	X(bind_int64)      \
	X(bind_null)       \
	X(bind_text)       \
	X(close_v2)        \
	X(errmsg)          \
	X(exec)            \
	X(finalize)        \
	X(open_v2)         \
	X(prepare_v2)      \
	X(reset)           \
	X(step)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define EXPORT_DB_MEMBER(name) __typeof__(sqlite3_##name) *name;
static struct {
	EXPORT_DB_CALLS(EXPORT_DB_MEMBER)
} export_sqlite;

struct export_db {
	sqlite3 *handle;
	const char *table; /* that @insert is for; static */
	size_t columns;
	sqlite3_stmt *insert;
};

static bool export_db_load(void)
{
	void *library = late_library_open(export_db_libraries, ARRAY_SIZE(export_db_libraries));

	if (!library)
		return false;
#define EXPORT_DB_LOOK_UP(name)                                          \
	export_sqlite.name = LATE_LIBRARY_CALL(library, sqlite3_##name); \
	if (!export_sqlite.name)                                         \
		return false;
	EXPORT_DB_CALLS(EXPORT_DB_LOOK_UP)
	return true;
}

int export_db_create(struct export_db **ret_db, int folder, const char *name)
{
	char path[64 + NAME_MAX];
	struct export_db *db;

	*ret_db = NULL;
	if (!export_db_load())
		return -ENOSYS;
	db = must_alloc(1, sizeof(*db));
	*ret_db = db;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder, name);
	if (export_sqlite.open_v2(path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
				  NULL) != SQLITE_OK)
		return -EIO;
	return export_db_execute(db, "PRAGMA journal_mode=OFF; BEGIN");
}

int export_db_execute(struct export_db *db, const char *sql)
{
	return export_sqlite.exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

static void export_db_finalize(struct export_db *db)
{
	/* Repeats the result of the last step, which has been seen. */
	(void)export_sqlite.finalize(db->insert);
	db->insert = NULL;
}

static int export_db_prepare(struct export_db *db, const char *table, size_t columns)
{
	char sql[64 + 2 * EXPORT_DB_COLUMNS_MAX];
	int n;

	if (db->insert && db->table == table && db->columns == columns)
		return 0;
	export_db_finalize(db);
	n = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", table);
	for (size_t i = 1; i < columns; i++)
		n += snprintf(sql + n, sizeof(sql) - (size_t)n, ",?");
	snprintf(sql + n, sizeof(sql) - (size_t)n, ")");
	db->table = table;
	db->columns = columns;
	return export_sqlite.prepare_v2(db->handle, sql, -1, &db->insert, NULL) == SQLITE_OK ? 0
											     : -EIO;
}

static int export_db_bind(struct export_db *db, int column, const struct export_value *value)
{
	switch (value->kind) {
	case EXPORT_VALUE_NUMBER:
		return export_sqlite.bind_int64(db->insert, column, value->number);
	case EXPORT_VALUE_REAL:
		return export_sqlite.bind_double(db->insert, column, value->real);
	case EXPORT_VALUE_TEXT:
		/* Used before this row's values go out of scope. */
		return export_sqlite.bind_text(db->insert, column, value->text, -1, SQLITE_STATIC);
	case EXPORT_VALUE_NONE:
		break;
	}
	return export_sqlite.bind_null(db->insert, column);
}

int export_db_insert(struct export_db *db, const char *table, const struct export_value *values,
		     size_t count)
{
	int r = export_db_prepare(db, table, count);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (export_db_bind(db, (int)i + 1, &values[i]) != SQLITE_OK)
			r = -EIO;
	}
	if (r == 0 && export_sqlite.step(db->insert) != SQLITE_DONE)
		r = -EIO;
	if (db->insert)
		(void)export_sqlite.reset(db->insert); /* repeats the result of the step */
	return r;
}

int export_db_commit(struct export_db *db)
{
	export_db_finalize(db);
	return export_db_execute(db, "COMMIT");
}

const char *export_db_message(const struct export_db *db)
{
	return export_sqlite.errmsg(db->handle);
}

void export_db_free(struct export_db **db)
{
	if (!*db)
		return;
	export_db_finalize(*db);
	(void)export_sqlite.close_v2((*db)->handle); /* what was not committed is thrown away */
	free(*db);
	*db = NULL;
}
