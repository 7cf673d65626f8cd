/* SPDX-License-Identifier: Apache-2.0 */

/* Files of processes are held until they are released, within limits. */

#include "daemon/symbols/symbols-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "symbol/testing/symbol-testing.h"

static struct symbols_files *files;

/* The 22nd field of its stat. */
static uint64_t start_of(pid_t pid)
{
	char path[64], text[1024];
	unsigned long long start;
	FILE *file;
	char *at;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	assert(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	assert(fclose(file) == 0);
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; i < 20; i++)
		at = strchr(at + 1, ' ');
	assert(sscanf(at, " %llu", &start) == 1);
	return start;
}

/* Starts a copy of cat, which waits for its input. */
static pid_t start_cat(const char *path, int *ret_input)
{
	int input[2];
	pid_t pid;

	assert(pipe2(input, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		assert(dup2(input[0], 0) == 0);
		(void)execl(path, path, NULL);
		_exit(1);
	}
	assert(close(input[0]) == 0);
	*ret_input = input[1];
	return pid;
}

static int find(uint64_t book, const char *path, ino_t *ret_inode)
{
	const struct symbolizer_module module = {.book = book, .path = path};
	struct symbolizer_holder *holder = symbols_files_holder(files);
	struct stat file;
	int fd, r = holder->find(holder, &module, &fd);

	if (r < 0)
		return r;
	assert(fstat(fd, &file) == 0 && close(fd) == 0);
	*ret_inode = file.st_ino;
	return 0;
}

/* The program has really been executed once it has its own name. */
static void wait_for_exec(pid_t pid, const char *path)
{
	char link[64], name[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	do {
		n = readlink(link, name, sizeof(name) - 1);
		assert(n > 0);
		name[n] = '\0';
	} while (strcmp(name, path) != 0);
}

UNIT(a_deleted_program_is_held_after_its_process_has_ended)
{
	const char *path = testing_path("app");
	struct symbols_files_owner owner = {.book = 7, .user = 1000};
	struct stat want;
	ino_t inode;
	int input;

	testing_run("cp /bin/cat app");
	assert(stat(path, &want) == 0 && symbols_files_new(&files) == 0);
	owner.process.pid = (uint32_t)start_cat(path, &input);
	wait_for_exec((pid_t)owner.process.pid, path);
	owner.process.start_ticks = start_of((pid_t)owner.process.pid);
	assert(unlink(path) == 0);
	symbols_files_hold(files, &owner);
	assert(find(7, path, &inode) == 0 && inode == want.st_ino);
	assert(close(input) == 0 &&
	       waitpid((pid_t)owner.process.pid, NULL, 0) == (pid_t)owner.process.pid);
	assert(find(7, path, &inode) == 0 && inode == want.st_ino);
	assert(find(8, path, &inode) == -ENOENT && find(7, "/other", &inode) == -ENOENT);
	symbols_files_release(files, 7);
	assert(find(7, path, &inode) == -ENOENT && symbols_files_count(files) == 0);
	/* The number of a process that has ended may be another one's. */
	symbols_files_hold(files, &owner);
	assert(find(7, path, &inode) == -ENOENT && symbols_files_count(files) == 0);
	files = symbols_files_free(files);
}

UNIT(a_process_with_another_start_is_not_looked_into)
{
	struct symbols_files_owner owner = {.book = 7,
					    .process.pid = (uint32_t)getpid(),
					    .process.start_ticks = start_of(getpid()) + 1};
	ino_t inode;

	assert(symbols_files_new(&files) == 0);
	symbols_files_hold(files, &owner);
	assert(find(7, "/proc/self/exe", &inode) == -ENOENT && symbols_files_count(files) == 0);
	owner.process.start_ticks--;
	symbols_files_hold(files, &owner);
	assert(find(7, "/none", &inode) == -ENOENT && symbols_files_count(files) > 0);
	files = symbols_files_free(files);
}

/* As if the process @pid had sent the file. */
static void hold(uint64_t book, uint32_t user, uint32_t pid, const char *path)
{
	const struct symbols_files_owner owner = {.book = book, .user = user, .process.pid = pid};
	int fd = open(path, O_PATH | O_CLOEXEC);

	assert(fd >= 0);
	symbols_files_hold_consume(files, &owner, fd);
}

/* One user's processes cost the files of that user, not those of others. */
UNIT(files_of_one_user_do_not_evict_those_of_others)
{
	struct rlimit limit;
	ino_t inode;

	assert(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur / 8 < SYMBOLS_FILES_MAX)
		unit_skip("too few descriptors are allowed here");
	assert(symbols_files_new(&files) == 0);
	hold(1, 2000, 1, "/bin/sh");
	for (uint32_t i = 2; i < 2 * SYMBOLS_FILES_USER_MAX; i++)
		hold(i, 1000, i, "/etc/passwd");
	assert(symbols_files_count(files) == SYMBOLS_FILES_USER_MAX + 1);
	assert(find(2, "/etc/passwd", &inode) == -ENOENT);
	assert(find(2 * SYMBOLS_FILES_USER_MAX - 1, "/etc/passwd", &inode) == 0);
	/* Many users together are limited as well; who has the most pays. */
	for (uint32_t user = 3000; user < 3000 + SYMBOLS_FILES_MAX - 1; user++) {
		hold(user, user, user, "/etc/passwd");
		assert(find(user, "/etc/passwd", &inode) == 0);
	}
	assert(symbols_files_count(files) == SYMBOLS_FILES_MAX);
	files = symbols_files_free(files);
}

UNIT(files_take_an_eighth_of_the_descriptors_that_are_allowed)
{
	static const struct {
		rlim_t limit;
		uint32_t most;
	} cases[] = {{160, 20}, {167, 20}, {168, 21}, {7, 1}};
	struct rlimit limit;

	assert(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		rlim_t whole = limit.rlim_cur;

		limit.rlim_cur = cases[i].limit;
		assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		assert(symbols_files_new(&files) == 0);
		limit.rlim_cur = whole;
		assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		for (uint32_t user = 1; user <= 2 * cases[i].most; user++)
			hold(user, user, user, "/etc/passwd");
		assert(symbols_files_count(files) == cases[i].most);
		files = symbols_files_free(files);
	}
}

UNIT(files_of_a_process_are_limited_and_held_once)
{
	char name[64];

	assert(symbols_files_new(&files) == 0);
	for (int i = 0; i < 2; i++)
		hold(1, 1000, 7, "/etc/passwd");
	assert(symbols_files_count(files) == 1);
	for (uint32_t i = 0; i < 2 * SYMBOLS_FILES_PROCESS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "file-%u", i);
		testing_write(name, "x", 1);
		hold(i, 1000, 7, testing_path(name));
	}
	assert(symbols_files_count(files) == SYMBOLS_FILES_PROCESS_MAX);
	files = symbols_files_free(files);
}

/* What a process sends may be anything. */
UNIT(only_paths_are_taken_from_a_process)
{
	const struct symbols_files_owner owner = {.book = 1, .user = 1000, .process.pid = 7};
	int fds[2];

	assert(symbols_files_new(&files) == 0);
	symbols_files_hold_consume(files, &owner, open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	assert(pipe2(fds, O_CLOEXEC) == 0);
	symbols_files_hold_consume(files, &owner, fds[0]);
	symbols_files_hold_consume(files, &owner, fds[1]);
	assert(symbols_files_count(files) == 0);
	files = symbols_files_free(files);
}
