/* SPDX-License-Identifier: Apache-2.0 */

/* The list of who holds something: who gets into it, who may look behind it, and how it is read in pieces. */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define LIST_DEVICE 60u
#define LIST_CLIENTS 300
#define LIST_PIECE 1000
#define LIST_CAP_PERFMON 38 /* newer than some headers */

static size_t list_holders(void)
{
	const char *text = node_text("/proc/driver/ttmem/totals");
	size_t count = 0;

	while ((text = strstr(text, "\nholder "))) {
		text++;
		count++;
	}
	return count;
}

/* The node is opened for many reasons. */
UNIT(clients_without_memory_are_not_listed)
{
	size_t before = list_holders();
	int node = node_open();

	assert(list_holders() == before);
	assert(node_free(node, LIST_DEVICE, 0, 1) == -ENOENT);
	assert(list_holders() == before);
	assert(node_alloc(node, LIST_DEVICE, 0, 1, 1) == 1);
	assert(list_holders() == before + 1);
	assert(node_free(node, LIST_DEVICE, 0, 1) == 0); /* it has a past by now */
	assert(list_holders() == before + 1);
	close(node);
	assert(list_holders() == before);
}

/* A first buffer whose answer cannot be written was not counted, and nobody is listed for it. */
UNIT(a_first_answer_that_cannot_be_written)
{
	struct ttmem_ioc_track_alloc *args;
	uint64_t bytes, buffers;
	int node = node_open();

	args = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(args != MAP_FAILED);
	*args = (struct ttmem_ioc_track_alloc){
		.argsz = sizeof(*args), .device = LIST_DEVICE, .size = 1};
	assert(mprotect(args, 4096, PROT_READ) == 0);
	assert(node_ioctl(node, TTMEM_IOC_TRACK_ALLOC, args) == -EFAULT);
	assert(!node_totals_of(getpid(), &bytes, &buffers));
	assert(node_alloc(node, LIST_DEVICE, 0, 0, 1) == 1);
	assert(node_totals_of(getpid(), &bytes, &buffers) && bytes == 1 && buffers == 1);
	munmap(args, 4096);
	close(node);
}

/* The line of a holder whose buffer on our device is of that size; NULL = none. */
static const char *list_line(unsigned int size)
{
	static char holder[256];
	const char *line = node_text("/proc/driver/ttmem/totals");
	unsigned int device, type, bytes;

	for (; *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, "holder ", 7) == 0)
			snprintf(holder, sizeof(holder), "%.*s", (int)strcspn(line, "\n"), line);
		else if (sscanf(line, "memory %u %u %u", &device, &type, &bytes) == 3 &&
			 device == LIST_DEVICE && bytes == size)
			return holder;
	}
	return NULL;
}

static pid_t list_pid(unsigned int size)
{
	const char *line = list_line(size);
	int pid = -1;

	assert(line && sscanf(line, "holder %*u plain 0 %d", &pid) == 1);
	return pid;
}

/* One who opens the node, leaves it to a child, and ends; is reaped or not. Then the child does as it is told. */
static pid_t list_orphan(int orders, int answers)
{
	pid_t opener = fork(), heir;
	char order;
	int node;

	assert(opener >= 0);
	if (opener)
		return opener;
	node = node_open();
	assert(node_alloc(node, LIST_DEVICE, 0, 0, 7777) == 1);
	if (fork() > 0) {
		(void)pause(); /* until it is killed */
		_exit(0);
	}
	heir = getpid();
	assert(write(answers, &heir, sizeof(heir)) == sizeof(heir)); /* from now on it has one */
	while (read(orders, &order, 1) == 1 && order == 'u') {
		assert(node_free(node, LIST_DEVICE, 0, 1) == -ENOENT);
		assert(write(answers, &heir, sizeof(heir)) == sizeof(heir));
	}
	_exit(0);
}

/*
 * A descriptor outlives the process that opened it. That one's pid must not be shown, which may be another's by
 * now, neither in the table nor for programs; but that of who uses the descriptor as soon as somebody does.
 */
UNIT(the_user_of_an_inherited_descriptor_is_listed)
{
	int orders[2], answers[2], status;
	pid_t opener, heir;
	char wanted[16];

	assert(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
	opener = list_orphan(orders[0], answers[1]);
	assert(read(answers[0], &heir, sizeof(heir)) == sizeof(heir) && heir != opener);
	assert(node_becomes(LIST_DEVICE, 7777, 1));
	assert(list_pid(7777) == opener && !strstr(list_line(7777), " gone"));
	assert(kill(opener, SIGKILL) == 0);
	/* Not yet reaped: nothing of it is left that could hold anything. */
	assert(waitid(P_PID, (id_t)opener, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
	for (int reaped = 0; reaped < 2; reaped++) {
		assert(list_pid(7777) == 0);
		assert(strcmp(strrchr(list_line(7777), ' '), " gone") == 0);
		assert(strcmp(node_text("/proc/driver/ttmem/60/pids"), "") == 0);
		assert(strstr(node_text("/proc/driver/ttmem/60/allocations"), "\n0        "));
		assert(reaped || waitpid(opener, &status, 0) == opener);
	}
	assert(write(orders[1], "u", 1) == 1);
	assert(read(answers[0], &heir, sizeof(heir)) == sizeof(heir));
	assert(list_pid(7777) == heir && !strstr(list_line(7777), " gone"));
	snprintf(wanted, sizeof(wanted), "%d\n", (int)heir);
	assert(strcmp(node_text("/proc/driver/ttmem/60/pids"), wanted) == 0);
	assert(write(orders[1], "q", 1) == 1);
	assert(node_becomes(LIST_DEVICE, 0, 0));
	for (int i = 0; i < 2; i++) {
		close(orders[i]);
		close(answers[i]);
	}
}

/* A client for each; its one buffer's size tells it from the others. */
static void list_open(int nodes[LIST_CLIENTS])
{
	for (int i = 0; i < LIST_CLIENTS; i++) {
		nodes[i] = node_open();
		assert(node_alloc(nodes[i], LIST_DEVICE, 0, 0, (uint64_t)i + 1) == 1);
	}
}

/* Notes which clients are in @text; each at most once. */
static void list_note(const char *text, unsigned char seen[LIST_CLIENTS + 1])
{
	for (const char *line = text; (line = strstr(line, "\nmemory ")); line++) {
		unsigned int device, type, size;

		assert(sscanf(line, "\nmemory %u %u %u", &device, &type, &size) == 3);
		if (device == LIST_DEVICE) {
			assert(size >= 1 && size <= LIST_CLIENTS && !seen[size]);
			seen[size] = 1;
		}
	}
}

/*
 * Whoever reads in pieces misses nobody who is there all the time, even if others before them end, and sees
 * nobody twice.
 */
UNIT_LONG(reading_in_pieces_misses_nobody_while_others_exit, 120)
{
	static char text[1 << 20];
	static unsigned char seen[LIST_CLIENTS + 1];
	int nodes[LIST_CLIENTS];
	struct rlimit many = {LIST_CLIENTS + 100, LIST_CLIENTS + 100};
	size_t length = 0;
	ssize_t n;
	int fd, ended = 0;

	assert(setrlimit(RLIMIT_NOFILE, &many) == 0);
	list_open(nodes);
	fd = open("/proc/driver/ttmem/totals", O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	while ((n = read(fd, text + length, LIST_PIECE)) > 0) {
		length += (size_t)n;
		for (int i = 0; i < 10 && ended < LIST_CLIENTS / 2; i++)
			close(nodes[ended++]);
	}
	assert(n == 0 && ended == LIST_CLIENTS / 2);
	list_note(text, seen);
	for (int i = ended; i < LIST_CLIENTS; i++)
		assert(seen[i + 1]);
	for (; ended < LIST_CLIENTS; ended++)
		close(nodes[ended]);
	close(fd);
}

/* At any offset, in any size, the same text. */
UNIT_LONG(pieces_of_any_size, 120)
{
	static const size_t sizes[] = {1, 7, 100, 4095, 4096, 4097, 100000};
	static char whole[1 << 18], piece[1 << 18];
	int nodes[LIST_CLIENTS];
	struct rlimit many = {LIST_CLIENTS + 100, LIST_CLIENTS + 100};
	size_t length;
	int fd;

	assert(setrlimit(RLIMIT_NOFILE, &many) == 0);
	list_open(nodes);
	snprintf(whole, sizeof(whole), "%s", node_text("/proc/driver/ttmem/totals"));
	length = strlen(whole);
	assert(length > 8192);
	fd = open("/proc/driver/ttmem/totals", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t done = 0;
		ssize_t n = 1;

		assert(lseek(fd, 0, SEEK_SET) == 0);
		while (n > 0) {
			n = read(fd, piece + done, sizes[i]);
			assert(n >= 0 && done + (size_t)n <= length);
			done += (size_t)n;
			if (sizes[i] == 1 && done == 5000)
				break; /* that will do */
		}
		assert((done == length || sizes[i] == 1) && memcmp(whole, piece, done) == 0);
	}
	for (size_t at = 0; at < length; at += 977) {
		ssize_t n = pread(fd, piece, 50, (off_t)at);

		assert(n > 0 && memcmp(piece, whole + at, (size_t)n) == 0);
	}
	assert(pread(fd, piece, 50, (off_t)length) == 0);
	assert(pread(fd, piece, 50, (off_t)length + 100000) == 0);
	close(fd);
	for (int i = 0; i < LIST_CLIENTS; i++)
		close(nodes[i]);
}

/* Another number of the same user, by a namespace of its own, for which the test writes the map. */
static void list_become_another(int ready, int mapped)
{
	char byte = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';

	assert(write(ready, &byte, 1) == 1 && read(mapped, &byte, 1) == 1);
	assert(byte == 'n' || setuid(5) == 0);
}

/* Return: whether there are namespaces here. */
static bool list_map(pid_t child, int ready, int mapped)
{
	static const char map[] = "0 200000 10";
	char path[64], byte;
	int fd;

	assert(read(ready, &byte, 1) == 1);
	if (byte == 'y') {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)child);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert(fd >= 0 && write(fd, map, sizeof(map) - 1) == sizeof(map) - 1);
		close(fd);
	}
	assert(write(mapped, &byte, 1) == 1);
	return byte == 'y';
}

/*
 * One user's clients are bounded, whatever number they go by, so that a walk over the list is; another user still
 * gets in.
 */
UNIT_LONG(too_many_clients_of_a_user, 240)
{
	static int nodes[TTMEM_CLIENTS_PER_USER + 1];
	struct rlimit many = {TTMEM_CLIENTS_PER_USER + 100, TTMEM_CLIENTS_PER_USER + 100};
	int ready[2], mapped[2], node;
	bool has_spaces;
	pid_t child;
	char byte;

	assert(pipe2(ready, O_CLOEXEC) == 0 && pipe2(mapped, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		assert(setrlimit(RLIMIT_NOFILE, &many) == 0 && setuid(2345) == 0);
		for (int i = 0; i <= TTMEM_CLIENTS_PER_USER; i++) {
			nodes[i] = node_open();
			assert(node_alloc(nodes[i], LIST_DEVICE, 0, 0, 1) ==
			       (i < TTMEM_CLIENTS_PER_USER ? 1 : -EMFILE));
		}
		close(nodes[7]);
		assert(node_alloc(nodes[TTMEM_CLIENTS_PER_USER], LIST_DEVICE, 0, 0, 1) == 1);
		list_become_another(ready[1], mapped[0]);
		assert(node_alloc(node_open(), LIST_DEVICE, 0, 0, 1) == -EMFILE);
		assert(write(ready[1], "r", 1) == 1);
		(void)pause(); /* until it is killed */
		_exit(1);
	}
	close(ready[1]); /* so that its failure is an end, not a wait */
	has_spaces = list_map(child, ready[0], mapped[1]);
	assert(read(ready[0], &byte, 1) == 1);
	node = node_open();
	assert(node_alloc(node, LIST_DEVICE, 0, 0, 1) == 1);
	close(node);
	assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	assert(node_becomes(LIST_DEVICE, 0, 0));
	close(ready[0]);
	close(mapped[0]);
	close(mapped[1]);
	if (!has_spaces)
		unit_skip("no user namespaces here");
}

/* Becomes an ordinary user with one capability. */
static void list_become(uid_t user, int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (capability >= 0) {
		data[capability / 32].permitted = 1u << capability % 32;
		data[capability / 32].effective = 1u << capability % 32;
	}
	assert(prctl(PR_SET_KEEPCAPS, 1) == 0 && setgid(user) == 0 && setuid(user) == 0);
	assert(syscall(SYS_capset, &header, data) == 0);
}

static void list_try(uint64_t id, uid_t user, int capability, int expected)
{
	pid_t child = fork();
	int status;

	assert(child >= 0);
	if (child == 0) {
		int fd;

		list_become(user, capability);
		fd = node_attach(id, 0);
		_exit((expected == 0 ? fd >= 0 : fd == expected) ? 0 : 1);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
}

/* The right to attach: the book's user, or CAP_PERFMON; being able to read every file is another thing. */
UNIT(attaching_needs_the_same_user_or_cap_perfmon)
{
	struct node_book book;

	node_make_book(&book);
	list_try(book.id, 4567, -1, -EACCES);
	list_try(book.id, 4567, CAP_DAC_READ_SEARCH, -EACCES);
	list_try(book.id, 4567, CAP_SYS_PTRACE, -EACCES);
	list_try(book.id, 4567, LIST_CAP_PERFMON, 0);
	list_try(book.id, 4567, CAP_SYS_ADMIN, 0);
	list_try(book.id, 0, -1, 0); /* root without any right made it */
	node_drop_book(&book);
}

/* Totals are for everybody, books for their user. */
UNIT(other_users_see_totals_but_not_books)
{
	uint64_t bytes, buffers;
	struct node_book book;
	pid_t child, owner = getpid();
	char path[64];
	int status;

	node_make_book(&book);
	node_write(&book, LIST_DEVICE, 0, 1000, 3);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		int fd;

		close(book.fd);
		assert(setgid(1234) == 0 && setuid(1234) == 0);
		assert(node_totals_of(owner, &bytes, &buffers) && bytes == 1000 && buffers == 3);
		assert(strstr(node_text("/proc/driver/ttmem/60/allocations"), "1000"));
		assert(node_attach(book.id, 0) == -EACCES);
		assert(node_attach(0, owner) == -EACCES);
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)owner, book.fd);
		assert(open(path, O_RDONLY | O_CLOEXEC) == -1);
		/* And it can have a book of its own, which it may see. */
		node_make_book(&book);
		fd = node_attach(book.id, getpid());
		assert(fd >= 0);
		close(fd);
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	node_drop_book(&book);
}
