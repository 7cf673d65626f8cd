/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From version 3: lists of buffers were a table with a row for each, and call sites of leaks had no
 * phases. Reports that had lost their lists by then stay without.
 *
 * From version 4: incidents were grouped by name, and a stack with buffers of several names was
 * several call sites. Sites of one stack become one. Of an incident the newest example tells the
 * stack. Reports keep the one name that a site had; how many there were is not known.
 *
 * From version 5: users had no namespaces.
 *
 * From version 6: incidents had no allocator's space.
 *
 * From version 7: of processes only those that left something were known to have ended, and of the
 * daemon only its present run.
 *
 * From version 8: of failed allocations the largest free block was all that was known of the banks.
 */

#include "store/store-migrate.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "model/sites/stack.h"
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
		.stack = stack_parse(&list->texts, store_column_text(row, 13)),
	};
	if (store_packer_add(list->packer, &buffer, store_column(row, 2)) < 0)
		return migrate_no_memory(db);
	return 0;
}

static int migrate_lists(struct store_db *db)
{
	CLEANUP(migrate_list_deinit)
	struct migrate_list list = {.packer = store_packer_new(STORE_ROWS_CHUNK),
				    .texts = POOL_NULL};
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

static int migrate_from_3(struct store_db *db)
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

static const char migrate_columns[] =
	"ALTER TABLE held ADD COLUMN name_count INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE held ADD COLUMN names TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE leak_sites ADD COLUMN name TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE leak_sites ADD COLUMN name_count INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE leak_sites ADD COLUMN names TEXT NOT NULL DEFAULT '';"
	"UPDATE leak_sites SET name = (SELECT name FROM sites WHERE id = site);"
	"UPDATE sites SET stack = ifnull((SELECT CASE WHEN ifnull(second_stack, '') <> ''"
	"  THEN second_stack ELSE first_stack END FROM incidents WHERE site = sites.id"
	"  ORDER BY id DESC LIMIT 1), '') WHERE kind <> 'leak';";

/* The first site of a stack takes over what the others have. 2^62-1 is the largest sum. */
static const char migrate_merge[] =
	"CREATE TABLE same(old INTEGER PRIMARY KEY, new INTEGER NOT NULL) STRICT;"
	"INSERT INTO same SELECT id, min(id) OVER (PARTITION BY kind, type, uid, comm, stack)"
	" FROM sites WHERE stack <> '';"
	"DELETE FROM same WHERE old = new;"
	"UPDATE sites SET"
	" count = CAST(min(sites.count + o.count, 4611686018427387903) AS INTEGER),"
	" bytes = CAST(min(sites.bytes + o.bytes, 4611686018427387903) AS INTEGER),"
	" buffers = CAST(min(sites.buffers + o.buffers, 4611686018427387903) AS INTEGER),"
	" first_ns = min(sites.first_ns, o.first_ns), last_ns = max(sites.last_ns, o.last_ns)"
	" FROM (SELECT new, total(s.count) AS count, total(s.bytes) AS bytes,"
	"  total(s.buffers) AS buffers, min(s.first_ns) AS first_ns, max(s.last_ns) AS last_ns"
	"  FROM same JOIN sites AS s ON s.id = old GROUP BY new) AS o WHERE sites.id = o.new;"
	"INSERT INTO leak_sites(leak, site, bytes, buffers, oldest_ns, phases, name)"
	" SELECT leak, new, bytes, buffers, oldest_ns, phases, name FROM leak_sites"
	" JOIN same ON old = site WHERE true ON CONFLICT DO UPDATE SET"
	" bytes = min(bytes + excluded.bytes, 4611686018427387903),"
	" buffers = min(buffers + excluded.buffers, 4611686018427387903),"
	" oldest_ns = min(oldest_ns, excluded.oldest_ns),"
	" name = CASE WHEN name = excluded.name THEN name ELSE '' END;"
	"DELETE FROM leak_sites WHERE site IN (SELECT old FROM same);"
	"UPDATE incidents SET site = (SELECT new FROM same WHERE old = site)"
	" WHERE site IN (SELECT old FROM same);";

static const char migrate_finish[] =
	"DROP INDEX seen_site; ALTER TABLE seen RENAME TO counted;" STORE_SCHEMA_SEEN
	"INSERT INTO seen SELECT c.process, ifnull((SELECT new FROM same WHERE old = c.site),"
	"  c.site), s.kind, s.type, c.device, c.address, c.size, 0, c.count FROM counted AS c"
	" JOIN sites AS s ON s.id = c.site WHERE true ON CONFLICT DO UPDATE SET"
	" count = min(count + excluded.count, 4611686018427387903);"
	"DROP TABLE counted;"
	"DELETE FROM sites WHERE id IN (SELECT old FROM same);"
	"UPDATE sites SET name = '', phase = '' WHERE stack <> '';"
	"DROP TABLE same;";

static int migrate_from_4(struct store_db *db)
{
	int r = store_db_execute(db, migrate_columns);

	if (r == 0)
		r = store_db_execute(db, migrate_merge);
	return r < 0 ? r : store_db_execute(db, migrate_finish);
}

int store_migrate(struct store_db *db, int64_t from)
{
	char after[64];
	int r = store_db_execute(db, "BEGIN IMMEDIATE");

	if (r == 0 && from < 4)
		r = migrate_from_3(db);
	if (r == 0 && from < 5)
		r = migrate_from_4(db);
	if (r == 0 && from < 6)
		r = store_db_execute(db, STORE_SCHEMA_OWNERS);
	if (r == 0 && from < 7)
		r = store_db_execute(
			db, "ALTER TABLE incidents ADD COLUMN space INTEGER NOT NULL DEFAULT 0");
	if (r == 0 && from < 8)
		r = store_db_execute(
			db, STORE_SCHEMA_ENDINGS
			"INSERT INTO endings SELECT id, identity, process, uid, ended_ns, closed,"
			" exit_code, exit_signal FROM leaks");
	if (r == 0)
		r = store_db_execute(
			db,
			"ALTER TABLE incidents ADD COLUMN size_per_bank INTEGER NOT NULL DEFAULT 0;"
			"ALTER TABLE incidents ADD COLUMN banks INTEGER NOT NULL DEFAULT 0;"
			"ALTER TABLE incidents ADD COLUMN bank_size INTEGER NOT NULL DEFAULT 0;"
			"ALTER TABLE incidents ADD COLUMN bank_free INTEGER NOT NULL DEFAULT 0;"
			"ALTER TABLE incidents ADD COLUMN explanation TEXT NOT NULL DEFAULT '';");
	(void)snprintf(after, sizeof(after), "UPDATE schema SET version = %d; COMMIT",
		       STORE_SCHEMA_VERSION); /* fits */
	if (r == 0)
		r = store_db_execute(db, after);
	if (r < 0)
		store_db_rollback(db);
	return r;
}
