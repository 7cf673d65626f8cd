/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks while another thread is inside the loader, perhaps forever. */

#include <ttmem/ttmem.h>

#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

static sem_t loader_entered, loader_may_go;
static int loader_says[2], loader_hears[2]; /* pipes from and to the constructor */

static int loader_callback(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)info;
	(void)size;
	(void)context;
	assert(sem_post(&loader_entered) == 0);
	while (sem_wait(&loader_may_go) < 0)
		;
	return 1;
}

static void *loader_calls_back(void *context)
{
	(void)dl_iterate_phdr(loader_callback, context); /* returns what the callback returned */
	return NULL;
}

/* The library's constructor waits, and constructors run with the loader's lock held. */
static void *loader_loads(void *context)
{
	void *library = calls_load("loader-slow.so");

	assert(library && dlclose(library) == 0);
	return context;
}

/* From here on a thread is inside dlopen() and holds its lock. */
static void loader_enter(pthread_t *ret_thread)
{
	char text[32];

	assert(pipe2(loader_says, O_CLOEXEC) == 0 && pipe2(loader_hears, O_CLOEXEC) == 0);
	(void)snprintf(text, sizeof(text), "%d %d", loader_says[1], loader_hears[0]); /* fits */
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_TEST_LOADER", text, 1) == 0);
	assert(pthread_create(ret_thread, NULL, loader_loads, NULL) == 0);
	assert(read(loader_says[0], text, 1) == 1);
}

static void loader_leave(pthread_t thread)
{
	assert(write(loader_hears[1], "", 1) == 1);
	assert(pthread_join(thread, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		close(loader_says[i]);
		close(loader_hears[i]);
	}
}

static void loader_must_fork(void)
{
	if (OBSERVER_TSAN)
		unit_skip("TSan sees threads in a child that are the parent's");
}

/* The parent has no book, so nothing is known in advance. */
UNIT(a_child_does_not_need_the_lock_of_a_callback)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;
	pthread_t thread;
	pid_t child;

	loader_must_fork();
	calls_start("fp");
	assert(sem_init(&loader_entered, 0, 0) == 0 && sem_init(&loader_may_go, 0, 0) == 0);
	assert(pthread_create(&thread, NULL, loader_calls_back, NULL) == 0);
	while (sem_wait(&loader_entered) < 0)
		;
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		calls_middle(1, &expected);
		calls_read(1, &found);
		calls_check(&found, &expected);
		assert(found.build_id_length > 0 && found.path[0] == '/');
		assert(calls_lost() == 0);
		_exit(0);
	}
	observer_wait(child);
	assert(sem_post(&loader_may_go) == 0 && pthread_join(thread, NULL) == 0);
	unit_expect_fds(0);
}

/* The loader's state is inconsistent in the child, and its lock is held by nobody. */
static void loader_fork_inside(const char *how)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;
	pthread_t thread;
	pid_t child;

	loader_must_fork();
	calls_need_tables();
	calls_start(how);
	loader_enter(&thread);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		calls_middle(1, &expected);
		calls_read(1, &found);
		calls_check(&found, &expected);
		assert(calls_lost() == 0);
		_exit(0);
	}
	observer_wait(child);
	loader_leave(thread);
	unit_expect_fds(0);
}

UNIT(a_child_needs_no_loader_for_tables)
{
	loader_fork_inside("unwind");
}

UNIT(a_child_needs_no_loader_for_auto)
{
	loader_fork_inside("auto");
}

/* The thread inside the loader may be waiting for this one. */
UNIT(an_event_does_not_wait_for_the_loader)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;
	pthread_t thread;

	calls_start_tables("unwind");
	loader_enter(&thread);
	calls_middle(1, &expected);
	calls_read(1, &found);
	calls_check(&found, &expected);
	assert(calls_lost() == 0);
	loader_leave(thread);
}
