/* SPDX-License-Identifier: Apache-2.0 */

/* Files of processes are held until they are released, within limits. */

#include "daemon/symbols/symbols-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit.h"
#include "symbol/symbol-testing.h"

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
	owner.pid = (uint32_t)start_cat(path, &input);
	wait_for_exec((pid_t)owner.pid, path);
	owner.start_ticks = start_of((pid_t)owner.pid);
	assert(unlink(path) == 0);
	symbols_files_hold(files, &owner);
	assert(find(7, path, &inode) == 0 && inode == want.st_ino);
	assert(close(input) == 0 && waitpid((pid_t)owner.pid, NULL, 0) == (pid_t)owner.pid);
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
	struct symbols_files_owner owner = {
		.book = 7, .pid = (uint32_t)getpid(), .start_ticks = start_of(getpid()) + 1};
	ino_t inode;

	assert(symbols_files_new(&files) == 0);
	symbols_files_hold(files, &owner);
	assert(find(7, "/proc/self/exe", &inode) == -ENOENT && symbols_files_count(files) == 0);
	owner.start_ticks--;
	symbols_files_hold(files, &owner);
	assert(find(7, "/none", &inode) == -ENOENT && symbols_files_count(files) > 0);
	files = symbols_files_free(files);
}

static void hold_self(uint64_t book, uint32_t user)
{
	const struct symbols_files_owner owner = {.book = book,
						  .user = user,
						  .pid = (uint32_t)getpid(),
						  .start_ticks = start_of(getpid())};
	ino_t inode;

	symbols_files_hold(files, &owner);
	(void)find(book, "/none", &inode); /* waits until it is done */
}

/* One user's processes cost the files of that user, not those of others. */
UNIT(files_of_one_user_do_not_evict_those_of_others)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	ino_t inode;

	assert(n > 0 && symbols_files_new(&files) == 0);
	path[n] = '\0';
	hold_self(1, 2000);
	assert(find(1, path, &inode) == 0);
	for (uint64_t book = 2; book < 2 * SYMBOLS_FILES_USER_MAX; book++)
		hold_self(book, 1000);
	assert(symbols_files_count(files) <= SYMBOLS_FILES_USER_MAX + SYMBOLS_FILES_PROCESS_MAX);
	assert(find(1, path, &inode) == 0 && find(2, path, &inode) == -ENOENT);
	assert(find(2 * SYMBOLS_FILES_USER_MAX - 1, path, &inode) == 0);
	/* Many users together are limited as well. */
	for (uint32_t user = 3000; user < 3000 + SYMBOLS_FILES_MAX; user++)
		hold_self(user, user);
	assert(symbols_files_count(files) <= SYMBOLS_FILES_MAX);
	files = symbols_files_free(files);
}
