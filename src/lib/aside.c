/* SPDX-License-Identifier: Apache-2.0 */

/* A thread, and the patience for it. The header tells what for. */

#include "lib/aside.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ASIDE_NAP_NS 200000
#define ASIDE_NAPS 5000 /* 1 s and more; longer than a file takes that is nobody's hostage */

#define ASIDE_TEXT 1024u
#define ASIDE_FLAGS 7       /* spaces between the name and the flags */
#define ASIDE_FORKED 0x40ul /* since the fork there was no exec */

bool aside_is_alone(void)
{
	return __libc_single_threaded;
}

/* Not open() and read(), which are points at which a thread may be cancelled. */
bool aside_is_forked(void)
{
	char text[ASIDE_TEXT];
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
	long n = fd >= 0 ? syscall(SYS_read, fd, text, sizeof(text) - 1) : -1;
	const char *at;

	if (fd >= 0)
		(void)syscall(SYS_close, fd); /* only read from */
	if (n <= 0)
		return true;
	text[n] = '\0';
	at = strrchr(text, ')'); /* a name may have anything in it */
	for (int i = 0; at && i < ASIDE_FLAGS; i++)
		at = strchr(at + 1, ' ');
	return !at || strtoul(at, NULL, 10) & ASIDE_FORKED;
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
