/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The machine goes to sleep and wakes up, while one process writes to its book as fast as it can, and others
 * hold a book, a node and an attached file: afterwards all of it is as it was, and goes on.
 *
 * It is the real thing (ACPI's S3: devices off, processors down). Whoever runs the machine wakes it up as soon
 * as it reads "@@asleep" on the console: boot.sh, through QEMU's monitor.
 */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/testing/unit.h"

#define SLEEP_DEVICE 51u  /* of the test */
#define SLEEP_WRITERS 52u /* of the writer */
#define SLEEP_TRIES 10

/* What the writer says of itself. */
struct sleep_board {
	uint64_t events;
	uint64_t bytes, buffers; /* once it stands still */
	uint32_t stop, stands;
};

static bool sleep_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static _Noreturn void sleep_write(struct sleep_board *board)
{
	uint64_t sizes[16] = {0};

	assert(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	setenv("TTMEM_SOCKET", "none", 1); /* NOLINT(concurrency-mt-unsafe): a child alone */
	board->bytes = 99;
	board->buffers = 1;
	ttmem_alloc(SLEEP_WRITERS, 1, 0, 99, "stays");
	for (uint64_t i = 0; !__atomic_load_n(&board->stop, __ATOMIC_RELAXED); i++) {
		uint64_t slot = i % 16;

		if (sizes[slot])
			ttmem_free(SLEEP_WRITERS, 0, slot * 4096);
		sizes[slot] = sizes[slot] ? 0 : i + 1;
		if (sizes[slot])
			ttmem_alloc(SLEEP_WRITERS, 0, slot * 4096, sizes[slot], "writer");
		__atomic_store_n(&board->events, i + 1, __ATOMIC_RELEASE);
	}
	for (size_t slot = 0; slot < 16; slot++) {
		board->bytes += sizes[slot];
		board->buffers += sizes[slot] != 0;
	}
	__atomic_store_n(&board->stands, 1, __ATOMIC_RELEASE);
	for (;;)
		(void)pause(); /* until it is killed */
}

/* Until it has written something that it had not before. */
static void sleep_await_events(const struct sleep_board *board)
{
	static const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t before = __atomic_load_n(&board->events, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&board->events, __ATOMIC_ACQUIRE) < before + 100)
		(void)nanosleep(&pause, NULL); /* the case has a time limit */
}

static unsigned long sleep_count(void)
{
	return strtoul(node_text("/sys/power/suspend_stats/success"), NULL, 10);
}

/* Something that happens just then is a reason for the kernel not to: once more. */
static void sleep_now(void)
{
	unsigned long before = sleep_count();

	for (int i = 0; i < SLEEP_TRIES && sleep_count() == before; i++) {
		assert(sleep_put("/dev/console", "\n@@asleep\n"));
		if (!sleep_put("/sys/power/state", "mem"))
			printf("not this time: %d\n", errno);
		assert(sleep_put("/dev/console", "\n@@awake\n"));
	}
	assert(sleep_count() == before + 1);
}

UNIT_LONG(suspend_and_resume, 240)
{
	struct sleep_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int node = node_open(), reader;
	struct node_book book;
	uint64_t word = 0;
	pid_t writer;

	if (!strstr(node_text("/sys/power/mem_sleep"), "deep")) {
		close(node);
		unit_skip("this kernel cannot send the machine to sleep");
	}
	assert(board != MAP_FAILED && sleep_put("/sys/power/mem_sleep", "deep"));
	writer = fork();
	assert(writer >= 0);
	if (writer == 0)
		sleep_write(board);
	node_make_book(&book);
	node_write(&book, SLEEP_DEVICE, 0, 1000, 3);
	assert(node_reserve(book.fd, 0, 4096) == 0);
	*(uint64_t *)(void *)book.base = 4711;
	reader = node_attach(book.id, 0);
	assert(reader >= 0 && node_alloc(node, SLEEP_DEVICE, 1, 0, 500) == 1);
	sleep_await_events(board);

	sleep_now();

	assert(node_becomes(SLEEP_DEVICE, 1500, 4));
	assert(pread(reader, &word, sizeof(word), 0) == sizeof(word) && word == 4711);
	node_write(&book, SLEEP_DEVICE, 0, 2000, 3);
	assert(node_free(node, SLEEP_DEVICE, 1, 0) == 0);
	assert(node_becomes(SLEEP_DEVICE, 2000, 3));
	sleep_await_events(board);
	__atomic_store_n(&board->stop, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&board->stands, __ATOMIC_ACQUIRE))
		(void)usleep(5000); /* the case has a time limit */
	assert(board->buffers > 0 && node_becomes(SLEEP_WRITERS, board->bytes, board->buffers));
	assert(kill(writer, SIGKILL) == 0 && waitpid(writer, NULL, 0) == writer);
	assert(node_becomes(SLEEP_WRITERS, 0, 0));
	node_drop_book(&book);
	munmap(board, sizeof(*board));
	close(reader);
	close(node);
}
