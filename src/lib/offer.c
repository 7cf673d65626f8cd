/* SPDX-License-Identifier: Apache-2.0 */

/* One message with the book and our own pidfd; wire/offer.h tells what it looks like. */

#include "lib/offer.h"

#include <errno.h>
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

#include "wire/offer.h"

#define OFFER_RETRIES 100 /* of 1 ms: `ttmem run` may be busy taking other books in */

/* Connections stay open: that one ends without its process ending tells the daemon of an exec. A
 * forked child closes its parent's, if the numbers still are what they were. */
struct offer_connection {
	int fd;
	ino_t ino;
};

static struct offer_connection offer_connections[OFFER_SOCKETS_MAX + 1];
static uint32_t offer_connection_count;

static void offer_close_inherited(void)
{
	struct stat st;

	for (uint32_t i = 0; i < offer_connection_count; i++) {
		const struct offer_connection *connection = &offer_connections[i];

		if (fstat(connection->fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
		    st.st_ino == connection->ino)
			(void)close(connection->fd); /* a copy; the parent's stays */
	}
	offer_connection_count = 0;
}

static int offer_connect(const char *path, size_t length, int retries)
{
	static const struct timespec millisecond = {.tv_nsec = 1000000};
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

		if ((r != -EAGAIN && r != -EINTR) || retries-- <= 0) {
			(void)close(fd); /* never connected */
			return r;
		}
		(void)nanosleep(&millisecond, NULL); /* shortened by a signal: harmless */
	}
	return fd;
}

static bool offer_send(int socket_fd, int book_fd, int pid_fd)
{
	struct offer offer = {
		.magic = OFFER_MAGIC, .version = OFFER_VERSION, .size = sizeof(offer)};
	int fds[OFFER_FDS] = {book_fd, pid_fd};
	size_t bytes = sizeof(int) * (pid_fd >= 0 ? 2 : 1);
	union {
		char space[CMSG_SPACE(sizeof(int) * OFFER_FDS)];
		struct cmsghdr align;
	} control = {0};
	struct iovec vector = {.iov_base = &offer, .iov_len = sizeof(offer)};
	struct msghdr message = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_SPACE(bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(header), fds, bytes);
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(offer);
}

/* True if somebody took it. */
static bool offer_to(const char *path, size_t length, int retries, int book_fd, int pid_fd)
{
	int fd = offer_connect(path, length, retries);
	struct stat st;

	if (fd < 0)
		return false;
	if (!offer_send(fd, book_fd, pid_fd) || fstat(fd, &st) < 0) {
		(void)close(fd); /* nobody listens */
		return false;
	}
	if (offer_connection_count < sizeof(offer_connections) / sizeof(offer_connections[0]))
		offer_connections[offer_connection_count++] =
			(struct offer_connection){.fd = fd, .ino = st.st_ino};
	return true;
}

static void offer_to_listed(int book_fd, int pid_fd)
{
	const char *list = secure_getenv("TTMEM_OFFER");

	for (uint32_t i = 0; list && *list && i < OFFER_SOCKETS_MAX; i++) {
		size_t length = strcspn(list, ":");

		offer_to(list, length, OFFER_RETRIES, book_fd, pid_fd);
		list += length;
		if (*list == ':')
			list++;
	}
}

static void offer_to_daemon(int book_fd, int pid_fd)
{
	static const char system_path[] = "/run/ttmem/ttmemd.sock";
	const char *chosen = secure_getenv("TTMEM_SOCKET");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int length;

	if (chosen && *chosen) {
		if (strcmp(chosen, "none") != 0)
			offer_to(chosen, strlen(chosen), 0, book_fd, pid_fd);
		return;
	}
	if (offer_to(system_path, sizeof(system_path) - 1, 0, book_fd, pid_fd) || !runtime)
		return;
	length = snprintf(path, sizeof(path), "%s/ttmem/ttmemd.sock", runtime);
	if (length > 0 && (size_t)length < sizeof(path))
		offer_to(path, (size_t)length, 0, book_fd, pid_fd);
}

void offer_book(int book_fd)
{
	int pid_fd;

	offer_close_inherited();
	pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	offer_to_listed(book_fd, pid_fd);
	offer_to_daemon(book_fd, pid_fd);
	if (pid_fd >= 0)
		(void)close(pid_fd); /* copies are with whoever took them */
}
