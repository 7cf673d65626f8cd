/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Owners that write what they like into their books: random bytes over every page of the mapping, again and
 * again, and counters beyond all measure, while others read it in every way there is. Nobody else's figures
 * may be off by a byte, on the same devices too; the kernel has nothing to say in its log; and the command,
 * which reads such a book as deep as it leads, comes to its end.
 */

#include "guest-command.h"
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"

#define HOSTILE_FIGURE_MAX (UINT64_C(1) << 62) /* what the module takes for a figure at most */
#define HOSTILE_TYPE 4u                        /* TRACE: the last of the columns that we read */
#define HOSTILE_LIARS 5
#define HOSTILE_NICE 10
#define HOSTILE_FDS 4096 /* the library keeps its own where others do not look */

enum hostile_actor {
	HOSTILE_SCRIBBLER,        /* its descriptor is found under /proc */
	HOSTILE_CLOSED_SCRIBBLER, /* readers must attach */
	HOSTILE_PROC_READER,
	HOSTILE_ATTACHED_READER,
	HOSTILE_ACTORS,
};

/* Shared by all: who they are, and how often each has done what it does. */
struct hostile_board {
	pid_t pids[HOSTILE_ACTORS];
	uint64_t ids[HOSTILE_ACTORS]; /* books */
	uint32_t rounds[HOSTILE_ACTORS];
};

static uint64_t hostile_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The book that the library has made, with memory behind all of it. */
static void hostile_take_over(struct node_book *ret_book)
{
	struct rlimit limit = {NODE_BOOK_SIZE, NODE_BOOK_SIZE};
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	uintptr_t start, end;
	int fd = 2;

	setenv("TTMEM_SOCKET", "none", 1); /* NOLINT(concurrency-mt-unsafe): a child alone */
	assert(setrlimit(RLIMIT_FSIZE, &limit) == 0); /* no larger book, either */
	for (uint64_t i = 1; i < 200; i++)
		ttmem_alloc((uint32_t)i % 7, (uint32_t)i % TTMEM_UAPI_TYPES, i * 4096, i, "mine");
	do {
		fd++;
		info = (struct ttmem_ioc_info){.argsz = sizeof(info)};
	} while (fd < HOSTILE_FDS &&
		 (node_ioctl(fd, TTMEM_IOC_INFO, &info) < 0 || info.pid != getpid()));
	assert(fd < HOSTILE_FDS && info.size == NODE_BOOK_SIZE);
	assert(node_reserve(fd, 0, NODE_BOOK_SIZE) == 0);
	assert(node_find_mapping(&start, &end) == NODE_BOOK_SIZE);
	assert(mprotect((void *)start, NODE_BOOK_SIZE, PROT_READ | PROT_WRITE) == 0);
	*ret_book = (struct node_book){
		.fd = fd, .id = info.id, .base = (uint8_t *)start, .size = NODE_BOOK_SIZE};
}

/*
 * Once over the whole mapping. The first way leaves nothing of it; the others leave so much that readers go
 * on: the header, or all but a word here and there, or counters that the kernel and other readers believe.
 */
static void hostile_scribble(const struct node_book *book, const uint8_t *genuine, uint32_t way,
			     uint64_t *state)
{
	uint64_t *words = (uint64_t *)(void *)book->base;
	uint64_t from = way == 0 ? 0 : BOOK_PAGE;

	if (way < 2) {
		memcpy(book->base, genuine, from);
		for (uint64_t i = from / 8; i < book->size / 8; i++)
			words[i] = hostile_random(state);
		return;
	}
	memcpy(book->base, genuine, book->size);
	for (uint64_t i = from / 8; i < book->size / 8; i += 1 + hostile_random(state) % 128)
		words[i] = hostile_random(state) >> (hostile_random(state) % 64);
	for (uint32_t device = 0; way == 3 && device < TTMEM_UAPI_DEVICES; device++) {
		struct book_shard *shard = (struct book_shard *)(void *)(book->base + NODE_SHARDS +
									 device * NODE_SHARD_SIZE);

		shard->state = 1;
		shard->has_warm = 1;
		memset(shard->hot, 0xff, sizeof(shard->hot));
		memset(shard->warm, 0xff, sizeof(shard->warm));
	}
}

static _Noreturn void hostile_scribbler(struct hostile_board *board, enum hostile_actor self)
{
	uint8_t *genuine = malloc(NODE_BOOK_SIZE);
	uint64_t state = 88172645463325252u + (uint64_t)self;
	struct node_book book;

	hostile_take_over(&book);
	assert(genuine);
	memcpy(genuine, book.base, NODE_BOOK_SIZE);
	__atomic_store_n(&board->ids[self], book.id, __ATOMIC_RELEASE);
	if (self == HOSTILE_CLOSED_SCRIBBLER)
		close(book.fd);
	for (uint32_t round = 0;; round++) {
		hostile_scribble(&book, genuine, round % 4, &state);
		__atomic_store_n(&board->rounds[self], round + 1, __ATOMIC_RELEASE);
	}
}

static _Noreturn void hostile_proc_reader(struct hostile_board *board)
{
	static const char *const names[] = {"../totals", "allocations", "pids", "stats"};
	char path[64];

	for (uint32_t round = 0;; round++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			snprintf(path, sizeof(path), "/proc/driver/ttmem/%u/%s", round % 7,
				 names[i]);
			/* Only who is not there leaves a file empty; the honest one is on 3. */
			assert(*node_text(path) || (i == 2 && round % 7 != 3));
		}
		__atomic_store_n(&board->rounds[HOSTILE_PROC_READER], round + 1, __ATOMIC_RELEASE);
	}
}

/* Attaches anew each time, by turns to both; every byte can be read, whatever it is. */
static _Noreturn void hostile_attached_reader(struct hostile_board *board)
{
	static char bytes[0x10000];

	for (uint32_t round = 0;; round++) {
		struct ttmem_ioc_info info = {.argsz = sizeof(info)};
		int fd = node_attach(board->ids[round % 2], 0);

		assert(fd >= 0);
		for (uint64_t at = 0; at < NODE_BOOK_SIZE; at += sizeof(bytes))
			assert(pread(fd, bytes, sizeof(bytes), (off_t)at) == sizeof(bytes));
		assert(lseek(fd, 0, SEEK_HOLE) == (off_t)NODE_BOOK_SIZE);
		assert(node_ioctl(fd, TTMEM_IOC_INFO, &info) == 0 && info.used == NODE_BOOK_SIZE);
		close(fd);
		__atomic_store_n(&board->rounds[HOSTILE_ATTACHED_READER], round + 1,
				 __ATOMIC_RELEASE);
	}
}

static void hostile_start(struct hostile_board *board, enum hostile_actor self)
{
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid > 0) {
		board->pids[self] = pid;
		return;
	}
	assert(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	assert(nice(HOSTILE_NICE) == HOSTILE_NICE); /* there is work to be done beside it */
	if (self < HOSTILE_PROC_READER)
		hostile_scribbler(board, self);
	if (self == HOSTILE_PROC_READER)
		hostile_proc_reader(board);
	hostile_attached_reader(board);
}

/* Until each actor, scribblers only if @readers is false, has gone on by that many rounds. */
static void hostile_await(struct hostile_board *board, bool readers, uint32_t more)
{
	static const struct timespec pause = {.tv_nsec = 20000000};
	uint32_t count = readers ? HOSTILE_ACTORS : HOSTILE_PROC_READER;
	uint32_t begun[HOSTILE_ACTORS];

	for (uint32_t i = 0; i < count; i++)
		begun[i] = __atomic_load_n(&board->rounds[i], __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count; i++) {
		while (__atomic_load_n(&board->rounds[i], __ATOMIC_ACQUIRE) - begun[i] < more) {
			assert(waitpid(board->pids[i], NULL, WNOHANG) == 0); /* it lives */
			(void)nanosleep(&pause, NULL); /* the case has a time limit */
		}
	}
}

/* What the views say of a process on a device: its line in totals and its row in the table. */
static void hostile_check(pid_t pid, uint32_t device, uint64_t bytes, uint64_t buffers)
{
	char path[64], wanted[128];
	const char *text = node_text("/proc/driver/ttmem/totals");
	int of = 0;

	while (of != pid) {
		text = strstr(text, "\nholder ");
		assert(text && sscanf(text, "\nholder %*u %*s %*u %d", &of) == 1);
		text++;
	}
	text = strchr(text, '\n');
	snprintf(wanted, sizeof(wanted), "\nmemory %u %u %llu %llu %llu ", device, HOSTILE_TYPE,
		 (unsigned long long)bytes, (unsigned long long)buffers, (unsigned long long)bytes);
	assert(text && strncmp(text, wanted, strlen(wanted)) == 0);

	snprintf(path, sizeof(path), "/proc/driver/ttmem/%u/allocations", device);
	snprintf(wanted, sizeof(wanted), "\n%-8d ", (int)pid);
	text = strstr(node_text(path), wanted);
	assert(text);
	snprintf(wanted, sizeof(wanted), " %-10d %-10d %-10d %-10llu %-10llu %-10d %-10d\n", 0, 0,
		 0, (unsigned long long)bytes, (unsigned long long)buffers, 0, 0);
	text = strchr(text + 1, '\n') + 1 - strlen(wanted);
	assert(strncmp(text, wanted, strlen(wanted)) == 0);
}

/* The caller's share of what a device has is exact, and the whole is no less. */
static void hostile_query(int node, uint32_t device, uint64_t own)
{
	struct ttmem_ioc_query_stats args = {.argsz = sizeof(args), .device = device};

	assert(node_ioctl(node, TTMEM_IOC_QUERY_STATS, &args) == 0);
	assert(args.own[HOSTILE_TYPE].bytes == own && args.own[0].bytes == 0);
	assert(args.all[HOSTILE_TYPE].bytes >= own);
}

/* Runs the command, which ends by itself and well; and says of the honest one what is true. */
static void hostile_run(const char *arguments, int pid, const char *wanted)
{
	char line[256], owner[32];
	const char *text, *next;
	int status;

	snprintf(line, sizeof(line), "TTMEM_SOCKET=none timeout 1000 ttmem %s --json", arguments);
	text = command_output(line, &status);
	printf("%s: status %#x, %zu bytes\n", arguments, (unsigned int)status, strlen(text));
	assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	assert(strncmp(text, "{\"schema\":\"ttmem.", 17) == 0);
	assert(strcmp(text + strlen(text) - 2, "}\n") == 0); /* and not cut off */
	snprintf(owner, sizeof(owner), "{\"pid\":%d,", pid);
	for (text = strstr(text, owner); wanted; text = strstr(text + 1, owner)) {
		const char *found;

		assert(text);
		next = strstr(text + 1, "{\"pid\":");
		found = strstr(text, wanted);
		if (found && (!next || found < next))
			return;
	}
}

UNIT_LONG(a_book_overwritten_with_garbage_does_no_harm, 300)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct hostile_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct command_holder holder;
	struct node_book honest;
	int node = node_open();
	char line[64];

	assert(board != MAP_FAILED);
	command_hold(&holder, "book", sizes, 4321);
	node_make_book(&honest);
	node_write(&honest, 3, HOSTILE_TYPE, 12345, 6);
	for (enum hostile_actor actor = 0; actor < HOSTILE_PROC_READER; actor++)
		hostile_start(board, actor);
	hostile_await(board, false, 1);
	hostile_start(board, HOSTILE_PROC_READER);
	hostile_start(board, HOSTILE_ATTACHED_READER);
	for (int i = 0; i < 2; i++) {
		hostile_await(board, true, 1);
		hostile_check(getpid(), 3, 12345, 6);
		hostile_query(node, 3, 12345);
		node_write(&honest, 3, HOSTILE_TYPE, 12345, 6); /* it goes on working */
		hostile_run("smi", holder.pid,
			    "\"memory\":{\"DRAM\":{\"used\":6000,\"occupied\":null,\"buffers\":3,"
			    "\"peak\":6000,\"bound\":\"exact\"}");
	}
	hostile_run("buffers", 0, NULL);
	hostile_run("doctor", 0, NULL);
	snprintf(line, sizeof(line), "buffers --pid %d", (int)holder.pid);
	hostile_run(line, holder.pid, "\"size\":3000,");
	for (enum hostile_actor actor = 0; actor < HOSTILE_ACTORS; actor++) {
		assert(kill(board->pids[actor], SIGKILL) == 0);
		assert(waitpid(board->pids[actor], NULL, 0) == board->pids[actor]);
	}
	assert(node_becomes(3, 12345, 6) && node_becomes(30, 6000, 3) && node_becomes(4, 0, 0));
	command_release(&holder);
	node_drop_book(&honest);
	munmap(board, sizeof(*board));
	close(node);
}

/* A child that holds something on device 3, until it is killed. */
static pid_t hostile_fork(void (*hold)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		hold();
		assert(write(ready[1], "r", 1) == 1);
		for (;;)
			(void)pause(); /* signals do not end it */
	}
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

static void hostile_lie(void)
{
	struct node_book book;

	node_make_book(&book);
	node_write(&book, 3, HOSTILE_TYPE, UINT64_MAX, UINT64_MAX);
}

static void hostile_report(void)
{
	assert(node_alloc(node_open(), 3, HOSTILE_TYPE, 0, 777) == 1);
}

/* What all have on device 3 together, in the two views that add up. */
static void hostile_check_sum(int node, uint64_t bytes, uint64_t buffers)
{
	struct ttmem_ioc_query_stats args = {.argsz = sizeof(args), .device = 3};
	char wanted[128];

	assert(node_ioctl(node, TTMEM_IOC_QUERY_STATS, &args) == 0);
	assert(args.all[HOSTILE_TYPE].bytes == bytes && args.all[HOSTILE_TYPE].buffers == buffers);
	assert(args.own[HOSTILE_TYPE].bytes == 12345 && args.own[HOSTILE_TYPE].buffers == 6);
	snprintf(wanted, sizeof(wanted), "\nTRACE bytes %llu buffers %llu ",
		 (unsigned long long)bytes, (unsigned long long)buffers);
	assert(strstr(node_text("/proc/driver/ttmem/3/stats"), wanted));
	snprintf(wanted, sizeof(wanted), " %-10llu %-10llu %-10d %-10d\n",
		 (unsigned long long)bytes, (unsigned long long)buffers, 0, 0);
	assert(strstr(strstr(node_text("/proc/driver/ttmem/3/allocations"), "\nTOTAL "), wanted));
}

/*
 * A figure is believed up to its maximum. One liar makes the sum of its device wrong by what it claims, many
 * make it stop at the top, where it does not begin again at 0; the others' own figures stay theirs.
 */
UNIT_LONG(forged_books_on_one_device_do_no_harm, 120)
{
	pid_t liars[HOSTILE_LIARS], plain = hostile_fork(hostile_report);
	int node = node_open(), fd;
	struct node_book honest;
	char path[64];

	node_make_book(&honest);
	node_write(&honest, 3, HOSTILE_TYPE, 12345, 6);
	hostile_check_sum(node, 12345 + 777, 7);
	for (int i = 0; i < HOSTILE_LIARS; i++) {
		liars[i] = hostile_fork(hostile_lie);
		hostile_check(liars[i], 3, HOSTILE_FIGURE_MAX, HOSTILE_FIGURE_MAX);
		hostile_check(getpid(), 3, 12345, 6);
		hostile_check(plain, 3, 777, 1);
		if (i == 0)
			hostile_check_sum(node, HOSTILE_FIGURE_MAX + 12345 + 777,
					  HOSTILE_FIGURE_MAX + 7);
	}
	hostile_check_sum(node, UINT64_MAX, UINT64_MAX);
	fd = node_attach(0, liars[0]);
	assert(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	assert(strstr(node_text(path), "drm-total-trace:\t4611686018427387904\n"));
	close(fd);
	hostile_run("smi", getpid(),
		    "\"TRACE\":{\"used\":12345,\"occupied\":null,\"buffers\":6,\"peak\":12345,"
		    "\"bound\":\"exact\"}");
	hostile_run("smi", plain,
		    "\"TRACE\":{\"used\":777,\"occupied\":null,\"buffers\":1,\"peak\":777,"
		    "\"bound\":\"exact\"}");
	for (int i = 0; i < HOSTILE_LIARS; i++) {
		assert(kill(liars[i], SIGKILL) == 0 && waitpid(liars[i], NULL, 0) == liars[i]);
	}
	assert(node_becomes(3, 12345 + 777, 7));
	hostile_check_sum(node, 12345 + 777, 7);
	assert(kill(plain, SIGKILL) == 0 && waitpid(plain, NULL, 0) == plain);
	node_drop_book(&honest);
	close(node);
}
