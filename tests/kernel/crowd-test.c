/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many at once: a hundred processes of which half are killed at random, threads that map and close the same
 * book, and a process that writes random bytes all over its book while others read what the kernel makes
 * of it.
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

#include "base/unit.h"

#define CROWD_PROCESSES 100
#define CROWD_DEVICE 5u
#define CROWD_HOSTILE_DEVICES 64u

/* Allocates and frees; when its input ends, says what it holds, and waits for its death. */
static _Noreturn void crowd_member(unsigned int seed, int go, int answer)
{
	static const struct timespec pause_between = {.tv_nsec = 100000};
	uint64_t held[2] = {0, 0};
	uint64_t sizes[64] = {0};
	int flags = fcntl(go, F_GETFL);
	char byte;

	setenv("TTMEM_SOCKET", "none", 1); /* NOLINT(concurrency-mt-unsafe): a child alone */
	assert(fcntl(go, F_SETFL, flags | O_NONBLOCK) == 0);
	while (read(go, &byte, 1) < 0) {
		uint32_t slot = (uint32_t)rand_r(&seed) % 64;

		if (sizes[slot]) {
			ttmem_free(CROWD_DEVICE, slot % TTMEM_UAPI_TYPES, slot * 4096);
			held[0] -= sizes[slot];
			held[1]--;
			sizes[slot] = 0;
		} else {
			sizes[slot] = (uint64_t)rand_r(&seed) % 100000 + 1;
			ttmem_alloc(CROWD_DEVICE, slot % TTMEM_UAPI_TYPES, slot * 4096, sizes[slot],
				    "member");
			held[0] += sizes[slot];
			held[1]++;
		}
		if (slot < 8)
			(void)nanosleep(&pause_between, NULL); /* the others want to run too */
	}
	assert(write(answer, held, sizeof(held)) == sizeof(held));
	for (;;)
		pause();
}

UNIT_LONG(half_are_killed, 240)
{
	int go[2], answer[2];
	pid_t children[CROWD_PROCESSES];
	uint64_t bytes = 0, buffers = 0;
	unsigned int seed = 1;

	assert(pipe2(go, O_CLOEXEC) == 0 && pipe2(answer, O_CLOEXEC) == 0);
	for (int i = 0; i < CROWD_PROCESSES; i++) {
		children[i] = fork();
		assert(children[i] >= 0);
		if (children[i] == 0) {
			close(go[1]);
			crowd_member((unsigned int)i, go[0], answer[1]);
		}
	}
	for (int i = 0; i < CROWD_PROCESSES; i += 2) {
		struct timespec wait = {.tv_nsec = rand_r(&seed) % 10000000};

		(void)nanosleep(&wait, NULL); /* any moment is a good one */
		assert(kill(children[i], SIGKILL) == 0);
	}
	for (int i = 0; i < CROWD_PROCESSES; i += 2)
		assert(waitpid(children[i], NULL, 0) == children[i]);
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < CROWD_PROCESSES / 2; i++) {
		uint64_t held[2];

		assert(read(answer[0], held, sizeof(held)) == sizeof(held));
		bytes += held[0];
		buffers += held[1];
	}
	assert(buffers > 0 && node_becomes(CROWD_DEVICE, bytes, buffers));
	for (int i = 1; i < CROWD_PROCESSES; i += 2) {
		assert(kill(children[i], SIGKILL) == 0);
		assert(waitpid(children[i], NULL, 0) == children[i]);
	}
	assert(node_becomes(CROWD_DEVICE, 0, 0));
	close(answer[0]);
	close(answer[1]);
}

struct crowd_book {
	int fd;
	uint64_t id;
	unsigned int mapped;
};

static void *crowd_map(void *context)
{
	struct crowd_book *book = context;
	void *base = mmap(NULL, NODE_BOOK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, book->fd, 0);

	if (base != MAP_FAILED) {
		__atomic_fetch_add(&book->mapped, 1, __ATOMIC_RELAXED);
		(void)node_reserve(book->fd, 0x200000, 0x10000); /* closed by now, perhaps */
		munmap(base, NODE_BOOK_SIZE);
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
			assert(book.mapped <= 1);
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

/* Random bytes everywhere the kernel looks, again and again. */
static _Noreturn void crowd_scribble(int ready)
{
	uint64_t from = NODE_SHARDS;
	uint64_t length = CROWD_HOSTILE_DEVICES * NODE_SHARD_SIZE;
	struct node_book book;
	uint64_t random = 1;

	node_make_book(&book);
	assert(node_reserve(book.fd, 0, 0x10000) == 0);
	assert(node_reserve(book.fd, from, length) == 0);
	assert(write(ready, "r", 1) == 1);
	for (;;) {
		for (uint64_t at = 0; at < length; at += 8) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
			*(uint64_t *)(void *)(book.base + from + at) = random;
		}
		memset(book.base, (int)(random >> 56), 0x10000);
		/* Then as something that is believed: a shard in use, with figures beyond all measure. */
		for (uint64_t at = 0; at < length; at += NODE_SHARD_SIZE) {
			*(uint32_t *)(void *)(book.base + from + at + 76) = 1;
			memset(book.base + from + at + 128, 0xff, 896);
		}
	}
}

UNIT_LONG(scribbled_all_over, 240)
{
	static const char *const views[] = {
		"/proc/driver/ttmem/totals",
		"/proc/driver/ttmem/0/allocations",
		"/proc/driver/ttmem/63/stats",
	};
	struct ttmem_ioc_query_stats args;
	struct node_book honest;
	pid_t children[2];
	int node = node_open();
	int ready[2];
	char byte;

	assert(pipe2(ready, O_CLOEXEC) == 0);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0)
			crowd_scribble(ready[1]);
		assert(read(ready[0], &byte, 1) == 1);
	}
	node_make_book(&honest);
	node_write(&honest, 100, 0, 12345, 6);
	for (int i = 0; i < 60; i++) {
		for (size_t j = 0; j < sizeof(views) / sizeof(views[0]); j++)
			assert(*node_text(views[j]));
		args = (struct ttmem_ioc_query_stats){.argsz = sizeof(args), .device = 3};
		assert(node_ioctl(node, TTMEM_IOC_QUERY_STATS, &args) == 0);
		/* Who lies hurts nobody else. */
		args = (struct ttmem_ioc_query_stats){.argsz = sizeof(args), .device = 100};
		assert(node_ioctl(node, TTMEM_IOC_QUERY_STATS, &args) == 0);
		assert(args.own[0].bytes == 12345 && args.all[0].bytes == 12345);
	}
	for (int i = 0; i < 2; i++) {
		assert(kill(children[i], SIGKILL) == 0);
		assert(waitpid(children[i], NULL, 0) == children[i]);
	}
	assert(node_becomes(3, 0, 0));
	node_drop_book(&honest);
	close(ready[0]);
	close(ready[1]);
	close(node);
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
