/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an event costs. In an emulator time means nothing, but with "-icount shift=0" its clock counts
 * instructions, the kernel's among them: then the same events on a memfd and on the kernel's book must take
 * as many, with stacks and without. And no system call; the plain ioctls, which have no stacks, take one each.
 */

#include "node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/testing/unit.h"

#define COST_WARM 20000 /* more than a ring holds: then nothing grows any more */
#define COST_EVENTS 128
#define COST_MANY 20000
#define COST_COUNTED \
	"ttmem_icount" /* on the kernel's command line: its clock counts instructions */

static void cost_book_events(int node, uint64_t count)
{
	for (uint64_t i = 0; i < count; i += 2) {
		ttmem_alloc(0, TTMEM_DRAM, 4096, 64, NULL);
		ttmem_free(0, TTMEM_DRAM, 4096);
	}
}

static void cost_plain_events(int node, uint64_t count)
{
	for (uint64_t i = 0; i < count; i += 2) {
		assert(node_alloc(node, 0, 0, 4096, 64) == 1);
		assert(node_free(node, 0, 0, 4096) == 0);
	}
}

typedef void cost_fn(int node, uint64_t count);

static void cost_no_events(int node, uint64_t count)
{
}

static void cost_set(const char *kernel, const char *stacks)
{
	/* NOLINTBEGIN(concurrency-mt-unsafe): a child alone */
	setenv("TTMEM", "1", 1);
	setenv("TTMEM_SOCKET", "none", 1);
	setenv("TTMEM_KERNEL", kernel, 1);
	setenv("TTMEM_STACKS", stacks, 1);
	/* NOLINTEND(concurrency-mt-unsafe) */
}

/*
 * Warms up, and then does as much as is to be counted between two stops, until it is killed. All from the
 * same place: at another the first event has a stack that is not known yet.
 */
static _Noreturn void cost_run(cost_fn *events)
{
	int node = node_open();

	assert(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	for (uint64_t count = COST_WARM;; count = COST_EVENTS) {
		events(node, count);
		raise(SIGSTOP);
	}
}

/* System calls of so many events, and of two halves of raise(). */
static uint64_t cost_system_calls(cost_fn *events, const char *kernel, const char *stacks)
{
	pid_t child = fork();
	uint64_t stops = 0;
	int status;

	assert(child >= 0);
	if (child == 0) {
		cost_set(kernel, stacks);
		cost_run(events);
	}
	assert(waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == SIGSTOP);
	for (;;) {
		assert(ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0);
		assert(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		assert(WSTOPSIG(status) == SIGTRAP);
		stops++;
	}
	assert(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	return stops / 2; /* one when it is entered, one when it is left */
}

UNIT_LONG(an_event_in_a_book_costs_no_system_call, 240)
{
	static const char *const stacks[] = {"off", "auto"};
	uint64_t none = cost_system_calls(cost_no_events, "1", "off");
	uint64_t plain = cost_system_calls(cost_plain_events, "1", "off");

	printf("system calls of %d events and a signal: none %llu, plain %llu\n", COST_EVENTS,
	       (unsigned long long)none, (unsigned long long)plain);
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		uint64_t memfd = cost_system_calls(cost_book_events, "0", stacks[i]);
		uint64_t kernel = cost_system_calls(cost_book_events, "1", stacks[i]);

		printf("stacks %s: memfd %llu, kernel's book %llu\n", stacks[i],
		       (unsigned long long)memfd, (unsigned long long)kernel);
		fflush(stdout);
		assert(memfd == none && kernel == none);
	}
	assert(plain == none + COST_EVENTS);
}

/* Nanoseconds of an event by the machine's clock. */
static uint64_t cost_by_clock(cost_fn *events, const char *kernel, const char *stacks)
{
	int answer[2];
	uint64_t ns;
	pid_t child;
	int status;

	assert(pipe2(answer, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		struct timespec from, to;
		int node = node_open();

		cost_set(kernel, stacks);
		events(node, COST_WARM);
		clock_gettime(CLOCK_MONOTONIC, &from);
		events(node, COST_MANY);
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec);
		_exit(write(answer[1], &ns, sizeof(ns)) == sizeof(ns) ? 0 : 1);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	assert(read(answer[0], &ns, sizeof(ns)) == sizeof(ns));
	close(answer[0]);
	close(answer[1]);
	return ns / COST_MANY;
}

/* Return: of an event in the kernel's book, which must be as many as in a memfd. */
static uint64_t cost_compare(const char *stacks, bool counted)
{
	uint64_t memfd = cost_by_clock(cost_book_events, "0", stacks);
	uint64_t kernel = cost_by_clock(cost_book_events, "1", stacks);
	uint64_t more = kernel > memfd ? kernel - memfd : memfd - kernel;

	printf("stacks %s: memfd %llu, kernel's book %llu\n", stacks, (unsigned long long)memfd,
	       (unsigned long long)kernel);
	fflush(stdout);
	/* Interrupts fall where they fall. */
	assert(!counted || more * 50 <= memfd + 50);
	return kernel;
}

UNIT_LONG(the_hot_path_is_the_same, 240)
{
	bool counted = strstr(node_text("/proc/cmdline"), COST_COUNTED) != NULL;
	uint64_t plain = cost_by_clock(cost_plain_events, "1", "off");
	uint64_t kernel;

	printf("%s of an event: plain ioctl %llu\n",
	       counted ? "instructions" : "nanoseconds (which mean nothing)",
	       (unsigned long long)plain);
	kernel = cost_compare("off", counted);
	(void)cost_compare("auto", counted); /* more than without, and than the ioctl */
	if (!counted)
		unit_skip("this machine's clock does not count instructions");
	assert(plain > kernel);
}
