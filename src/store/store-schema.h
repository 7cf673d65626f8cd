/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables, and every statement that the writer prepares. */

#include <stdint.h>

#define STORE_SCHEMA_VERSION 9
#define STORE_SCHEMA_ID 0x74746d31 /* "ttm1", the application id in the file's header */

/* Creates the tables in an empty file. */
extern const char store_schema_create[];

/* Of those: the table of packed lists, which version 4 introduced. */
#define STORE_SCHEMA_CHUNKS                                                       \
	"CREATE TABLE leak_chunks(id INTEGER PRIMARY KEY,"                        \
	" leak INTEGER NOT NULL REFERENCES leaks ON DELETE CASCADE,"              \
	" first INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL," \
	" data BLOB NOT NULL) STRICT;"                                            \
	"CREATE UNIQUE INDEX leak_chunks_leak ON leak_chunks(leak, first, rows, bytes);"

/* The table of counted incidents, as version 5 has it. */
#define STORE_SCHEMA_SEEN                                                          \
	"CREATE TABLE seen(process INTEGER NOT NULL,"                              \
	" site INTEGER NOT NULL REFERENCES sites ON DELETE CASCADE,"               \
	" kind TEXT NOT NULL, type INTEGER NOT NULL, device INTEGER NOT NULL,"     \
	" address INTEGER NOT NULL, size INTEGER NOT NULL, what INTEGER NOT NULL," \
	" count INTEGER NOT NULL,"                                                 \
	" PRIMARY KEY(process, kind, type, device, address, size, what))"          \
	" STRICT, WITHOUT ROWID;"                                                  \
	"CREATE INDEX seen_site ON seen(site);"

/* And the table of owners, which version 6 introduced. */
#define STORE_SCHEMA_OWNERS                                                 \
	"CREATE TABLE owners(id INTEGER PRIMARY KEY, uid INTEGER NOT NULL," \
	" namespaces TEXT NOT NULL, UNIQUE(uid, namespaces)) STRICT;"

/* Ends of processes, and runs of the daemon, which version 8 introduced. */
#define STORE_SCHEMA_ENDINGS                                                             \
	"CREATE TABLE endings(id INTEGER PRIMARY KEY, identity INTEGER NOT NULL UNIQUE," \
	" process INTEGER NOT NULL, uid INTEGER NOT NULL, ended_ns INTEGER NOT NULL,"    \
	" closed INTEGER NOT NULL, exit_code INTEGER, exit_signal INTEGER) STRICT;"      \
	"CREATE INDEX endings_process ON endings(process);"                              \
	"CREATE TABLE runs(id INTEGER PRIMARY KEY, start_ns INTEGER NOT NULL UNIQUE,"    \
	" end_ns INTEGER, state INTEGER NOT NULL) STRICT;"

enum store_sql {
	STORE_SQL_BEGIN,
	STORE_SQL_COMMIT,
	STORE_SQL_ROLLBACK,
	STORE_SQL_ITEM_BEGIN,
	STORE_SQL_ITEM_COMMIT,
	STORE_SQL_ITEM_ROLLBACK,

	STORE_SQL_PROCESS_FIND,
	STORE_SQL_PROCESS_ADD,
	STORE_SQL_OWNER,
	STORE_SQL_SITE,
	STORE_SQL_SITE_COUNT,
	STORE_SQL_SEEN_SITE,
	STORE_SQL_SEEN_COUNT,
	STORE_SQL_SEEN_FORGET,
	STORE_SQL_SEEN_SET,
	STORE_SQL_EXAMPLE_DROP,
	STORE_SQL_EXAMPLE_ADD,
	STORE_SQL_EXAMPLE_TRIM,
	STORE_SQL_HOLDER_ADD,
	STORE_SQL_HELD_ADD,
	STORE_SQL_LEAK_ADD,
	STORE_SQL_LEAK_SITE_ADD,
	STORE_SQL_LEAK_CHUNK_ADD,
	STORE_SQL_ENDING_ADD,

	STORE_SQL_SERIES_FIND,
	STORE_SQL_SERIES_ADD,
	STORE_SQL_SERIES_TOUCH,
	STORE_SQL_POINT_ADD,
	STORE_SQL_ROLL_10,
	STORE_SQL_ROLL_60,
	STORE_SQL_ROLLING_GET,
	STORE_SQL_ROLLING_SET,

	STORE_SQL_COUNT,
};

extern const char *const store_schema_sql[STORE_SQL_COUNT];
