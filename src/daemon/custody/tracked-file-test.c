/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file of tracked processes: it is read back as written, written rarely, and errors in it are
 * found.
 */

#include "daemon/custody/tracked-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "source/proc/proc.h"

static struct loop *loop;
static struct worker *work;
static struct tracked_file *tracked_file;
static uint32_t tracked, lists, failures;
static int last_failure;

static struct tracked_file_entry entry_of(uint32_t i)
{
	struct tracked_file_entry entry = {
		.process.pid = 10 + i,
		.process.start_ticks = i * UINT64_C(1000000000000),
		.book.device = UINT64_MAX - i,
		.book.inode = i,
	};

	(void)snprintf(entry.comm, sizeof(entry.comm), "name %" PRIu32, i);
	return entry;
}

static void list(void *context, struct tracked_file *to)
{
	lists++;
	for (uint32_t i = 0; i < tracked; i++) {
		struct tracked_file_entry entry = entry_of(i);

		tracked_file_put(to, &entry);
	}
}

static void failed(void *context, int error)
{
	failures++;
	last_failure = error;
}

static void begin_in(const char *folder)
{
	const struct tracked_file_hooks hooks = {.list = list, .failed = failed};

	assert(loop_new(&loop) == 0);
	assert(worker_new(&work, &(struct worker_config){.name = "test", .loop = loop}) == 0);
	assert(tracked_file_new(&tracked_file, loop, work, folder, &hooks) == 0);
}

static void end(void)
{
	tracked_file = tracked_file_free(tracked_file);
	work = worker_free(work);
	loop = loop_free(loop);
}

/* Number of entries in the file, each checked; -1 = no file. */
static int on_roll(void)
{
	struct tracked_file_contents found = {0};
	int r = tracked_file_read(unit_dir(), &found);
	struct tracked_file_entry *entries = found.entries;
	size_t count = found.count;

	assert(r == 0 || r == -ENOENT);
	for (uint32_t i = 0; i < count; i++) {
		struct tracked_file_entry entry = entry_of(i);

		assert(entry.process.pid == entries[i].process.pid &&
		       entry.book.inode == entries[i].book.inode);
		assert(entry.book.device == entries[i].book.device);
		assert(entry.process.start_ticks == entries[i].process.start_ticks);
		assert(memcmp(entry.comm, entries[i].comm, sizeof(entry.comm)) == 0);
	}
	free(entries);
	return r == 0 ? (int)count : -1;
}

static void wait_for(int count)
{
	while (on_roll() != count)
		assert(loop_turn(loop, 10) >= 0);
}

UNIT(written_and_read_back)
{
	char path[4096], boot[TRACKED_FILE_BOOT_SIZE];
	struct stat file;

	assert(tracked_file_boot(boot) == 0 && strlen(boot) == TRACKED_FILE_BOOT_SIZE - 1);
	begin_in(unit_dir());
	assert(on_roll() == -1);
	tracked = 3;
	tracked_file_changed(tracked_file);
	wait_for(3);
	tracked = 0;
	tracked_file_changed(tracked_file);
	wait_for(0);
	tracked = TRACKED_FILE_ENTRIES_MAX + 100;
	tracked_file_changed(tracked_file);
	wait_for((int)TRACKED_FILE_ENTRIES_MAX);
	end();
	(void)snprintf(path, sizeof(path), "%s/%s", unit_dir(), TRACKED_FILE_FILE);
	assert(stat(path, &file) == 0 && (file.st_mode & 0777) == 0600);
	assert(file.st_size < (off_t)TRACKED_FILE_SIZE_MAX);
	assert(failures == 0);
}

/* A thousand changes in a row cause one write, or two. */
UNIT(many_changes_are_written_once)
{
	begin_in(unit_dir());
	for (tracked = 1; tracked < 1000; tracked++)
		tracked_file_changed(tracked_file);
	wait_for(1000);
	assert(lists == 1);
	end();
	assert(lists == 1); /* nothing had changed since */
}

UNIT(last_change_is_written_at_the_end)
{
	begin_in(unit_dir());
	tracked = 1;
	tracked_file_changed(tracked_file);
	wait_for(1);
	tracked = 2;
	tracked_file_changed(tracked_file);
	end();
	assert(on_roll() == 2 && lists == 2);

	/* Also if it ends during a write. */
	begin_in(unit_dir());
	tracked = 3;
	tracked_file_changed(tracked_file);
	while (lists < 3)
		assert(loop_turn(loop, 10) >= 0);
	tracked = 4;
	tracked_file_changed(tracked_file);
	end();
	assert(on_roll() == 4);
}

UNIT(folder_that_is_not_there)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/later", unit_dir());
	begin_in(path);
	tracked = 1;
	tracked_file_changed(tracked_file);
	while (failures == 0)
		assert(loop_turn(loop, 10) >= 0);
	assert(last_failure == -ENOENT);
	/* Reported once, and retried. */
	tracked_file_changed(tracked_file);
	while (lists < 2)
		assert(loop_turn(loop, 10) >= 0);
	end();
	assert(failures == 1);
}

static void list_hostile(void *context, struct tracked_file *to)
{
	struct tracked_file_entry entry = {.process.pid = 1};

	memcpy(entry.comm, "\033[2J\n\xff\xe2\x80\xae end 7", 16);
	tracked_file_put(to, &entry);
	memset(entry.comm, '\n', sizeof(entry.comm)); /* not even terminated */
	tracked_file_put(to, &entry);
}

UNIT(hostile_names_are_made_harmless)
{
	const struct tracked_file_hooks hooks = {.list = list_hostile};
	struct tracked_file_contents found;
	struct tracked_file_entry *entries;

	assert(loop_new(&loop) == 0);
	assert(worker_new(&work, &(struct worker_config){.name = "test", .loop = loop}) == 0);
	assert(tracked_file_new(&tracked_file, loop, work, unit_dir(), &hooks) == 0);
	tracked_file_changed(tracked_file);
	end();
	assert(tracked_file_read(unit_dir(), &found) == 0 && found.count == 2);
	entries = found.entries;
	assert(strcmp(entries[0].comm, "\\x1b[2J\\x0a\xef\xbf\xbd\\u202e end 7") == 0);
	assert(strncmp(entries[1].comm, "\\x0a\\x0a", 8) == 0);
	free(entries);
}

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"
#define TOP "ttmem-roll 1\nboot " BOOT "\n"

static int parse(const char *text)
{
	struct tracked_file_contents found = {0};
	int r = tracked_file_parse(text, strlen(text), BOOT, &found);

	free(found.entries);
	return r < 0 ? r : (int)(found.count + 1000 * found.missed);
}

UNIT(malformed_lists_of_processes_are_refused)
{
	assert(parse(TOP "1 2 3 4 a b\n5 6 7 8 \nend 2\n") == 2);
	assert(parse("ttmem-roll 1\nboot another\n1 2 3\n") == 0);
	assert(parse("") == -EBADMSG);
	assert(parse("ttmem-roll 2\nboot " BOOT "\nend 0\n") == -EBADMSG);
	assert(parse("ttmem-roll 1\n") == -EBADMSG);
	assert(parse(TOP) == -EBADMSG);
	assert(parse(TOP "end 0") == -EBADMSG);
	assert(parse(TOP "end 1\n") == -EBADMSG);
	assert(parse(TOP "end 0\n\n") == -EBADMSG);
	assert(parse(TOP "end 0 \n") == -EBADMSG);
	assert(parse(TOP "0 2 3 4 a\nend 1\n") == -EBADMSG);
	assert(parse(TOP "4294967296 2 3 4 a\nend 1\n") == -EBADMSG);
	assert(parse(TOP "4294967295 2 3 4 a\nend 1\n") == 1);
	assert(parse(TOP "1 18446744073709551615 3 4 a\nend 1\n") == 1);
	assert(parse(TOP "1 18446744073709551616 3 4 a\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1 -2 3 4 a\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1 02 3 4 a\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1  2 3 4 a\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1 2 3 4\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1 2 3 4 \033\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1 2 3 4 \xff\nend 1\n") == -EBADMSG);
	assert(parse(TOP "1 2 3 4 \xe2\x80\xae\nend 1\n") == -EBADMSG);
}

/* A thousand stands for each: see parse(). */
UNIT(unobserved_exits_are_read)
{
	assert(parse(TOP "missed 7\nend 0\n") == 7000);
	assert(parse(TOP "missed 7\n1 2 3 4 a\nend 1\n") == 7001);
	assert(parse(TOP "missed \nend 0\n") == -EBADMSG);
	assert(parse(TOP "missed 7 \nend 0\n") == -EBADMSG);
	assert(parse(TOP "missed 7\nmissed 7\nend 0\n") == -EBADMSG);
	assert(parse(TOP "1 2 3 4 a\nmissed 7\nend 1\n") == -EBADMSG);
}

static void put_file(int flags, off_t size)
{
	char path[4096];
	CLEANUP_CLOSE int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", unit_dir(), TRACKED_FILE_FILE);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	assert(fd >= 0 && ftruncate(fd, size) == 0);
}

UNIT(lists_that_are_no_regular_file_are_refused)
{
	struct tracked_file_contents found;
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", unit_dir(), TRACKED_FILE_FILE);
	put_file(0, TRACKED_FILE_SIZE_MAX + 1);
	assert(tracked_file_read(unit_dir(), &found) == -EFBIG);
	put_file(O_TRUNC, TRACKED_FILE_SIZE_MAX);
	assert(tracked_file_read(unit_dir(), &found) == -EBADMSG);
	assert(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	assert(tracked_file_read(unit_dir(), &found) == -EBADMSG);
	assert(unlink(path) == 0 && symlink("/dev/zero", path) == 0);
	assert(tracked_file_read(unit_dir(), &found) == -ELOOP);
	assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
	assert(tracked_file_read(unit_dir(), &found) == -EBADMSG);
}

static bool is_held(void *context, const struct tracked_file_entry *entry)
{
	return entry->book.inode == *(const uint64_t *)context;
}

/* One alive, one exited, one whose pid was reused, one zombie, one held. */
UNIT(processes_that_exited_meanwhile_are_missed)
{
	struct tracked_file_entry entries[5] = {0};
	uint64_t held_inode = 4;
	struct proc_facts facts;
	struct proc proc;
	pid_t pid = fork();
	siginfo_t end_of;

	if (pid == 0)
		_exit(0);
	assert(pid > 0 && waitid(P_PID, (id_t)pid, &end_of, WEXITED | WNOWAIT) == 0);
	assert(proc_open(&proc) == 0);
	assert(proc_read(&proc, (uint32_t)getpid(), &facts) == 0);
	for (uint64_t i = 0; i < 5; i++) {
		entries[i].process.pid = (uint32_t)getpid();
		entries[i].process.start_ticks = facts.id.start_ticks;
		entries[i].book.inode = i;
	}
	entries[1].process.start_ticks--;
	assert(proc_read(&proc, (uint32_t)pid, &facts) == 0);
	entries[2].process.pid = (uint32_t)pid;
	entries[2].process.start_ticks = facts.id.start_ticks;
	entries[3].process.pid = entries[4].process.pid = UINT32_MAX;
	assert(tracked_file_missed(entries, 5, &proc, is_held, &held_inode) == 3);
	assert(entries[0].book.inode == 1 && entries[1].book.inode == 2 &&
	       entries[2].book.inode == 3);
	assert(tracked_file_missed(entries, 3, &proc, NULL, NULL) == 3);
	proc_close(&proc);
	assert(waitpid(pid, NULL, 0) == pid);
}
