/* SPDX-License-Identifier: Apache-2.0 */

/* A file of an earlier version is converted when it is opened, with everything that it had. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"
#include "store/testing/store-testing-rows.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	BUFFERS = 3000, /* more than a chunk */
};

/* Makes the file what version 8 would have written: incidents had nothing of banks but the largest free block. */
static void make_version_8(const struct testing_world *world)
{
	testing_sql(world, "ALTER TABLE incidents DROP COLUMN size_per_bank");
	testing_sql(world, "ALTER TABLE incidents DROP COLUMN banks");
	testing_sql(world, "ALTER TABLE incidents DROP COLUMN bank_size");
	testing_sql(world, "ALTER TABLE incidents DROP COLUMN bank_free");
	testing_sql(world, "ALTER TABLE incidents DROP COLUMN explanation");
	testing_sql(world, "UPDATE schema SET version = 8");
}

/* Makes the file what version 7 would have written: it knew no ends and no runs. */
static void make_version_7(const struct testing_world *world)
{
	make_version_8(world);
	testing_sql(world, "DROP TABLE endings");
	testing_sql(world, "DROP TABLE runs");
	testing_sql(world, "UPDATE schema SET version = 7");
}

/* Makes the file what version 6 would have written: incidents had no space. */
static void make_version_6(const struct testing_world *world)
{
	make_version_7(world);
	testing_sql(world, "ALTER TABLE incidents DROP COLUMN space");
	testing_sql(world, "UPDATE schema SET version = 6");
}

/* Makes the file what version 5 would have written: users had no namespaces. */
static void make_version_5(const struct testing_world *world)
{
	make_version_6(world);
	testing_sql(world, "DROP TABLE owners");
	testing_sql(world, "UPDATE schema SET version = 5");
}

/* Makes the file what version 4 would have written: sites had names, and seen no "what". */
static void make_version_4(const struct testing_world *world)
{
	make_version_5(world);
	testing_sql(world, "UPDATE sites SET name = (SELECT name FROM leak_sites WHERE site = id)"
			   " WHERE kind = 'leak'");
	testing_sql(world, "ALTER TABLE leak_sites DROP COLUMN name");
	testing_sql(world, "ALTER TABLE leak_sites DROP COLUMN name_count");
	testing_sql(world, "ALTER TABLE leak_sites DROP COLUMN names");
	testing_sql(world, "ALTER TABLE held DROP COLUMN name_count");
	testing_sql(world, "ALTER TABLE held DROP COLUMN names");
	testing_sql(world, "DROP INDEX seen_site");
	testing_sql(world, "ALTER TABLE seen RENAME TO newer");
	testing_sql(world,
		    "CREATE TABLE seen(process INTEGER NOT NULL,"
		    " site INTEGER NOT NULL REFERENCES sites ON DELETE CASCADE,"
		    " device INTEGER NOT NULL, address INTEGER NOT NULL, size INTEGER NOT NULL,"
		    " count INTEGER NOT NULL, PRIMARY KEY(process, site, device, address, size))"
		    " STRICT, WITHOUT ROWID");
	testing_sql(world, "CREATE INDEX seen_site ON seen(site)");
	testing_sql(world, "INSERT INTO seen SELECT process, site, device, address, size, count"
			   " FROM newer");
	testing_sql(world, "DROP TABLE newer");
	testing_sql(world, "UPDATE schema SET version = 4");
}

/* Makes the file what version 3 would have written; @rows for each leak. */
static void make_old(const struct testing_world *world, unsigned int rows)
{
	char insert[1024];

	make_version_4(world);
	testing_sql(
		world,
		"CREATE TABLE leak_buffers(leak INTEGER NOT NULL REFERENCES leaks ON DELETE"
		" CASCADE, place INTEGER NOT NULL, site INTEGER NOT NULL, device INTEGER NOT"
		" NULL, device_uid INTEGER NOT NULL, type INTEGER NOT NULL, address INTEGER NOT"
		" NULL, size INTEGER NOT NULL, refs INTEGER NOT NULL, born_ns INTEGER NOT NULL,"
		" thread INTEGER NOT NULL, flags INTEGER NOT NULL, kernel_sort INTEGER NOT NULL,"
		" name TEXT NOT NULL, phase TEXT NOT NULL, stack TEXT NOT NULL,"
		" PRIMARY KEY(leak, place)) STRICT, WITHOUT ROWID");
	testing_sql(world, "CREATE INDEX leak_buffers_site ON leak_buffers(site, leak)");
	(void)snprintf(insert, sizeof(insert),
		       "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE"
		       " i + 1 < %u) INSERT INTO leak_buffers SELECT leak, i, site, 0, 2748, 0,"
		       " -4096 - i, 4096, 1, 1700000039000000000, 7, 4, 0, 'name ' || (i %% 10),"
		       " CASE i %% 3 WHEN 0 THEN '' ELSE 'phase ' || (i %% 3) END, 'a.c:1:main'"
		       " FROM leak_sites, n",
		       rows);
	testing_sql(world, insert);
	testing_sql(world, "DROP TABLE leak_chunks");
	testing_sql(world, "ALTER TABLE leak_sites DROP COLUMN phases");
	testing_sql(world, "UPDATE schema SET version = 3");
}

UNIT(an_older_database_is_converted)
{
	struct testing_world world;
	struct testing_told told;
	const struct store_filter second = {.pid = 2};

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_put_leak(&world, 2, "other");
	testing_flush(&world);
	testing_close(&world);
	make_old(&world, BUFFERS);
	testing_sql(&world, "UPDATE leaks SET buffers = 3000");

	testing_open(&world);
	testing_put_leak(&world, 3, "weights");
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 0 && testing_count_aside(&world) == 0);
	assert(testing_sql(&world, "SELECT version FROM schema") == 9);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 3 && told.parts == 3 && told.buffers == 2 * BUFFERS + 1);
	assert(told.leak.process.id.pid == 1 && told.leak.listed == BUFFERS);
	assert(told.buffer.address == UINT64_MAX - 4096 - (BUFFERS - 1) + 1);
	assert(told.buffer.size == 4096 && told.buffer.refs == 1 && told.buffer.thread == 7);
	assert(told.buffer.flags == 4 && told.buffer_uid == 0xabc);
	assert(told.buffer.born_ns == TESTING_START - TESTING_S);
	assert(strcmp(told.buffer.name, "name 9") == 0 &&
	       strcmp(told.buffer.phase, "phase 2") == 0);
	told = testing_told_leaks(&world, &second);
	assert(told.buffers == BUFFERS);
	assert(testing_sql(&world, "SELECT count(*) FROM leak_sites WHERE phases ="
				   " 'phase 1' || char(30) || 'phase 2'") == 2);
	/* Once. */
	testing_reopen(&world);
	assert(testing_told_leaks(&world, &second).buffers == BUFFERS);
	testing_close(&world);
}

/* Its rows are the user's in the daemon's namespaces. */
UNIT(a_version_without_owners_is_converted)
{
	struct testing_world world;
	const uint32_t mine = 1000, other = 1001;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	testing_close(&world);
	make_version_5(&world);
	testing_open(&world);
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 0 && testing_count_aside(&world) == 0);
	assert(testing_told_leaks(&world, &(struct store_filter){.sees = testing_sees(&mine)})
		       .leaks == 2);
	assert(testing_told_leaks(&world, &(struct store_filter){.sees = testing_sees(&other)})
		       .leaks == 0);
	testing_close(&world);
}

/* A database with one report, made old and changed by @sql; then it is opened and gets another. */
static void add_to_old(struct testing_world *world, const char *sql)
{
	testing_init(world);
	testing_open(world);
	testing_put_leak(world, 1, "weights");
	testing_flush(world);
	testing_close(world);
	make_old(world, 1);
	testing_sql(world, sql);
	testing_open(world);
	testing_put_leak(world, 2, "weights");
	testing_flush(world);
}

UNIT(an_older_report_without_its_list_stays_without)
{
	struct testing_world world;
	struct testing_told told;

	add_to_old(&world, "DELETE FROM leak_buffers");
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 2 && told.leak.process.id.pid == 1 && told.leak.buffers == 1);
	assert(told.buffers == 1 && told.leak.listed == 0 && !told.part.phases);
	testing_close(&world);
}

/* What is not an older file of ours, whatever its number says, is set aside as before. */
UNIT(an_older_database_that_cannot_be_converted_is_set_aside)
{
	struct testing_world world;

	add_to_old(&world, "DROP TABLE leak_buffers");
	assert(testing_health(&world).set_aside == 1 && testing_count_leaks(&world) == 1);
	testing_close(&world);
}

static void put_double_free(struct testing_world *world, uint64_t count)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	const struct snapshot_incident incident = {
		.kind = "double_free",
		.process = testing_process(snapshot, 7, "train"),
		.type = DRAM,
		.has_address = true,
		.address = 0x8000,
		.size = 64,
		.largest_free = UINT64_MAX,
		.count = count,
		.time_ns = TESTING_START,
		.last_ns = TESTING_START,
		.first = {.known = true,
			  .name = "kv cache",
			  .stack = testing_stack("a.c:1:f @ app")},
		.second = {.known = true, .stack = testing_stack("a.c:2:g @ app"), .stack_key = 99},
	};

	store_put_incident(world->store, snapshot, &incident);
	snapshot_free(snapshot);
}

/* Those that had left something are known to have ended. */
UNIT(the_version_before_is_converted)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	testing_close(&world);
	make_version_7(&world);
	testing_open(&world);
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 0 && testing_count_aside(&world) == 0);
	assert(testing_sql(&world, "SELECT version FROM schema") == 9);
	assert(testing_sql(&world, "SELECT count(*) FROM endings JOIN leaks USING(identity,"
				   " process, uid, ended_ns, closed)") == 1);
	assert(testing_sql(&world, "SELECT count(*) FROM runs") == 1);
	testing_close(&world);
}

UNIT(incidents_without_a_space_are_converted)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 3);
	testing_flush(&world);
	testing_close(&world);
	make_version_6(&world);
	testing_open(&world);
	put_double_free(&world, 4);
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 0 && testing_count_aside(&world) == 0);
	assert(testing_sql(&world, "SELECT version FROM schema") == 9);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 4);
	assert(told.incident.example.space == 0 && told.incident.example.size_per_bank == 0);
	assert(!told.incident.example.explanation);
	testing_close(&world);
}

/* Until version 4 incidents went by name, and so did leaks of one stack. */
UNIT(sites_of_one_stack_become_one)
{
	struct testing_world world;
	struct testing_told told;
	const struct store_filter freed_twice = {.kind = "double_free"}, leaked = {.kind = "leak"};

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 3);
	testing_put_leak(&world, 1, "weights");
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world);
	testing_close(&world);
	make_version_4(&world);
	/* What one line did under two names was two sites each. */
	testing_sql(&world, "UPDATE sites SET stack = '', name = 'kv cache'"
			    " WHERE kind = 'double_free'");
	testing_sql(&world, "UPDATE sites SET stack = 'a.c:3:h @ app' WHERE kind = 'leak'");
	testing_sql(&world, "INSERT INTO sites(kind, type, uid, comm, name, phase, stack, count,"
			    " bytes, buffers, first_ns, last_ns) SELECT kind, type, uid, comm,"
			    " 'other', phase, stack, 5, bytes, buffers, first_ns, last_ns + 1"
			    " FROM sites");
	testing_sql(&world, "INSERT INTO incidents SELECT id + 100, (SELECT max(s.id) FROM sites AS"
			    " s WHERE s.kind = 'double_free'), process, time_ns, last_ns, device,"
			    " device_uid, address, size, largest_free, count, first_ns,"
			    " first_thread, first_size, first_name, first_phase, first_stack,"
			    " second_ns, second_thread, second_size, second_name, second_phase,"
			    " second_stack FROM incidents WHERE site = (SELECT min(s.id) FROM sites"
			    " AS s WHERE s.kind = 'double_free')");
	testing_sql(&world, "UPDATE leak_sites SET site = (SELECT max(id) FROM sites WHERE"
			    " kind = 'leak') WHERE leak = 2");

	testing_open(&world);
	put_double_free(&world, 3); /* the same as before */
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 0);
	told = testing_told_incidents(&world, &freed_twice);
	assert(told.incidents == 1 && told.incident.site.count == 8 && !told.incident.site.name);
	told = testing_told_incidents(&world, &leaked);
	assert(told.incidents == 1 && told.incident.site.count == 7);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 2 && told.parts == 2 && told.part.name_count == 0);
	assert(strcmp(told.part.name, "weights") == 0);
	put_double_free(&world, 4);
	testing_flush(&world);
	told = testing_told_incidents(&world, &freed_twice);
	assert(told.incidents == 1 && told.incident.site.count == 9);
	testing_close(&world);
}
