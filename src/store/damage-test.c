/* SPDX-License-Identifier: Apache-2.0 */

/* Damaged files: they are set aside, the reason is reported once, and a new file takes over. */

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "store/testing/store-testing.h"

/* A world whose file contains 500 leaks and is closed. */
static void make_history(struct testing_world *world)
{
	testing_init(world);
	testing_open(world);
	for (uint32_t pid = 1; pid <= 500; pid++)
		testing_put_leak(world, pid, "weights");
	testing_flush(world);
	assert(testing_count_leaks(world) == 500);
	testing_close(world);
}

/* The file is unusable: it is set aside, that is reported once, and a new file takes over. */
static void check_set_aside(struct testing_world *world, const char *reason)
{
	struct store_health health;

	testing_open(world);
	testing_put_leak(world, 1000, "weights");
	testing_flush(world);
	health = testing_health(world);
	fprintf(stderr, "%s\n", health.reason);
	assert(health.running && health.set_aside == 1 && health.reasons == 1);
	assert(strstr(health.reason, reason) &&
	       strstr(health.reason, "set aside as history.db.2023"));
	assert(testing_count_aside(world) == 1);
	assert(testing_count_leaks(world) == 1);
	testing_reopen(world);
	testing_flush(world);
	assert(testing_count_leaks(world) == 1 && testing_health(world).reasons == 0);
	testing_close(world);
}

UNIT(a_garbage_database_is_set_aside)
{
	struct testing_world world;
	unsigned char bytes[8192];

	testing_init(&world);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 + 3);
	assert(mkdir(world.folder, 0700) == 0);
	testing_write(testing_path(&world, STORE_FILE), bytes, sizeof(bytes));
	check_set_aside(&world, "not a database");
}

UNIT(a_database_cut_in_the_middle_is_set_aside)
{
	struct testing_world world;
	struct stat st;

	make_history(&world);
	assert(stat(testing_path(&world, STORE_FILE), &st) == 0);
	assert(truncate(testing_path(&world, STORE_FILE), st.st_size / 2) == 0);
	check_set_aside(&world, "");
}

UNIT(a_database_cut_within_a_page_is_set_aside)
{
	struct testing_world world;

	make_history(&world);
	assert(truncate(testing_path(&world, STORE_FILE), 5000) == 0);
	check_set_aside(&world, "");
}

UNIT(an_empty_database_file_is_filled)
{
	struct testing_world world;

	make_history(&world);
	assert(truncate(testing_path(&world, STORE_FILE), 0) == 0);
	testing_open(&world);
	testing_put_leak(&world, 1000, "weights");
	testing_flush(&world);
	assert(testing_health(&world).reasons == 0 && testing_count_leaks(&world) == 1);
	testing_close(&world);
}

UNIT(a_database_with_overwritten_pages_is_set_aside)
{
	struct testing_world world;
	struct stat st;
	int fd;

	make_history(&world);
	assert(stat(testing_path(&world, STORE_FILE), &st) == 0);
	fd = open(testing_path(&world, STORE_FILE), O_WRONLY | O_CLOEXEC);
	assert(fd >= 0);
	/* All but the first pages, so that it still looks like a database. */
	for (off_t at = 12 * 4096; at < st.st_size; at += 512)
		assert(pwrite(fd, "damaged by somebody", 19, at) == 19);
	close(fd);
	check_set_aside(&world, "");
}

UNIT(a_database_of_a_later_version_is_set_aside)
{
	struct testing_world world;

	make_history(&world);
	testing_sql(&world, "UPDATE schema SET version = 99");
	check_set_aside(&world, "later version");
}

UNIT(a_database_of_an_earlier_version_is_set_aside)
{
	struct testing_world world;

	make_history(&world);
	testing_sql(&world, "UPDATE schema SET version = 0");
	check_set_aside(&world, "earlier version");
}

UNIT(a_database_with_foreign_tables_is_set_aside)
{
	struct testing_world world;
	sqlite3 *db;

	testing_init(&world);
	assert(mkdir(world.folder, 0700) == 0);
	assert(sqlite3_open(testing_path(&world, STORE_FILE), &db) == SQLITE_OK);
	assert(sqlite3_exec(db, "CREATE TABLE bookmarks(url)", NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	check_set_aside(&world, "another program");
}

UNIT(a_database_without_a_table_is_set_aside)
{
	struct testing_world world;

	make_history(&world);
	testing_sql(&world, "DROP TABLE leak_chunks");
	check_set_aside(&world, "no such table");
}

UNIT(a_folder_in_place_of_the_database_is_set_aside)
{
	struct testing_world world;
	char inside[512];

	testing_init(&world);
	assert(mkdir(world.folder, 0700) == 0);
	assert(mkdir(testing_path(&world, STORE_FILE), 0700) == 0);
	snprintf(inside, sizeof(inside), "%s/file", testing_path(&world, STORE_FILE));
	testing_write(inside, "x", 1);
	check_set_aside(&world, "not a regular file");
}

UNIT(a_folder_in_place_of_the_log)
{
	struct testing_world world;

	make_history(&world);
	assert(mkdir(testing_path(&world, STORE_FILE "-wal"), 0700) == 0);
	check_set_aside(&world, "");
}

UNIT(a_link_to_elsewhere_is_not_followed)
{
	struct testing_world world;
	char elsewhere[512];

	testing_init(&world);
	assert(mkdir(world.folder, 0700) == 0);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", unit_dir());
	testing_write(elsewhere, "precious", 8);
	assert(symlink(elsewhere, testing_path(&world, STORE_FILE)) == 0);
	check_set_aside(&world, "not a regular file");
	assert(access(elsewhere, F_OK) == 0);
}

UNIT(at_most_three_are_kept)
{
	struct testing_world world;

	testing_init(&world);
	assert(mkdir(world.folder, 0700) == 0);
	for (int i = 0; i < 6; i++) {
		testing_write(testing_path(&world, STORE_FILE), "no database at all, certainly",
			      29);
		testing_open(&world);
		testing_put_leak(&world, 1, "weights");
		testing_flush(&world);
		assert(testing_health(&world).set_aside == 1);
		testing_close(&world);
		testing_pass(&world, i % 2 ? TESTING_S : 0);
	}
	assert(testing_count_aside(&world) == 3);
}

/* Damage that appears only while the store is running, at every step, of every kind. */
UNIT(damage_while_running_is_set_aside)
{
	static const int codes[] = {SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_IOERR_WRITE,
				    SQLITE_IOERR_FSYNC};
	static const enum store_step steps[] = {STORE_STEP_ITEM, STORE_STEP_COMMIT,
						STORE_STEP_KEEP};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
			struct testing_world world;
			struct store_health health;

			testing_init(&world);
			snprintf(world.folder, sizeof(world.folder), "%s/%zu-%zu", unit_dir(), i,
				 k);
			world.config.batch_ms = 3600000; /* only explicit flushes write */
			testing_open(&world);
			testing_put_leak(&world, 1, "before");
			testing_flush(&world);
			testing_fault(&world, steps[k], codes[i], 1);
			testing_put_leak(&world, 2, "during");
			testing_flush(&world);
			testing_put_leak(&world, 3, "after");
			testing_flush(&world);
			health = testing_health(&world);
			assert(health.running && health.set_aside == 1 && health.reasons == 1);
			assert(health.dropped_records == 0 && health.refused == 0);
			/*
			 * What failed is written to the new file; what was written before is not.
			 * STORE_STEP_KEEP runs before and after writing.
			 */
			assert(testing_count_leaks(&world) == 2 ||
			       (testing_count_leaks(&world) == 1 && steps[k] == STORE_STEP_KEEP));
			testing_close(&world);
		}
	}
}

/* A disk that accepts no writes at all must not push out files that were set aside before. */
UNIT(damage_that_does_not_end)
{
	struct testing_world world;
	struct store_health health;

	make_history(&world);
	testing_open(&world);
	testing_fault(&world, STORE_STEP_COMMIT, SQLITE_IOERR_WRITE, 1000000);
	for (uint32_t pid = 1000; pid < 1020; pid++) {
		testing_put_leak(&world, pid, "weights");
		(void)store_flush(world.store, TESTING_WAIT_MS); /* fails, as expected */
	}
	health = testing_health(&world);
	assert(health.set_aside == 1 && health.reasons <= 2);
	assert(testing_count_aside(&world) == 1);
	testing_fault(&world, STORE_STEP_COMMIT, 0, 0);
	testing_put_leak(&world, 2000, "weights");
	testing_wait(&world, true);
	testing_flush(&world);
	assert(testing_count_leaks(&world) >= 1);
	testing_close(&world);
}

UNIT(a_reader_that_finds_damage_tells_the_writer)
{
	struct testing_world world;
	struct store_filter filter = {0};
	struct store_leak_rows rows = {0};
	struct store_reader *reader;
	struct store_cursor next;
	struct stat st;
	int fd, r = 0;

	make_history(&world);
	world.config.batch_ms = 3600000;
	testing_open(&world);
	testing_flush(&world);
	testing_wait(&world, true);
	/* Behind the store's back, after the check. */
	fd = open(testing_path(&world, STORE_FILE), O_WRONLY | O_CLOEXEC);
	assert(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 2 * 4096; at < st.st_size; at += 512)
		assert(pwrite(fd, "damaged by somebody", 19, at) == 19);
	close(fd);
	assert(store_reader_open(world.store, &reader) == 0);
	r = store_query_leaks(reader, &filter, &rows, &next);
	assert(r == -EIO);
	testing_put_leak(&world, 1000, "weights");
	testing_flush(&world);
	assert(testing_health(&world).set_aside == 1);
	/* The same reader continues with the new file. */
	assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
	assert(testing_count_leaks(&world) == 1);
	store_reader_close(reader);
	testing_close(&world);
}

UNIT(removed_while_running)
{
	struct testing_world world;
	struct store_reader *reader;
	struct store_filter filter = {0};
	struct store_leak_rows rows = {0};
	struct store_cursor next;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	assert(store_reader_open(world.store, &reader) == 0);
	assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
	assert(unlink(testing_path(&world, STORE_FILE)) == 0);
	(void)unlink(testing_path(&world, STORE_FILE "-wal"));
	testing_pass(&world, 20 * TESTING_S);
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world); /* into either file */
	testing_put_leak(&world, 3, "weights");
	testing_flush(&world);
	assert(strstr(testing_health(&world).reason, "no longer the file"));
	assert(testing_count_leaks(&world) >= 1 && testing_health(&world).running);
	assert(access(testing_path(&world, STORE_FILE), F_OK) == 0);
	assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
	store_reader_close(reader);
	testing_close(&world);
}

UNIT(a_database_locked_by_another_process_is_waited_for)
{
	struct testing_world world;
	sqlite3 *db;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	/* The writer waits for five seconds, and tries again. */
	assert(sqlite3_open(testing_path(&world, STORE_FILE), &db) == SQLITE_OK);
	assert(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
	testing_put_leak(&world, 2, "weights");
	assert(store_flush(world.store, TESTING_WAIT_MS) == -EAGAIN);
	assert(!testing_health(&world).running && testing_health(&world).set_aside == 0);
	assert(testing_count_leaks(&world) == 1); /* reading is not affected */
	assert(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	testing_wait(&world, true);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 2 && testing_health(&world).reasons == 1);
	testing_close(&world);
}

/* One item of a kind, with all that it may have. */
static void put_sample(struct testing_world *world)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);

	testing_memory(snapshot, testing_process(snapshot, 7, "train"), 0, 0, 100, 1);
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world->store, snapshot);
	snapshot_free(snapshot);
}

static void put_failure(struct testing_world *world)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, 7, "train");
	const struct snapshot_incident incident = {.kind = "alloc_failed",
						   .process = process,
						   .size = 1 << 20,
						   .count = 1,
						   .time_ns = world->real_ns};

	testing_memory(snapshot, process, 0, 0, 4096, 1);
	assert(snapshot_finish(snapshot) == 0);
	testing_buffer(snapshot, process, 0, 0x1000, "weights", NULL);
	store_put_failure(world->store, snapshot, &incident);
	snapshot_free(snapshot);
}

static void put_leak(struct testing_world *world)
{
	testing_put_leak(world, 7, "weights");
}

static void put_ending(struct testing_world *world)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	const struct ending ending = {.book = 7, .ended_ns = world->real_ns, .closed = true};

	store_put_ending(world->store, snapshot, testing_process(snapshot, 7, "train"), &ending);
	snapshot_free(snapshot);
}

/* Somebody removes a table: whatever is written next says so, and is not just half of what it was. */
UNIT(a_statement_that_fails_is_not_passed_over)
{
	static const struct {
		const char *tables[8]; /* that it reads or writes */
		void (*put)(struct testing_world *world);
	} kinds[] = {
		{{"processes", "series", "points_1", "rolling"}, put_sample},
		{{"processes", "sites", "seen", "incidents", "holders", "held"}, put_failure},
		{{"processes", "sites", "incidents", "leaks", "leak_sites", "leak_chunks"},
		 put_leak},
		{{"processes", "endings"}, put_ending},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (const char *const *table = kinds[i].tables; *table; table++) {
			struct testing_world world;
			struct store_health health;
			char sql[64];

			testing_init(&world);
			snprintf(world.folder, sizeof(world.folder), "%s/%zu-%s", unit_dir(), i,
				 *table);
			world.config.batch_ms = 3600000; /* only explicit flushes write */
			testing_open(&world);
			testing_put_leak(&world, 1, "before");
			testing_flush(&world);
			snprintf(sql, sizeof(sql), "DROP TABLE %s", *table);
			testing_sql(&world, sql);
			kinds[i].put(&world);
			testing_flush(&world);
			health = testing_health(&world);
			assert(health.refused + health.set_aside == 1 && health.reasons == 1);
			assert(strstr(health.reason, "no such table") &&
			       strstr(health.reason, *table));
			testing_close(&world);
		}
	}
}
