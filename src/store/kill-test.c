/* SPDX-License-Identifier: Apache-2.0 */

/*
 * kill -9 at any time: the file is intact, and what was written is there. A child writes and
 * publishes in shared memory what the store has acknowledged; the parent kills it, opens the file
 * and checks.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "store/testing/store-testing.h"

#define ROUNDS 60
#define LONGEST_US 60000 /* of a child; enough for some hundred batches */

struct acknowledged {
	uint32_t leaks;   /* pids 1 to here are in the file */
	uint32_t samples; /* seconds since TESTING_START */
};

static void put_sample(struct testing_world *world, uint64_t second)
{
	struct snapshot *snapshot = testing_snapshot(TESTING_START + second * TESTING_S);
	uint32_t process = testing_process(snapshot, 42, "train");

	testing_memory(snapshot, process, 0, 0, second + 1, 1);
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world->store, snapshot);
	snapshot_free(snapshot);
}

static _Noreturn void write_until_killed(struct testing_world *world, struct acknowledged *done)
{
	testing_open(world);
	for (;;) {
		uint32_t leaks = done->leaks, samples = done->samples;

		/* With more, the first ones would be deleted. */
		if (leaks > STORE_LEAKS_MAX - 10)
			continue;
		for (uint32_t i = 1; i <= 3; i++)
			testing_put_leak(world, leaks + i, i == 3 ? "one" : "two");
		put_sample(world, samples);
		testing_flush(world);
		/* Release pairs with the kill: the parent reads after the child has ended. */
		__atomic_store_n(&done->samples, samples + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&done->leaks, leaks + 3, __ATOMIC_RELEASE);
	}
}

static int find_pid(void *context, const struct store_leak *leak)
{
	unsigned char *seen = context;

	assert(leak->buffers == 1);
	seen[leak->process.id.pid]++;
	return 0;
}

static void check(struct testing_world *world, const struct acknowledged *done)
{
	unsigned char *seen = calloc(done->leaks + 100, 1);
	struct store_leak_rows rows = {.context = seen, .leak = find_pid};
	struct store_filter filter = {0};
	struct store_reader *reader;
	struct store_cursor next;

	assert(seen);
	testing_open(world);
	testing_flush(world);
	while (!testing_health(world).running)
		usleep(1000);
	assert(testing_health(world).reasons == 0 && testing_health(world).set_aside == 0);
	assert(store_reader_open(world->store, &reader) == 0);
	do {
		assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
		filter.after = next;
	} while (next.more);
	for (uint32_t pid = 1; pid <= done->leaks; pid++) {
		if (seen[pid] != 1)
			fprintf(stderr, "pid %u of %u: %u times\n", pid, done->leaks, seen[pid]);
		assert(seen[pid] == 1);
	}
	store_reader_close(reader);
	testing_close(world);

	assert(testing_sql(world, "SELECT count(*) FROM pragma_integrity_check"
				  " WHERE integrity_check = 'ok'") == 1);
	assert(testing_sql(world, "SELECT count(*) FROM points_1 WHERE series ="
				  " (SELECT id FROM series WHERE process = 0)") >= done->samples);
	free(seen);
}

UNIT(a_store_killed_at_any_instant_keeps_what_was_written)
{
	struct testing_world world;
	struct acknowledged *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t random = 88172645463325252u;

	assert(done != MAP_FAILED);
	testing_init(&world);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t child = fork();
		int status;

		assert(child >= 0);
		if (child == 0)
			write_until_killed(&world, done);
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		usleep((useconds_t)(random % LONGEST_US));
		assert(kill(child, SIGKILL) == 0);
		assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
		check(&world, done);
	}
	fprintf(stderr, "%u leaks and %u moments over %d kills\n", done->leaks, done->samples,
		ROUNDS);
	assert(done->leaks > 0);
	munmap(done, sizeof(*done));
}
