/* SPDX-License-Identifier: Apache-2.0 */

/* Talks to systemd through its own library. */

#include "daemon/custody/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"

#define NAME_NATIVE "native"
#define NAME_LEGACY "legacy"

/* "b", then three hexadecimal numbers separated by dots. */
#define NAME_SIZE 48u

/* The status line is meant for a terminal of usual width. */
#define STATUS_SIZE 256u

void systemd_init(struct systemd *systemd)
{
	const char *address = secure_getenv("NOTIFY_SOCKET");
	const char *store = secure_getenv("FDSTORE");
	uint64_t count, usec;

	*systemd = (struct systemd){.is_there = address && *address};
	if (!systemd->is_there)
		return;
	/* Set by systemd from 254 on; for older ones our unit says the same. */
	if (store && text_parse_u64(store, &count) == 0)
		systemd->books_max = (uint32_t)bits_min(count, SYSTEMD_BOOKS_MAX);
	if (sd_watchdog_enabled(0, &usec) > 0)
		systemd->watchdog_ns = usec * 1000;
}

static size_t write_name(const struct systemd_book *book, char *ret_name)
{
	int n = snprintf(ret_name, NAME_SIZE, "b%" PRIx32 ".%" PRIx64 ".%" PRIx64,
			 book->process.pid, book->process.start_ticks, book->inode);

	return (size_t)n; /* 8 + 16 + 16 digits at most: always fits */
}

/* False: not a name of ours. */
static bool read_name(const char *name, struct systemd_book *ret_book)
{
	struct systemd_book book = {.fd = -1};
	char again[NAME_SIZE];

	if (sscanf(name, "b%" SCNx32 ".%" SCNx64 ".%" SCNx64, &book.process.pid,
		   &book.process.start_ticks, &book.inode) != 3)
		return false;
	/* sscanf is lenient; compare with the canonical form. */
	write_name(&book, again);
	if (strcmp(name, again) != 0)
		return false;
	*ret_book = book;
	return true;
}

static size_t write_held_name(uint32_t what, uint64_t inode, char *ret_name)
{
	int n = snprintf(ret_name, NAME_SIZE, "h%" PRIx32 ".%" PRIx64, what, inode);

	return (size_t)n; /* 8 + 16 digits at most: always fits */
}

static bool read_held_name(const char *name, struct systemd_held *ret_held)
{
	struct systemd_held held = {.fd = -1};
	char again[NAME_SIZE];

	if (sscanf(name, "h%" SCNx32 ".%" SCNx64, &held.what, &held.inode) != 2)
		return false;
	write_held_name(held.what, held.inode, again);
	if (strcmp(name, again) != 0)
		return false;
	*ret_held = held;
	return true;
}

/*
 * Accepts a listening socket of that type. systemd passes blocking ones, and the daemon must not
 * block.
 */
static bool take_socket(int fd, int type)
{
	int flags = fcntl(fd, F_GETFL);

	return sd_is_socket_unix(fd, type, 1, NULL, 0) > 0 && flags >= 0 &&
	       fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* Takes ownership of the descriptor in any case. */
static void take_one_consume(struct systemd *systemd, struct systemd_fds *fds, int fd,
			     const char *name)
{
	CLEANUP_CLOSE int owned = fd;
	struct systemd_held held;
	struct systemd_book book;

	if (strcmp(name, NAME_NATIVE) == 0 && fds->native < 0 && take_socket(fd, SOCK_SEQPACKET)) {
		fds->native = cleanup_steal_fd(&owned);
	} else if (strcmp(name, NAME_LEGACY) == 0 && fds->legacy < 0 &&
		   take_socket(fd, SOCK_STREAM)) {
		fds->legacy = cleanup_steal_fd(&owned);
	} else if (read_name(name, &book)) {
		/* Whether it is a book is checked when it is opened. */
		book.fd = cleanup_steal_fd(&owned);
		fds->books[fds->count++] = book;
		systemd->books++;
		systemd->names += strlen(name) + 1;
	} else if (read_held_name(name, &held)) {
		held.fd = cleanup_steal_fd(&owned);
		fds->held[fds->held_count++] = held;
		systemd->books++;
		systemd->names += strlen(name) + 1;
	} else {
		fds->refused++;
	}
}

/* @names: a list terminated by NULL; the caller owns it and its members. */
static char **free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
	return NULL;
}

static void close_from_start(int count)
{
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; fd++)
		(void)close(fd); /* unused */
}

int systemd_listen_fds(struct systemd *systemd, struct systemd_fds *ret_fds)
{
	struct systemd_fds fds = SYSTEMD_FDS_NULL;
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names);

	if (count < 0)
		return count;
	if (count > 0) {
		fds.books = calloc((size_t)count, sizeof(*fds.books));
		fds.held = calloc((size_t)count, sizeof(*fds.held));
		if (!fds.books || !fds.held) {
			free(fds.books);
			free(fds.held);
			close_from_start(count);
			free_names(names);
			return -ENOMEM;
		}
	}
	for (int i = 0; i < count; i++)
		take_one_consume(systemd, &fds, SD_LISTEN_FDS_START + i, names[i]);
	free_names(names);
	*ret_fds = fds;
	return 0;
}

static void close_taken(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
}

void systemd_fds_deinit(struct systemd_fds *fds)
{
	close_taken(fds->native);
	close_taken(fds->legacy);
	for (size_t i = 0; i < fds->count; i++)
		close_taken(fds->books[i].fd);
	for (size_t i = 0; i < fds->held_count; i++)
		close_taken(fds->held[i].fd);
	free(fds->books);
	free(fds->held);
	*fds = SYSTEMD_FDS_NULL;
}

static int notify(const struct systemd *systemd, const char *state)
{
	int r = systemd->is_there ? sd_notify(0, state) : 0;

	return r < 0 ? r : 0;
}

int systemd_notify_ready(const struct systemd *systemd)
{
	return notify(systemd, "READY=1");
}

int systemd_notify_stopping(const struct systemd *systemd)
{
	return notify(systemd, "STOPPING=1");
}

int systemd_notify_watchdog(const struct systemd *systemd)
{
	return systemd->watchdog_ns ? notify(systemd, "WATCHDOG=1") : 0;
}

int systemd_notify_status(const struct systemd *systemd, const char *format, ...)
{
	char text[STATUS_SIZE], state[TEXT_ESCAPE_SIZE(STATUS_SIZE) + sizeof("STATUS=")];
	va_list arguments;

	if (!systemd->is_there)
		return 0;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments); /* longer ones are truncated */
	va_end(arguments);
	strcpy(state, "STATUS=");
	/* A newline would begin another message. */
	text_escape(text, state + strlen(state), sizeof(state) - strlen(state));
	return notify(systemd, state);
}

/* Gives systemd a copy of a descriptor under a name. */
static int store(struct systemd *systemd, const char *name, int fd)
{
	char state[NAME_SIZE + 64];
	size_t length = strlen(name) + 1;
	int r;

	if (!systemd->is_there || systemd->books_max == 0)
		return -EOPNOTSUPP;
	if (systemd->books >= systemd->books_max || systemd->names + length > SYSTEMD_NAMES_MAX)
		return -ENOSPC;
	/*
	 * A memory file cannot be polled; without FDPOLL=0 systemd would try that for each, and drop a
	 * socket whose other end is closed.
	 */
	(void)snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name); /* fits */
	r = sd_pid_notify_with_fds(0, 0, state, &fd, 1);
	if (r <= 0)
		return r < 0 ? r : -EOPNOTSUPP;
	systemd->books++;
	systemd->names += length;
	return 0;
}

static int unstore(struct systemd *systemd, const char *name)
{
	char state[NAME_SIZE + 64];
	size_t length = strlen(name) + 1;

	if (!systemd->is_there || systemd->books == 0 || systemd->names < length)
		return 0;
	systemd->books--;
	systemd->names -= length;
	(void)snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name); /* fits */
	return notify(systemd, state);
}

int systemd_store(struct systemd *systemd, const struct systemd_book *book)
{
	char name[NAME_SIZE];

	write_name(book, name);
	return store(systemd, name, book->fd);
}

int systemd_unstore(struct systemd *systemd, const struct systemd_book *book)
{
	char name[NAME_SIZE];

	write_name(book, name);
	return unstore(systemd, name);
}

int systemd_hold(struct systemd *systemd, uint32_t what, int fd)
{
	char name[NAME_SIZE];
	struct stat file;

	if (fstat(fd, &file) < 0)
		return -errno;
	write_held_name(what, file.st_ino, name);
	return store(systemd, name, fd);
}

int systemd_release(struct systemd *systemd, uint32_t what, int fd)
{
	char name[NAME_SIZE];
	struct stat file;

	if (fstat(fd, &file) < 0)
		return -errno;
	write_held_name(what, file.st_ino, name);
	return unstore(systemd, name);
}
