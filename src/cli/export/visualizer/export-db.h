/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes a new SQLite database in one transaction. The library is loaded when it is needed: no other
 * command uses it.
 */

#include <stddef.h>
#include <stdint.h>

struct export_db;

/* A value of a row. */
struct export_value {
	enum {
		EXPORT_VALUE_NONE,
		EXPORT_VALUE_NUMBER,
		EXPORT_VALUE_REAL,
		EXPORT_VALUE_TEXT,
	} kind;
	int64_t number;
	double real;
	const char *text; /* valid UTF-8; NULL = no value */
};

/* Numbers that do not fit are the largest one. */
static inline struct export_value export_int(uint64_t value)
{
	return (struct export_value){.kind = EXPORT_VALUE_NUMBER,
				     .number = value < INT64_MAX ? (int64_t)value : INT64_MAX};
}

#define EXPORT_REAL(value) ((struct export_value){.kind = EXPORT_VALUE_REAL, .real = (value)})
#define EXPORT_TEXT(value) ((struct export_value){.kind = EXPORT_VALUE_TEXT, .text = (value)})
#define EXPORT_NULL ((struct export_value){.kind = EXPORT_VALUE_NONE})

/*
 * Creates the file @name in @folder. 0; -ENOSYS if there is no SQLite on this machine; or another
 * negative errno. On failure too @ret_db is set if there is something to ask for a message.
 */
int export_db_create(struct export_db **ret_db, int folder, const char *name);

/* Runs statements without values. 0 or -EIO. */
int export_db_execute(struct export_db *db, const char *sql);

/*
 * Adds a row to @table, with a value for each of its columns. Rows of one table should follow
 * each other: only one statement is kept prepared. 0 or -EIO.
 */
int export_db_insert(struct export_db *db, const char *table, const struct export_value *values,
		     size_t count);

#define EXPORT_VALUES(...)                          \
	(const struct export_value[]){__VA_ARGS__}, \
		sizeof((const struct export_value[]){__VA_ARGS__}) / sizeof(struct export_value)

/* Ends the transaction: then the file is complete and on disk. 0 or -EIO. */
int export_db_commit(struct export_db *db);

/* What SQLite says about the last failure. */
const char *export_db_message(const struct export_db *db);

/* For CLEANUP(). */
void export_db_free(struct export_db **db);
