/* SPDX-License-Identifier: Apache-2.0 */

/* Books for the keeper's tests, and the keeper's process. */

#undef NDEBUG

#include "daemon/custody/testing/testing-keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "daemon/custody/keeper-process.h"
#include "daemon/custody/keeper-start.h"

static struct book_id *books; /* shared with forked children */

static void main_or_keeper(int argc, char **argv)
{
	if (keeper_process_is_meant(argc, argv))
		_exit(keeper_process_main(argc, argv));
}

/*
 * glibc passes these the arguments of main(). Not a constructor: link-time optimization merges
 * constructors into one function, which passes no arguments on.
 */
__attribute__((section(".init_array"), used)) static void (*before_main)(int,
									 char **) = main_or_keeper;

static void no_refill(void *context, struct keeper *keeper)
{
}

const struct keeper_hooks testing_keeper_hooks = {.refill = no_refill};

void testing_keeper_begin(void)
{
	assert(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	if (!books)
		books = mmap(NULL, TESTING_KEEPER_BOOKS * sizeof(*books), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(books != MAP_FAILED);
}

void testing_keeper_end(void)
{
	struct stat file;

	while (waitpid(-1, NULL, 0) > 0)
		;
	assert(errno == ECHILD);
	assert(lstat(testing_keeper_path(), &file) < 0 && errno == ENOENT);
}

const char *testing_keeper_path(void)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/keeper", unit_dir());
	return path;
}

static bool is_keeper(long pid)
{
	char path[64], name[64] = "", state = 0;
	CLEANUP_FCLOSE FILE *file = NULL;
	int found;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "re");
	found = file ? fscanf(file, "%*d (%63[^)]) %c", name, &state) : 0;
	return found == 2 && strcmp(name, KEEPER_PROCESS_NAME) == 0 && state != 'Z';
}

pid_t testing_keeper_pid(void)
{
	char path[64];
	pid_t pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	/* The test runner's limit is the deadline. */
	while (pid == 0) {
		CLEANUP_FCLOSE FILE *file = fopen(path, "re");
		char word[32];

		assert(file);
		while (fscanf(file, "%31s", word) == 1) {
			long child = strtol(word, NULL, 10);

			if (!is_keeper(child))
				continue;
			assert(pid == 0); /* there is only one */
			pid = (pid_t)child;
		}
	}
	return pid;
}

int testing_keeper_book(uint32_t number, struct keeper_entry *ret_entry)
{
	CLEANUP_CLOSE int writing = memfd_create("book", MFD_CLOEXEC);
	struct stat file;
	char path[64];
	int reading;

	assert(writing >= 0 && write(writing, &number, sizeof(number)) == sizeof(number));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", writing);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	assert(reading >= 0 && fstat(reading, &file) == 0);
	*ret_entry = (struct keeper_entry){
		.process.pid = 1000 + number,
		.source = 1 + number % 3,
		.process.start_ticks = number * UINT64_C(100000000000),
		.book.device = file.st_dev,
		.book.inode = file.st_ino,
	};
	(void)snprintf(ret_entry->comm, sizeof(ret_entry->comm), "book %u", number);
	return reading;
}

void testing_keeper_add(struct keeper *keeper, uint32_t number)
{
	struct keeper_entry entry;
	int fd = testing_keeper_book(number, &entry);

	assert(number < TESTING_KEEPER_BOOKS);
	books[number] = entry.book;
	keeper_add(keeper, &entry, fd);
	assert(close(fd) == 0);
}

void testing_keeper_remove(struct keeper *keeper, uint32_t number)
{
	keeper_remove(keeper, books[number]);
}

void testing_keeper_take(void *context, const struct keeper_entry *entry, int fd)
{
	struct testing_keeper_taken *taken = context;
	char comm[KEEPER_COMM_SIZE];
	uint32_t number;
	struct stat file;

	assert(pread(fd, &number, sizeof(number), 0) == sizeof(number));
	assert(number < TESTING_KEEPER_BOOKS && !taken->has[number]);
	assert(fstat(fd, &file) == 0 && file.st_dev == entry->book.device);
	assert(file.st_ino == entry->book.inode);
	assert(book_id_equal(books[number], entry->book));
	assert((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert(entry->process.pid == 1000 + number && entry->source == 1 + number % 3);
	assert(entry->process.start_ticks == number * UINT64_C(100000000000));
	(void)snprintf(comm, sizeof(comm), "book %u", number);
	assert(strcmp(comm, entry->comm) == 0);
	assert(close(fd) == 0);
	taken->has[number] = true;
	taken->count++;
}

int testing_keeper_line(void)
{
	int fd;

	assert(keeper_start_connect(testing_keeper_path(), &fd) == 0);
	return fd;
}

int testing_keeper_wait(int line, struct keeper_wire *ret_message, int *ret_fd)
{
	struct pollfd ready = {.fd = line, .events = POLLIN};

	assert(poll(&ready, 1, -1) == 1);
	return keeper_wire_receive(line, ret_message, ret_fd);
}

struct keeper_wire testing_keeper_list(int line)
{
	const struct keeper_wire take = KEEPER_WIRE_INIT(KEEPER_WIRE_TAKE);
	struct keeper_wire message;
	uint64_t count = 0;
	int fd;

	assert(keeper_wire_send(line, &take, -1) == 0);
	for (;;) {
		assert(testing_keeper_wait(line, &message, &fd) == 0);
		if (message.kind == KEEPER_WIRE_END)
			break;
		assert(message.kind == KEEPER_WIRE_HELD && close(fd) == 0);
		count++;
	}
	assert(message.held == count);
	return message;
}

void testing_keeper_send(int line, const void *bytes, size_t length, const int *fds, size_t count)
{
	assert(fd_pass_send(line, bytes, length, fds, count, 0) == 0);
}

struct keeper_wire testing_keeper_message(const struct keeper_entry *entry)
{
	struct keeper_wire message = KEEPER_WIRE_INIT(KEEPER_WIRE_ADD);

	message.pid = entry->process.pid;
	message.source = entry->source;
	message.start_ticks = entry->process.start_ticks;
	message.device = entry->book.device;
	message.inode = entry->book.inode;
	memcpy(message.comm, entry->comm, sizeof(message.comm));
	return message;
}
