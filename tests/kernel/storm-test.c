/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything at once and at random: processes of several threads that share descriptors and mappings, make
 * books, map, reserve, attach, read, pass on, fork, run other programs and close, and are killed in
 * between. Nobody looks at results here: what counts is that the kernel has nothing to say in its log, and
 * that nothing is left.
 *
 * "ttmem_storm=SECONDS" on the kernel's command line makes it longer. The operations of a thread depend on
 * its seed alone; seeds are counted from 1.
 */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define STORM_SECONDS 4
#define STORM_WORKERS 4
#define STORM_THREADS 3
#define STORM_FDS 12
#define STORM_REGIONS 4
#define STORM_REGION_SIZE (NODE_BOOK_SIZE * 2)
#define STORM_DEVICES 80u

/* What the threads of a process have in common; they take it from each other without asking. */
static int storm_fds[STORM_FDS];
static uint8_t *storm_regions[STORM_REGIONS]; /* reserved addresses: only books are mapped there */
static int storm_sockets[2];
static uint64_t storm_last_id;

static uint32_t storm_random(unsigned int *seed, uint32_t below)
{
	return (uint32_t)rand_r(seed) % below;
}

static int storm_fd(unsigned int *seed)
{
	return __atomic_load_n(&storm_fds[storm_random(seed, STORM_FDS)], __ATOMIC_RELAXED);
}

/* Takes the place of another one, which is closed: perhaps while somebody uses it. */
static void storm_keep(unsigned int *seed, int fd)
{
	int old;

	if (fd < 0)
		return;
	old = __atomic_exchange_n(&storm_fds[storm_random(seed, STORM_FDS)], fd, __ATOMIC_RELAXED);
	if (old > 2)
		close(old);
}

static uint8_t *storm_place(unsigned int *seed)
{
	return storm_regions[storm_random(seed, STORM_REGIONS)] +
	       (uint64_t)storm_random(seed, STORM_REGION_SIZE >> 12) * 4096;
}

static void storm_open(unsigned int *seed)
{
	char path[64];

	if (storm_random(seed, 3)) {
		storm_keep(seed, open(TTMEM_NODE, O_RDWR | O_CLOEXEC));
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", storm_fd(seed));
	storm_keep(seed, open(path, O_CLOEXEC | O_NONBLOCK |
					    (storm_random(seed, 4) ? O_RDONLY : O_RDWR)));
}

static void storm_book(unsigned int *seed)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};

	if (ioctl(storm_fd(seed), TTMEM_IOC_BOOK, &args) == 0) {
		__atomic_store_n(&storm_last_id, args.id, __ATOMIC_RELAXED);
		storm_keep(seed, args.fd);
	}
}

static void storm_map(unsigned int *seed)
{
	uint8_t *region = storm_regions[storm_random(seed, STORM_REGIONS)];

	(void)mmap(region, NODE_BOOK_SIZE >> storm_random(seed, 3), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, storm_fd(seed), 0);
}

static void storm_unmap(unsigned int *seed)
{
	uint8_t *place = storm_place(seed);
	size_t length = (size_t)(1 + storm_random(seed, 64)) * 4096;

	switch (storm_random(seed, 5)) {
	case 0: /* back to nothing, but ours */
		(void)mmap(place, length, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		break;
	case 1:
		(void)mprotect(place, length, (int)storm_random(seed, 4));
		break;
	case 2:
		(void)madvise(place, length, (int)storm_random(seed, 26));
		break;
	case 3:
		(void)mremap(place, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			     storm_place(seed));
		break;
	default:
		(void)mlock(place, length);
		break;
	}
}

static void storm_reserve(unsigned int *seed)
{
	uint64_t offset = (uint64_t)storm_random(seed, NODE_BOOK_SIZE >> 12) * 4096;

	if (storm_random(seed, 2))
		offset = NODE_SHARDS + storm_random(seed, STORM_DEVICES) * NODE_SHARD_SIZE;
	(void)node_reserve(storm_fd(seed), offset, (1 + storm_random(seed, 32)) * 4096);
}

/* Through the kernel, to which a hole is an error and no signal. */
static void storm_write(unsigned int *seed)
{
	uint64_t words[16];
	struct iovec from = {words, sizeof(words)}, to = {storm_place(seed), sizeof(words)};

	for (size_t i = 0; i < 16; i++)
		words[i] = storm_random(seed, 4) == 0 ? UINT64_MAX : storm_random(seed, 3);
	(void)process_vm_writev(getpid(), &from, 1, &to, 1, 0);
}

static void storm_attach(unsigned int *seed)
{
	uint64_t last = __atomic_load_n(&storm_last_id, __ATOMIC_RELAXED);
	struct ttmem_ioc_attach args = {.argsz = sizeof(args)};

	args.id = last > 32 ? last - 32 + storm_random(seed, 64) : 1 + storm_random(seed, 64);
	if (storm_random(seed, 4) == 0) {
		args.id = 0;
		args.pid = getpid() - 3 + (int)storm_random(seed, 7);
	}
	if (ioctl(storm_fd(seed), TTMEM_IOC_ATTACH, &args) == 0)
		storm_keep(seed, args.fd);
}

static void storm_plain(unsigned int *seed)
{
	struct ttmem_ioc_query_stats stats = {.argsz = sizeof(stats)};
	uint32_t device = storm_random(seed, STORM_DEVICES),
		 type = storm_random(seed, TTMEM_UAPI_TYPES);
	int fd = storm_fd(seed);

	switch (storm_random(seed, 3)) {
	case 0:
		(void)node_alloc(fd, device, type, storm_random(seed, 64), 64);
		break;
	case 1:
		(void)node_free(fd, device, storm_random(seed, 2) ? type : TTMEM_UAPI_ANY,
				storm_random(seed, 64));
		break;
	default:
		stats.device = device;
		(void)node_ioctl(fd, TTMEM_IOC_QUERY_STATS, &stats);
		break;
	}
}

static void storm_read(unsigned int *seed)
{
	static const char *const names[] = {"../totals", "allocations", "pids", "stats"};
	static _Thread_local char bytes[9000];
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	const char *name;
	char path[64];
	int fd = storm_fd(seed);

	switch (storm_random(seed, 4)) {
	case 0:
		(void)!pread(fd, bytes, 1 + storm_random(seed, sizeof(bytes) - 1),
			     storm_random(seed, NODE_BOOK_SIZE));
		return;
	case 1:
		(void)lseek(fd, storm_random(seed, NODE_BOOK_SIZE),
			    storm_random(seed, 2) ? SEEK_DATA : SEEK_HOLE);
		(void)node_ioctl(fd, TTMEM_IOC_INFO, &info);
		return;
	case 2:
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		break;
	default:
		name = names[storm_random(seed, 4)];
		snprintf(path, sizeof(path), "/proc/driver/ttmem/%u/%s",
			 storm_random(seed, STORM_DEVICES), name);
		break;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	for (uint32_t i = storm_random(seed, 6); i > 0; i--)
		(void)!read(fd, bytes, 1 + storm_random(seed, sizeof(bytes) - 1));
	close(fd);
}

/* Descriptors on their way belong to nobody. */
static void storm_pass(unsigned int *seed)
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
	int fd = storm_fd(seed);

	if (storm_random(seed, 2)) {
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(int));
		(void)sendmsg(storm_sockets[0], &message, MSG_DONTWAIT);
		return;
	}
	if (recvmsg(storm_sockets[1], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 &&
	    CMSG_FIRSTHDR(&message)) {
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		storm_keep(seed, fd);
	}
}

/* Shares the memory until it is another program. */
static void storm_share(void)
{
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): it is what is to be tried */
	pid_t child = vfork();

	if (child == 0) {
		execl("/bin/busybox", "true", (char *)NULL);
		_exit(0);
	}
}

static void storm_fork(unsigned int *seed)
{
	pid_t child;

	if (storm_random(seed, 8))
		return; /* it is dear */
	if (storm_random(seed, 3) == 0) {
		storm_share();
		return;
	}
	child = fork();
	if (child == 0) {
		if (storm_random(seed, 2))
			execl("/bin/busybox", "true", (char *)NULL);
		_exit(0);
	}
	if (child > 0)
		(void)waitpid(child, NULL, storm_random(seed, 2) ? 0 : WNOHANG);
}

static void storm_step(unsigned int *seed)
{
	static void (*const steps[])(unsigned int *) = {
		storm_open,    storm_book,  storm_book,  storm_map,     storm_map,    storm_unmap,
		storm_reserve, storm_write, storm_write, storm_attach,  storm_attach, storm_plain,
		storm_plain,   storm_read,  storm_read,  storm_reserve, storm_pass,   storm_fork,
	};

	steps[storm_random(seed, sizeof(steps) / sizeof(steps[0]))](seed);
}

static void *storm_thread(void *context)
{
	unsigned int seed = (unsigned int)(uintptr_t)context;

	for (;;)
		storm_step(&seed);
	return NULL;
}

static _Noreturn void storm_worker(unsigned int seed)
{
	assert(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	assert(signal(SIGCHLD, SIG_IGN) != SIG_ERR); /* nobody waits for all of them */
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, storm_sockets) == 0);
	for (int i = 0; i < STORM_REGIONS; i++) {
		storm_regions[i] = mmap(NULL, STORM_REGION_SIZE, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert(storm_regions[i] != MAP_FAILED);
	}
	for (int i = 0; i < STORM_FDS; i++)
		storm_fds[i] = -1;
	for (unsigned int i = 1; i < STORM_THREADS; i++) {
		pthread_t thread;

		assert(pthread_create(&thread, NULL, storm_thread,
				      (void *)(uintptr_t)(seed * STORM_THREADS + i)) == 0);
	}
	storm_thread((void *)(uintptr_t)(seed * STORM_THREADS));
	_exit(0);
}

static pid_t storm_start(unsigned int seed)
{
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid == 0)
		storm_worker(seed);
	return pid;
}

static unsigned int storm_seconds(void)
{
	const char *found = strstr(node_text("/proc/cmdline"), "ttmem_storm=");

	return found ? (unsigned int)strtoul(found + 12, NULL, 10) : STORM_SECONDS;
}

/* The views are empty again. */
static bool storm_is_over(void)
{
	static const struct timespec pause = {.tv_nsec = 100000000};

	for (int i = 0; i < 600; i++) {
		if (strcmp(node_text("/proc/driver/ttmem/totals"), "ttmem 1\n") == 0)
			return true;
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	puts(node_text("/proc/driver/ttmem/totals"));
	return false;
}

UNIT_LONG(random_calls_by_many_processes_leak_nothing, 600)
{
	pid_t workers[STORM_WORKERS];
	unsigned int seed = 1, choice = 1, deaths = 0;
	time_t end = time(NULL) + storm_seconds();

	for (int i = 0; i < STORM_WORKERS; i++)
		workers[i] = storm_start(seed++);
	while (time(NULL) < end) {
		struct timespec wait = {.tv_nsec = 20000000 + rand_r(&choice) % 400000000};
		int victim = rand_r(&choice) % STORM_WORKERS;

		(void)nanosleep(&wait, NULL); /* any moment is a good one */
		assert(kill(workers[victim], SIGKILL) == 0);
		assert(waitpid(workers[victim], NULL, 0) == workers[victim]);
		workers[victim] = storm_start(seed++);
		deaths++;
	}
	for (int i = 0; i < STORM_WORKERS; i++) {
		assert(kill(workers[i], SIGKILL) == 0);
		assert(waitpid(workers[i], NULL, 0) == workers[i]);
	}
	printf("%u processes were killed\n", deaths);
	assert(deaths > 2 && storm_is_over());
}

/* Uses the module for moments only, or it would never be unused: a book, a buffer, a folder, all there is to see. */
static _Noreturn void storm_visit(uint32_t device)
{
	static const struct timespec pause = {.tv_nsec = 2000000};
	struct ttmem_ioc_book args;
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/driver/ttmem/%u/stats", device);
	for (;;) {
		int node = open(TTMEM_NODE, O_RDWR | O_CLOEXEC);
		int view = open("/proc/driver/ttmem/totals", O_RDONLY | O_CLOEXEC);
		int folder;

		args = (struct ttmem_ioc_book){.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
		if (node >= 0 && ioctl(node, TTMEM_IOC_BOOK, &args) == 0)
			close(args.fd);
		(void)node_alloc(node, device, 0, 0, 1); /* nobody looks at results */
		folder = open(path, O_RDONLY | O_CLOEXEC);
		(void)!read(view, &byte, 1);
		close(view);
		close(node);
		(void)nanosleep(&pause, NULL); /* now it may go, with a file of the folder open */
		(void)!read(folder, &byte, 1);
		close(folder);
	}
}

/* Comes and goes while others try to use it; the last thing it does here is to come. */
UNIT_LONG(unloaded_and_loaded_meanwhile, 600)
{
	int file = open("/ttmem.ko", O_RDONLY | O_CLOEXEC);
	time_t end = time(NULL) + storm_seconds() / 2;
	unsigned int unloaded = 0;
	pid_t workers[2];

	if (file < 0)
		unit_skip("no module to load");
	for (unsigned int i = 0; i < 2; i++) {
		workers[i] = fork();
		assert(workers[i] >= 0);
		if (workers[i] == 0)
			storm_visit(STORM_DEVICES + i);
	}
	while (time(NULL) < end || unloaded < 3) {
		if (syscall(SYS_delete_module, "ttmem", O_NONBLOCK) == 0) {
			unloaded++;
			assert(syscall(SYS_finit_module, file, "", 0) == 0);
		}
	}
	for (int i = 0; i < 2; i++) {
		assert(kill(workers[i], SIGKILL) == 0);
		assert(waitpid(workers[i], NULL, 0) == workers[i]);
	}
	printf("unloaded %u times\n", unloaded);
	assert(storm_is_over());
	close(file);
}
