/* SPDX-License-Identifier: Apache-2.0 */

/* Fork, vfork, clone, exec: which process does the book belong to? */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

static uint64_t life_bytes(pid_t pid)
{
	uint64_t bytes;
	struct observer w;

	assert(observer_open(&w, pid));
	bytes = observer_hot(&w, 0, TTMEM_DRAM).bytes;
	observer_close(&w);
	return bytes;
}

UNIT(child_has_its_own_book)
{
	pid_t child;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, "parent's");
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		struct observer w;

		assert(observer_count(getpid()) == 0);
		ttmem_free(0, TTMEM_DRAM, 1); /* not its own buffer: an unknown free */
		ttmem_alloc(0, TTMEM_DRAM, 2, 7, "child's");
		assert(observer_count(getpid()) == 1);
		assert(observer_open(&w, getpid()));
		assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == 7);
		assert(w.view.cold[TTMEM_DRAM].unknown_frees == 1);
		assert(observer_row(&w, TTMEM_DRAM, 2)->thread_space == (uint32_t)getpid());
		assert(observer_header(&w)->state == BOOK_STATE_OPEN);
		_exit(0);
	}
	observer_wait(child);
	assert(observer_count(getpid()) == 1 && life_bytes(getpid()) == 100);
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(life_bytes(getpid()) == 0);
}

UNIT(child_of_a_child)
{
	pid_t child;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		/* The second generation has no event of its own before it forks. */
		pid_t grandchild = fork();

		assert(grandchild >= 0);
		if (grandchild == 0) {
			pid_t last;

			ttmem_alloc(0, TTMEM_DRAM, 1, 3, NULL);
			last = fork();
			assert(last >= 0);
			if (last == 0) {
				ttmem_alloc(0, TTMEM_DRAM, 1, 4, NULL);
				assert(life_bytes(getpid()) == 4);
				_exit(0);
			}
			observer_wait(last);
			assert(life_bytes(getpid()) == 3);
			_exit(0);
		}
		observer_wait(grandchild);
		ttmem_alloc(0, TTMEM_DRAM, 1, 2, NULL);
		assert(life_bytes(getpid()) == 2);
		_exit(0);
	}
	observer_wait(child);
	assert(life_bytes(getpid()) == 1);
}

UNIT(fork_before_the_first_event)
{
	pid_t child;

	observer_track();
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 2, NULL);
		assert(life_bytes(getpid()) == 2);
		_exit(0);
	}
	observer_wait(child);
	assert(observer_count(getpid()) == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 3, NULL);
	assert(life_bytes(getpid()) == 3);
}

/* Each process decides for itself: one that is off may have a child that is on. */
UNIT(off_is_not_inherited)
{
	pid_t child;

	observer_untrack();
	ttmem_alloc(0, TTMEM_DRAM, 1, 2, NULL);
	assert(ttmem_enabled() == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		observer_track();
		ttmem_alloc(0, TTMEM_DRAM, 1, 2, NULL);
		assert(ttmem_enabled() == 1 && life_bytes(getpid()) == 2);
		_exit(0);
	}
	observer_wait(child);
}

UNIT(phases_are_inherited_by_name)
{
	struct observer w;
	uint32_t kept;
	pid_t child;

	observer_track();
	assert(setenv("TTMEM_PHASE", "outside", 1) == 0);
	ttmem_phase_push("test");
	ttmem_phase_push("part");
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "so that ids differ %d", i);
		kept = ttmem_intern(name);
	}
	ttmem_phase_push("deep");
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		struct ttmem_alloc_args args = {
			.struct_size = sizeof(args), .address = 9, .size = 1, .name_id = kept};

		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		ttmem_phase_pop();
		ttmem_alloc(0, TTMEM_DRAM, 2, 1, NULL);
		ttmem_phase_push("more");
		ttmem_alloc(0, TTMEM_DRAM, 3, 1, NULL);
		ttmem_phase_pop();
		ttmem_phase_pop();
		ttmem_phase_pop();
		ttmem_alloc(0, TTMEM_DRAM, 4, 1, NULL);
		ttmem_alloc_ex(&args); /* an id of the parent's book: unknown in this one */
		assert(observer_open(&w, getpid()));
		assert(observer_look(&w, 0, VIEW_LIVING));
#define PHASE(n) observer_text(&w, observer_row(&w, TTMEM_DRAM, n)->phase)
		assert(strcmp(PHASE(1), "test/part/deep") == 0);
		assert(strcmp(PHASE(2), "test/part") == 0);
		assert(strcmp(PHASE(3), "test/part/more") == 0);
		assert(strcmp(PHASE(4), "outside") == 0);
		assert(observer_row(&w, TTMEM_DRAM, 9)->name == 0);
		assert(strcmp(observer_text(&w, observer_header(&w)->first_phase), "outside") == 0);
#undef PHASE
		_exit(0);
	}
	observer_wait(child);
	assert(setenv("TTMEM_PHASE", "changed meanwhile", 1) == 0);
	ttmem_phase_process(NULL); /* a child inherits this, not the environment */
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			ttmem_phase_pop();
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		assert(observer_open(&w, getpid()));
		assert(observer_look(&w, 0, VIEW_LIVING));
		assert(observer_row(&w, TTMEM_DRAM, 1)->phase == 0);
		assert(observer_header(&w)->first_phase == 0);
		_exit(0);
	}
	observer_wait(child);
}

UNIT(pauses_are_inherited)
{
	pid_t child;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	ttmem_pause();
	ttmem_pause();
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		struct observer w;

		assert(ttmem_enabled() == 0);
		ttmem_alloc(0, TTMEM_DRAM, 1, 5, NULL);
		ttmem_resume();
		ttmem_alloc(0, TTMEM_DRAM, 1, 5, NULL);
		ttmem_resume();
		ttmem_alloc(0, TTMEM_DRAM, 1, 5, NULL);
		assert(observer_open(&w, getpid()));
		assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == 1);
		assert(observer_header(&w)->rejected.paused == 2);
		_exit(0);
	}
	observer_wait(child);
	assert(ttmem_enabled() == 0);
}

/* A child inherits nothing of its parent's goodbye. */
UNIT(child_of_a_closed_process)
{
	pid_t child;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	ttmem_goodbye();
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		struct observer w;

		ttmem_alloc(0, TTMEM_DRAM, 1, 5, NULL);
		assert(observer_open(&w, getpid()));
		assert(observer_header(&w)->state == BOOK_STATE_OPEN);
		_exit(0);
	}
	observer_wait(child);
}

UNIT(vfork_shares_the_book)
{
	volatile pid_t pid = getpid();
	pid_t child;

	if (OBSERVER_TSAN)
		unit_skip("TSan turns vfork into fork");
	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 10, NULL);
	child = vfork(); /* NOLINT: vfork is what is tested */
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 2, 20, NULL); /* NOLINT */
		ttmem_alloc(1, TTMEM_DRAM, 2, 20, NULL); /* a new shard: the book grows */
		_exit(0);
	}
	observer_wait(child);
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(observer_count(pid) == 1 && life_bytes(pid) == 20);
}

/* The child's events are counted but not recorded; the parent makes the book at its next event. */
UNIT(vfork_child_has_the_first_event)
{
	volatile pid_t pid = getpid();
	struct observer w;
	pid_t child;

	if (OBSERVER_TSAN)
		unit_skip("TSan turns vfork into fork");
	if (syscall(SYS_kcmp, pid, pid, KCMP_VM, 0, 0) != 0)
		unit_skip("no kcmp()");
	observer_track();
	child = vfork(); /* NOLINT: vfork is what is tested */
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 10, NULL); /* NOLINT */
		ttmem_alloc(0, TTMEM_DRAM, 2, 10, NULL);
		_exit(0);
	}
	observer_wait(child);
	assert(observer_count(pid) == 0);
	ttmem_alloc(0, TTMEM_DRAM, 3, 20, NULL);
	assert(observer_count(pid) == 1 && life_bytes(pid) == 20);
	assert(observer_open(&w, pid));
	assert(observer_header(&w)->rejected.lock == 2);
	observer_close(&w);
}

static int life_copy_body(void *context)
{
	ttmem_alloc(0, TTMEM_DRAM, 2, 20, NULL);
	return life_bytes(getpid()) == 20 ? 0 : 1;
}

/* libc does not notice such a child, although it has a copy of the memory. */
UNIT(clone_with_a_copy_of_the_memory_has_its_own_book)
{
	char *stack =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (OBSERVER_TSAN || OBSERVER_ASAN)
		unit_skip("sanitizers do not know such a child's stack");
	assert(stack != MAP_FAILED);
	observer_track();
	child = clone(life_copy_body, stack + (1 << 20), SIGCHLD, NULL);
	observer_wait(child);
	ttmem_alloc(0, TTMEM_DRAM, 1, 10, NULL);
	assert(observer_count(getpid()) == 1 && life_bytes(getpid()) == 10);
}

static int life_clone_body(void *context)
{
	ttmem_alloc(0, TTMEM_DRAM, 2, 20, NULL);
	for (uint64_t i = 0; i < 10000; i++)
		ttmem_alloc(0, TTMEM_DRAM, 100 + i, 1, NULL);
	return 0;
}

UNIT(clone_with_shared_memory_shares_the_book)
{
	char *stack =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (OBSERVER_TSAN || OBSERVER_ASAN)
		unit_skip("sanitizers do not know such a child's stack");
	assert(stack != MAP_FAILED);
	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 10, NULL);
	/* CLONE_VFORK: both share the thread's local storage, so only one may run. */
	child = clone(life_clone_body, stack + (1 << 20), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	observer_wait(child);
	assert(observer_count(getpid()) == 1 && life_bytes(getpid()) == 10030);
}

UNIT(posix_spawn_and_exec)
{
	char sh[] = "sh", option[] = "-c", script[] = "sleep 0.2; exec sleep 30";
	char *argv[] = {sh, option, script, NULL};
	pid_t child, spawned;
	int ready[2];
	char byte;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 10, NULL);
	assert(posix_spawnp(&spawned, "sh", NULL, NULL, argv, environ) == 0);
	assert(pipe2(ready, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 20, NULL);
		assert(life_bytes(getpid()) == 20);
		execlp("sleep", "sleep", "30", NULL);
		_exit(1);
	}
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 0); /* the exec has closed it */
	/* None of our descriptors survived the spawn or the exec. */
	assert(observer_count(child) == 0 && observer_count(spawned) == 0);
	assert(life_bytes(getpid()) == 10);
	kill(child, SIGKILL);
	kill(spawned, SIGKILL);
	assert(waitpid(child, NULL, 0) == child && waitpid(spawned, NULL, 0) == spawned);
	close(ready[0]);
}

/* daemon(3) forks, ends the parent and closes none of our descriptors; so does a double fork. */
UNIT(daemonized_children_have_their_own_book)
{
	uint64_t *seen =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	assert(seen != MAP_FAILED);
	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 10, "before");
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 20, "in between");
		assert(daemon(0, 0) == 0);
		ttmem_alloc(0, TTMEM_DRAM, 1, 30, "daemon's");
		__atomic_store_n(seen, life_bytes(getpid()), __ATOMIC_RELEASE);
		_exit(0);
	}
	observer_wait(child);
	for (int i = 0; i < 1000 && !__atomic_load_n(seen, __ATOMIC_ACQUIRE); i++)
		usleep(10000);
	assert(*seen == 30);
	assert(life_bytes(getpid()) == 10);
}

/* Whoever holds the file can read a book's last state, however its owner ended. */
UNIT(killed_and_still_readable)
{
	int ready[2], fd = -1;
	struct observer w;
	char byte;
	pid_t child;

	observer_track();
	unit_expect_fds(0);
	assert(pipe2(ready, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 20, "left behind");
		assert(write(ready[1], "", 1) == 1);
		for (uint64_t i = 2;; i++) {
			ttmem_alloc(0, TTMEM_L1, i, 1, NULL);
			ttmem_free(0, TTMEM_L1, i);
		}
	}
	assert(read(ready[0], &byte, 1) == 1);
	assert(observer_open(&w, child));
	fd = fcntl(w.fd, F_DUPFD_CLOEXEC, 0);
	observer_close(&w);
	kill(child, SIGKILL);
	assert(waitpid(child, NULL, 0) == child);
	observer_open_fd(&w, fd);
	assert(observer_look(&w, 0, VIEW_DEAD));
	assert(w.view.hot[TTMEM_DRAM].bytes == 20 && w.view.adds_up);
	assert(w.view.hot[TTMEM_L1].allocs - w.view.hot[TTMEM_L1].frees ==
	       w.view.hot[TTMEM_L1].buffers);
	assert(observer_header(&w)->state == BOOK_STATE_OPEN);
	observer_close(&w);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}
