/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The writer's connection: opening it, running statements, and classifying failures. Functions
 * return -EIO for any error of SQLite or the file; store_db.trouble then says what to do about it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store-schema.h"

struct sqlite3;
struct sqlite3_stmt;

enum store_trouble {
	STORE_TROUBLE_ITEM,    /* of the statement: anything else may still work */
	STORE_TROUBLE_AGAIN,   /* another process has locked the file, or memory is short */
	STORE_TROUBLE_FULL,    /* the disk is full */
	STORE_TROUBLE_CLOSED,  /* the folder cannot be written */
	STORE_TROUBLE_MOVED,   /* the open file is no longer the one on disk */
	STORE_TROUBLE_DAMAGED, /* the file is no longer usable */
};

struct store_db {
	struct sqlite3 *handle; /* NULL = closed */
	struct sqlite3_stmt *statements[STORE_SQL_COUNT];
	int64_t boot;  /* a number that differs between boots of the machine */
	bool is_fresh; /* just created, nothing written yet */
	uint64_t inode;

	enum store_trouble trouble; /* of the last failure */
	char message[160];
};

/* A value to be bound to a statement. */
struct store_value {
	enum {
		STORE_VALUE_NONE,
		STORE_VALUE_NUMBER,
		STORE_VALUE_TEXT,
		STORE_VALUE_BYTES,
	} kind;
	int64_t number;   /* or the number of bytes */
	const char *text; /* valid UTF-8 */
	const void *bytes;
};

#define STORE_PAGE 4096u /* SQLite's own default */
#define STORE_NUMBER_MAX ((INT64_C(1) << 62) - 1)

#define STORE_NONE ((struct store_value){.kind = STORE_VALUE_NONE})
#define STORE_INT(value) ((struct store_value){.kind = STORE_VALUE_NUMBER, .number = (value)})
#define STORE_TEXT(value) ((struct store_value){.kind = STORE_VALUE_TEXT, .text = (value)})
#define STORE_BYTES(value, length) \
	((struct store_value){     \
		.kind = STORE_VALUE_BYTES, .bytes = (value), .number = (int64_t)(length)})

/* STORE_CUT: a number that may be cut; STORE_BITS: one whose bits all matter. */
#define STORE_CUT(value) STORE_INT(store_db_cut(value))
#define STORE_BITS(value) STORE_INT((int64_t)(value))

static inline int64_t store_db_cut(uint64_t value)
{
	return value < (uint64_t)STORE_NUMBER_MAX ? (int64_t)value : STORE_NUMBER_MAX;
}

/* Opens @path and creates its tables if needed; @log_max: bytes of its log. 0 or -EIO. */
int store_db_open(struct store_db *db, const char *path, uint64_t log_max);

/* Checks all pages of an existing file: takes some ms per MiB. 0 or -EIO. */
int store_db_verify(struct store_db *db);

/* @as_it_is: do not write the log into the database first. */
void store_db_close(struct store_db *db, bool as_it_is);

/* Rolls back a failed transaction; the failure stays recorded. */
void store_db_rollback(struct store_db *db);

/* Number of rows changed by the last statement. */
int64_t store_db_changes(const struct store_db *db);

/*
 * Runs a statement. 0: done, 1: it returned a row, whose first column is in @ret_number (may be
 * NULL), or -EIO.
 */
int store_db_run(struct store_db *db, enum store_sql sql, const struct store_value *values,
		 size_t count, int64_t *ret_number);

/* Returns SQLite's own code. */
int store_db_bind(struct sqlite3_stmt *statement, const struct store_value *values, size_t count);

#define STORE_VALUES(...)                          \
	(const struct store_value[]){__VA_ARGS__}, \
		sizeof((const struct store_value[]){__VA_ARGS__}) / sizeof(struct store_value)

/* Likewise for SQL text that is not worth keeping prepared. */
int store_db_ask(struct store_db *db, const char *sql, const struct store_value *values,
		 size_t count, int64_t *ret_number);

/* Runs statements without values. 0 or -EIO. */
int store_db_execute(struct store_db *db, const char *sql);

/* Records a failure that SQLite did not report, or @code as if it had. Return: -EIO. */
int store_db_fail(struct store_db *db, enum store_trouble trouble, const char *message);
int store_db_fail_code(struct store_db *db, int code);

/* Records the connection's own error. Return: -EIO. */
int store_db_failed(struct store_db *db);
