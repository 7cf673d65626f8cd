/* SPDX-License-Identifier: Apache-2.0 */

/* A file of version 3 is converted when it is opened, with everything that it had. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "store/store-testing-rows.h"
#include "store/store-testing.h"

enum {
	DRAM = 0,
	BUFFERS = 3000, /* more than a chunk */
};

/* Makes the file what version 3 would have written; @rows for each leak. */
static void make_old(const struct testing_world *world, unsigned int rows)
{
	char insert[1024];

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
	testing_sql(world, "DROP TABLE owners");
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
	assert(testing_sql(&world, "SELECT version FROM schema") == 5);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 3 && told.parts == 3 && told.buffers == 2 * BUFFERS + 1);
	assert(told.leak.process.pid == 1 && told.leak.listed == BUFFERS);
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
UNIT(the_version_before_is_converted)
{
	struct testing_world world;
	const uint32_t mine = 1000, other = 1001;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	testing_close(&world);
	testing_sql(&world, "DROP TABLE owners");
	testing_sql(&world, "UPDATE schema SET version = 4");
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

UNIT(an_older_report_without_its_list_stays_without)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	testing_close(&world);
	make_old(&world, 1);
	testing_sql(&world, "DELETE FROM leak_buffers");
	testing_open(&world);
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 2 && told.leak.process.pid == 1 && told.leak.buffers == 1);
	assert(told.buffers == 1 && told.leak.listed == 0 && !told.part.phases);
	testing_close(&world);
}

/* What is not an older file of ours, whatever its number says, is set aside as before. */
UNIT(an_older_database_that_cannot_be_converted_is_set_aside)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	testing_close(&world);
	make_old(&world, 1);
	testing_sql(&world, "DROP TABLE leak_buffers");
	testing_open(&world);
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 1 && testing_count_leaks(&world) == 1);
	testing_close(&world);
}
