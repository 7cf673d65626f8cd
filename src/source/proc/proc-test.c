/* SPDX-License-Identifier: Apache-2.0 */

/* The parsers of /proc against names made to fool them, and the owner rule. */

#include "source/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"
#include "source/proc/owner.h"

/* Fields 3 to 24 of a stat file; the start time is 4242. */
#define REST " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n"

UNIT(stat_of_an_ordinary_process)
{
	struct proc_facts facts = {0};

	assert(proc_parse_stat("17 (cat)" REST, &facts) == 0);
	assert(facts.id.start_ticks == 4242 && facts.state == 'S' &&
	       strcmp(facts.comm, "cat") == 0);
}

UNIT(stat_with_a_hostile_name_is_parsed)
{
	static const char *const names[] = {
		") (", "a) R 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 9999 (", "((()))", "", " ", ")",
		"a\nb"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct proc_facts facts = {0};
		char text[256];

		snprintf(text, sizeof(text), "17 (%s)" REST, names[i]);
		assert(proc_parse_stat(text, &facts) == 0);
		assert(facts.id.start_ticks == 4242 && facts.state == 'S');
		assert(strcmp(facts.comm, names[i]) == 0);
	}
}

UNIT(malformed_stat_is_refused)
{
	struct proc_facts facts = {0};

	assert(proc_parse_stat("", &facts) == -EBADMSG);
	assert(proc_parse_stat("17 cat S 1 2", &facts) == -EBADMSG);
	assert(proc_parse_stat("17 )(" REST, &facts) == -EBADMSG);
	assert(proc_parse_stat("17 (cat) S 1 2 3", &facts) == -EBADMSG);
	assert(proc_parse_stat("17 (cat) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x\n",
			       &facts) == -EBADMSG);
}

UNIT(status_tells_users_and_the_innermost_pid)
{
	struct proc_facts facts = {.ns_pid = 9};

	assert(proc_parse_status("Name:\tUid:\\n\nUid:\t1\t2\t3\t4\nNSpid:\t900\t17\t5\nX:\t7\n",
				 &facts) == 0);
	assert(facts.real_uid == 1 && facts.saved_uid == 3 && facts.ns_pid == 5);
	/* A kernel without namespaces: the pid is unchanged. */
	facts.ns_pid = 9;
	assert(proc_parse_status("Name:\tx\nUid:\t1\t2\t3\t4\n", &facts) == 0);
	assert(facts.ns_pid == 9);
}

UNIT(malformed_status_is_refused)
{
	struct proc_facts facts = {0};

	assert(proc_parse_status("", &facts) == -EBADMSG);
	assert(proc_parse_status("Uid:\t1\n", &facts) == -EBADMSG);
	assert(proc_parse_status("Uid:\t1\t1\t1\t1\nNSpid:\t0\n", &facts) == -EBADMSG);
}

UNIT(container_ids_are_found)
{
	static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	char text[256], found[PROC_CONTAINER_SIZE];

	snprintf(text, sizeof(text), "0::/system.slice/docker-%s.scope\n", id);
	proc_parse_cgroup(text, found);
	assert(strcmp(found, id) == 0);
	snprintf(text, sizeof(text), "12:cpu:/docker/%s\n0::/x\n", id);
	proc_parse_cgroup(text, found);
	assert(strcmp(found, id) == 0);
	proc_parse_cgroup("0::/lxc.payload.box/init.scope\n", found);
	assert(strcmp(found, "box") == 0);
	proc_parse_cgroup("0::/user.slice/user-1000.slice/session-2.scope\n", found);
	assert(strcmp(found, "") == 0);
	/* Longer runs of digits are not ids. */
	snprintf(text, sizeof(text), "0::/%s%s\n", id, "0");
	proc_parse_cgroup(text, found);
	assert(strcmp(found, "") == 0);
	proc_parse_cgroup("", found);
	assert(strcmp(found, "") == 0);
}

UNIT(start_times_are_never_in_the_future)
{
	assert(proc_start_ns(100, 5000000000, 1700000005000000000) == 1700000001000000000);
	assert(proc_start_ns(UINT64_MAX, 5000000000, 1700000005000000000) == 1700000005000000000);
	assert(proc_start_ns(501, 5000000000, 1700000005000000000) == 1700000005000000000);
}

UNIT(facts_of_this_process_are_right)
{
	const struct proc_file none = {.device = 0, .inode = 1};
	struct proc proc;
	struct proc_facts facts;

	assert(proc_open(&proc) == 0 && proc.is_real);
	assert(proc_read(&proc, (uint32_t)getpid(), &facts) == 0);
	assert(facts.id.pid == (uint32_t)getpid() && facts.real_uid == getuid());
	assert(facts.id.start_ticks > 0 && facts.pid_namespace > 0);
	assert(!proc_is_over(&proc, &facts));
	assert(proc_has_mapped(&proc, facts.id.pid, &none, SIZE_MAX, NULL) == 0);
	assert(proc_read(&proc, INT32_MAX, &facts) == -ENOENT);
	proc_close(&proc);
}

UNIT(a_zombie_is_over_and_its_mappings_are_gone)
{
	const struct proc_file none = {.device = 0, .inode = 1};
	struct proc_facts facts;
	struct proc proc;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	assert(proc_open(&proc) == 0);
	assert(proc_read(&proc, (uint32_t)pid, &facts) == 0);
	assert(facts.state == 'Z' && proc_is_over(&proc, &facts));
	assert(proc_has_mapped(&proc, (uint32_t)pid, &none, SIZE_MAX, NULL) <= 0);
	assert(waitpid(pid, NULL, 0) == pid);
	proc_close(&proc);
}

UNIT(another_proc_root_can_be_named)
{
	struct proc_facts facts;
	struct proc proc;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/77", unit_dir());
	assert(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/77/stat", unit_dir());
	file = fopen(path, "we");
	fputs("77 (fake)" REST, file);
	assert(fclose(file) == 0);
	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0);
	assert(proc_open(&proc) == 0 && !proc.is_real);
	assert(proc_read(&proc, 77, &facts) == -ENOENT);
	snprintf(path, sizeof(path), "%s/77/status", unit_dir());
	file = fopen(path, "we");
	fputs("Name:\tfake\nUid:\t5\t5\t6\t5\nNSpid:\t77\t3\n", file);
	assert(fclose(file) == 0);
	assert(proc_read(&proc, 77, &facts) == 0);
	assert(facts.id.start_ticks == 4242 && facts.ns_pid == 3 && facts.saved_uid == 6);
	proc_close(&proc);
}

/* The owner rule: each case has one thing wrong. */
static enum owner_verdict judge(uint32_t pid, uint64_t start, uint64_t namespace, uint32_t uid)
{
	const struct book_header header = {.pid = 5, .start_ticks = 100, .pid_namespace = 77};
	const struct proc_facts facts = {.id.pid = 900,
					 .ns_pid = pid,
					 .id.start_ticks = start,
					 .pid_namespace = namespace,
					 .real_uid = 1000,
					 .saved_uid = 1001};

	return owner_judge(NULL, &header, uid, &facts);
}

UNIT(the_owner_is_verified_with_the_kernel)
{
	assert(judge(5, 100, 77, 1000) == OWNER_YES);
	assert(judge(5, 100, 77, 1001) == OWNER_YES);
	assert(judge(5, 100, 0, 1000) == OWNER_YES); /* a namespace that is not visible */
	assert(judge(5, 100, 77, 0) ==
	       OWNER_YES); /* created by root, for it or before it dropped */
}

UNIT(another_process_is_not_the_owner)
{
	assert(judge(6, 100, 77, 1000) == OWNER_NO);
	assert(judge(5, 101, 77, 1000) == OWNER_NO);
	assert(judge(5, 100, 78, 1000) == OWNER_NO);
}

UNIT(a_book_of_another_user_is_forged)
{
	assert(judge(5, 100, 77, 1002) == OWNER_FORGED);
}

UNIT(a_process_in_a_time_namespace_is_the_owner)
{
	/* Of a library that tells no offset: the start is as the process sees it. */
	struct book_header header = {.pid = 5, .start_ticks = 10000100};
	struct proc_facts facts = {.id.pid = 78, .ns_pid = 5, .id.start_ticks = 100};
	struct proc proc;
	char path[512];
	FILE *file;

	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0);
	assert(proc_open(&proc) == 0);
	assert(owner_judge(&proc, &header, 0, &facts) == OWNER_NO);
	snprintf(path, sizeof(path), "%s/78", unit_dir());
	assert(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/78/timens_offsets", unit_dir());
	file = fopen(path, "we");
	fputs("monotonic 0 0\nboottime 100000 0\n", file);
	assert(fclose(file) == 0);
	assert(owner_judge(&proc, &header, 0, &facts) == OWNER_YES);
	header.start_ticks++;
	assert(owner_judge(&proc, &header, 0, &facts) == OWNER_NO);
	/* A library that tells it is taken at its word, which the reader has applied. */
	header.boottime_offset = 5000000000;
	assert(owner_judge(&proc, &header, 0, &facts) == OWNER_NO);
	header.start_ticks = 100;
	assert(owner_judge(&proc, &header, 0, &facts) == OWNER_YES);
	proc_close(&proc);
}

UNIT(a_pidfd_is_only_of_the_process_that_is_meant)
{
	struct process_id own = {.pid = (uint32_t)getpid()};
	struct proc proc;
	int fd;

	assert(proc_open(&proc) == 0);
	own.start_ticks = proc_start_ticks(&proc, own.pid);
	assert(proc_is_there(&proc, own));
	fd = proc_pid_fd(&proc, own);
	assert(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0);
	/* The pid of another process that has ended; it leaves no descriptor open. */
	own.start_ticks++;
	assert(!proc_is_there(&proc, own) && proc_pid_fd(&proc, own) == -ESRCH);
	assert(open("/dev/null", O_RDONLY | O_CLOEXEC) == fd && close(fd) == 0);
	assert(proc_pid_fd(&proc, (struct process_id){INT32_MAX, 1}) == -ESRCH);
	proc_close(&proc);
}

UNIT(a_pidfd_tells_its_process_until_nothing_is_left_of_it)
{
	pid_t pid = fork();
	uint32_t found = 0;
	int fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	siginfo_t ended;

	if (pid == 0)
		_exit(0);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert(pid > 0 && fd >= 0 && null >= 0);
	assert(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) == 0);
	assert(proc_of_pid_fd(fd, &found) == 0 && found == (uint32_t)pid);
	assert(waitpid(pid, NULL, 0) == pid);
	assert(proc_of_pid_fd(fd, &found) == -ESRCH);
	assert(proc_of_pid_fd(null, &found) == -EBADF);
	assert(close(fd) == 0 && close(null) == 0);
	assert(proc_of_pid_fd(fd, &found) == -ENOENT);
}

/* Without a descriptor nothing can be read of it, but it lives. */
UNIT(a_process_that_cannot_be_read_has_not_ended)
{
	struct rlimit none = {0};
	struct process_id own = {.pid = (uint32_t)getpid()};
	struct proc proc;

	assert(proc_open(&proc) == 0);
	own.start_ticks = proc_start_ticks(&proc, own.pid);
	assert(own.start_ticks > 0 && !proc_has_ended(&proc, own));
	assert(proc_has_ended(&proc, (struct process_id){own.pid, own.start_ticks + 1}));
	assert(proc_has_ended(&proc, (struct process_id){UINT32_MAX >> 1, own.start_ticks}));
	assert(getrlimit(RLIMIT_NOFILE, &none) == 0);
	none.rlim_cur = 0;
	assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	assert(!proc_has_ended(&proc, own));
	none.rlim_cur = none.rlim_max;
	assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	proc_close(&proc);
}
