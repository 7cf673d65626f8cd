/* SPDX-License-Identifier: Apache-2.0 */

/* Shared by the tests of the store. */

#include "store/testing/store-testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

static void testing_clock(void *context, struct store_now *ret_now)
{
	const struct testing_world *world = context;

	ret_now->real_ns = __atomic_load_n(&world->real_ns, __ATOMIC_SEQ_CST);
	ret_now->boot_ns = __atomic_load_n(&world->boot_ns, __ATOMIC_SEQ_CST);
}

static void testing_busy(void *context)
{
	const struct testing_world *world = context;
	struct timespec wait = {.tv_nsec = 1000000};

	while (__atomic_load_n(&world->held, __ATOMIC_SEQ_CST))
		nanosleep(&wait, NULL);
}

static int testing_fail(void *context, enum store_step step)
{
	struct testing_world *world = context;

	if (__atomic_load_n(&world->fault_times, __ATOMIC_SEQ_CST) <= 0 ||
	    __atomic_load_n(&world->fault_step, __ATOMIC_SEQ_CST) != (int)step)
		return 0;
	__atomic_sub_fetch(&world->fault_times, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&world->fault, __ATOMIC_SEQ_CST);
}

void testing_init(struct testing_world *world)
{
	*world = (struct testing_world){
		.real_ns = TESTING_START,
		.boot_ns = 1000 * TESTING_S,
	};
	snprintf(world->folder, sizeof(world->folder), "%s/state", unit_dir());
	world->config = (struct store_config){
		.folder = world->folder,
		.batch_ms = 20,
		.retry_ms = 50,
		.hooks = {.context = world,
			  .clock = testing_clock,
			  .busy = testing_busy,
			  .fault = testing_fail},
	};
}

void testing_open(struct testing_world *world)
{
	assert(store_open(&world->config, &world->store) == 0);
}

void testing_close(struct testing_world *world)
{
	world->store = store_close(world->store);
}

void testing_reopen(struct testing_world *world)
{
	testing_close(world);
	testing_open(world);
}

void testing_flush(struct testing_world *world)
{
	assert(store_flush(world->store, TESTING_WAIT_MS) == 0);
}

void testing_pass(struct testing_world *world, uint64_t ns)
{
	__atomic_add_fetch(&world->boot_ns, ns, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&world->real_ns, ns, __ATOMIC_SEQ_CST);
}

void testing_set_clock(struct testing_world *world, uint64_t real_ns)
{
	__atomic_store_n(&world->real_ns, real_ns, __ATOMIC_SEQ_CST);
}

void testing_hold(struct testing_world *world, bool held)
{
	__atomic_store_n(&world->held, held, __ATOMIC_SEQ_CST);
}

void testing_fault(struct testing_world *world, enum store_step step, int code, int times)
{
	__atomic_store_n(&world->fault, code, __ATOMIC_SEQ_CST);
	__atomic_store_n(&world->fault_step, (int)step, __ATOMIC_SEQ_CST);
	__atomic_store_n(&world->fault_times, times, __ATOMIC_SEQ_CST);
}

struct store_health testing_health(struct testing_world *world)
{
	struct store_health health;

	store_health(world->store, &health);
	return health;
}

void testing_sleep(long ms)
{
	struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&wait, NULL);
}

void testing_wait(struct testing_world *world, bool running)
{
	while (testing_health(world).running != running)
		testing_sleep(10);
}

void testing_write(const char *path, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert(fd >= 0 && write(fd, bytes, length) == (ssize_t)length && close(fd) == 0);
}

const char *testing_path(const struct testing_world *world, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", world->folder, name);
	return path;
}

unsigned int testing_count_aside(const struct testing_world *world)
{
	DIR *listing = opendir(world->folder);
	unsigned int count = 0;
	struct dirent *entry;

	assert(listing);
	while ((entry = readdir(listing))) { /* NOLINT(concurrency-mt-unsafe) */
		size_t length = strlen(entry->d_name);

		if (strncmp(entry->d_name, STORE_FILE ".", strlen(STORE_FILE ".")) == 0 &&
		    strcmp(entry->d_name + length - 4, "-wal") != 0 &&
		    strcmp(entry->d_name + length - 4, "-shm") != 0)
			count++;
	}
	closedir(listing);
	return count;
}

int64_t testing_sql(const struct testing_world *world, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t number = -1;
	sqlite3 *db;
	int r;

	assert(sqlite3_open_v2(testing_path(world, STORE_FILE), &db, SQLITE_OPEN_READWRITE, NULL) ==
	       SQLITE_OK);
	assert(sqlite3_busy_timeout(db, (int)TESTING_WAIT_MS) == SQLITE_OK);
	r = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if (r != SQLITE_OK)
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
	assert(r == SQLITE_OK);
	while ((r = sqlite3_step(statement)) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	assert(r == SQLITE_DONE);
	assert(sqlite3_finalize(statement) == SQLITE_OK);
	assert(sqlite3_close(db) == SQLITE_OK);
	return number;
}

struct snapshot *testing_snapshot(uint64_t time_ns)
{
	struct snapshot *snapshot = snapshot_new(time_ns);

	assert(snapshot);
	return snapshot;
}

uint32_t testing_process(struct snapshot *snapshot, uint32_t pid, const char *comm)
{
	struct snapshot_process process = {
		.id.pid = pid,
		.ns_pid = pid + 1,
		.id.start_ticks = pid * UINT64_C(100),
		.start_ns = TESTING_START - 100 * TESTING_S,
		.comm = comm,
		.user = "me",
		.user_id = 1000,
		.maker_id = 1000,
		.namespaces = "",
		.source = "book",
		.alive = true,
		.exact = true,
	};
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, 0);
	assert(part);
	part->facts.unique_id = 0xabc;
	return index;
}

void testing_memory(struct snapshot *snapshot, uint32_t process, uint32_t device, uint32_t type,
		    uint64_t used, uint64_t buffers)
{
	struct snapshot_part *part = snapshot_part(snapshot, process, device);

	assert(part);
	part->memory[type] = (struct snapshot_memory){
		.used = used,
		.buffers = buffers,
		.peak = used,
		.allocs = buffers + 1,
	};
}

void testing_buffer(struct snapshot *snapshot, uint32_t process, uint8_t type, uint64_t address,
		    const char *name, const char *phase)
{
	struct snapshot_buffer buffer = {
		.process = process,
		.type = type,
		.address = address,
		.size = 4096,
		.born_ns = snapshot->time_ns - TESTING_S,
		.name = name ? snapshot_text(snapshot, name, strlen(name)) : NULL,
		.phase = phase ? snapshot_text(snapshot, phase, strlen(phase)) : NULL,
		.thread = 7,
		.refs = 1,
	};

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

void testing_set_user(struct snapshot *snapshot, uint32_t process, uint32_t uid)
{
	snapshot->processes[process].user_id = uid;
	snapshot->processes[process].maker_id = uid;
}

static bool testing_may_see(const void *context, uint32_t uid, const char *namespaces)
{
	const uint32_t *mine = context;

	return uid == *mine && !*namespaces;
}

struct store_sees testing_sees(const uint32_t *uid)
{
	return (struct store_sees){.context = uid, .may_see = testing_may_see};
}

void testing_put_leak(struct testing_world *world, uint32_t pid, const char *name)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");
	struct ending ending = {.book = pid, .ended_ns = world->real_ns};

	testing_buffer(snapshot, process, 0, 0x1000, name, NULL);
	store_put_leak(world->store, snapshot, process, &ending);
	snapshot_free(snapshot);
}

static int testing_count_leak(void *context, const struct store_leak *leak)
{
	(*(uint64_t *)context)++;
	return 0;
}

uint64_t testing_count_leaks(struct testing_world *world)
{
	struct store_filter filter = {0};
	struct store_reader *reader;
	struct store_cursor next;
	uint64_t count = 0;
	struct store_leak_rows rows = {.context = &count, .leak = testing_count_leak};

	assert(store_reader_open(world->store, &reader) == 0);
	do {
		assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
		filter.after = next;
	} while (next.more);
	store_reader_close(reader);
	return count;
}

static int testing_count_site(void *context, const struct store_incident *incident)
{
	(*(uint64_t *)context)++;
	return 0;
}

uint64_t testing_count_sites(struct testing_world *world)
{
	struct store_filter filter = {0};
	struct store_reader *reader;
	struct store_cursor next;
	uint64_t count = 0;
	struct store_incident_rows rows = {.context = &count, .incident = testing_count_site};

	assert(store_reader_open(world->store, &reader) == 0);
	do {
		assert(store_query_incidents(reader, &filter, &rows, &next) == 0);
		filter.after = next;
	} while (next.more);
	store_reader_close(reader);
	return count;
}
