/* SPDX-License-Identifier: Apache-2.0 */

/* The texts, and real namespaces that children make. */

#include "source/proc/namespaces.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

/* A process in namespaces of its own, and the pipe that ends it. */
struct guest {
	pid_t outer; /* which made the namespaces */
	pid_t inner; /* the first process of the pid namespace, or the same */
	int end;
};

/* Waits until @end is closed. */
static void wait_for_end(int end)
{
	char byte;

	_exit(read(end, &byte, 1) == 0 ? 0 : 1);
}

static void guest_child(int flags, int report, int end)
{
	pid_t inner = getpid();

	if (unshare(flags) < 0)
		_exit(77);
	if (flags & CLONE_NEWPID) {
		inner = fork();
		if (inner == 0)
			wait_for_end(end);
	}
	if (write(report, &inner, sizeof(inner)) != sizeof(inner))
		_exit(1);
	wait_for_end(end);
}

static struct guest guest_new(int flags)
{
	struct guest guest;
	int report[2], end[2];

	if (geteuid() != 0)
		unit_skip("only root can make namespaces everywhere");
	assert(pipe2(report, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
	guest.outer = fork();
	assert(guest.outer >= 0);
	if (guest.outer == 0) {
		(void)close(end[1]);
		guest_child(flags, report[1], end[0]);
	}
	(void)close(report[1]);
	(void)close(end[0]);
	guest.end = end[1];
	if (read(report[0], &guest.inner, sizeof(guest.inner)) != sizeof(guest.inner))
		unit_skip("no such namespaces here");
	(void)close(report[0]);
	return guest;
}

static void guest_end(struct guest *guest)
{
	(void)close(guest->end);
	assert(waitpid(guest->outer, NULL, 0) == guest->outer);
}

UNIT(our_own_process_is_here)
{
	struct namespaces namespaces;
	char text[NAMESPACES_SIZE];

	assert(namespaces_init(&namespaces) == 0);
	namespaces_read(&namespaces, (uint32_t)getpid(), text);
	assert(strcmp(text, "") == 0);
	assert(namespaces_has_our_users(text) && namespaces_has_our_pids(text));
	namespaces_deinit(&namespaces);
}

UNIT(a_process_that_is_not_there_is_nowhere)
{
	struct namespaces namespaces;
	char text[NAMESPACES_SIZE];

	assert(namespaces_init(&namespaces) == 0);
	namespaces_read(&namespaces, UINT32_C(2147483646), text);
	assert(strcmp(text, NAMESPACES_UNKNOWN) == 0);
	namespaces_deinit(&namespaces);
}

UNIT(a_pid_namespace_is_named_with_the_start_of_its_first_process)
{
	struct namespaces namespaces;
	struct guest guest = guest_new(CLONE_NEWPID);
	char text[NAMESPACES_SIZE], wanted[NAMESPACES_SIZE], path[64];
	struct stat st;

	assert(namespaces_init(&namespaces) == 0);
	namespaces_read(&namespaces, (uint32_t)guest.inner, text);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", guest.inner);
	assert(stat(path, &st) == 0);
	snprintf(wanted, sizeof(wanted), "|%s/%ju.%" PRIu64, namespaces.boot, (uintmax_t)st.st_ino,
		 proc_start_ticks(&namespaces.proc, (uint32_t)guest.inner));
	assert(strcmp(text, wanted) == 0);
	assert(namespaces_has_our_users(text) && !namespaces_has_our_pids(text));
	guest_end(&guest);
	namespaces_deinit(&namespaces);
}

UNIT(a_user_namespace_is_not_ours_and_its_root_is_not_ours)
{
	struct namespaces namespaces;
	struct guest guest = guest_new(CLONE_NEWUSER);
	char text[NAMESPACES_SIZE], path[64];
	FILE *map;

	assert(namespaces_init(&namespaces) == 0);
	namespaces_read(&namespaces, (uint32_t)guest.inner, text);
	assert(!namespaces_has_our_users(text) && namespaces_has_our_pids(text));
	assert(!namespaces_is_root(&namespaces, (uint32_t)guest.inner, 1234));
	snprintf(path, sizeof(path), "/proc/%d/uid_map", guest.inner);
	map = fopen(path, "we");
	assert(map && fputs("0 1234 10", map) >= 0 && fclose(map) == 0);
	assert(namespaces_is_root(&namespaces, (uint32_t)guest.inner, 1234));
	assert(!namespaces_is_root(&namespaces, (uint32_t)guest.inner, 1235));
	assert(!namespaces_is_root(&namespaces, (uint32_t)guest.inner, 0));
	guest_end(&guest);
	namespaces_deinit(&namespaces);
}

UNIT(two_containers_are_two)
{
	struct namespaces namespaces;
	struct guest one = guest_new(CLONE_NEWPID), other = guest_new(CLONE_NEWPID);
	char first[NAMESPACES_SIZE], second[NAMESPACES_SIZE];

	assert(namespaces_init(&namespaces) == 0);
	namespaces_read(&namespaces, (uint32_t)one.inner, first);
	namespaces_read(&namespaces, (uint32_t)other.inner, second);
	assert(!namespaces_is_same(first, second));
	assert(!namespaces_is_within(first, second) && !namespaces_is_within(second, first));
	assert(namespaces_is_within("", first) && namespaces_is_same(first, first));
	guest_end(&other); /* first: it has the end of the other's pipe as well */
	guest_end(&one);
	namespaces_deinit(&namespaces);
}

UNIT(what_is_unknown_is_not_even_itself)
{
	assert(!namespaces_is_same("?", "?") && !namespaces_is_same(NULL, NULL));
	assert(!namespaces_is_within("?", "?") && !namespaces_is_within("", "?"));
	assert(!namespaces_is_within("?", "") && !namespaces_is_within("", NULL));
	assert(!namespaces_has_our_users("?") && !namespaces_has_our_pids("?"));
	assert(!namespaces_has_our_users(NULL) && !namespaces_has_our_pids(NULL));
}

UNIT(below_means_both)
{
	assert(namespaces_is_within("|b/1.5", "|b/1.5") &&
	       namespaces_is_within("|b/1.5", "|b/1.5/2.7"));
	assert(namespaces_is_within("|b/1.5", "b/9|b/1.5/2.7"));
	/* Neither above, nor beside, nor one whose name begins in the same way. */
	assert(!namespaces_is_within("|b/1.5", "") && !namespaces_is_within("|b/1.5", "|b/2.5"));
	assert(!namespaces_is_within("|b/1.5", "|b/1.55") &&
	       !namespaces_is_within("|b/1.5", "|b/1"));
	/* Root of a user namespace alone is root of nothing outside it. */
	assert(!namespaces_is_within("b/9|", "") && !namespaces_is_within("b/9|", "|b/1.5"));
	assert(namespaces_is_within("b/9|", "b/9|") &&
	       namespaces_is_within("b/9|", "b/9/10|b/1.5"));
	/* What is not below ours is below nothing of ours. */
	assert(!namespaces_is_within("", "b^3|") && !namespaces_is_within("|", "|b^3"));
	assert(namespaces_is_within("b^3|", "b^3|"));
}
