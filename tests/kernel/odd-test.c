/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What nobody should do with a book's file and its mapping, and somebody will: other calls of the kernel on
 * them.
 */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define ODD_DEVICE 50u

/* Programs that must not be kept waiting lock all that they have and will have. */
UNIT(memory_is_locked_before)
{
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	struct node_book book;

	assert(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	assert(node_becomes(ODD_DEVICE, 1000, 3));
	assert(node_ioctl(book.fd, TTMEM_IOC_INFO, &info) == 0);
	assert(info.used == NODE_SHARD_SIZE); /* the rest is still a hole */
	node_drop_book(&book);
}

UNIT(memory_is_locked_after)
{
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	struct node_book book;

	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	assert(mlockall(MCL_CURRENT) == 0);
	node_write(&book, ODD_DEVICE, 0, 2000, 3);
	assert(node_becomes(ODD_DEVICE, 2000, 3));
	assert(munlockall() == 0);
	assert(node_ioctl(book.fd, TTMEM_IOC_INFO, &info) == 0 && info.used == NODE_SHARD_SIZE);
	node_drop_book(&book);
}

/* Not copied into children, not dumped, not made larger; as the kernel tells of a mapping. */
UNIT(the_flags_of_the_mapping)
{
	static const char *const wanted[] = {" dc", " dd", " de", " sh"};
	const char *found, *end;
	struct node_book book;

	node_make_book(&book);
	found = strstr(node_text("/proc/self/smaps"), "/ttmem-book");
	assert(found && (found = strstr(found, "VmFlags:")) && (end = strchr(found, '\n')));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const char *flag = strstr(found, wanted[i]);

		assert(flag && flag < end);
	}
	node_drop_book(&book);
}

/* Advice must neither lose what is written nor open what is closed. */
UNIT(madvise_loses_nothing)
{
	struct node_book book;

	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	assert(madvise(book.base, book.size, MADV_DONTNEED) == 0);
	assert(node_becomes(ODD_DEVICE, 1000, 3));
	node_write(&book, ODD_DEVICE, 0, 1001, 3);
	assert(madvise(book.base, book.size, MADV_REMOVE) == -1);
	assert(madvise(book.base, book.size, MADV_FREE) == -1);
	assert(madvise(book.base, book.size, MADV_DODUMP) == -1);
	assert(madvise(book.base, book.size, MADV_WIPEONFORK) == -1);
	(void)madvise(book.base, book.size, MADV_PAGEOUT); /* if it likes */
	(void)madvise(book.base, book.size, MADV_COLD);
	(void)madvise(book.base, book.size, MADV_HUGEPAGE);
	(void)madvise(book.base, book.size, MADV_MERGEABLE);
	assert(node_becomes(ODD_DEVICE, 1001, 3));
	node_drop_book(&book);
}

/* A child that is given the mapping all the same cannot use it. */
UNIT(a_child_with_the_mapping)
{
	struct node_book book;
	pid_t child;
	int status;

	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	assert(madvise(book.base, book.size, MADV_DOFORK) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		book.base[NODE_SHARDS + ODD_DEVICE * NODE_SHARD_SIZE] = 1;
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	assert(node_becomes(ODD_DEVICE, 1000, 3));
	node_drop_book(&book);
}

/* Old programs whose readable memory is executable too. */
UNIT(readable_means_executable)
{
	struct node_book book;

	assert(personality(PER_LINUX | READ_IMPLIES_EXEC) >= 0);
	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	assert(mprotect(book.base, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == -1);
	node_drop_book(&book);
}

/* Each is refused, or does what it does to every file; none may change what can be read. */
UNIT(calls_for_other_files)
{
	char path[64], byte, target[] = "/tmp/odd-XXXXXX";
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	struct node_book book;
	int fd, out = mkstemp(target);
	int pipes[2];
	off_t from = 0;

	assert(out >= 0 && unlink(target) == 0 && pipe2(pipes, O_CLOEXEC) == 0);
	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", book.fd);
	assert(open(path, O_RDONLY | O_DIRECT | O_CLOEXEC) == -1 && errno == EINVAL);
	assert(open(path, O_RDONLY | O_TRUNC | O_CLOEXEC) == -1);
	fd = open(path, O_PATH | O_CLOEXEC);
	assert(fd >= 0 && read(fd, &byte, 1) == -1 && errno == EBADF);
	assert(node_reserve(fd, 0, 4096) == -EBADF);
	close(fd);
	assert(syscall(SYS_execveat, book.fd, "", (char *[]){NULL}, (char *[]){NULL},
		       AT_EMPTY_PATH) == -1);
	assert(link(path, "/tmp/odd-link") == -1);
	(void)sendfile(out, book.fd, &from, 4096);
	(void)splice(book.fd, NULL, pipes[1], NULL, 4096, SPLICE_F_NONBLOCK);
	(void)copy_file_range(book.fd, &from, out, NULL, 4096, 0);
	assert(posix_fadvise(book.fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	(void)posix_fadvise(book.fd, 0, 0, POSIX_FADV_WILLNEED);
	(void)readahead(book.fd, 0, 4096);
	(void)fsync(book.fd);
	(void)syncfs(book.fd);
	assert(flock(book.fd, LOCK_EX | LOCK_NB) == 0);
	assert(futimens(book.fd, NULL) == -1 && errno == EPERM);
	assert(preadv2(book.fd, &vector, 1, 0, RWF_NOWAIT) == -1);
	assert(preadv2(book.fd, &vector, 1, 0, RWF_HIPRI) <= 1);
	assert(node_becomes(ODD_DEVICE, 1000, 3));
	node_drop_book(&book);
	close(out);
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * A path holds the inode and no file. With the last file gone it must still be the same file system in which
 * the book is found again. Whether it was is told by the kernel's log, and best by one that watches its memory.
 */
UNIT(a_path_outlives_the_last_file)
{
	for (int round = 0; round < 6; round++) {
		struct node_book book;
		struct stat before, after;
		char path[64];
		int way, again;

		node_make_book(&book);
		node_write(&book, ODD_DEVICE, 0, 1000, 3);
		assert(fstat(book.fd, &before) == 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", book.fd);
		way = open(path, O_PATH | O_CLOEXEC);
		assert(way >= 0);
		node_drop_book(&book);
		again = node_attach(book.id, 0);
		assert(again >= 0);
		assert(close(way) == 0);
		assert(fstat(again, &after) == 0);
		assert(after.st_dev == before.st_dev && after.st_ino == before.st_ino);
		assert(strstr(node_text("/proc/driver/ttmem/totals"), "book"));
		assert(close(again) == 0);
	}
}

/* Somebody who waits for news of the file keeps its inode too: nobody may be kept waiting by that. */
UNIT(inotify_on_the_last_file_blocks_nobody)
{
	for (int round = 0; round < 6; round++) {
		int watch = inotify_init1(IN_CLOEXEC);
		struct node_book book;
		char path[64];

		assert(watch >= 0);
		node_make_book(&book);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", book.fd);
		assert(inotify_add_watch(watch, path, IN_ALL_EVENTS) > 0);
		node_drop_book(&book);
		sync();
		if (round % 2)
			assert(close(node_attach(book.id, 0)) == 0);
		assert(close(watch) == 0);
	}
}

/* Reads at any place and of any size, into memory that is not all there. */
UNIT(odd_reads)
{
	static char bytes[70000];
	struct iovec vectors[3];
	struct node_book book;
	char *page;

	node_make_book(&book);
	assert(node_reserve(book.fd, 0x10000, 0x10000) == 0);
	for (size_t i = 0; i < 0x10000; i++)
		book.base[0x10000 + i] = (uint8_t)(i % 251 + 1);
	for (size_t at = 0xfff0; at < 0x20010; at += 4093) {
		for (size_t size = 1; size < sizeof(bytes); size = size * 3 + 1) {
			assert(pread(book.fd, bytes, size, (off_t)at) == (ssize_t)size);
			for (size_t i = 0; i < size; i++) {
				size_t place = at + i;
				bool data = place >= 0x10000 && place < 0x20000;

				assert((uint8_t)bytes[i] ==
				       (data ? (place - 0x10000) % 251 + 1 : 0));
			}
		}
	}
	assert(pread(book.fd, bytes, 0, 0x10000) == 0);
	assert(pread(book.fd, bytes, 10, -1) == -1 && errno == EINVAL);
	assert(pread(book.fd, bytes, 10, INT64_MAX - 10) == 0);
	assert(syscall(SYS_pread64, book.fd, 1L, 10L, 0x10000L) == -1 && errno == EFAULT);
	assert(syscall(SYS_pread64, book.fd, 1L, 10L, 0L) == -1 && errno == EFAULT); /* a hole */
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	assert(pread(book.fd, page + 4000, 1000, 0x10000) == 96);
	vectors[0] = (struct iovec){bytes, 3};
	vectors[1] = (struct iovec){bytes + 3, 0};
	vectors[2] = (struct iovec){bytes + 3, 5000};
	assert(preadv(book.fd, vectors, 3, 0x1fffe) == 5003 && bytes[2] == 0 && bytes[0]);
	munmap(page, 4096);
	node_drop_book(&book);
}

/* What others do to the memory of the owner, a debugger for one, is done to the book. */
UNIT(written_from_outside)
{
	uint64_t value = 4321;
	struct node_book book;
	struct iovec local = {&value, sizeof(value)}, remote;
	uint64_t at = NODE_SHARDS + ODD_DEVICE * NODE_SHARD_SIZE + 128 + 64;
	pid_t child, parent = getpid();
	int status;

	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		remote = (struct iovec){book.base + at, sizeof(value)};
		assert(process_vm_writev(parent, &local, 1, &remote, 1, 0) == sizeof(value));
		remote.iov_base = book.base + 0x5000; /* a hole: no memory appears */
		assert(process_vm_writev(parent, &local, 1, &remote, 1, 0) == -1);
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	assert(node_becomes(ODD_DEVICE, 4321, 3));
	node_drop_book(&book);
}

/* Who has ended holds nothing, even if somebody has its book open. */
UNIT(usage_after_the_end)
{
	struct node_book book;
	char path[64];
	int pair[2], status, fd;
	uint64_t id;
	pid_t child;

	assert(pipe2(pair, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		node_make_book(&book);
		node_write(&book, ODD_DEVICE, 0, 1000, 3);
		assert(write(pair[1], &book.id, 8) == 8);
		(void)pause(); /* until it is killed */
	}
	assert(read(pair[0], &id, 8) == 8);
	fd = node_attach(id, child);
	assert(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	assert(strstr(node_text(path), "drm-resident-dram:\t1000\n"));
	assert(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	assert(node_becomes(ODD_DEVICE, 0, 0));
	assert(strstr(node_text(path), "drm-resident-dram:\t0\n"));
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* With a program that really is one of 32 bits. */
UNIT(a_32_bit_program_can_use_the_node)
{
	pid_t child;
	int status;

	assert(access("/bin/kernel-compat32", X_OK) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		execl("/bin/kernel-compat32", "kernel-compat32", (char *)NULL);
		_exit(127);
	}
	assert(waitpid(child, &status, 0) == child);
	if (status)
		printf("status %#x: line %d\n", (unsigned int)status, WEXITSTATUS(status));
	assert(status == 0);
	assert(node_becomes(9, 0, 0));
}

static bool odd_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

#define ODD_PAGES 4000
#define ODD_SIGNALS \
	5 /* for one call; if there were no end of them, neither would the call have one */
#define ODD_CALLS 50

static timer_t odd_timer;
static volatile sig_atomic_t odd_signals;

static void odd_on_signal(int unused)
{
	static const struct itimerspec off;

	if (++odd_signals % ODD_SIGNALS == 0)
		(void)timer_settime(odd_timer, 0, &off, NULL); /* cannot fail */
}

/* To make a book takes all locks of the address space, which the kernel gives up at any signal; its caller does not. */
UNIT_LONG(signals_while_a_book_is_made, 60)
{
	static const struct itimerspec often = {{.tv_nsec = 300000}, {.tv_nsec = 300000}};
	struct sigaction action = {.sa_handler = odd_on_signal};
	uint8_t *pages =
		mmap(NULL, ODD_PAGES * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int node = node_open();

	assert(pages != MAP_FAILED);
	for (size_t i = 0; i < ODD_PAGES; i += 2) /* so many mappings */
		assert(mprotect(pages + i * 4096, 4096, PROT_NONE) == 0);
	assert(timer_create(CLOCK_MONOTONIC, NULL, &odd_timer) == 0);
	for (int i = 0; i < ODD_CALLS; i++) {
		struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};

		action.sa_flags = i % 2 ? SA_RESTART : 0;
		assert(sigaction(SIGALRM, &action, NULL) == 0);
		odd_signals = 0;
		assert(timer_settime(odd_timer, 0, &often, NULL) == 0);
		assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
		while (odd_signals < ODD_SIGNALS)
			(void)sched_yield(); /* always succeeds */
		close(args.fd);
	}
	assert(timer_delete(odd_timer) == 0 && munmap(pages, ODD_PAGES * 4096) == 0);
	close(node);
}

/* NULL, or where the kernel's tracer is. */
static const char *odd_tracer(void)
{
	static const char place[] = "/tmp/odd-tracing";

	if (mkdir(place, 0700) < 0 && errno != EEXIST)
		return NULL;
	if (mount("tracefs", place, "tracefs", 0, NULL) < 0)
		return NULL;
	if (odd_put("/tmp/odd-tracing/set_ftrace_filter", ":mod:ttmem") &&
	    odd_put("/tmp/odd-tracing/current_tracer", "function"))
		return place;
	umount(place);
	return NULL;
}

/* Opened like this, both files forget what they had. */
static bool odd_clear(const char *path)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd >= 0 && close(fd) == 0;
}

static size_t odd_traced(void)
{
	const char *text = node_text("/tmp/odd-tracing/trace");
	size_t lines = 0;

	for (; *text; text = strchr(text, '\n') + 1) {
		lines += *text != '#';
		if (!strchr(text, '\n'))
			break;
	}
	return lines;
}

/*
 * When nothing happens the module does nothing: with a book, a client and an open view there, no function of it is
 * called for a whole second. Who ended before us may still be given back what they had, so the silence may be a while
 * in coming; a timer would never let it come.
 */
UNIT_LONG(an_idle_module_runs_no_code, 120)
{
	static const struct timespec second = {.tv_sec = 1};
	const char *tracer = odd_tracer();
	struct node_book book;
	size_t calls = 1;
	int node, view;

	if (!tracer)
		unit_skip("this kernel does not trace functions");
	node = node_open();
	node_make_book(&book);
	node_write(&book, ODD_DEVICE, 0, 1000, 3);
	assert(node_alloc(node, ODD_DEVICE, 1, 0, 500) == 1);
	view = open("/proc/driver/ttmem/50/stats", O_RDONLY | O_CLOEXEC);
	assert(view >= 0);
	assert(odd_traced() > 0); /* it does see us */
	for (int i = 0; calls > 0 && i < 30; i++) {
		assert(odd_clear("/tmp/odd-tracing/trace"));
		(void)nanosleep(&second, NULL); /* shortened: then it is shorter */
		calls = odd_traced();
	}
	if (calls > 0)
		puts(node_text("/tmp/odd-tracing/trace"));
	assert(calls == 0);
	/* And it still would have seen us. */
	assert(node_free(node, ODD_DEVICE, 1, 0) == 0 && odd_traced() > 0);
	assert(odd_put("/tmp/odd-tracing/current_tracer", "nop"));
	assert(odd_clear("/tmp/odd-tracing/set_ftrace_filter"));
	assert(umount(tracer) == 0);
	node_drop_book(&book);
	close(view);
	close(node);
}
