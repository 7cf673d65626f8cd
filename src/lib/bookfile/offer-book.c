/* SPDX-License-Identifier: Apache-2.0 */

/* Sends one message with the book and our own pidfd, as laid out in wire/offer.h. */

#include "lib/bookfile/offer-book.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/fd-pass.h"
#include "base/files/own-socket.h"
#include "base/files/small-file.h"
#include "base/process/freeze.h"
#include "lib/process/descriptor.h"
#include "wire/offer.h"

#define OFFER_BOOK_PATIENCE_NS \
	UINT64_C(100000000)                   /* `ttmem run` may be busy receiving other books */
#define OFFER_BOOK_PAUSE_NS UINT64_C(2000000) /* the longest a sleep of 1 ms should take */
#define OFFER_BOOK_FOLDER "/run/ttmem"
#define OFFER_BOOK_UNMAPPED 65534u /* the kernel's default; see /proc/sys/kernel/overflowuid */

/* What is offered. */
struct offer_book_what {
	int book_fd;
	int pid;
	int pid_fd; /* -1 until a listener is found, and on kernels without pidfds */
};

/* Where a socket was found. */
enum offer_book_place {
	OFFER_BOOK_LISTED, /* in TTMEM_OFFER; the others are a daemon's */
	OFFER_BOOK_CHOSEN, /* TTMEM_SOCKET */
	OFFER_BOOK_SYSTEM, /* OFFER_BOOK_FOLDER */
	OFFER_BOOK_USER,   /* own_socket_find() */
};

/*
 * Connections stay open: if one is closed while its process lives, the daemon knows of an exec. A
 * forked child closes its parent's connections, if the numbers still belong to them.
 */
struct offer_book_connection {
	ino_t ino;
	int fd;
	bool is_daemon;
};

static struct offer_book_connection offer_book_connections[OFFER_SOCKETS_MAX + 1];
static uint32_t offer_book_connection_count;
static uint64_t offer_book_told_ns; /* when the daemon was last notified; atomic */

static bool offer_book_is_ours(const struct offer_book_connection *connection)
{
	struct stat st;

	return fstat(connection->fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_ino == connection->ino;
}

static void offer_book_close_inherited(void)
{
	for (uint32_t i = 0; i < offer_book_connection_count; i++) {
		if (offer_book_is_ours(&offer_book_connections[i]))
			(void)close(offer_book_connections[i].fd); /* a copy; the parent's stays */
	}
	offer_book_connection_count = 0;
	offer_book_told_ns = 0;
}

/* A little pause, unless @deadline has come: then false. */
static bool offer_book_wait(uint64_t deadline)
{
	static const struct timespec millisecond = {.tv_nsec = 1000000};

	if (clock_ns_kernel(CLOCK_MONOTONIC) + OFFER_BOOK_PAUSE_NS > deadline)
		return false;
	(void)nanosleep(&millisecond, NULL); /* shortened by a signal: harmless */
	return true;
}

static int offer_book_connect(const char *path, size_t length, uint64_t deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (length == 0 || length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		if ((r != -EAGAIN && r != -EINTR) || !offer_book_wait(deadline)) {
			(void)close(fd); /* never connected */
			return r;
		}
	}
	return fd;
}

static int offer_book_send(int socket_fd, const struct offer_book_what *what)
{
	const struct offer offer = {
		.magic = OFFER_MAGIC, .version = OFFER_VERSION, .size = sizeof(offer)};
	const int fds[OFFER_FDS] = {what->book_fd, what->pid_fd};

	return fd_pass_send(socket_fd, &offer, sizeof(offer), fds, what->pid_fd >= 0 ? 2 : 1,
			    MSG_DONTWAIT);
}

/* ETOOMANYREFS: too many books of this user are in flight, which ends as they are received. */
static bool offer_book_send_patiently(int socket_fd, const struct offer_book_what *what,
				      uint64_t deadline)
{
	int r = offer_book_send(socket_fd, what);

	while ((r == -ETOOMANYREFS || r == -EAGAIN) && offer_book_wait(deadline))
		r = offer_book_send(socket_fd, what);
	return r == 0;
}

static const struct offer_notice offer_book_notice = {
	.magic = OFFER_NOTICE_MAGIC,
	.version = OFFER_VERSION,
	.size = sizeof(offer_book_notice),
	.what = OFFER_NOTICE_FAILED,
};

/* We may end, and our file be deleted, before the daemon looks. Failure is silent. */
static void offer_book_send_program(int socket_fd)
{
	int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	if (program < 0)
		return;
	(void)fd_pass_send(socket_fd, &offer_book_notice, sizeof(offer_book_notice), &program,
			   OFFER_NOTICE_FDS, MSG_DONTWAIT);
	(void)close(program); /* nothing was written to it */
}

/*
 * Whether @user is ours. Users without a number in our user namespace all look like the same one, which is
 * ours only where every user has a number.
 */
static bool offer_book_is_own(uid_t user)
{
	char map[64];
	uint32_t inside, outside, count;

	if (user != geteuid())
		return false;
	return user != OFFER_BOOK_UNMAPPED ||
	       (small_file_read(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) > 0 &&
		sscanf(map, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) == 3 &&
		inside == 0 && count == UINT32_MAX);
}

/* The folder's owner may have no number here either: only it and root can have put a socket there. */
static bool offer_book_is_owner(const char *folder, uid_t user)
{
	struct stat st;

	return stat(folder, &st) == 0 && st.st_uid == user;
}

/*
 * Whether the process that listens may have the book. A path that was named explicitly is trusted. A usual
 * one is not: the environment may be another user's, as su(1) leaves it.
 */
static bool offer_book_is_trusted(int fd, enum offer_book_place place)
{
	struct ucred listener;
	socklen_t size = sizeof(listener);

	if (place == OFFER_BOOK_LISTED || place == OFFER_BOOK_CHOSEN)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) < 0)
		return false;
	return listener.uid == 0 ||
	       (place == OFFER_BOOK_SYSTEM ? offer_book_is_owner(OFFER_BOOK_FOLDER, listener.uid)
					   : offer_book_is_own(listener.uid));
}

/* True if it was received. */
static bool offer_book_to(const char *path, size_t length, enum offer_book_place place,
			  struct offer_book_what *what)
{
	bool is_daemon = place != OFFER_BOOK_LISTED;
	uint64_t deadline =
		is_daemon ? 0 : clock_ns_kernel(CLOCK_MONOTONIC) + OFFER_BOOK_PATIENCE_NS;
	int fd = offer_book_connect(path, length, deadline);
	struct stat st;

	if (fd < 0)
		return false;
	if (!offer_book_is_trusted(fd, place)) {
		(void)close(fd); /* nothing was sent */
		return false;
	}
	if (what->pid_fd < 0)
		what->pid_fd = (int)syscall(SYS_pidfd_open, what->pid, 0);
	fd = descriptor_move_high(fd);
	/* At 1 or 2 the socket would receive what the application prints. */
	if (fd <= STDERR_FILENO || !offer_book_send_patiently(fd, what, deadline) ||
	    fstat(fd, &st) < 0) {
		(void)close(fd); /* nobody listens */
		return false;
	}
	if (offer_book_connection_count <
	    sizeof(offer_book_connections) / sizeof(offer_book_connections[0]))
		offer_book_connections[offer_book_connection_count++] =
			(struct offer_book_connection){
				.fd = fd, .ino = st.st_ino, .is_daemon = is_daemon};
	if (is_daemon)
		offer_book_send_program(fd);
	return true;
}

static void offer_book_to_listed(struct offer_book_what *what)
{
	const char *list = secure_getenv("TTMEM_OFFER");

	for (uint32_t i = 0; list && *list && i < OFFER_SOCKETS_MAX; i++) {
		size_t length = strcspn(list, ":");

		offer_book_to(list, length, OFFER_BOOK_LISTED, what);
		list += length;
		if (*list == ':')
			list++;
	}
}

/* Usually no daemon runs: one access() instead of a socket. */
static bool offer_book_to_usual(const char *path, enum offer_book_place place,
				struct offer_book_what *what)
{
	return access(path, F_OK) == 0 && offer_book_to(path, strlen(path), place, what);
}

static void offer_book_to_daemon(struct offer_book_what *what)
{
	const char *chosen = secure_getenv("TTMEM_SOCKET");
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];

	if (chosen && *chosen) {
		if (strcmp(chosen, "none") != 0)
			offer_book_to(chosen, strlen(chosen), OFFER_BOOK_CHOSEN, what);
		return;
	}
	if (!offer_book_to_usual(OFFER_BOOK_FOLDER "/ttmemd.sock", OFFER_BOOK_SYSTEM, what) &&
	    own_socket_find(path, sizeof(path)) == 0)
		offer_book_to_usual(path, OFFER_BOOK_USER, what);
}

void offer_book(int book_fd, int pid)
{
	struct offer_book_what what = {.book_fd = book_fd, .pid = pid, .pid_fd = -1};

	offer_book_close_inherited();
	offer_book_to_listed(&what);
	offer_book_to_daemon(&what);
	if (what.pid_fd >= 0)
		(void)close(what.pid_fd); /* receivers have their own copies */
}

void offer_book_tell_failed(void)
{
	uint64_t told = __atomic_load_n(&offer_book_told_ns, __ATOMIC_RELAXED);
	uint64_t now;

	if (offer_book_connection_count == 0 || freeze_is_on())
		return;
	now = clock_ns_kernel(CLOCK_MONOTONIC);
	if (now - told < OFFER_NOTICE_NS ||
	    !__atomic_compare_exchange_n(&offer_book_told_ns, &told, now, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < offer_book_connection_count; i++) {
		const struct offer_book_connection *connection = &offer_book_connections[i];

		/*
		 * Not send(), a cancellation point. If the queue is full, the daemon learns later.
		 */
		if (connection->is_daemon && offer_book_is_ours(connection))
			(void)syscall(SYS_sendto, connection->fd, &offer_book_notice,
				      sizeof(offer_book_notice), MSG_NOSIGNAL | MSG_DONTWAIT, NULL,
				      0);
	}
}
