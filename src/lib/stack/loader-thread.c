/* SPDX-License-Identifier: Apache-2.0 */

/* Runs a function in a helper thread and waits for it with a time-out. */

#include "lib/stack/loader-thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOADER_THREAD_NAP_NS 200000
#define LOADER_THREAD_NAPS 5000 /* at least 1 s; loading takes less unless something blocks it */

static bool loader_thread_was_left;
static pid_t loader_thread_loader; /* the process that loaded this library */

static void loader_thread_forked(void)
{
#if !defined(__SANITIZE_THREAD__)
	if (!__libc_single_threaded)
		loader_thread_was_left = true;
#endif /* TSan has a thread of its own in every process, which never calls the loader */
}

/* At load time: a fork may precede the first call. Early: other constructors may call us. */
static __attribute__((constructor(101))) void loader_thread_watch(void)
{
	loader_thread_loader = getpid();
	(void)pthread_atfork(NULL, NULL, loader_thread_forked); /* fails only without memory */
}

bool loader_thread_is_orphan(void)
{
	return loader_thread_was_left;
}

/*
 * __libc_single_threaded may be false although there is only one thread: after a second thread has
 * ended, or in the libc of a separate namespace (dlmopen()). The first libc does not know threads
 * created by such a second libc, so it would release the loader's lock without waking them. The
 * kernel knows: the folder has one link per thread plus its own two. It does not know of threads
 * that a forked child has lost.
 */
bool loader_thread_is_alone(void)
{
	int saved_errno = errno;
	struct stat folder;
	bool is_alone = __libc_single_threaded;

	if (!is_alone)
		is_alone = loader_thread_loader == getpid() &&
			   stat("/proc/self/task", &folder) == 0 && folder.st_nlink == 3;
	errno = saved_errno;
	return is_alone;
}

static void *loader_thread_thread(void *context)
{
	struct loader_thread *loader_thread = context;

	loader_thread->function();
	/* Release: a waiter that sees the flag also sees what the function did. */
	__atomic_store_n(&loader_thread->is_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool loader_thread_wait(const struct loader_thread *loader_thread)
{
	static const struct timespec nap = {.tv_nsec = LOADER_THREAD_NAP_NS};

	for (int i = 0; i < LOADER_THREAD_NAPS; i++) {
		if (__atomic_load_n(&loader_thread->is_done, __ATOMIC_ACQUIRE))
			return true;
		(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL); /* or less */
	}
	return false;
}

bool loader_thread_run(struct loader_thread *loader_thread, void (*function)(void))
{
	pthread_t thread;

	if (loader_thread_is_alone()) {
		function();
		return true;
	}
	*loader_thread = (struct loader_thread){.function = function};
	/* It inherits our signal mask, which blocks everything but faults. */
	if (pthread_create(&thread, NULL, loader_thread_thread, loader_thread) != 0)
		return false;
	if (loader_thread_wait(loader_thread)) {
		(void)pthread_join(thread, NULL); /* has finished */
		return true;
	}
	(void)pthread_detach(thread); /* valid: just created */
	return false;
}
