/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many at once: a hundred processes of which half are killed at random, threads that map and close the same
 * book, and processes that want more memory than there is for them.
 */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/testing/unit.h"

#define CROWD_PROCESSES 100
#define CROWD_DEVICE 5u
#define CROWD_SLOTS 64u
#define CROWD_NICE 19

/* What a member tells of itself; shared with the test. */
struct crowd_report {
	uint64_t bytes, buffers; /* once it stands still */
	uint32_t steps;          /* that it has made so far */
	uint32_t stands;
};

struct crowd_board {
	struct crowd_report members[CROWD_PROCESSES];
	uint32_t stop;
};

/* One of the two ways to report: by the library's book, or by a call for each event. */
struct crowd_way {
	void (*alloc)(int node, uint32_t type, uint64_t address, uint64_t size);
	void (*release)(int node, uint32_t type, uint64_t address);
};

static void crowd_alloc_book(int node, uint32_t type, uint64_t address, uint64_t size)
{
	ttmem_alloc(CROWD_DEVICE, type, address, size, "member");
}

static void crowd_free_book(int node, uint32_t type, uint64_t address)
{
	ttmem_free(CROWD_DEVICE, type, address);
}

static void crowd_alloc_plain(int node, uint32_t type, uint64_t address, uint64_t size)
{
	assert(node_alloc(node, CROWD_DEVICE, type, address, size) == 1);
}

static void crowd_free_plain(int node, uint32_t type, uint64_t address)
{
	assert(node_free(node, CROWD_DEVICE, type, address) == 0);
}

static const struct crowd_way crowd_by_book = {crowd_alloc_book, crowd_free_book};
static const struct crowd_way crowd_by_call = {crowd_alloc_plain, crowd_free_plain};

/*
 * Allocates and frees until it is told to stop, then says what it holds and waits for its death. The first
 * buffer is never freed: whenever it is killed, there is something that must go with it.
 */
static _Noreturn void crowd_member(const struct crowd_way *way, struct crowd_board *board,
				   unsigned int number)
{
	static const struct timespec pause_between = {.tv_nsec = 3000000};
	struct crowd_report *report = &board->members[number];
	uint64_t sizes[CROWD_SLOTS] = {[0] = number + 1};
	unsigned int seed = number;
	int node = node_open();

	setenv("TTMEM_SOCKET", "none", 1);      /* NOLINT(concurrency-mt-unsafe): a child alone */
	assert(nice(CROWD_NICE) == CROWD_NICE); /* the one who kills comes first */
	way->alloc(node, 0, 0, sizes[0]);
	while (!__atomic_load_n(&board->stop, __ATOMIC_RELAXED)) {
		uint32_t slot = 1 + (uint32_t)rand_r(&seed) % (CROWD_SLOTS - 1);
		uint32_t type = slot % TTMEM_UAPI_TYPES;

		if (sizes[slot]) {
			way->release(node, type, slot * 4096);
			sizes[slot] = 0;
		} else {
			sizes[slot] = (uint64_t)rand_r(&seed) % 100000 + 1;
			way->alloc(node, type, slot * 4096, sizes[slot]);
		}
		if (__atomic_add_fetch(&report->steps, 1, __ATOMIC_RELEASE) % 8 == 0)
			(void)nanosleep(&pause_between, NULL); /* the others want to run too */
	}
	for (uint32_t slot = 0; slot < CROWD_SLOTS; slot++) {
		report->bytes += sizes[slot];
		report->buffers += sizes[slot] != 0;
	}
	__atomic_store_n(&report->stands, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Until that word of the report of every second member, from this one on, is no longer 0. */
static void crowd_await(const uint32_t *first)
{
	static const struct timespec pause_between = {.tv_nsec = 5000000};
	size_t stride = 2 * sizeof(struct crowd_report) / sizeof(*first);

	for (int i = 0; i < CROWD_PROCESSES / 2; i++) {
		while (!__atomic_load_n(first + (size_t)i * stride, __ATOMIC_ACQUIRE))
			(void)nanosleep(&pause_between, NULL); /* the case has a time limit */
	}
}

/* Each is seen with buffers by the kernel's own account, and killed in whatever it is doing. */
static void crowd_kill_half(const pid_t children[CROWD_PROCESSES])
{
	uint64_t bytes, buffers;
	unsigned int seed = 1;

	for (int i = 0; i < CROWD_PROCESSES; i += 2) {
		struct timespec wait = {.tv_nsec = rand_r(&seed) % 3000000};

		assert(node_totals_of(children[i], &bytes, &buffers));
		assert(bytes > 0 && buffers > 0);
		(void)nanosleep(&wait, NULL); /* any moment is a good one */
		assert(kill(children[i], SIGKILL) == 0);
	}
	for (int i = 0; i < CROWD_PROCESSES; i += 2) {
		int status;

		assert(waitpid(children[i], &status, 0) == children[i]);
		assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static void crowd_die(const struct crowd_way *way)
{
	struct crowd_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t bytes = 0, buffers = 0, own_bytes, own_buffers;
	pid_t children[CROWD_PROCESSES];

	assert(board != MAP_FAILED);
	for (unsigned int i = 0; i < CROWD_PROCESSES; i++) {
		children[i] = fork();
		assert(children[i] >= 0);
		if (children[i] == 0)
			crowd_member(way, board, i);
	}
	crowd_await(&board->members[0].steps);
	crowd_kill_half(children);
	__atomic_store_n(&board->stop, 1, __ATOMIC_RELAXED);
	crowd_await(&board->members[1].stands);
	for (int i = 1; i < CROWD_PROCESSES; i += 2) {
		bytes += board->members[i].bytes;
		buffers += board->members[i].buffers;
	}
	assert(node_becomes(CROWD_DEVICE, bytes, buffers));
	for (int i = 0; i < CROWD_PROCESSES; i++) {
		if (i % 2 == 0) {
			assert(!node_totals_of(children[i], &own_bytes, &own_buffers));
			continue;
		}
		assert(node_totals_of(children[i], &own_bytes, &own_buffers));
		assert(own_bytes == board->members[i].bytes);
		assert(own_buffers == board->members[i].buffers);
		assert(kill(children[i], SIGKILL) == 0);
		assert(waitpid(children[i], NULL, 0) == children[i]);
	}
	assert(node_becomes(CROWD_DEVICE, 0, 0));
	munmap(board, sizeof(*board));
}

UNIT_LONG(totals_are_exact_when_half_of_the_processes_are_killed, 240)
{
	crowd_die(&crowd_by_book);
}

UNIT_LONG(plain_totals_are_exact_when_half_of_the_clients_are_killed, 240)
{
	crowd_die(&crowd_by_call);
}

struct crowd_book {
	int fd;
	uint64_t id;
	unsigned int mapped;
	bool used;
};

static void *crowd_map(void *context)
{
	struct crowd_book *book = context;
	char *base = mmap(NULL, NODE_BOOK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, book->fd, 0);

	if (base != MAP_FAILED) {
		/* One at a time; one that was never used may be followed by another. */
		assert(__atomic_add_fetch(&book->mapped, 1, __ATOMIC_RELAXED) == 1);
		if (node_reserve(book->fd, 0x200000, 0x10000) == 0) { /* not closed by now */
			base[0x200000] = 1;
			book->used = true;
		}
		__atomic_fetch_sub(&book->mapped, 1, __ATOMIC_RELAXED);
		munmap(base, NODE_BOOK_SIZE);
		if (book->used)
			assert(mmap(NULL, NODE_BOOK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
				    book->fd, 0) == MAP_FAILED);
	}
	return NULL;
}

static void *crowd_close(void *context)
{
	struct crowd_book *book = context;

	close(book->fd);
	return NULL;
}

static void *crowd_attach(void *context)
{
	struct crowd_book *book = context;
	int fd = node_attach(book->id, 0);

	if (fd >= 0)
		close(fd);
	return NULL;
}

/* One maps, one closes, one attaches: whoever is first, nothing is left behind. */
UNIT_LONG(threads_that_map_and_close, 240)
{
	for (int i = 0; i < 15; i++) {
		pid_t child = fork();
		int status;

		assert(child >= 0);
		if (child == 0) {
			struct ttmem_ioc_book args = {.argsz = sizeof(args),
						      .size = NODE_BOOK_SIZE};
			struct crowd_book book = {0};
			pthread_t threads[4];
			int node = node_open();

			assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
			book.fd = args.fd;
			book.id = args.id;
			assert(pthread_create(&threads[0], NULL, crowd_map, &book) == 0);
			assert(pthread_create(&threads[1], NULL, crowd_close, &book) == 0);
			assert(pthread_create(&threads[2], NULL, crowd_map, &book) == 0);
			assert(pthread_create(&threads[3], NULL, crowd_attach, &book) == 0);
			for (int j = 0; j < 4; j++)
				pthread_join(threads[j], NULL);
			_exit(0);
		}
		assert(waitpid(child, &status, 0) == child && status == 0);
	}
}

static void *crowd_reserve(void *context)
{
	struct node_book *book = context;

	for (uint64_t at = 0; at < NODE_BOOK_SIZE; at += 0x10000)
		assert(node_reserve(book->fd, at, 0x10000) == 0);
	return NULL;
}

UNIT_LONG(threads_that_reserve_the_same, 240)
{
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	struct node_book book;
	pthread_t threads[4];

	node_make_book(&book);
	for (int i = 0; i < 4; i++)
		assert(pthread_create(&threads[i], NULL, crowd_reserve, &book) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert(node_ioctl(book.fd, TTMEM_IOC_INFO, &info) == 0 && info.used == NODE_BOOK_SIZE);
	node_drop_book(&book);
}

static void crowd_put(const char *folder, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Reserves, or reports, until there is no memory. */
static int crowd_eat_book(void)
{
	struct node_book book;
	int r = 0;

	node_make_book(&book);
	for (uint64_t at = 0; r == 0 && at < NODE_BOOK_SIZE; at += 0x10000)
		r = node_reserve(book.fd, at, 0x10000);
	return r;
}

static int crowd_eat_plain(void)
{
	int node = node_open();
	int r = 0;

	for (uint64_t i = 0; r >= 0 && i < 65000; i++)
		r = node_alloc(node, (uint32_t)(i % 100), 0, i, 1);
	/* What was there stays, and what is let go can be had again. */
	assert(node_free(node, 0, 0, 0) == 0);
	return r;
}

/* In a memory cgroup at its limit a call fails; nobody is killed for it. */
static void crowd_limited(const char *folder, const char *limit, int (*eat)(void))
{
	char text[32];
	pid_t child;
	int status;

	crowd_put("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	assert(mkdir(folder, 0755) == 0);
	crowd_put(folder, "memory.max", limit);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		snprintf(text, sizeof(text), "%d", (int)getpid());
		crowd_put(folder, "cgroup.procs", text);
		_exit(eat() == -ENOMEM ? 0 : 1);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	assert(rmdir(folder) == 0 || errno == EBUSY); /* its charges may take a moment to go */
}

UNIT_LONG(a_memory_limit, 240)
{
	struct utsname name;
	unsigned int major, minor;

	assert(uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2);
	if (major < 5 || (major == 5 && minor < 11))
		unit_skip("this kernel cannot charge what is mapped");
	crowd_limited("/sys/fs/cgroup/limited", "8M", crowd_eat_book);
}

UNIT_LONG(a_memory_limit_of_a_plain_client, 240)
{
	crowd_limited("/sys/fs/cgroup/limited-plain", "4M", crowd_eat_plain);
}

/* The 32-bit entry of the kernel, which a 64-bit program can use too. */
UNIT(thirty_two_bits)
{
#if defined(__x86_64__)
	struct ttmem_ioc_track_alloc *args;
	int node = node_open();
	long r;

	args = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		    0);
	assert(args != MAP_FAILED);
	*args = (struct ttmem_ioc_track_alloc){
		.argsz = sizeof(*args), .device = 2, .type = 1, .address = 1, .size = 99};
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(54), "b"((long)node), "c"((long)TTMEM_IOC_TRACK_ALLOC),
			   "d"((long)(uintptr_t)args)
			 : "memory", "r8", "r9", "r10", "r11");
	assert(r == 0 && args->refs == 1);
	assert(node_becomes(2, 99, 1));
	munmap(args, 4096);
	close(node);
#else
	unit_skip("no other width here");
#endif
}
