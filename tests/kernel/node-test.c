/* SPDX-License-Identifier: Apache-2.0 */

/* What the node is for, with every argument right: books, attaching, reading, plain clients. */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

UNIT(a_book_is_a_file)
{
	struct node_book book;
	struct statfs system;
	struct stat st;
	char path[64], link[64] = "";

	node_make_book(&book);
	assert(fstat(book.fd, &st) == 0);
	assert(S_ISREG(st.st_mode) && st.st_ino == book.id && st.st_uid == geteuid());
	assert((uint64_t)st.st_size == NODE_BOOK_SIZE);
	assert(fstatfs(book.fd, &system) == 0 && system.f_type == TTMEM_FS_MAGIC);
	assert(fcntl(book.fd, F_GETFD) & FD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", book.fd);
	assert(readlink(path, link, sizeof(link) - 1) > 0);
	assert(strncmp(link, "/ttmem-book", 11) == 0);
	node_drop_book(&book);
}

UNIT(what_is_written_can_be_read)
{
	struct node_book book;
	char bytes[16] = "";
	int fd;

	node_make_book(&book);
	assert(node_reserve(book.fd, 0x10000, 0x2000) == 0);
	memcpy(book.base + 0x10ffc, "over two", 8);
	fd = node_attach(book.id, getpid());
	assert(fd >= 0);
	assert(pread(fd, bytes, 8, 0x10ffc) == 8 && memcmp(bytes, "over two", 8) == 0);
	/* The owner's descriptor reads too, and so does one opened through /proc. */
	assert(pread(book.fd, bytes, 4, 0x10ffc) == 4 && memcmp(bytes, "over", 4) == 0);
	close(fd);
	node_drop_book(&book);
}

UNIT(holes_read_as_zero)
{
	static char bytes[3 * 4096];
	struct node_book book;

	node_make_book(&book);
	assert(node_reserve(book.fd, 0x1000, 0x1000) == 0);
	memset(book.base + 0x1000, 'x', 0x1000);
	memset(bytes, 'y', sizeof(bytes));
	assert(pread(book.fd, bytes, sizeof(bytes), 0) == sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert(bytes[i] == (i / 4096 == 1 ? 'x' : 0));
	/* And so does all up to the end, behind which there is nothing. */
	assert(pread(book.fd, bytes, sizeof(bytes), NODE_BOOK_SIZE - 100) == 100);
	assert(pread(book.fd, bytes, sizeof(bytes), NODE_BOOK_SIZE) == 0);
	/* Reading has put nothing there. */
	assert(lseek(book.fd, 0x2000, SEEK_DATA) == -1 && errno == ENXIO);
	node_drop_book(&book);
}

UNIT(data_and_holes_are_found)
{
	struct node_book book;

	node_make_book(&book);
	assert(lseek(book.fd, 0, SEEK_DATA) == -1 && errno == ENXIO);
	assert(lseek(book.fd, 5, SEEK_HOLE) == 5);
	assert(node_reserve(book.fd, 0x3000, 0x2000) == 0);
	assert(lseek(book.fd, 0, SEEK_DATA) == 0x3000);
	assert(lseek(book.fd, 0x3005, SEEK_DATA) == 0x3005);
	assert(lseek(book.fd, 0x3005, SEEK_HOLE) == 0x5000);
	assert(lseek(book.fd, 0x5000, SEEK_DATA) == -1 && errno == ENXIO);
	assert(node_reserve(book.fd, NODE_BOOK_SIZE - 0x1000, 0x1000) == 0);
	assert(lseek(book.fd, NODE_BOOK_SIZE - 1, SEEK_HOLE) == (off_t)NODE_BOOK_SIZE);
	assert(lseek(book.fd, 0, SEEK_END) == (off_t)NODE_BOOK_SIZE);
	assert(lseek(book.fd, -1, SEEK_SET) == -1 && errno == EINVAL);
	assert(lseek(book.fd, -1, SEEK_DATA) == -1 && errno == ENXIO);
	assert(lseek(book.fd, NODE_BOOK_SIZE, SEEK_HOLE) == -1 && errno == ENXIO);
	node_drop_book(&book);
}

UNIT(reserving_twice_changes_nothing)
{
	struct node_book book;
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};

	node_make_book(&book);
	assert(node_reserve(book.fd, 0, 0x1000) == 0);
	memcpy(book.base, "stays", 6);
	assert(node_reserve(book.fd, 0, 0x3000) == 0);
	assert(strcmp((char *)book.base, "stays") == 0);
	assert(node_ioctl(book.fd, TTMEM_IOC_INFO, &info) == 0);
	assert(info.used == 0x3000 && info.id == book.id && info.size == NODE_BOOK_SIZE);
	assert(info.pid == getpid() && info.uid == geteuid() && info.flags == 0);
	node_drop_book(&book);
}

/* Behind the shards, so that no device gets a folder. */
#define NODE_DIRTY (UINT64_C(10) << 20)
#define NODE_DIRTY_SIZE (NODE_BOOK_SIZE - NODE_DIRTY)

/* A process whose book is found empty, and full of something when it ends. */
static pid_t node_fill(void)
{
	pid_t child = fork();
	struct node_book book;

	assert(child >= 0);
	if (child)
		return child;
	node_make_book(&book);
	assert(node_reserve(book.fd, NODE_DIRTY, NODE_DIRTY_SIZE) == 0);
	for (size_t i = 0; i < NODE_DIRTY_SIZE; i++)
		assert(book.base[NODE_DIRTY + i] == 0);
	memset(book.base + NODE_DIRTY, 0xa5, NODE_DIRTY_SIZE);
	_exit(0);
}

/* Tries for a while: memory is given back a moment after its book has ended. */
static bool node_all_is_free(void)
{
	static const struct timespec pause = {.tv_nsec = 10000000};

	for (int i = 0; i < 1000; i++) {
		if (strncmp(node_text("/proc/driver/ttmem/stats"), "all bytes 0 ", 12) == 0)
			return true;
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	return false;
}

/* Nobody finds in a book what was in another one, whose memory is the first to be had again. */
UNIT_LONG(reserved_memory_is_zero, 60)
{
	for (int round = 0; round < 4; round++) {
		pid_t child = node_fill();
		int status;

		assert(waitpid(child, &status, 0) == child && status == 0);
		assert(node_all_is_free());
	}
}

UNIT(the_room_is_a_cap)
{
	struct ttmem_ioc_book args = {
		.argsz = sizeof(args), .size = NODE_BOOK_SIZE, .room = 0x4000};
	int node = node_open();

	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
	assert(args.room == 0x4000);
	assert(node_reserve(args.fd, 0, 0x4000) == 0);
	assert(node_reserve(args.fd, 0x4000, 0x1000) == -ENOMEM);
	assert(node_reserve(args.fd, 0, 0x4000) == 0); /* that is there already */
	close(args.fd);
	/* Whole pages: less than one is one. */
	args = (struct ttmem_ioc_book){.argsz = sizeof(args), .size = NODE_BOOK_SIZE, .room = 1};
	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0 && args.room == 4096);
	close(args.fd);
	close(node);
}

static void node_expect_bus(volatile uint8_t *place)
{
	pid_t child = fork();
	struct node_book book;
	int status;

	if (child == 0) {
		/* The mapping of the parent is not here: one of its own. */
		(void)place;
		node_make_book(&book);
		book.base[0x5000] = 1;
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

UNIT(a_fault_allocates_nothing)
{
	node_expect_bus(NULL);
}

UNIT(opened_again_for_reading_only)
{
	struct node_book book;
	char path[64], byte;
	int fd;

	node_make_book(&book);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", book.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	assert(pread(fd, &byte, 1, 0) == 1 && byte == 0);
	assert(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
	assert(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EACCES);
	close(fd);
	assert(open(path, O_RDWR | O_CLOEXEC) == -1 && errno == EACCES);
	assert(open(path, O_WRONLY | O_CLOEXEC) == -1 && errno == EACCES);
	node_drop_book(&book);
}

UNIT(other_file_operations_are_refused)
{
	struct node_book book;

	node_make_book(&book);
	assert(ftruncate(book.fd, 4096) == -1 && errno == EPERM);
	assert(fchmod(book.fd, 0666) == -1 && errno == EPERM);
	assert(fchown(book.fd, 1, 1) == -1 && errno == EPERM);
	assert(write(book.fd, "x", 1) == -1 && errno == EINVAL);
	assert(pwrite(book.fd, "x", 1, 0) == -1);
	assert(fallocate(book.fd, 0, 0, 4096) == -1);
	node_drop_book(&book);
}

UNIT(a_plain_client_is_counted)
{
	int node = node_open();

	assert(node_alloc(node, 3, 0, 0x1000, 4096) == 1);
	assert(node_alloc(node, 3, 1, 0x1000, 100) == 1); /* another type: another buffer */
	assert(node_alloc(node, 3, 0, 0x1000, 4096) == 2);
	assert(node_becomes(3, 4196, 2));
	assert(node_alloc(node, 3, 0, 0x1000, 8192) == -EEXIST);
	assert(node_free(node, 3, 0, 0x1000) == 1);
	assert(node_free(node, 3, 0, 0x1000) == 0);
	assert(node_free(node, 3, 0, 0x1000) == -ENOENT);
	assert(node_becomes(3, 100, 1));
	close(node);
	assert(node_becomes(3, 0, 0));
}

UNIT(a_free_without_a_type_means_the_youngest)
{
	struct ttmem_ioc_track_free args = {
		.argsz = sizeof(args), .device = 1, .type = TTMEM_UAPI_ANY, .address = 64};
	int node = node_open();

	assert(node_alloc(node, 1, 5, 64, 500) == 1);
	assert(node_alloc(node, 1, 2, 64, 200) == 1);
	assert(node_ioctl(node, TTMEM_IOC_TRACK_FREE, &args) == 0 && args.size == 200);
	args = (struct ttmem_ioc_track_free){
		.argsz = sizeof(args), .device = 1, .type = TTMEM_UAPI_ANY, .address = 64};
	assert(node_ioctl(node, TTMEM_IOC_TRACK_FREE, &args) == 0 && args.size == 500);
	assert(node_free(node, 1, TTMEM_UAPI_ANY, 64) == -ENOENT);
	close(node);
}

UNIT(stats_of_all_and_of_oneself)
{
	struct ttmem_ioc_query_stats args = {.argsz = sizeof(args), .device = 9};
	struct node_book book;
	int node = node_open();
	int ready[2], go[2];
	pid_t child;
	char byte;

	assert(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		int own = node_open();

		assert(node_alloc(own, 9, 6, 4096, 1000) == 1);
		assert(write(ready[1], "r", 1) == 1);
		close(go[1]);
		(void)!read(go[0], &byte, 1);
		_exit(0);
	}
	close(go[0]);
	assert(read(ready[0], &byte, 1) == 1);
	node_make_book(&book);
	node_write(&book, 9, 0, 5000, 5);
	assert(node_alloc(node, 9, 0, 0, 70) == 1);
	assert(node_ioctl(node, TTMEM_IOC_QUERY_STATS, &args) == 0);
	assert(args.all[0].bytes == 5070 && args.all[0].buffers == 6);
	assert(args.own[0].bytes == 5070 && args.own[0].buffers == 6);
	assert(args.all[6].bytes == 1000 && args.all[6].buffers == 1);
	assert(args.own[6].bytes == 0 && args.own[6].buffers == 0);
	close(go[1]);
	assert(waitpid(child, NULL, 0) == child);
	close(ready[0]);
	close(ready[1]);
	node_drop_book(&book);
	close(node);
}
