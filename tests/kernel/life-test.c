/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When a book ends: with the address space that made it, whatever else happens to descriptors, mappings
 * and processes around it. And that what was live in it can still be read.
 */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define LIFE_DEVICE 7u

/* A child that has a book with 1000 bytes in 3 buffers, and does nothing until it is told to go on. */
struct life_child {
	pid_t pid;
	int ready, go;
	uint64_t id;
};

static void life_wait_for(int fd)
{
	char byte;

	assert(read(fd, &byte, 1) >= 0);
}

/* Return: 0 in the child, once told to go on; its book is @ret_book. */
static pid_t life_start(struct life_child *ret_child, struct node_book *ret_book)
{
	int ready[2], go[2];
	pid_t pid;

	assert(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		node_make_book(ret_book);
		node_write(ret_book, LIFE_DEVICE, 0, 1000, 3);
		close(go[1]);
		assert(write(ready[1], &ret_book->id, 8) == 8);
		life_wait_for(go[0]);
		close(go[0]);
		close(ready[0]);
		close(ready[1]);
		return 0;
	}
	close(ready[1]);
	close(go[0]);
	assert(read(ready[0], &ret_child->id, 8) == 8);
	ret_child->ready = ready[0];
	ret_child->go = go[1];
	ret_child->pid = pid;
	assert(node_becomes(LIFE_DEVICE, 1000, 3));
	return pid;
}

static void life_go(struct life_child *child)
{
	close(child->go);
	child->go = -1;
}

static void life_reap(struct life_child *child, int signal)
{
	int status;

	if (child->go >= 0)
		close(child->go);
	close(child->ready);
	assert(waitpid(child->pid, &status, 0) == child->pid);
	assert(signal ? WIFSIGNALED(status) && WTERMSIG(status) == signal : status == 0);
}

UNIT(exit_ends_the_book)
{
	struct life_child child;
	struct node_book book;

	if (life_start(&child, &book) == 0)
		_exit(0);
	life_go(&child);
	life_reap(&child, 0);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
	assert(node_attach(child.id, 0) == -ENOENT);
}

UNIT(a_kill_ends_the_book)
{
	struct life_child child;
	struct node_book book;

	if (life_start(&child, &book) == 0)
		_exit(0);
	assert(kill(child.pid, SIGKILL) == 0);
	life_reap(&child, SIGKILL);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
}

UNIT(exec_ends_the_book)
{
	struct life_child child;
	struct node_book book;
	int status;

	if (life_start(&child, &book) == 0) {
		/* Even if the descriptor goes along. */
		assert(fcntl(book.fd, F_SETFD, 0) == 0);
		execl("/bin/busybox", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	life_go(&child);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
	assert(waitpid(child.pid, &status, WNOHANG) == 0); /* it lives */
	assert(kill(child.pid, SIGKILL) == 0);
	life_reap(&child, SIGKILL);
}

UNIT(an_attached_reader_sees_the_last_state)
{
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	struct life_child child;
	struct node_book book;
	uint64_t bytes = 0;
	int fd;

	if (life_start(&child, &book) == 0)
		_exit(0);
	fd = node_attach(child.id, child.pid);
	assert(fd >= 0);
	assert(node_ioctl(fd, TTMEM_IOC_INFO, &info) == 0);
	assert(info.flags == 0 && info.pid == child.pid);
	assert(kill(child.pid, SIGKILL) == 0);
	life_reap(&child, SIGKILL);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
	/* The second block of the first type is the one that was written. */
	assert(pread(fd, &bytes, 8, NODE_SHARDS + LIFE_DEVICE * NODE_SHARD_SIZE + 128 + 64) == 8);
	assert(bytes == 1000);
	info = (struct ttmem_ioc_info){.argsz = sizeof(info)};
	assert(node_ioctl(fd, TTMEM_IOC_INFO, &info) == 0 && info.flags == TTMEM_INFO_ENDED);
	assert(info.pid == 0); /* it may be another's by now */
	assert(node_reserve(fd, 0, 4096) == -EPERM);
	close(fd);
}

UNIT(a_child_that_holds_the_descriptor_does_not_keep_it)
{
	struct life_child child;
	struct node_book book;
	int go[2];

	assert(pipe2(go, O_CLOEXEC) == 0);
	if (life_start(&child, &book) == 0) {
		if (fork() == 0) {
			/* It has no mapping, no right to one, and none to more memory. */
			assert(node_reserve(book.fd, 0, 4096) == -EPERM);
			assert(mmap(NULL, 4096, PROT_READ, MAP_SHARED, book.fd, 0) == MAP_FAILED &&
			       errno == EACCES);
			close(go[1]);
			life_wait_for(go[0]);
			_exit(0);
		}
		_exit(0);
	}
	life_go(&child);
	life_reap(&child, 0);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
	close(go[0]);
	close(go[1]);
}

UNIT(a_forked_child_has_no_mapping)
{
	struct node_book book;
	pid_t child;
	int status;

	node_make_book(&book);
	assert(node_reserve(book.fd, 0, 4096) == 0);
	book.base[0] = 1;
	child = fork();
	if (child == 0)
		_exit(book.base[0]);
	assert(waitpid(child, &status, 0) == child);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	/* Who insists gets a mapping, and nothing in it. */
	assert(madvise(book.base, book.size, MADV_DOFORK) == 0);
	child = fork();
	if (child == 0)
		_exit(book.base[0]);
	assert(waitpid(child, &status, 0) == child);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	node_drop_book(&book);
}

static int life_clone_body(void *context)
{
	struct node_book *book = context;

	/* The parent's address space: so it is its owner as much as the parent. */
	book->base[0] = 42;
	return node_reserve(book->fd, 0x5000, 4096) == 0 ? 0 : 1;
}

UNIT(a_child_in_the_same_address_space_shares_it)
{
	static unsigned char stack[65536] __attribute__((aligned(16)));
	struct node_book book;
	pid_t child;
	int status;

	node_make_book(&book);
	node_write(&book, LIFE_DEVICE, 0, 1000, 3);
	assert(node_reserve(book.fd, 0, 4096) == 0);
	child = clone(life_clone_body, stack + sizeof(stack), CLONE_VM | SIGCHLD, &book);
	assert(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	assert(book.base[0] == 42);
	assert(node_becomes(LIFE_DEVICE, 1000, 3)); /* its end was nobody's */
	node_drop_book(&book);
}

UNIT(closing_changes_nothing)
{
	struct node_book book;
	int fd;

	node_make_book(&book);
	node_write(&book, LIFE_DEVICE, 0, 1000, 3);
	close(book.fd);
	assert(node_becomes(LIFE_DEVICE, 1000, 3));
	/* The owner gets a descriptor again, and can go on reserving by it. */
	fd = node_attach(book.id, 0);
	assert(fd >= 0 && node_reserve(fd, 0x20000, 4096) == 0);
	book.base[0x20000] = 1;
	close(fd);
	assert(munmap(book.base, book.size) == 0);
	assert(node_becomes(LIFE_DEVICE, 1000, 3)); /* the address space goes on */
	assert(node_attach(book.id, 0) == -ENOENT); /* but nobody holds its file */
}

/* One more descriptor is one more way to the same book, and none to a longer life. */
UNIT(a_duplicated_descriptor_does_not_prolong_the_book)
{
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	struct life_child child;
	struct node_book book;
	int go[2];

	assert(pipe2(go, O_CLOEXEC) == 0);
	if (life_start(&child, &book) == 0) {
		int twin = dup(book.fd); /* NOLINT(android-cloexec-dup): just this is tried */

		/* The first is closed: all goes on by the second. */
		assert(twin >= 0 && close(book.fd) == 0);
		assert(node_ioctl(twin, TTMEM_IOC_INFO, &info) == 0 && info.id == book.id);
		assert(node_reserve(twin, 0x20000, 4096) == 0);
		book.base[0x20000] = 1;
		assert(node_becomes(LIFE_DEVICE, 1000, 3));
		if (fork() == 0) {
			close(go[1]);
			life_wait_for(go[0]); /* with the second one, longer than its parent */
			_exit(0);
		}
		_exit(0);
	}
	life_go(&child);
	life_reap(&child, 0);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
	close(go[0]);
	close(go[1]);
}

/* The node is needed no more once there is a book; the book's file is, to be mapped. */
UNIT(mapped_after_a_close)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int node = node_open(), twin;
	uint8_t *base;

	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0 && close(node) == 0);
	twin = dup(args.fd); /* NOLINT(android-cloexec-dup): as above */
	assert(twin >= 0 && close(args.fd) == 0);
	assert(mmap(NULL, args.size, PROT_READ, MAP_SHARED, args.fd, 0) == MAP_FAILED &&
	       errno == EBADF);
	base = mmap(NULL, args.size, PROT_READ | PROT_WRITE, MAP_SHARED, twin, 0);
	assert(base != MAP_FAILED && node_reserve(twin, 0, 4096) == 0);
	base[0] = 1;
	assert(munmap(base, args.size) == 0);
	close(twin);
}

static void life_send(int socket, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec vector = {.iov_base = &(char){'x'}, .iov_len = 1};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = sizeof(control.space)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	assert(header);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	assert(sendmsg(socket, &message, 0) == 1);
}

/* A descriptor that was passed on reads, on its way and after the death of its maker. */
UNIT(a_passed_descriptor)
{
	struct life_child child;
	struct cmsghdr *header;
	struct node_book book;
	int pair[2], fd;
	uint64_t bytes;
	char byte;
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = sizeof(control.space)};

	assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	if (life_start(&child, &book) == 0) {
		life_send(pair[1], book.fd);
		_exit(0);
	}
	life_go(&child);
	life_reap(&child, 0);
	assert(node_becomes(LIFE_DEVICE, 0, 0));
	assert(recvmsg(pair[0], &message, 0) == 1);
	header = CMSG_FIRSTHDR(&message);
	assert(header);
	memcpy(&fd, CMSG_DATA(header), sizeof(int));
	assert(pread(fd, &bytes, 8, NODE_SHARDS + LIFE_DEVICE * NODE_SHARD_SIZE + 128 + 64) == 8);
	assert(bytes == 1000);
	assert(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
	       errno == EACCES);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

UNIT(parts_can_be_unmapped)
{
	struct node_book book;

	node_make_book(&book);
	node_write(&book, LIFE_DEVICE, 0, 1000, 3);
	assert(node_reserve(book.fd, 0x10000, 0x4000) == 0);
	memset(book.base + 0x10000, 1, 0x4000);
	assert(munmap(book.base + 0x11000, 0x1000) == 0);
	assert(book.base[0x10000] == 1 && book.base[0x12000] == 1);
	assert(mprotect(book.base + 0x12000, 0x1000, PROT_READ) == 0);
	assert(book.base[0x12000] == 1);
	assert(node_becomes(LIFE_DEVICE, 1000, 3));
	assert(munmap(book.base, book.size) == 0);
	close(book.fd);
}

UNIT(the_mapping_moves_but_does_not_grow)
{
	struct node_book book;
	uint8_t *moved;

	node_make_book(&book);
	assert(node_reserve(book.fd, 0, 0x2000) == 0);
	book.base[0x1000] = 7;
	assert(mremap(book.base, book.size, book.size + 0x1000, MREMAP_MAYMOVE) == MAP_FAILED);
	assert(mremap(book.base, 0, book.size, MREMAP_MAYMOVE) == MAP_FAILED); /* a second one */
	moved = mmap(NULL, book.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(moved != MAP_FAILED);
	moved = mremap(book.base, book.size, book.size, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	assert(moved != MAP_FAILED && moved[0x1000] == 7);
	moved = mremap(moved, book.size, 0x2000, 0);
	assert(moved != MAP_FAILED && moved[0x1000] == 7);
	assert(munmap(moved, 0x2000) == 0);
	close(book.fd);
}

/* Whoever is in another pid namespace has another pid, and sees only its own kind. */
UNIT(pid_namespaces)
{
	uint64_t bytes, buffers;
	struct node_book book;
	pid_t child, status;

	node_make_book(&book);
	node_write(&book, LIFE_DEVICE, 0, 1000, 3);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		assert(unshare(CLONE_NEWPID) == 0);
		child = fork();
		if (child == 0) {
			struct node_book own;

			assert(getpid() == 1);
			node_make_book(&own);
			node_write(&own, LIFE_DEVICE, 0, 77, 1);
			assert(node_totals_of(1, &bytes, &buffers) && bytes == 77);
			/* The one outside counts, but has no number in here. */
			assert(node_totals_of(0, &bytes, &buffers) && bytes == 1077);
			assert(strstr(node_text("/proc/driver/ttmem/7/pids"), "0\n1\n"));
			assert(node_attach(0, 1) >= 0);
			_exit(0);
		}
		assert(waitpid(child, &status, 0) == child && status == 0);
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	assert(node_totals_of(getpid(), &bytes, &buffers) && bytes == 1000);
	node_drop_book(&book);
}

/* Whether the log, from where it was read last, has a line with both. */
static bool life_log_has(int fd, const char *process, const char *left)
{
	bool found = false;
	char line[512];
	ssize_t n;

	/* A record that was overwritten is EPIPE, and the next one is read. */
	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = '\0';
		found = found || (strstr(line, process) && strstr(line, left));
	}
	return found;
}

/* One line for who left something; fair-test.c has that it is not one for each of hundreds. */
UNIT_LONG(the_log_tells_of_leaks, 120)
{
	static const struct timespec pause = {.tv_nsec = 200000000};
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct life_child child;
	struct node_book book;
	bool found = false;
	char process[32];

	assert(fd >= 0 && lseek(fd, 0, SEEK_END) >= 0);
	/* Others before us may have used up what is allowed in these seconds. */
	for (int i = 0; !found && i < 100; i++) {
		if (life_start(&child, &book) == 0)
			_exit(0);
		life_go(&child);
		life_reap(&child, 0);
		assert(node_becomes(LIFE_DEVICE, 0, 0));
		snprintf(process, sizeof(process), "process %d ", (int)child.pid);
		found = life_log_has(fd, process, "left 3 buffers, 1000 bytes of device memory");
		if (!found)
			(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	assert(found);
	close(fd);
}
