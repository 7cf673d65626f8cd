/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an event costs, in instructions: in an emulator time means nothing, but single steps can be counted.
 * The same events on a memfd and on the kernel's book must take as many, and no system call; the plain
 * ioctls take one system call each.
 */

#include "node.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/unit.h"

#define COST_WARM 1024
#define COST_EVENTS 16 /* each step is two system calls and a switch, in an emulator */

struct cost {
	uint64_t instructions;
	uint64_t system_calls;
};

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

/* Warms up, and then does as much as is to be counted between two stops. */
static _Noreturn void cost_run(cost_fn *events, const char *kernel)
{
	int node = node_open();

	/* NOLINTBEGIN(concurrency-mt-unsafe): a child alone */
	setenv("TTMEM", "1", 1);
	setenv("TTMEM_SOCKET", "none", 1);
	setenv("TTMEM_KERNEL", kernel, 1);
	/* NOLINTEND(concurrency-mt-unsafe) */
	events(node, COST_WARM);
	assert(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	raise(SIGSTOP);
	events(node, COST_EVENTS);
	raise(SIGSTOP);
	_exit(0);
}

#if defined(__x86_64__)
static bool cost_is_system_call(pid_t pid)
{
	struct user_regs_struct registers;
	long word;

	assert(ptrace(PTRACE_GETREGS, pid, NULL, &registers) == 0);
	word = ptrace(PTRACE_PEEKTEXT, pid, (void *)registers.rip, NULL);
	return (word & 0xffff) == 0x050f;
}
#else
static bool cost_is_system_call(pid_t pid)
{
	return false;
}
#endif

static struct cost cost_measure(cost_fn *events, const char *kernel)
{
	struct cost cost = {0};
	pid_t child = fork();
	int status;

	assert(child >= 0);
	if (child == 0)
		cost_run(events, kernel);
	assert(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	for (;;) {
		bool calls = cost_is_system_call(child);

		assert(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
		assert(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		cost.instructions++;
		cost.system_calls += calls;
	}
	assert(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
	assert(waitpid(child, &status, 0) == child && status == 0);
	return cost;
}

UNIT_LONG(the_hot_path_is_the_same, 240)
{
	struct cost memfd = cost_measure(cost_book_events, "0");
	struct cost kernel = cost_measure(cost_book_events, "1");
	struct cost plain = cost_measure(cost_plain_events, "1");
	uint64_t more = kernel.instructions > memfd.instructions
				? kernel.instructions - memfd.instructions
				: memfd.instructions - kernel.instructions;

	/* Those of the second raise() are in all of them. */
	printf("instructions of %d events: memfd %llu, kernel's book %llu, plain ioctls %llu\n",
	       COST_EVENTS, (unsigned long long)memfd.instructions,
	       (unsigned long long)kernel.instructions, (unsigned long long)plain.instructions);
	printf("system calls: %llu, %llu, %llu\n", (unsigned long long)memfd.system_calls,
	       (unsigned long long)kernel.system_calls, (unsigned long long)plain.system_calls);
	/* Reading a clock may take another turn when the kernel sets it meanwhile. */
	assert(more * 100 <= memfd.instructions);
#if defined(__x86_64__)
	assert(kernel.system_calls == memfd.system_calls);
	assert(plain.system_calls == kernel.system_calls + COST_EVENTS);
#endif
}

/* Under "qemu -icount shift=0" a nanosecond is an instruction, the kernel's own among them. */
UNIT(by_the_clock)
{
	static const struct {
		const char *name;
		cost_fn *events;
		const char *kernel;
	} ways[] = {
		{"memfd", cost_book_events, "0"},
		{"kernel's book", cost_book_events, "1"},
		{"plain ioctls", cost_plain_events, "1"},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		pid_t child = fork();
		int status;

		assert(child >= 0);
		if (child == 0) {
			struct timespec from, to;
			int node = node_open();

			/* NOLINTBEGIN(concurrency-mt-unsafe): a child alone */
			setenv("TTMEM", "1", 1);
			setenv("TTMEM_SOCKET", "none", 1);
			setenv("TTMEM_KERNEL", ways[i].kernel, 1);
			/* NOLINTEND(concurrency-mt-unsafe) */
			ways[i].events(node, COST_WARM);
			clock_gettime(CLOCK_MONOTONIC, &from);
			ways[i].events(node, 20000);
			clock_gettime(CLOCK_MONOTONIC, &to);
			printf("%s: %lld ns for an event, by the machine's clock\n", ways[i].name,
			       ((long long)(to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec -
				from.tv_nsec) /
				       20000);
			fflush(stdout);
			_exit(0);
		}
		assert(waitpid(child, &status, 0) == child && status == 0);
	}
}
