/* SPDX-License-Identifier: Apache-2.0 */

/* A command without memory cleans up and ends. */

#include "cli/common/must.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "base/testing/unit.h"
#include "cli/common/command.h"

#define TOO_MUCH (SIZE_MAX / 2)

static void alloc(void)
{
	(void)must_alloc(1, TOO_MUCH);
}

static void grow(void)
{
	size_t capacity = 0;
	char *array = NULL;

	must_grow(array, &capacity, TOO_MUCH);
}

static void lack(void)
{
	(void)must_not_lack(-ENOMEM);
}

static void mark(void *context)
{
	assert(write(*(const int *)context, "!", 1) == 1);
}

static void leave(void *context)
{
	_exit(*(const int *)context);
}

/* @expected: what is said, then a "!" if it was cleaned up. Return: exit code. */
static int end(void (*fn)(void), void (*clean_up)(void *context), void *context,
	       const char *expected)
{
	char said[64] = "";
	int fds[2], status;
	size_t length = 0;
	ssize_t n;
	pid_t pid;

	assert(pipe2(fds, O_CLOEXEC) == 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		must_name("test");
		must_clean_up(clean_up, context);
		fn();
		_exit(99);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + length, sizeof(said) - 1 - length)) > 0)
		length += (size_t)n;
	close(fds[0]);
	assert(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	assert(strcmp(said, expected) == 0);
	return WEXITSTATUS(status);
}

UNIT(a_command_without_memory_fails_and_says_why)
{
	assert(end(lack, NULL, NULL, "ttmem test: out of memory\n") == COMMAND_FAILED);
}

UNIT(an_allocation_that_fails_ends_it)
{
#ifdef __SANITIZE_ADDRESS__
	unit_skip("ASan itself ends a program that asks for too much");
#endif
	assert(end(alloc, NULL, NULL, "ttmem test: out of memory\n") == COMMAND_FAILED);
	assert(end(grow, NULL, NULL, "ttmem test: out of memory\n") == COMMAND_FAILED);
}

UNIT(it_cleans_up_before)
{
	int out = STDERR_FILENO;

	assert(end(lack, mark, &out, "ttmem test: out of memory\n!") == COMMAND_FAILED);
}

UNIT(what_cleans_up_may_choose_the_exit_code)
{
	int code = 7;

	assert(end(lack, leave, &code, "ttmem test: out of memory\n") == 7);
}

UNIT(other_failures_and_memory_are_passed_on)
{
	struct map map = MAP_NULL;
	size_t capacity = 0;
	int *numbers = NULL;
	char *copy = must_copy("text");

	assert(must_not_lack(-ENOENT) == -ENOENT && must_not_lack(0) == 0);
	assert(strcmp(copy, "text") == 0);
	must_grow(numbers, &capacity, 0);
	must_grow(numbers, &capacity, 2);
	assert(numbers && capacity >= 2);
	assert(must_number(&map, 1, 2) == 1 && must_number(&map, 3, 4) == 2);
	assert(must_number(&map, 1, 2) == 1);
	map_deinit(&map);
	free(numbers);
	free(copy);
}
