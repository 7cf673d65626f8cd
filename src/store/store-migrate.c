/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From version 3: lists of buffers were a table with a row for each, and call sites of leaks had no
 * phases. Reports that had lost their lists by then stay without. From version 4: users had no
 * namespaces.
 */

#include "store/store-migrate.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "store/store-db.h"
#include "store/store-reader.h"
#include "store/store-record.h"
#include "store/store-rows.h"

/* The list that is being packed. */
struct migrate_list {
	struct store_packer *packer;
	struct pool texts; /* a packer knows texts by their addresses */
	int64_t leak;      /* 0 = none */
	uint32_t rows;     /* in its chunks so far */
};

static void migrate_list_deinit(struct migrate_list *list)
{
	store_packer_free(list->packer);
	pool_deinit(&list->texts);
}

static int migrate_no_memory(struct store_db *db)
{
	return store_db_fail(db, STORE_TROUBLE_AGAIN, "out of memory");
}

/* Writes what has been packed. */
static int migrate_flush(struct store_db *db, struct migrate_list *list)
{
	struct store_chunk chunk;
	int r;

	if (store_packer_count(list->packer) == 0)
		return 0;
	if (store_packer_take(list->packer, &chunk) < 0)
		return migrate_no_memory(db);
	chunk.first = list->rows;
	list->rows += chunk.rows;
	r = store_record_chunk(db, list->leak, &chunk);
	free(chunk.bytes);
	pool_deinit(&list->texts);
	list->texts = POOL_NULL;
	return r;
}

static const char *migrate_text(struct migrate_list *list, struct sqlite3_stmt *row, int at)
{
	const char *text = store_column_text(row, at);

	return text ? pool_text(&list->texts, text, (size_t)sqlite3_column_bytes(row, at)) : NULL;
}

static int migrate_row(struct store_db *db, struct migrate_list *list, struct sqlite3_stmt *row)
{
	int64_t leak = sqlite3_column_int64(row, 0);
	struct snapshot_buffer buffer;
	int r = 0;

	if (leak != list->leak || store_packer_is_full(list->packer))
		r = migrate_flush(db, list);
	if (r < 0)
		return r;
	if (leak != list->leak)
		list->rows = 0;
	list->leak = leak;
	buffer = (struct snapshot_buffer){
		.device = (uint32_t)store_column(row, 1),
		.type = (uint8_t)store_column(row, 3),
		.address = store_column(row, 4),
		.size = store_column(row, 5),
		.refs = (uint32_t)store_column(row, 6),
		.born_ns = store_column(row, 7),
		.thread = (uint32_t)store_column(row, 8),
		.flags = (uint8_t)store_column(row, 9),
		.kernel_sort = (uint8_t)store_column(row, 10),
		.name = migrate_text(list, row, 11),
		.phase = migrate_text(list, row, 12),
		.stack = migrate_text(list, row, 13),
	};
	if (store_packer_add(list->packer, &buffer, store_column(row, 2)) < 0)
		return migrate_no_memory(db);
	return 0;
}

static int migrate_lists(struct store_db *db)
{
	CLEANUP(migrate_list_deinit)
	struct migrate_list list = {.packer = store_packer_new(), .texts = POOL_NULL};
	STORE_STATEMENT row = NULL;
	int step = SQLITE_DONE, r = 0;

	if (!list.packer)
		return migrate_no_memory(db);
	if (sqlite3_prepare_v2(db->handle,
			       "SELECT leak, device, device_uid, type, address, size, refs,"
			       " born_ns, thread, flags, kernel_sort, name, phase, stack"
			       " FROM leak_buffers ORDER BY leak, place",
			       -1, &row, NULL))
		return store_db_failed(db);
	while (r == 0 && (step = sqlite3_step(row)) == SQLITE_ROW)
		r = migrate_row(db, &list, row);
	if (r == 0 && step != SQLITE_DONE)
		return store_db_failed(db);
	return r < 0 ? r : migrate_flush(db, &list);
}

static int migrate_chunks(struct store_db *db)
{
	static const char before[] =
		"ALTER TABLE leak_sites ADD COLUMN phases TEXT NOT NULL DEFAULT '';"
		"UPDATE leak_sites SET phases = ifnull((SELECT group_concat(phase, char(30)) FROM"
		" (SELECT DISTINCT phase FROM leak_buffers AS b WHERE b.leak = leak_sites.leak AND"
		"  b.site = leak_sites.site AND phase <> '' LIMIT 16)), '');" STORE_SCHEMA_CHUNKS;
	int r = store_db_execute(db, before);

	if (r == 0)
		r = migrate_lists(db);
	return r < 0 ? r : store_db_execute(db, "DROP TABLE leak_buffers");
}

int store_migrate(struct store_db *db, int64_t version)
{
	char after[sizeof(STORE_SCHEMA_OWNERS) + 96];
	int r = store_db_execute(db, "BEGIN IMMEDIATE");

	if (r == 0 && version == STORE_MIGRATE_FROM)
		r = migrate_chunks(db);
	(void)snprintf(after, sizeof(after),
		       STORE_SCHEMA_OWNERS "UPDATE schema SET version = %d; COMMIT",
		       STORE_SCHEMA_VERSION); /* fits */
	if (r == 0)
		r = store_db_execute(db, after);
	if (r < 0)
		store_db_rollback(db);
	return r;
}
