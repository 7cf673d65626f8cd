/* SPDX-License-Identifier: Apache-2.0 */

/* What one user can do to the others: fill the log, take all the memory of books. */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define FAIR_DEVICE 90u
#define FAIR_CLIENTS 300
#define FAIR_BOOKS 40
#define FAIR_ONE 6001 /* users */
#define FAIR_LINES 10 /* of a user, in so many seconds */
#define FAIR_SECONDS 5

static void fair_pause(void)
{
	static const struct timespec pause = {.tv_nsec = 10000000};

	(void)nanosleep(&pause, NULL); /* shortened: then sooner */
}

/* The number behind a text in a file; 0 if it is not there. */
static unsigned long long fair_number(const char *path, const char *before)
{
	const char *found = strstr(node_text(path), before);
	unsigned long long number = 0;

	if (found)
		assert(sscanf(found + strlen(before), "%llu", &number) == 1);
	return number;
}

/* Buffers and bytes that clients have left on our device so far. */
static void fair_left(unsigned long long ret_left[2])
{
	const char *found = strstr(node_text("/proc/driver/ttmem/stats"), "leaked device 90 ");

	ret_left[0] = ret_left[1] = 0;
	if (found)
		assert(sscanf(found, "leaked device 90 buffers %llu bytes %llu", &ret_left[0],
			      &ret_left[1]) == 2);
}

static int fair_open_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	assert(fd >= 0 && lseek(fd, 0, SEEK_END) >= 0);
	return fd;
}

/* How many lines from where it was read last are about these processes. */
static int fair_lines(int log, const pid_t *pids, size_t count)
{
	char line[512];
	int lines = 0;
	ssize_t n;

	/* A record that was overwritten is EPIPE, and the next one is read. */
	while ((n = read(log, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		const char *found;
		int pid;

		line[n > 0 ? n : 0] = '\0';
		found = strstr(line, "ttmem: process ");
		for (size_t i = 0; found && i < count; i++)
			lines += sscanf(found, "ttmem: process %d ", &pid) == 1 && pid == pids[i];
	}
	return lines;
}

/* Anybody can open and close the node as often as he likes: what he leaves is counted, and nobody's log grows. */
UNIT_LONG(plain_clients_are_counted_not_logged, 60)
{
	static const char all[] = "/proc/driver/ttmem/stats";
	unsigned long long clients = fair_number(all, "leaked clients");
	unsigned long long before[2], after[2];
	int log = fair_open_log(), status, node;
	char wanted[64];
	pid_t child;

	fair_left(before);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		assert(setuid(FAIR_ONE) == 0);
		for (int i = 0; i < FAIR_CLIENTS; i++) {
			node = node_open();
			assert(node_alloc(node, FAIR_DEVICE, 0, 0, 70) == 1);
			assert(node_alloc(node, FAIR_DEVICE, 6, 0, 7) == 1);
			close(node);
			/* Who lets go of everything leaves nothing. */
			node = node_open();
			assert(node_alloc(node, FAIR_DEVICE, 0, 0, 1) == 1);
			assert(node_free(node, FAIR_DEVICE, 0, 0) == 0);
			close(node);
		}
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	assert(fair_lines(log, &child, 1) == 0);
	assert(fair_number(all, "leaked clients") == clients + FAIR_CLIENTS);
	fair_left(after);
	assert(after[0] == before[0] + 2ull * FAIR_CLIENTS);
	assert(after[1] == before[1] + 77ull * FAIR_CLIENTS);
	/* In the device's own file, too; it is there while somebody uses the device. */
	node = node_open();
	assert(node_alloc(node, FAIR_DEVICE, 0, 0, 1) == 1);
	snprintf(wanted, sizeof(wanted), "\nleaked buffers %llu bytes %llu\n", after[0], after[1]);
	assert(strstr(node_text("/proc/driver/ttmem/90/stats"), wanted));
	close(node);
	close(log);
}

/* A process that leaves something in its book. */
static pid_t fair_leak(uid_t user)
{
	pid_t child = fork();
	struct node_book book;
	int status;

	assert(child >= 0);
	if (child == 0) {
		assert(setuid(user) == 0);
		node_make_book(&book);
		node_write(&book, FAIR_DEVICE, 0, 1000, 3);
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	return child;
}

/* Which of the limits a user has: the kernel's hash_32() of three bits. */
static unsigned int fair_limit(uid_t user)
{
	return (user * 0x61c88647u) >> 29;
}

/* A user has only so many lines, and does not use up another's. */
UNIT_LONG(lines_in_the_log_are_for_everybody, 120)
{
	uid_t other = FAIR_ONE + 1;
	pid_t pids[FAIR_BOOKS], last;
	int log = fair_open_log();
	time_t begun = time(NULL);
	int lines;

	while (fair_limit(other) == fair_limit(FAIR_ONE) || fair_limit(other) == fair_limit(0))
		other++;
	for (int i = 0; i < FAIR_BOOKS; i++)
		pids[i] = fair_leak(FAIR_ONE);
	assert(node_becomes(FAIR_DEVICE, 0, 0));
	lines = fair_lines(log, pids, FAIR_BOOKS);
	assert(lines >= 1);
	/* As many as fit into the time that it took, which may be anything. */
	assert(lines <= FAIR_LINES * (2 + (time(NULL) - begun) / FAIR_SECONDS));
	last = fair_leak(other);
	for (int i = 0; i < 1000 && lines > 0; i++) {
		if (fair_lines(log, &last, 1) == 1)
			lines = 0;
		else
			fair_pause();
	}
	assert(lines == 0);
	close(log);
}

#define FAIR_USER_CAP "/sys/module/ttmem/parameters/user_mib"
#define FAIR_STATS "/proc/driver/ttmem/stats"
#define FAIR_MIB (UINT64_C(1) << 20)

static void fair_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Of a user's share; books whose memory is given back a moment after they have ended. */
static bool fair_stats_become(const char *line, bool there)
{
	for (int i = 0; i < 1000; i++) {
		if ((strstr(node_text(FAIR_STATS), line) != NULL) == there)
			return true;
		fair_pause();
	}
	puts(node_text(FAIR_STATS));
	return false;
}

/* Until a child says that it is ready; one that has failed never will. */
static void fair_wait(int ready, pid_t child)
{
	struct pollfd input = {.fd = ready, .events = POLLIN};
	char byte;

	while (poll(&input, 1, 10) == 0)
		assert(waitpid(child, NULL, WNOHANG) == 0);
	assert(read(ready, &byte, 1) == 1);
}

/* A process of @user that has so much, and then cannot have a page more unless it @may; until go is closed. */
static pid_t fair_take(uid_t user, uint64_t bytes, bool may, const int go[2], int ready)
{
	pid_t child = fork();
	struct node_book book;
	char byte;

	assert(child >= 0);
	if (child == 0) {
		close(go[1]);
		assert(setuid(user) == 0);
		node_make_book(&book);
		assert(bytes == 0 || node_reserve(book.fd, 0, bytes) == 0);
		assert(node_reserve(book.fd, bytes, 4096) == (may ? 0 : -ENOMEM));
		assert(write(ready, "r", 1) == 1);
		(void)!read(go[0], &byte, 1);
		_exit(0);
	}
	return child;
}

/* One user's books get so much together and not more, and the next one's get theirs all the same. */
UNIT_LONG(one_user_cannot_take_everything, 60)
{
	int go[2], ready[2], status;
	pid_t children[4];

	assert(pipe2(go, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	fair_put(FAIR_USER_CAP, "1");
	children[0] = fair_take(FAIR_ONE, FAIR_MIB, false, go, ready[1]);
	fair_wait(ready[0], children[0]);
	children[1] =
		fair_take(FAIR_ONE, 0, false, go, ready[1]); /* a second book of the same user */
	children[2] = fair_take(FAIR_ONE + 1, FAIR_MIB, false, go, ready[1]);
	children[3] = fair_take(0, 2 * FAIR_MIB, true, go, ready[1]); /* who may use more */
	for (int i = 1; i < 4; i++)
		fair_wait(ready[0], children[i]);
	assert(strstr(node_text(FAIR_STATS), "\nuser 6001 books 2 clients 0 bytes 1048576\n"));
	assert(strstr(node_text(FAIR_STATS), "\nuser 6002 books 1 clients 0 bytes 1048576\n"));
	assert(fair_number(FAIR_STATS, "all bytes ") >= 4 * FAIR_MIB);
	assert(fair_number(FAIR_STATS, "user_limit ") == FAIR_MIB);
	fair_put(FAIR_USER_CAP, "0");
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < 4; i++)
		assert(waitpid(children[i], &status, 0) == children[i] && status == 0);
	/* Nothing is kept for who has nothing. */
	assert(fair_stats_become("\nuser ", false));
	assert(fair_stats_become("all bytes 0 ", true));
	close(ready[0]);
	close(ready[1]);
}

#define FAIR_TOTAL_CAP "/sys/module/ttmem/parameters/total_mib"
#define FAIR_BOOK_CAP "/sys/module/ttmem/parameters/book_mib"

/* All together get so much and not more: not even who is bound by no share of his own. */
UNIT_LONG(all_together_cannot_take_more, 60)
{
	int go[2], ready[2], status, node;
	pid_t children[3];

	assert(fair_stats_become("all bytes 0 ", true));
	assert(pipe2(go, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	fair_put(FAIR_TOTAL_CAP, "2");
	children[0] =
		fair_take(FAIR_ONE, FAIR_MIB, false, go, ready[1]); /* half of it, his share */
	fair_wait(ready[0], children[0]);
	children[1] = fair_take(0, FAIR_MIB, false, go, ready[1]);
	fair_wait(ready[0], children[1]);
	children[2] = fair_take(FAIR_ONE + 1, 0, false, go, ready[1]);
	fair_wait(ready[0], children[2]);
	node = node_open(); /* nor does a client */
	assert(node_alloc(node, FAIR_DEVICE, 0, 0, 1) == -ENOMEM);
	assert(fair_number(FAIR_STATS, "all bytes ") == 2 * FAIR_MIB);
	fair_put(FAIR_TOTAL_CAP, "0");
	assert(node_alloc(node, FAIR_DEVICE, 0, 0, 1) == 1);
	close(node);
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < 3; i++)
		assert(waitpid(children[i], &status, 0) == children[i] && status == 0);
	assert(fair_stats_become("all bytes 0 ", true));
	close(ready[0]);
	close(ready[1]);
}

/* One book gets so much and not more, whatever it asks for and whoever asks. */
UNIT(one_book_cannot_take_more)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int node = node_open();

	args.room = NODE_BOOK_SIZE;
	fair_put(FAIR_BOOK_CAP, "3");
	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
	fair_put(FAIR_BOOK_CAP, "1024"); /* for those to come */
	assert(args.room == 3 * FAIR_MIB);
	assert(node_reserve(args.fd, 10 * FAIR_MIB, 3 * FAIR_MIB) == 0);
	assert(node_reserve(args.fd, 0, 4096) == -ENOMEM);
	close(args.fd);
	close(node);
}

/* Buffers from a number on, until one cannot be had. Return: how many were. */
static uint64_t fair_report(int node, uint64_t from, uint64_t most)
{
	int r = 1;

	for (uint64_t i = 0; i < most; i++) {
		r = node_alloc(node, FAIR_DEVICE, 0, from + i, 1);
		if (r < 0) {
			assert(r == -ENOMEM);
			return i;
		}
	}
	return most;
}

/* What the clients of one user report is paid for like books, whoever reports it, and given back. */
UNIT_LONG(buffers_are_paid_for_like_books, 60)
{
	const uint64_t rest = 16 * 4096, most = rest / 16; /* no buffer costs as little */
	pid_t child = fork();
	struct node_book book;
	uint64_t had, more;
	int status, first, second;

	assert(child >= 0);
	if (child) {
		assert(waitpid(child, &status, 0) == child);
		fair_put(FAIR_USER_CAP, "0");
		assert(status == 0 && fair_stats_become("\nuser ", false));
		assert(fair_stats_become("all bytes 0 ", true));
		return;
	}
	fair_put(FAIR_USER_CAP, "1");
	assert(setuid(FAIR_ONE) == 0);
	node_make_book(&book);
	assert(node_reserve(book.fd, NODE_BOOK_SIZE - FAIR_MIB, FAIR_MIB - rest) == 0);
	first = node_open();
	second = node_open();
	had = fair_report(first, 0, most);
	assert(had > 500 && had < most);
	assert(strstr(node_text(FAIR_STATS), "\nuser 6001 books 1 clients 1 bytes 1048576\n"));
	assert(fair_report(second, 0, 1) == 0); /* another client of the same user */
	/* What was reported can be again, and be freed; half of it is room for the other. */
	assert(node_alloc(first, FAIR_DEVICE, 0, 0, 1) == 2 &&
	       node_free(first, FAIR_DEVICE, 0, 0) == 1);
	for (uint64_t i = 0; i < had / 2; i++)
		assert(node_free(first, FAIR_DEVICE, 0, i) == 0);
	more = fair_report(second, 0, most);
	assert(more > had / 4 && more < had);
	close(first); /* and so is the rest, once it is closed */
	assert(fair_report(second, more, most) > had / 4);
	close(second);
	assert(strstr(node_text(FAIR_STATS), "\nuser 6001 books 1 clients 0 bytes 983040\n"));
	_exit(0);
}

/* A process of FAIR_ONE's that is root of a user namespace, and has the numbers to 9 there. */
struct fair_space {
	pid_t pid;
	int ready[2], go[2];
};

static void fair_close(struct fair_space *space)
{
	close(space->ready[0]);
	close(space->ready[1]);
	close(space->go[0]);
}

/* Return: 0 in that process. */
static pid_t fair_enter(struct fair_space *ret_space)
{
	char path[64], byte;

	assert(pipe2(ret_space->ready, O_CLOEXEC) == 0 && pipe2(ret_space->go, O_CLOEXEC) == 0);
	ret_space->pid = fork();
	assert(ret_space->pid >= 0);
	if (ret_space->pid == 0) {
		close(ret_space->go[1]);
		assert(setuid(FAIR_ONE) == 0);
		byte = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
		assert(write(ret_space->ready[1], &byte, 1) == 1);
		assert(read(ret_space->go[0], &byte, 1) == 1 && setuid(0) == 0);
		return 0;
	}
	assert(read(ret_space->ready[0], &byte, 1) == 1);
	if (byte == 'n') {
		assert(kill(ret_space->pid, SIGKILL) == 0);
		assert(waitpid(ret_space->pid, NULL, 0) == ret_space->pid);
		close(ret_space->go[1]);
		fair_close(ret_space);
		unit_skip("no user namespaces here");
	}
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)ret_space->pid);
	fair_put(path, "0 200000 10");
	assert(write(ret_space->go[1], "m", 1) == 1);
	return ret_space->pid;
}

/* In that process: says that it is ready, and ends when it may. */
static _Noreturn void fair_stay(struct fair_space *space)
{
	char byte;

	assert(write(space->ready[1], "r", 1) == 1);
	(void)!read(space->go[0], &byte, 1);
	_exit(0);
}

static void fair_leave(struct fair_space *space)
{
	int status;

	close(space->go[1]);
	assert(waitpid(space->pid, &status, 0) == space->pid && status == 0);
	fair_close(space);
}

/* A user namespace has many numbers of users; all are paid for by who made it. */
UNIT_LONG(a_namespace_is_paid_for_by_its_maker, 60)
{
	struct fair_space space;
	struct node_book book;

	if (fair_enter(&space) == 0) {
		assert(setuid(5) == 0);
		node_make_book(&book);
		node_write(&book, FAIR_DEVICE, 0, 1, 1);
		fair_stay(&space);
	}
	fair_wait(space.ready[0], space.pid);
	assert(strstr(node_text(FAIR_STATS), "\nuser 6001 books 1 clients 0 bytes 8192\n"));
	assert(!strstr(node_text(FAIR_STATS), "\nuser 200005 "));
	fair_leave(&space);
	assert(fair_stats_become("\nuser ", false));
}

/* And all have their maker's lines in the log, not ten each. */
UNIT_LONG(a_namespace_has_the_lines_of_its_maker, 120)
{
	pid_t *pids = mmap(NULL, FAIR_BOOKS * sizeof(*pids), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fair_space space;
	int log = fair_open_log();
	time_t begun = time(NULL);

	assert(pids != MAP_FAILED);
	if (fair_enter(&space) == 0) {
		for (uid_t i = 0; i < FAIR_BOOKS; i++)
			pids[i] = fair_leak(i % 10);
		fair_stay(&space);
	}
	fair_wait(space.ready[0], space.pid);
	assert(node_becomes(FAIR_DEVICE, 0, 0));
	/* As above: how many fit into the time. */
	assert(fair_lines(log, pids, FAIR_BOOKS) <=
	       FAIR_LINES * (2 + (time(NULL) - begun) / FAIR_SECONDS));
	fair_leave(&space);
	assert(munmap(pids, FAIR_BOOKS * sizeof(*pids)) == 0);
	close(log);
}
