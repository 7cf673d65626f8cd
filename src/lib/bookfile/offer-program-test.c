/* SPDX-License-Identifier: Apache-2.0 */

/* The program that the daemon is sent after the book. */

#include <ttmem/ttmem.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"
#include "wire/offer.h"

/* A listener whose path is the value of a variable. */
static int listen_for(const char *variable, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert(snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", unit_dir(), name) <
	       (int)sizeof(address.sun_path));
	assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(fd, 1) == 0 && setenv(variable, address.sun_path, 1) == 0);
	return fd;
}

/* Receives the book. Return: the connection. */
static int take_book(int listener)
{
	struct fd_pass got = FD_PASS_WANT(OFFER_FDS);
	int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct offer offer;

	assert(connection >= 0);
	assert(fd_pass_receive(connection, &offer, sizeof(offer), &got, 0) == sizeof(offer));
	assert(offer.magic == OFFER_MAGIC && got.fds[0] >= 0);
	fd_pass_close(&got);
	return connection;
}

/* The daemon gets it even if the process has ended by then; others get the book alone. */
UNIT(the_daemon_is_sent_the_program)
{
	struct fd_pass got = FD_PASS_WANT(OFFER_NOTICE_FDS);
	struct offer_notice notice;
	struct stat program, want;
	int daemon, starter, connection;
	pid_t child;

	observer_track();
	unit_expect_fds(0);
	daemon = listen_for("TTMEM_SOCKET", "daemon");
	starter = listen_for("TTMEM_OFFER", "starter");
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 42, NULL);
		kill(getpid(), SIGKILL);
	}
	assert(waitpid(child, NULL, 0) == child);
	connection = take_book(daemon);
	assert(fd_pass_receive(connection, &notice, sizeof(notice), &got, 0) == sizeof(notice));
	/* As older daemons expect it. */
	assert(notice.magic == OFFER_NOTICE_MAGIC && notice.version == OFFER_VERSION);
	assert(notice.size == sizeof(notice) && notice.what == OFFER_NOTICE_FAILED);
	assert(fstat(got.fds[0], &program) == 0 && stat("/proc/self/exe", &want) == 0);
	assert(program.st_ino == want.st_ino && program.st_dev == want.st_dev);
	assert(fcntl(got.fds[0], F_GETFL) & O_PATH);
	fd_pass_close(&got);
	close(connection);
	connection = take_book(starter);
	assert(recv(connection, &notice, sizeof(notice), 0) == 0);
	close(connection);
	close(daemon);
	close(starter);
}
