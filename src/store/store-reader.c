/* SPDX-License-Identifier: Apache-2.0 */

/* A connection for reading. */

#include "store/store-reader.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "store/store-private.h"

#define STORE_READ_MS 10000u
#define STORE_READ_BUSY_MS 2000
#define STORE_READ_STEPS 10000 /* of SQLite's virtual machine, between two checks of the clock */

int store_reader_open(struct store *store, struct store_reader **ret_reader)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->store = store;
	pthread_mutex_lock(&store->lock);
	reader->next = store->readers;
	store->readers = reader;
	pthread_mutex_unlock(&store->lock);
	*ret_reader = reader;
	return 0;
}

static void store_reader_part(struct store_reader *reader)
{
	if (reader->handle)
		(void)sqlite3_db_config(reader->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	(void)sqlite3_close(reader->handle); /* cannot fail: nothing uses it any more */
	reader->handle = NULL;
}

struct store_reader *store_reader_close(struct store_reader *reader)
{
	struct store *store;
	struct store_reader **p;

	if (!reader)
		return NULL;
	store = reader->store;
	pthread_rwlock_rdlock(&store->files);
	pthread_mutex_lock(&store->lock);
	for (p = &store->readers; *p != reader; p = &(*p)->next)
		assert(*p);
	*p = reader->next;
	pthread_mutex_unlock(&store->lock);
	store_reader_part(reader);
	pthread_rwlock_unlock(&store->files);
	free(reader);
	return NULL;
}

void store_reader_part_all(struct store *store)
{
	pthread_mutex_lock(&store->lock);
	for (struct store_reader *reader = store->readers; reader; reader = reader->next)
		store_reader_part(reader);
	pthread_mutex_unlock(&store->lock);
}

int store_reader_damaged(struct store_reader *reader)
{
	/* The writer may never read that page, so notify it. */
	__atomic_store_n(&reader->store->suspect, true, __ATOMIC_RELAXED);
	return -EIO;
}

static int store_reader_failed(struct store_reader *reader)
{
	int code = reader->handle ? sqlite3_errcode(reader->handle) : SQLITE_NOMEM;
	int error = reader->handle ? sqlite3_system_errno(reader->handle) : 0;

	/* Readers, too, need a bit of the disk: for the index of the log that they read. */
	if (code == SQLITE_FULL || error == ENOSPC || error == EDQUOT)
		return -ENOSPC;
	switch (code) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return store_reader_damaged(reader);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_INTERRUPT:
		return -ETIME;
	default:
		return -EIO;
	}
}

static int store_reader_is_late(void *argument)
{
	const struct store_reader *reader = argument;

	return clock_ms(CLOCK_MONOTONIC) > reader->deadline_ms;
}

/* The number that a statement returns; SQLite's code if it fails. */
static int store_reader_number(struct store_reader *reader, const char *sql, int *ret_number)
{
	sqlite3_stmt *statement = NULL;
	int r = sqlite3_prepare_v2(reader->handle, sql, -1, &statement, NULL);

	if (r == SQLITE_OK && (r = sqlite3_step(statement)) == SQLITE_ROW)
		*ret_number = sqlite3_column_int(statement, 0);
	(void)sqlite3_finalize(statement); /* returns the step's error again */
	return r == SQLITE_ROW || r == SQLITE_DONE ? SQLITE_OK : r;
}

/* See STORE_SEES(). A row of owners that is missing has no user and no namespaces: nobody's. */
static void store_reader_sees(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct store_reader *reader = sqlite3_user_data(context);
	int64_t uid = sqlite3_value_int64(values[0]);
	const char *namespaces = "";
	bool sees = true;

	(void)count; /* always three */
	if (uid > UINT32_MAX) {
		uid = sqlite3_value_int64(values[1]);
		namespaces = (const char *)sqlite3_value_text(values[2]);
	}
	if (reader->sees.may_see)
		sees = namespaces &&
		       reader->sees.may_see(reader->sees.context, (uint32_t)uid, namespaces);
	sqlite3_result_int(context, sees);
}

/* 0, 1: there is no database of ours, or a negative errno. */
static int store_reader_connect(struct store_reader *reader)
{
	const char *path = reader->store->path;
	int id = 0, version = 0, r;

	if (reader->handle)
		return 0;
	if (access(path, F_OK) < 0)
		return 1;
	if (sqlite3_open_v2(path, &reader->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
			    NULL))
		goto failed;
	(void)sqlite3_busy_timeout(reader->handle, STORE_READ_BUSY_MS); /* fails only for misuse */
	(void)sqlite3_db_config(reader->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(reader->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_progress_handler(reader->handle, STORE_READ_STEPS, store_reader_is_late, reader);
	if (sqlite3_create_function(reader->handle, "sees", 3, SQLITE_UTF8 | SQLITE_DIRECTONLY,
				    reader, store_reader_sees, NULL, NULL) ||
	    sqlite3_exec(reader->handle, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL) ||
	    store_reader_number(reader, "PRAGMA application_id", &id))
		goto failed;
	if (id == STORE_SCHEMA_ID &&
	    store_reader_number(reader, "SELECT max(version) FROM schema", &version))
		goto failed;
	if (version == STORE_SCHEMA_VERSION)
		return 0;
	/* There was no room for the tables, or the writer has yet to convert or replace them. */
	store_reader_part(reader);
	return 1;

failed:
	r = store_reader_failed(reader);
	store_reader_part(reader);
	return r;
}

int store_reader_begin(struct store_reader *reader)
{
	int r;

	reader->deadline_ms = clock_ms(CLOCK_MONOTONIC) + STORE_READ_MS;
	pthread_rwlock_rdlock(&reader->store->files);
	r = store_reader_connect(reader);
	if (r == 0 && sqlite3_exec(reader->handle, "BEGIN", NULL, NULL, NULL))
		r = store_reader_failed(reader);
	if (r)
		pthread_rwlock_unlock(&reader->store->files);
	return r;
}

int store_reader_hurry(struct store_reader *reader, uint64_t until_ms)
{
	if (until_ms)
		reader->deadline_ms = bits_min(reader->deadline_ms, until_ms);
	/* SQLite looks at the clock only now and then: not at all in a short query. */
	return store_reader_is_late(reader) ? -ETIME : 0;
}

void store_reader_end(struct store_reader *reader)
{
	/* Nothing was written: the result does not matter. */
	(void)sqlite3_exec(reader->handle, "ROLLBACK", NULL, NULL, NULL);
	pool_deinit(&reader->stacks);
	pthread_rwlock_unlock(&reader->store->files);
}

int store_reader_prepare(struct store_reader *reader, const char *sql,
			 const struct store_value *values, size_t count,
			 struct sqlite3_stmt **ret_statement)
{
	sqlite3_stmt *statement = NULL;
	int r = sqlite3_prepare_v2(reader->handle, sql, -1, &statement, NULL);

	if (r == SQLITE_OK)
		r = store_db_bind(statement, values, count);
	if (r != SQLITE_OK) {
		r = store_reader_failed(reader);
		(void)sqlite3_finalize(statement); /* its error was handled */
		return r;
	}
	*ret_statement = statement;
	return 0;
}

int store_reader_step(struct store_reader *reader, struct sqlite3_stmt *statement)
{
	switch (sqlite3_step(statement)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return store_reader_failed(reader);
	}
}

void store_reader_finalize(struct sqlite3_stmt **statement)
{
	(void)sqlite3_finalize(*statement); /* returns the step's error again */
}

uint64_t store_column(struct sqlite3_stmt *statement, int at)
{
	return (uint64_t)sqlite3_column_int64(statement, at);
}

const char *store_column_text(struct sqlite3_stmt *statement, int at)
{
	const char *text = (const char *)sqlite3_column_text(statement, at);

	return text && *text ? text : NULL;
}

struct ending store_column_ending(struct sqlite3_stmt *statement, int at)
{
	uint64_t closed = store_column(statement, at + 1);

	return (struct ending){
		.ended_ns = store_column(statement, at),
		.closed = closed & 1,
		.execed = closed >> 1 & 1,
		.has_status = sqlite3_column_type(statement, at + 2) != SQLITE_NULL,
		.status = W_EXITCODE(sqlite3_column_int(statement, at + 2) & 0xff,
				     sqlite3_column_int(statement, at + 3) & 0x7f),
	};
}

struct store_process store_column_process(struct sqlite3_stmt *statement, int at)
{
	const char *comm = store_column_text(statement, at + 5);

	return (struct store_process){
		.id.pid = (uint32_t)store_column(statement, at),
		.ns_pid = (uint32_t)store_column(statement, at + 1),
		.user_id = (uint32_t)store_column(statement, at + 2),
		.id.start_ticks = store_column(statement, at + 3),
		.start_ns = store_column(statement, at + 4),
		.comm = comm ? comm : "",
		.user = store_column_text(statement, at + 6),
		.container = store_column_text(statement, at + 7),
		.source = store_column_text(statement, at + 8),
	};
}
