/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The child stops itself with SIGSTOP before an action that is to be stepped, and sets a word in
 * shared memory when the action is over; so nothing here depends on the processor.
 */

#include "book/testing/testing-step.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define TESTING_NO_PTRACE 77 /* the child's exit status */

void *testing_stepper_share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert(memory != MAP_FAILED);
	return memory;
}

static _Noreturn void testing_stepper_child(struct testing_stepper *stepper)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(TESTING_NO_PTRACE);
	raise(SIGSTOP);
	for (uint32_t i = 0; i < stepper->count; i++) {
		bool walked = stepper->ops->is_walked(stepper, i);

		stepper->shared->at = i;
		if (walked)
			raise(SIGSTOP);
		stepper->ops->act(stepper, i);
		stepper->shared->done = i + 1;
		if (stepper->ops->note)
			stepper->ops->note(stepper, i);
	}
	_exit(0);
}

/* Waits for the child's next stop. Return: whether it still lives; if so, @signal stopped it. */
static bool testing_stepper_wait(struct testing_stepper *stepper, int signal)
{
	int status;

	do {
		if (waitpid(stepper->pid, &status, __WALL) == stepper->pid)
			break;
		assert(errno == EINTR);
	} while (true);
	if (WIFEXITED(status) && WEXITSTATUS(status) == TESTING_NO_PTRACE)
		unit_skip("ptrace is not allowed here");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != signal)
		printf("the child's status is %#x in action %u\n", (unsigned int)status,
		       stepper->shared->at);
	assert(WIFSTOPPED(status) && WSTOPSIG(status) == signal);
	return true;
}

void testing_stepper_start(struct testing_stepper *stepper)
{
	stepper->shared = testing_stepper_share(sizeof(*stepper->shared));
	stepper->pid = fork();
	assert(stepper->pid >= 0);
	if (stepper->pid == 0)
		testing_stepper_child(stepper);
	if (!testing_stepper_wait(stepper, SIGSTOP))
		unit_skip("the child ended before it was traced");
	if (ptrace(PTRACE_SETOPTIONS, stepper->pid, NULL, (void *)PTRACE_O_EXITKILL) < 0)
		unit_skip("ptrace does not work here");
}

bool testing_stepper_next(struct testing_stepper *stepper, uint32_t *ret_i)
{
	assert(ptrace(PTRACE_CONT, stepper->pid, NULL, NULL) == 0);
	if (!testing_stepper_wait(stepper, SIGSTOP)) {
		munmap(stepper->shared, sizeof(*stepper->shared));
		stepper->shared = NULL;
		return false;
	}
	*ret_i = stepper->shared->at;
	return true;
}

void testing_stepper_walk(struct testing_stepper *stepper)
{
	uint32_t i = stepper->shared->at;

	while (stepper->shared->done <= i) {
		assert(ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, NULL) == 0);
		assert(testing_stepper_wait(stepper, SIGTRAP));
		stepper->steps++;
		stepper->ops->check(stepper, i);
	}
}
