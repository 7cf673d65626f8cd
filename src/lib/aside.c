/* SPDX-License-Identifier: Apache-2.0 */

/* A thread, and the patience for it. The header tells what for. */

#include "lib/aside.h"

#include <errno.h>
#include <pthread.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ASIDE_NAP_NS 200000
#define ASIDE_NAPS 5000 /* 1 s and more; longer than a file takes that is nobody's hostage */

static bool aside_was_left;
static pid_t aside_loader; /* the process that has loaded us */

static void aside_forked(void)
{
#if !defined(__SANITIZE_THREAD__)
	if (!__libc_single_threaded)
		aside_was_left = true;
#endif /* TSan has a thread of its own in every process, which asks the loader for nothing */
}

/* At load time: a fork may come before the first call. Early: others' constructors may make calls. */
static __attribute__((constructor(101))) void aside_watch(void)
{
	aside_loader = getpid();
	(void)pthread_atfork(NULL, NULL, aside_forked); /* without memory nobody gets far */
}

bool aside_is_orphan(void)
{
	return aside_was_left;
}

/*
 * libc may say no where it is so: once there was a second thread, or if it is one of a namespace of its own
 * (dlmopen()). A thread that such a libc makes is none that the first one knows of, so this one would free the
 * loader's lock without waking it up. The kernel knows: the folder has a link for each thread beside its own two.
 * It does not know of threads that a forked child has lost.
 */
bool aside_is_alone(void)
{
	int saved_errno = errno;
	struct stat folder;
	bool is_alone = __libc_single_threaded;

	if (!is_alone)
		is_alone = aside_loader == getpid() && stat("/proc/self/task", &folder) == 0 &&
			   folder.st_nlink == 3;
	errno = saved_errno;
	return is_alone;
}

static void *aside_thread(void *context)
{
	struct aside *aside = context;

	aside->function();
	/* Seen by whoever waits: what the function did was before. */
	__atomic_store_n(&aside->is_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool aside_wait(const struct aside *aside)
{
	static const struct timespec nap = {.tv_nsec = ASIDE_NAP_NS};

	for (int i = 0; i < ASIDE_NAPS; i++) {
		if (__atomic_load_n(&aside->is_done, __ATOMIC_ACQUIRE))
			return true;
		(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL); /* or less */
	}
	return false;
}

bool aside_run(struct aside *aside, void (*function)(void))
{
	pthread_t thread;

	if (aside_is_alone()) {
		function();
		return true;
	}
	*aside = (struct aside){.function = function};
	/* It has our signal mask, which is that of a quiet thread. */
	if (pthread_create(&thread, NULL, aside_thread, aside) != 0)
		return false;
	if (aside_wait(aside)) {
		(void)pthread_join(thread, NULL); /* is at its end */
		return true;
	}
	(void)pthread_detach(thread); /* is there */
	return false;
}
