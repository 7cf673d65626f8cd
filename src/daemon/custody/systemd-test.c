/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages to systemd and descriptors from it, with a socket in its place.
 * tests/integration/daemon/test_systemd.py tests with a real one.
 */

#include "daemon/custody/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

static struct sockaddr_un address_of(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", unit_dir(), name);
	return address;
}

/* A socket where systemd's would be, named in the environment. */
static int pretend(void)
{
	struct sockaddr_un address = address_of("notify");
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	return fd;
}

/* Receives the next message, which must be @text. Return: its descriptor, -1 if there is none. */
static int expect(int fd, const char *text)
{
	char data[1024] = {0};
	union {
		char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec vector = {data, sizeof(data) - 1};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int got = -1;

	assert(recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) >= 0);
	assert(strcmp(data, text) == 0);
	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header;
	     header = CMSG_NXTHDR(&message, header)) {
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
			memcpy(&got, CMSG_DATA(header), sizeof(got));
	}
	return got;
}

static void expect_silence(int fd)
{
	char byte;

	assert(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

UNIT(without_systemd_nothing_is_sent)
{
	struct systemd systemd;
	struct systemd_fds fds = SYSTEMD_FDS_NULL;
	struct systemd_book book = {.fd = 0, .process.pid = 1};

	unsetenv("NOTIFY_SOCKET");
	setenv("FDSTORE", "10", 1);
	systemd_init(&systemd);
	assert(!systemd.is_there && systemd.books_max == 0 && systemd.watchdog_ns == 0);
	assert(systemd_notify_ready(&systemd) == 0 && systemd_notify_stopping(&systemd) == 0);
	assert(systemd_notify_watchdog(&systemd) == 0);
	assert(systemd_notify_status(&systemd, "%d", 1) == 0);
	assert(systemd_store(&systemd, &book) == -EOPNOTSUPP);
	assert(systemd_unstore(&systemd, &book) == 0);
	assert(systemd_listen_fds(&systemd, &fds) == 0);
	assert(fds.native == -1 && fds.legacy == -1 && fds.count == 0 && fds.refused == 0);
	systemd_fds_deinit(&fds);
}

UNIT(states_are_sent_to_systemd)
{
	int fd = pretend();
	struct systemd systemd;
	char pid[16];

	systemd_init(&systemd);
	assert(systemd.is_there && systemd.books_max == 0);
	assert(systemd_notify_ready(&systemd) == 0 && expect(fd, "READY=1") == -1);
	assert(systemd_notify_watchdog(&systemd) == 0); /* not requested */
	expect_silence(fd);
	assert(systemd_notify_status(&systemd, "%d books\nREADY=1", 7) == 0);
	expect(fd, "STATUS=7 books\\x0aREADY=1");
	assert(systemd_notify_stopping(&systemd) == 0 && expect(fd, "STOPPING=1") == -1);

	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	setenv("WATCHDOG_USEC", "3000000", 1);
	systemd_init(&systemd);
	assert(systemd.watchdog_ns == UINT64_C(3000000000));
	assert(systemd_notify_watchdog(&systemd) == 0 && expect(fd, "WATCHDOG=1") == -1);
	setenv("WATCHDOG_PID", "1", 1); /* for another process */
	systemd_init(&systemd);
	assert(systemd.watchdog_ns == 0);
	close(fd);
}

UNIT(a_missing_notify_socket_is_no_failure)
{
	int fd = pretend();
	struct systemd systemd;

	close(fd);
	setenv("FDSTORE", "10", 1);
	systemd_init(&systemd);
	assert(systemd_notify_ready(&systemd) == -ECONNREFUSED);
	assert(systemd_store(&systemd, &(struct systemd_book){.fd = 0}) == -ECONNREFUSED);
	assert(systemd.books == 0 && systemd.names == 0);
}

UNIT(books_are_stored)
{
	int fd = pretend(), copy;
	struct systemd systemd;
	struct systemd_book book = {
		.process.pid = 0x1234, .process.start_ticks = 0xabcdef012, .inode = UINT64_MAX};
	struct stat a, b;

	setenv("FDSTORE", "2", 1);
	systemd_init(&systemd);
	assert(systemd.books_max == 2);
	book.fd = memfd_create("book", MFD_CLOEXEC);
	assert(systemd_store(&systemd, &book) == 0);
	copy = expect(fd, "FDSTORE=1\nFDNAME=b1234.abcdef012.ffffffffffffffff\nFDPOLL=0");
	assert(fstat(copy, &a) == 0 && fstat(book.fd, &b) == 0 && a.st_ino == b.st_ino);
	close(copy);

	book.inode = 1;
	assert(systemd_store(&systemd, &book) == 0);
	close(expect(fd, "FDSTORE=1\nFDNAME=b1234.abcdef012.1\nFDPOLL=0"));
	book.inode = 2;
	assert(systemd_store(&systemd, &book) == -ENOSPC);
	expect_silence(fd);

	/* After a removal another one fits. */
	book.inode = 1;
	assert(systemd_unstore(&systemd, &book) == 0);
	expect(fd, "FDSTOREREMOVE=1\nFDNAME=b1234.abcdef012.1");
	book.inode = 2;
	assert(systemd_store(&systemd, &book) == 0);
	close(expect(fd, "FDSTORE=1\nFDNAME=b1234.abcdef012.2\nFDPOLL=0"));
	close(book.fd);
	close(fd);
}

UNIT(other_descriptors_are_stored)
{
	int fd = pretend(), pair[2];
	char text[128];
	struct systemd systemd;
	struct stat file;

	setenv("FDSTORE", "2", 1);
	systemd_init(&systemd);
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	assert(fstat(pair[0], &file) == 0);
	assert(systemd_hold(&systemd, 0x2, pair[0]) == 0);
	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=h2.%lx\nFDPOLL=0",
		 (unsigned long)file.st_ino);
	close(expect(fd, text));
	assert(systemd_release(&systemd, 0x2, pair[0]) == 0);
	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=h2.%lx", (unsigned long)file.st_ino);
	expect(fd, text);
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

/* Names that do not fit into one variable would prevent the next daemon from starting. */
UNIT(names_are_bounded)
{
	int fd = pretend();
	struct systemd systemd;
	struct systemd_book book = {.process.pid = UINT32_MAX, .process.start_ticks = UINT64_MAX};
	uint32_t stored = 0;
	int r;

	setenv("FDSTORE", "1000000", 1);
	systemd_init(&systemd);
	assert(systemd.books_max == SYSTEMD_BOOKS_MAX);
	book.fd = memfd_create("book", MFD_CLOEXEC);
	for (;;) {
		book.inode = UINT64_MAX - stored;
		r = systemd_store(&systemd, &book);
		if (r != 0)
			break;
		assert(recv(fd, (char[1]){0}, 1, 0) == 1);
		stored++;
	}
	assert(r == -ENOSPC && systemd.names <= 131072 - 64);
	assert(stored > 2900 && stored < SYSTEMD_BOOKS_MAX);

	/* With the numbers of a machine that has run for years, all of them fit. */
	systemd_init(&systemd);
	book = (struct systemd_book){.fd = book.fd,
				     .process.pid = 0x3fffff,
				     .process.start_ticks = 0xfffffffff,
				     .inode = 0xfffffff};
	for (stored = 0; stored < SYSTEMD_BOOKS_MAX; stored++) {
		assert(systemd_store(&systemd, &book) == 0);
		assert(recv(fd, (char[1]){0}, 1, 0) == 1);
	}
	assert(systemd_store(&systemd, &book) == -ENOSPC);
	close(book.fd);
	close(fd);
}

/*
 * As systemd starts a service: descriptors from 3 on. In a child, whose other descriptors do not
 * matter.
 */
static void with_fds(const int *fds, int count, const char *names, void (*check)(void))
{
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (pid == 0) {
		char text[16];
		int high[8];

		for (int i = 0; i < count; i++)
			high[i] = fcntl(fds[i], F_DUPFD, 100);
		for (int i = 0; i < count; i++)
			assert(dup2(high[i], 3 + i) == 3 + i);
		snprintf(text, sizeof(text), "%d", getpid());
		setenv("LISTEN_PID", text, 1);
		snprintf(text, sizeof(text), "%d", count);
		setenv("LISTEN_FDS", text, 1);
		setenv("LISTEN_FDNAMES", names, 1);
		check();
		_exit(0);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
}

static int listener(int type, const char *name)
{
	struct sockaddr_un address = address_of(name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(fd, 1) == 0);
	return fd;
}

static void check_taken(void)
{
	struct systemd systemd;
	struct systemd_fds fds;

	systemd_init(&systemd);
	assert(systemd_listen_fds(&systemd, &fds) == 0);
	assert(fds.native == 4 && fds.legacy == 3 && fds.count == 1 && fds.refused == 1);
	assert(fds.books[0].fd == 5 && fds.books[0].process.pid == 0x12);
	assert(fds.books[0].process.start_ticks == 0x345 && fds.books[0].inode == 0x6789);
	assert(fcntl(4, F_GETFD) == FD_CLOEXEC && fcntl(5, F_GETFD) == FD_CLOEXEC);
	assert(fcntl(3, F_GETFL) & fcntl(4, F_GETFL) & O_NONBLOCK);
	assert(fcntl(6, F_GETFD) < 0); /* unknown: closed */
	assert(!getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES"));
	assert(systemd.books == 1 && systemd.names == strlen("b12.345.6789") + 1);

	fds.legacy = -1; /* the caller has taken it */
	systemd_fds_deinit(&fds);
	assert(fcntl(3, F_GETFD) >= 0 && fcntl(4, F_GETFD) < 0 && fcntl(5, F_GETFD) < 0);
}

static void check_held(void)
{
	struct systemd systemd;
	struct systemd_fds fds;

	systemd_init(&systemd);
	assert(systemd_listen_fds(&systemd, &fds) == 0);
	assert(fds.count == 0 && fds.held_count == 2 && fds.refused == 2);
	assert(fds.held[0].fd == 3 && fds.held[0].what == 1 && fds.held[0].inode == 0xab);
	assert(fds.held[1].fd == 4 && fds.held[1].what == 2 && fds.held[1].inode == 0xcd);
	assert(systemd.books == 2);
	systemd_fds_deinit(&fds);
	for (int fd = 3; fd < 7; fd++)
		assert(fcntl(fd, F_GETFD) < 0);
}

static void check_refused(void)
{
	struct systemd systemd;
	struct systemd_fds fds;

	systemd_init(&systemd);
	assert(systemd_listen_fds(&systemd, &fds) == 0);
	assert(fds.native == -1 && fds.legacy == -1 && fds.count == 0 && fds.refused == 4);
	systemd_fds_deinit(&fds);
	for (int fd = 3; fd < 7; fd++)
		assert(fcntl(fd, F_GETFD) < 0);
}

UNIT(inherited_descriptors_are_sorted_by_name)
{
	int stream = listener(SOCK_STREAM, "stream"), packet = listener(SOCK_SEQPACKET, "packet");
	int book = memfd_create("book", MFD_CLOEXEC), pair[2];

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	with_fds((int[]){stream, packet, book, book}, 4, "legacy:native:b12.345.6789:stored",
		 check_taken);
	with_fds((int[]){book, pair[0], book, book}, 4, "h1.ab:h2.cd:h1:h01.ab", check_held);
	/* The two kinds of sockets swapped, one that does not listen, one that is no socket. */
	with_fds((int[]){stream, packet, pair[0], book}, 4, "native:legacy:native:legacy",
		 check_refused);
	/* Almost our names. */
	with_fds((int[]){book, book, book, book}, 4, "b12.345:b12.345.0x67:b012.345.67:b1.2.3.4",
		 check_refused);
	with_fds((int[]){book, book, book, book}, 4, "b 1.2.3:b-1.2.3:B1.2.3:b1.2.A",
		 check_refused);
	close(stream);
	close(packet);
	close(book);
	close(pair[0]);
	close(pair[1]);
}
