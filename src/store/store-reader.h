/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A connection for reading, and the building blocks of queries. Functions return a negative errno,
 * or what their comments say; each query is begun and ended, and sees the data of a single moment.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "store/store-db.h"
#include "store/store.h"

struct store_reader {
	struct store *store;
	struct store_reader *next; /* store->readers; under store->lock */

	/* Used under store->files: the writer closes it before it renames the file. */
	struct sqlite3 *handle; /* NULL = closed */
	uint64_t deadline_ms;

	struct store_sees sees; /* of the query that runs */
	struct pool stacks;     /* that its rows have */
};

/*
 * Whether who asks may see rows with that uid, in SQL; uids that are rows of owners are looked up.
 */
#define STORE_SEES(uid)                                               \
	" sees(" uid ", (SELECT uid FROM owners WHERE id = " uid ")," \
	" (SELECT namespaces FROM owners WHERE id = " uid "))"

/* 0, or 1: there is nothing to read, and store_reader_end() must not be called. */
int store_reader_begin(struct store_reader *reader);
void store_reader_end(struct store_reader *reader);

/* Until the end: -ETIME from @until_ms on, if that is earlier than the usual deadline; 0 = it is not. */
int store_reader_hurry(struct store_reader *reader, uint64_t until_ms);

/* What was read makes no sense: the writer is told. Return: -EIO. */
int store_reader_damaged(struct store_reader *reader);

/* A bound statement; the caller finalizes it. */
int store_reader_prepare(struct store_reader *reader, const char *sql,
			 const struct store_value *values, size_t count,
			 struct sqlite3_stmt **ret_statement);

/* 1: there is a row, 0: there are no more. */
int store_reader_step(struct store_reader *reader, struct sqlite3_stmt *statement);

/* Columns. A text is NULL if it is empty. */
uint64_t store_column(struct sqlite3_stmt *statement, int at);
const char *store_column_text(struct sqlite3_stmt *statement, int at);

/* The columns of a process "p", in the order that store_column_process() expects. */
#define STORE_PROCESS_COLUMNS                                                \
	"p.pid, p.ns_pid, p.uid, p.start_ticks, p.start_ns, p.comm, p.user," \
	" p.container, p.source"

struct store_process store_column_process(struct sqlite3_stmt *statement, int at);
/* "ended_ns", "closed", "exit_code", "exit_signal". */
struct ending store_column_ending(struct sqlite3_stmt *statement, int at);

void store_reader_finalize(struct sqlite3_stmt **statement);

#define STORE_STATEMENT CLEANUP(store_reader_finalize) struct sqlite3_stmt *
