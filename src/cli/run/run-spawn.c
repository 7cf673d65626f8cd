/* SPDX-License-Identifier: Apache-2.0 */

/* Starts a command; a pipe that closes on exec tells whether it could be run. */

#include "cli/run/run-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/child.h"
#include "cli/run/run-shim.h"
#include "wire/offer.h"

#define SPAWN_VALUE_MAX 16384 /* room for a few paths of maximum length */

/* Our socket first, then as many outer ones as the library uses. */
static int spawn_offer_value(const char *offer, char *value, size_t size)
{
	const char *outer = getenv("TTMEM_OFFER");
	int length = snprintf(value, size, "%s", offer);

	for (unsigned int i = 1; i < OFFER_SOCKETS_MAX && outer && *outer; i++) {
		size_t one = strcspn(outer, ":");

		if (length >= 0 && (size_t)length < size)
			length += snprintf(value + length, size - (size_t)length, ":%.*s", (int)one,
					   outer);
		outer += one;
		outer += *outer == ':';
	}
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

/* Sets the child's environment. */
static int spawn_tell(const char *offer, const char *shim)
{
	char value[SPAWN_VALUE_MAX];
	int r;

	if (setenv("TTMEM_OFFER", offer, 1) < 0 || setenv("TTMEM", "1", 1) < 0)
		return -errno;
	if (!shim)
		return 0;
	r = shim_preload(shim, value, sizeof(value));
	if (r < 0)
		return r;
	if (setenv("LD_PRELOAD", value, 1) < 0)
		return -errno;
	/* Without it stacks have no lines of Python; the rest is the same. */
	if (shim_python(value, sizeof(value)) == 0 && setenv("PYTHONPATH", value, 1) < 0)
		return -errno;
	return 0;
}

/* In the child. Returns only if the command cannot be run. */
static int spawn_become(const char *const *argv, const char *offer, const char *shim,
			const sigset_t *mask, const struct rlimit *files)
{
	int r;

	(void)setrlimit(RLIMIT_NOFILE, files); /* never raises it */
	if (sigprocmask(SIG_SETMASK, mask, NULL) < 0)
		return -errno;
	r = spawn_tell(offer, shim);
	if (r < 0)
		return r;
	/* exec does not modify its arguments, although its prototype lacks the const. */
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	return -errno;
}

pid_t spawn_tracked(const char *const *argv, const char *offer, const char *shim,
		    const sigset_t *mask, const struct rlimit *files)
{
	CLEANUP_CLOSE int reading = -1;
	CLEANUP_CLOSE int writing = -1;
	char value[512];
	int ends[2], r;
	ssize_t n;
	pid_t pid;

	r = spawn_offer_value(offer, value, sizeof(value));
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	reading = ends[0];
	writing = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		r = spawn_become(argv, value, shim, mask, files);
		n = write(writing, &r, sizeof(r));
		_exit(n == sizeof(r) ? 127 : 126);
	}
	(void)close(cleanup_steal_fd(&writing)); /* the child has its own */
	do {
		n = read(reading, &r, sizeof(r));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(r))
		return pid;    /* closed by exec */
	(void)child_reap(pid); /* its status tells us nothing new */
	return r;
}
