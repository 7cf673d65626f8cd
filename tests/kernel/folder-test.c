/* SPDX-License-Identifier: Apache-2.0 */

/* The folders of devices: there while somebody uses the device or has a file of it open, and not longer. */

#include "node.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define FOLDER_DEVICE 110u
#define FOLDER_OF(device, file) "/proc/driver/ttmem/" #device "/" file
#define FOLDER_TRIES 1000

static void folder_pause(void)
{
	static const struct timespec pause = {.tv_nsec = 10000000};

	(void)nanosleep(&pause, NULL); /* shortened: then sooner */
}

static unsigned int folder_count(void)
{
	DIR *dir = opendir("/proc/driver/ttmem");
	const struct dirent *entry;
	unsigned int count = 0;

	assert(dir);
	while ((entry = readdir(dir))) /* NOLINT(concurrency-mt-unsafe): no threads */
		count += isdigit((unsigned char)entry->d_name[0]) != 0;
	closedir(dir);
	return count;
}

/* Tries for a while: they are taken away a moment later. */
static bool folder_becomes(unsigned int count)
{
	for (int i = 0; i < FOLDER_TRIES; i++) {
		if (folder_count() == count)
			return true;
		folder_pause();
	}
	printf("%u folders instead of %u\n", folder_count(), count);
	return false;
}

/* A process that touches every number there is leaves nothing behind: neither by a book nor by the plain calls. */
UNIT_LONG(every_device_at_once, 120)
{
	struct node_book book;
	int node;

	assert(folder_becomes(0));
	node_make_book(&book);
	assert(node_reserve(book.fd, NODE_SHARDS, TTMEM_UAPI_DEVICES * NODE_SHARD_SIZE) == 0);
	book.base[NODE_SHARDS] = 0; /* a mapping that nobody has used would not count */
	assert(folder_count() == TTMEM_UAPI_DEVICES);
	/* One of them twice, and again while it is there. */
	node = node_open();
	assert(node_alloc(node, FOLDER_DEVICE, 0, 0, 1) == 1);
	assert(node_alloc(node, FOLDER_DEVICE, 0, 1, 1) == 1);
	assert(node_reserve(book.fd, NODE_SHARDS, NODE_SHARD_SIZE) == 0);
	assert(folder_count() == TTMEM_UAPI_DEVICES);
	close(node);
	node = node_open();
	for (uint32_t device = 0; device < TTMEM_UAPI_DEVICES; device += 3)
		assert(node_alloc(node, device, 0, 0, 1) == 1);
	assert(folder_count() == TTMEM_UAPI_DEVICES);
	if (fork() == 0)
		_exit(0); /* who is neither the owner nor the last to close */
	assert(wait(NULL) > 0);
	close(node);
	assert(access(FOLDER_OF(110, "stats"), R_OK) == 0);
	node_drop_book(&book); /* the book lasts as long as we do */
	assert(folder_count() == TTMEM_UAPI_DEVICES);
}

/* Of a reservation that fails half way the first half is had, and so are its folders. */
UNIT(a_reservation_that_fails_halfway_keeps_its_first_half)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int node = node_open();

	args.room = 2 * NODE_SHARD_SIZE;
	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
	assert(node_reserve(args.fd, NODE_SHARDS + 200 * NODE_SHARD_SIZE, 3 * NODE_SHARD_SIZE) ==
	       -ENOMEM);
	assert(access(FOLDER_OF(200, "stats"), R_OK) == 0);
	assert(access(FOLDER_OF(201, "stats"), R_OK) == 0);
	assert(access(FOLDER_OF(202, "stats"), R_OK) == -1 && errno == ENOENT);
	/* The room is used up: not even a half is had, and nobody is told of a device. */
	assert(node_reserve(args.fd, NODE_SHARDS + 202 * NODE_SHARD_SIZE + 4096, 4096) == -ENOMEM);
	assert(access(FOLDER_OF(202, "stats"), R_OK) == -1 && errno == ENOENT);
	close(args.fd);
	close(node);
}

/* After the one above, and after each that ends here. */
UNIT_LONG(device_folders_go_with_their_last_user, 120)
{
	int first, second;

	assert(folder_becomes(0));
	for (int round = 0; round < 50; round++) {
		first = node_open();
		second = node_open();
		assert(node_alloc(first, FOLDER_DEVICE, 0, 0, 1) == 1);
		assert(node_alloc(second, FOLDER_DEVICE, 0, 0, 1) == 1);
		close(first);
		assert(strstr(node_text(FOLDER_OF(110, "stats")), "holders 1\n"));
		close(second);
		if (round % 10 == 0)
			assert(folder_becomes(0));
	}
	assert(folder_becomes(0));
	assert(open(FOLDER_OF(110, "stats"), O_RDONLY | O_CLOEXEC) == -1 && errno == ENOENT);
}

/* Who has a file open can go on reading it, and that is what keeps it. */
UNIT_LONG(an_open_folder_file_stays_readable, 120)
{
	int node = node_open(), fd, again;
	char text[64] = "";

	assert(folder_becomes(0));
	assert(node_alloc(node, FOLDER_DEVICE, 0, 0, 1) == 1);
	fd = open(FOLDER_OF(110, "stats"), O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	close(node);
	/* What has come and gone meanwhile shows that somebody has looked after folders. */
	node = node_open();
	assert(node_alloc(node, FOLDER_DEVICE + 1, 0, 0, 1) == 1);
	close(node);
	assert(folder_becomes(1));
	assert(pread(fd, text, sizeof(text) - 1, 0) > 0 && strstr(text, "holders 0\n"));
	again = open(FOLDER_OF(110, "pids"), O_RDONLY | O_CLOEXEC);
	assert(again >= 0);
	close(fd);
	assert(read(again, text, sizeof(text)) == 0 && folder_count() == 1);
	close(again);
	assert(folder_becomes(0));
}

/*
 * A process that reads into a page which nobody provides: it stays in the middle of its read() until it is
 * killed. 0 = this kernel cannot do that.
 */
static pid_t folder_stall(int node, int ready)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fault, fd;
	void *page;
	pid_t child = fork();

	assert(child >= 0);
	if (child)
		return child;
	close(node); /* ours is not to hold it */
	fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fault < 0) {
		assert(write(ready, "n", 1) == 1);
		_exit(0);
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(page != MAP_FAILED && ioctl(fault, UFFDIO_API, &api) == 0);
	area.range = (struct uffdio_range){.start = (uintptr_t)page, .len = 4096};
	assert(ioctl(fault, UFFDIO_REGISTER, &area) == 0);
	fd = open(FOLDER_OF(110, "stats"), O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && write(ready, "y", 1) == 1);
	(void)!read(fd, page, 4096);
	_exit(1);
}

/* What comes after its word to us is the read, in which it stays. */
static bool folder_sleeps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < FOLDER_TRIES; i++) {
		const char *state = strstr(node_text(path), ") ");

		if (state && (state[2] == 'S' || state[2] == 'D'))
			return true;
		folder_pause();
	}
	return false;
}

/* One who is being read to and never done keeps nobody from anything, and nothing longer than it lives. */
UNIT_LONG(a_reader_that_hangs_does_not_block_others, 120)
{
	int node = node_open(), other, ready[2], status;
	pid_t reader;
	char byte;

	assert(folder_becomes(0) && pipe2(ready, O_CLOEXEC) == 0);
	assert(node_alloc(node, FOLDER_DEVICE, 0, 0, 1) == 1);
	reader = folder_stall(node, ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	if (byte == 'y') {
		assert(folder_sleeps(reader));
		close(node);
		/* Others come and go, and the device itself is used anew. */
		other = node_open();
		assert(node_alloc(other, FOLDER_DEVICE + 1, 0, 0, 1) == 1);
		assert(folder_becomes(2));
		close(other);
		assert(folder_becomes(1));
		node = node_open();
		assert(node_alloc(node, FOLDER_DEVICE, 0, 0, 1) == 1);
		assert(strstr(node_text(FOLDER_OF(110, "stats")), "holders 1\n"));
		close(node);
		assert(folder_sleeps(reader));
		assert(kill(reader, SIGKILL) == 0);
	} else {
		close(node);
	}
	assert(waitpid(reader, &status, 0) == reader);
	close(ready[0]);
	close(ready[1]);
	if (byte == 'n')
		unit_skip("nobody can be made to wait here");
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert(folder_becomes(0));
}
