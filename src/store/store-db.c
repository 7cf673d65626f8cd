/* SPDX-License-Identifier: Apache-2.0 */

/* The writer's connection to the database. */

#include "store/store-db.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/heir.h"
#include "base/files/small-file.h"
#include "base/hash.h"
#include "store/store-migrate.h"

#define STORE_BUSY_MS 1000 /* for someone with the sqlite3 command; the store has only one writer */

int store_db_fail(struct store_db *db, enum store_trouble trouble, const char *message)
{
	db->trouble = trouble;
	(void)snprintf(db->message, sizeof(db->message), "%s", message); /* may be cut */
	return -EIO;
}

/* Not about the contents of the file. */
static bool store_db_is_refused(int error)
{
	return error == EACCES || error == EPERM || error == EROFS || error == EMFILE ||
	       error == ENFILE;
}

static enum store_trouble store_db_judge(int code, int error)
{
	if (error == ENOSPC || error == EDQUOT || code == SQLITE_IOERR_NOMEM)
		return code == SQLITE_IOERR_NOMEM ? STORE_TROUBLE_AGAIN : STORE_TROUBLE_FULL;
	if (store_db_is_refused(error))
		return STORE_TROUBLE_CLOSED;
	switch (code & 0xff) {
	case SQLITE_FULL:
		return STORE_TROUBLE_FULL;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
	case SQLITE_NOMEM:
	case SQLITE_INTERRUPT:
		return STORE_TROUBLE_AGAIN;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH:
		return STORE_TROUBLE_CLOSED;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_IOERR:
		return STORE_TROUBLE_DAMAGED;
	default:
		return STORE_TROUBLE_ITEM;
	}
}

int store_db_fail_code(struct store_db *db, int code)
{
	return store_db_fail(db, store_db_judge(code, 0), sqlite3_errstr(code));
}

int store_db_failed(struct store_db *db)
{
	int code = sqlite3_extended_errcode(db->handle);

	return store_db_fail(db, store_db_judge(code, sqlite3_system_errno(db->handle)),
			     sqlite3_errmsg(db->handle));
}

int store_db_bind(struct sqlite3_stmt *statement, const struct store_value *values, size_t count)
{
	int r = SQLITE_OK;

	for (size_t i = 0; r == SQLITE_OK && i < count; i++) {
		int at = (int)i + 1;

		switch (values[i].kind) {
		case STORE_VALUE_NONE:
			r = sqlite3_bind_null(statement, at);
			break;
		case STORE_VALUE_NUMBER:
			r = sqlite3_bind_int64(statement, at, values[i].number);
			break;
		case STORE_VALUE_TEXT:
			r = sqlite3_bind_text(statement, at, values[i].text, -1, SQLITE_STATIC);
			break;
		case STORE_VALUE_BYTES:
			r = sqlite3_bind_blob64(statement, at, values[i].bytes,
						(sqlite3_uint64)values[i].number, SQLITE_STATIC);
			break;
		}
	}
	return r;
}

/* Steps a bound statement to its end, and resets it. */
static int store_db_step(struct store_db *db, struct sqlite3_stmt *statement, int64_t *ret_number)
{
	bool has_row = false;
	int64_t number = 0;
	int r, failed = 0;

	while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!has_row)
			number = sqlite3_column_int64(statement, 0);
		has_row = true;
	}
	if (r != SQLITE_DONE)
		failed = store_db_failed(db);
	(void)sqlite3_reset(statement); /* returns the step's error again */
	if (failed < 0)
		return failed;
	if (has_row && ret_number)
		*ret_number = number;
	return has_row;
}

int store_db_run(struct store_db *db, enum store_sql sql, const struct store_value *values,
		 size_t count, int64_t *ret_number)
{
	struct sqlite3_stmt **statement = &db->statements[sql];

	if (!*statement && sqlite3_prepare_v3(db->handle, store_schema_sql[sql], -1,
					      SQLITE_PREPARE_PERSISTENT, statement, NULL)) {
		(void)store_db_failed(db); /* returned below */
		/* The statement is ours, so the tables are wrong. */
		if (db->trouble == STORE_TROUBLE_ITEM)
			db->trouble = STORE_TROUBLE_DAMAGED;
		return -EIO;
	}
	if (store_db_bind(*statement, values, count))
		return store_db_failed(db);
	return store_db_step(db, *statement, ret_number);
}

int store_db_ask(struct store_db *db, const char *sql, const struct store_value *values,
		 size_t count, int64_t *ret_number)
{
	struct sqlite3_stmt *statement = NULL;
	int r;

	if (sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL) ||
	    store_db_bind(statement, values, count))
		r = store_db_failed(db);
	else
		r = store_db_step(db, statement, ret_number);
	(void)sqlite3_finalize(statement); /* likewise */
	return r;
}

int store_db_execute(struct store_db *db, const char *sql)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) ? store_db_failed(db) : 0;
}

/* A failure of the system: the file may be as good as ever. */
static int store_db_fail_system(struct store_db *db, int error, const char *name)
{
	bool is_full = error == ENOSPC || error == EDQUOT;
	char text[96], message[sizeof(db->message)];

	(void)snprintf(message, sizeof(message), "%s%s%s", name, *name ? ": " : "",
		       strerror_r(error, text, sizeof(text))); /* may be cut */
	return store_db_fail(db, is_full ? STORE_TROUBLE_FULL : STORE_TROUBLE_CLOSED, message);
}

/*
 * Whether we may use the database and the files that SQLite keeps beside it. One that we may not
 * open is not damaged, however SQLite puts it: another user's daemon may have left it.
 */
static int store_db_check_access(struct store_db *db, const char *path)
{
	static const char *const names[] = {"", "-wal", "-shm", "-journal"};
	char file[PATH_MAX], who[64];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if ((size_t)snprintf(file, sizeof(file), "%s%s", path, names[i]) >= sizeof(file))
			return store_db_fail_system(db, ENAMETOOLONG, "");
		/* On failure its user cannot open it: then that user says so. */
		(void)heir_give_path(file);
		if (lstat(file, &st) < 0 || faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) == 0)
			continue;
		(void)snprintf(who, sizeof(who), "%s, of user %u", *names[i] ? names[i] : "file",
			       st.st_uid);
		return store_db_fail_system(db, errno, who);
	}
	return 0;
}

/*
 * Makes sure that there is a regular file that only we can read: it shows which programs all users
 * run. An existing one is not opened here: closing it would release the locks of the readers'
 * connections.
 */
static int store_db_make_file(struct store_db *db, const char *path, struct stat *ret_stat)
{
	CLEANUP_CLOSE int fd = -1;

	if (lstat(path, ret_stat) == 0) {
		if (!S_ISREG(ret_stat->st_mode))
			return store_db_fail(db, STORE_TROUBLE_DAMAGED, "not a regular file");
		return store_db_check_access(db, path);
	}
	db->is_fresh = true;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return store_db_fail_system(db, errno, "");
	/* SQLite gives the files beside it to the same user. */
	(void)heir_give(fd, path); /* as above */
	return 0;
}

/* What must be set before there are tables, and what every connection must set again. */
static int store_db_configure(struct store_db *db)
{
	static const char settings[] =
		"PRAGMA auto_vacuum = INCREMENTAL;"
		"PRAGMA journal_mode = WAL;"
		"PRAGMA synchronous = NORMAL;" /* a power failure may lose the last seconds */
		"PRAGMA foreign_keys = ON;"
		"PRAGMA secure_delete = OFF;"
		"PRAGMA temp_store = MEMORY;" /* no temporary files on a full disk */
		"PRAGMA cache_size = -4096;";

	(void)sqlite3_extended_result_codes(db->handle, 1); /* these fail only for misuse */
	(void)sqlite3_busy_timeout(db->handle, STORE_BUSY_MS);
	/* The tables in a damaged file may be anything. */
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return store_db_execute(db, settings);
}

static int store_db_create(struct store_db *db)
{
	char text[160];
	int r = store_db_execute(db, "BEGIN IMMEDIATE");

	if (r == 0)
		r = store_db_execute(db, store_schema_create);
	(void)snprintf(text, sizeof(text),
		       "PRAGMA application_id = %d; INSERT INTO schema VALUES(%d); COMMIT",
		       STORE_SCHEMA_ID, STORE_SCHEMA_VERSION);
	if (r == 0)
		r = store_db_execute(db, text);
	return r;
}

/* Checks that the file is ours. One that is too old to convert, or newer, is left alone. */
static int store_db_check(struct store_db *db)
{
	int64_t number = 0;
	int r = store_db_ask(db, "PRAGMA application_id", NULL, 0, &number);

	if (r >= 0 && number != STORE_SCHEMA_ID)
		return store_db_fail(db, STORE_TROUBLE_DAMAGED, "another program's database");
	if (r >= 0)
		r = store_db_ask(db, "SELECT max(version) FROM schema", NULL, 0, &number);
	if (r >= 0 && number >= STORE_MIGRATE_FROM && number < STORE_SCHEMA_VERSION)
		return store_migrate(db, number);
	if (r >= 0 && number != STORE_SCHEMA_VERSION)
		return store_db_fail(db, STORE_TROUBLE_DAMAGED,
				     number > STORE_SCHEMA_VERSION
					     ? "written by a later version"
					     : "written by an earlier version");
	return r < 0 ? r : 0;
}

int store_db_verify(struct store_db *db)
{
	int64_t number = 0;
	int r;

	if (db->is_fresh)
		return 0;
	r = store_db_ask(db, "SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check <> 'ok'",
			 NULL, 0, &number);
	if (r >= 0 && number != 0)
		return store_db_fail(db, STORE_TROUBLE_DAMAGED, "damaged");
	return r < 0 ? r : 0;
}

static int store_db_limit_log(struct store_db *db, uint64_t log_max)
{
	char text[128];

	(void)snprintf(text, sizeof(text),
		       "PRAGMA wal_autocheckpoint = %" PRIu64
		       "; PRAGMA journal_size_limit = %" PRIu64,
		       log_max / STORE_PAGE, log_max);
	return store_db_execute(db, text);
}

static int store_db_prepare(struct store_db *db, uint64_t log_max)
{
	int64_t tables = 0;
	int r = store_db_configure(db);

	if (r == 0)
		r = store_db_limit_log(db, log_max);
	if (r == 0)
		r = store_db_ask(db, "SELECT count(*) FROM sqlite_schema", NULL, 0, &tables);
	if (r < 0)
		return r;
	/* Also if an earlier writer was killed while creating it. */
	db->is_fresh = tables == 0;
	r = tables == 0 ? store_db_create(db) : store_db_check(db);
	return r;
}

/* 0 where it cannot be read: then boots are not told apart. */
static int64_t store_db_boot(void)
{
	char text[64];
	ssize_t n =
		small_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof(text));

	return n <= 0 ? 0 : (int64_t)(hash_bytes(text, (size_t)n) & INT64_MAX);
}

/* Whether SQLite failed because files could not be opened or created. */
static bool store_db_was_refused(const struct store_db *db, const char *path)
{
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	return (db->handle && store_db_is_refused(sqlite3_system_errno(db->handle))) || !folder ||
	       faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0;
}

int store_db_open(struct store_db *db, const char *path, uint64_t log_max)
{
	struct stat st;
	int r;

	db->is_fresh = false;
	db->boot = store_db_boot();
	r = store_db_make_file(db, path, &st);
	if (r < 0)
		return r;
	db->inode = st.st_ino;
	if (sqlite3_open_v2(path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL)) {
		if (db->handle)
			r = store_db_failed(db);
		else
			r = store_db_fail(db, STORE_TROUBLE_AGAIN, "out of memory");
	} else {
		r = store_db_prepare(db, log_max);
	}
	if (r < 0) {
		/*
		 * The file can be read and written, so its contents or the files beside it are bad,
		 * unless the folder is closed to us.
		 */
		if (db->trouble == STORE_TROUBLE_ITEM ||
		    (db->trouble == STORE_TROUBLE_CLOSED && !store_db_was_refused(db, path)))
			db->trouble = STORE_TROUBLE_DAMAGED;
		store_db_close(db, true);
	}
	return r;
}

void store_db_close(struct store_db *db, bool as_it_is)
{
	for (size_t i = 0; i < STORE_SQL_COUNT; i++) {
		(void)sqlite3_finalize(db->statements[i]); /* returns an earlier error */
		db->statements[i] = NULL;
	}
	if (db->handle && as_it_is)
		(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	/* Cannot fail: nothing uses it any more. NULL is fine. */
	(void)sqlite3_close(db->handle);
	db->handle = NULL;
}

void store_db_rollback(struct store_db *db)
{
	/* Fails if SQLite has already rolled back, which is fine. */
	(void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

int64_t store_db_changes(const struct store_db *db)
{
	return sqlite3_changes64(db->handle);
}
