/* SPDX-License-Identifier: Apache-2.0 */

/* A process is looked at once, and every further question has the same answer. */

#include "source/proc/pid-cache.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"

struct world {
	struct proc proc;
	struct snapshot *snapshot;
	struct pid_cache *cache;
	uint32_t child; /* waits to be killed */
};

static void begin(struct world *world)
{
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	world->child = (uint32_t)pid;
	assert(proc_open(&world->proc) == 0);
	world->snapshot = snapshot_new(1);
	assert(world->snapshot);
	assert(pid_cache_new(&world->cache, &world->proc, world->snapshot) == 0);
}

static void kill_child(const struct world *world)
{
	assert(kill((pid_t)world->child, SIGKILL) == 0);
	assert(waitpid((pid_t)world->child, NULL, 0) == (pid_t)world->child);
}

static void end(struct world *world)
{
	pid_cache_free(world->cache);
	snapshot_free(world->snapshot);
	proc_close(&world->proc);
}

static int find(const struct world *world, uint32_t pid)
{
	struct snapshot_process process = {.id.pid = 1};
	struct proc_facts facts = {.id.pid = 1};
	int r = pid_cache_find(world->cache, pid, &facts, &process);

	/* A failure leaves them as they are. */
	assert(facts.id.pid == (r == 0 ? pid : 1) && process.id.pid == facts.id.pid);
	assert(r < 0 || (process.alive && process.id.start_ticks == facts.id.start_ticks));
	return r;
}

UNIT(a_process_is_found_as_often_as_it_is_asked_for)
{
	struct world world;

	begin(&world);
	for (int i = 0; i < 3; i++)
		assert(find(&world, world.child) == 0);
	kill_child(&world);
	/* Within one reading it stays what it was. */
	assert(find(&world, world.child) == 0);
	end(&world);
	begin(&world);
	kill_child(&world);
	for (int i = 0; i < 3; i++)
		assert(find(&world, world.child) == -ESRCH);
	end(&world);
}

UNIT(we_are_not_shown_and_others_stay_apart)
{
	struct world world;

	begin(&world);
	for (int i = 0; i < 3; i++) {
		assert(find(&world, (uint32_t)getpid()) == -ESRCH);
		assert(find(&world, world.child) == 0);
		assert(find(&world, 0) == -ESRCH);
		assert(find(&world, (uint32_t)getppid()) == 0);
	}
	kill_child(&world);
	end(&world);
}

UNIT(mappings_are_read_once_for_all_files)
{
	struct proc_file files[2] = {{0}, {0}};
	struct world world;
	struct stat program;

	begin(&world);
	assert(stat("/proc/self/exe", &program) == 0);
	files[1].device = program.st_dev;
	files[1].inode = program.st_ino;
	pid_cache_set_files(world.cache, files, 2);
	for (int i = 0; i < 2; i++) {
		assert(pid_cache_has_mapped(world.cache, world.child, 0) == 0);
		assert(pid_cache_has_mapped(world.cache, world.child, 1) == 1);
		assert(pid_cache_has_mapped(world.cache, (uint32_t)getpid(), 1) == -ESRCH);
	}
	kill_child(&world);
	assert(pid_cache_has_mapped(world.cache, world.child, 1) == 1);
	assert(pid_cache_unread(world.cache) == 0);
	end(&world);
}
