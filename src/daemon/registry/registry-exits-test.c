/* SPDX-License-Identifier: Apache-2.0 */

/* Whose exit an event of the connector is, with real processes; and when that is not certain. */

#include "daemon/registry/registry-exits.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "daemon/registry/registry-private.h"
#include "daemon/registry/tracked.h"
#include "source/proc/exit-events.h"

/* A registry with one owner, who waits until @hold is closed and then exits with 3. */
struct world {
	struct registry registry;
	struct registry_entry entry, *entries[1];
	struct tracked tracked;
	pid_t pid;
	int pid_fd, hold;
};

static pid_t start(int *ret_hold)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		(void)close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 0 ? 3 : 99);
	}
	(void)close(ends[0]);
	*ret_hold = ends[1];
	return pid;
}

/* Or ends the case: only root in the initial namespaces hears of exits. */
static void world_open(struct world *world)
{
	char target[64] = "";

	*world = (struct world){.registry = {.exits = {.fd = -1}}};
	if (readlink("/proc/self/ns/pid", target, sizeof(target) - 1) < 0 ||
	    strcmp(target, "pid:[4026531836]") != 0)
		unit_skip("the connector is for the initial pid namespace");
	world->registry.exits.fd = exit_events_open();
	if (world->registry.exits.fd < 0)
		unit_skip("the connector is not there, or needs CAP_NET_ADMIN");
	world->pid = start(&world->hold);
	world->pid_fd = (int)syscall(SYS_pidfd_open, world->pid, 0);
	assert(world->pid_fd >= 0);
	world->tracked.process.pid = (uint32_t)world->pid;
	world->entry.tracked = &world->tracked;
	world->entries[0] = &world->entry;
	world->registry.entries = world->entries;
}

static void world_add(struct world *world)
{
	registry_exits_begin(&world->registry, &world->entry, world->pid_fd);
	world->registry.count = 1;
}

static void world_end(struct world *world)
{
	(void)close(world->hold);
	assert(waitpid(world->pid, NULL, 0) == world->pid);
}

static void world_close(struct world *world)
{
	(void)close(world->pid_fd);
	(void)close(world->registry.exits.fd);
}

UNIT(an_owner_that_was_waited_for_has_its_status)
{
	struct world world;
	struct ending ending = {0};

	world_open(&world);
	world_add(&world);
	registry_exits_find(&world.registry, &world.entry, &ending);
	assert(!ending.has_status); /* it lives */
	world_end(&world);
	registry_exits_find(&world.registry, &world.entry, &ending);
	assert(ending.has_status && WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 3);
	world_close(&world);
}

UNIT(after_a_loss_nothing_is_certain)
{
	const int room = 1;
	struct world world;
	struct ending ending = {0};

	world_open(&world);
	world_add(&world);
	world_end(&world);
	assert(setsockopt(world.registry.exits.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) ==
	       0);
	for (unsigned int i = 0; i < 64; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		assert(waitpid(pid, NULL, 0) == pid);
	}
	registry_exits_find(&world.registry, &world.entry, &ending);
	assert(!ending.has_status);
	assert(world.registry.exits_lost > 0);
	world_close(&world);
}

UNIT(the_exit_of_one_that_was_added_too_late_may_be_another_s)
{
	struct world world;
	struct ending ending = {0};

	world_open(&world);
	world_end(&world);
	world_add(&world);
	/* As if another process had got its pid meanwhile, and exited. */
	world.entry.told.has_status = true;
	registry_exits_find(&world.registry, &world.entry, &ending);
	assert(!ending.has_status);
	world_close(&world);
}
