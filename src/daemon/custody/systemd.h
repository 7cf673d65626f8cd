/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The interface to systemd: it passes us sockets that it has bound, monitors us, and keeps the
 * books while we are down. Without it (NOTIFY_SOCKET is not set) nothing here does anything.
 *
 * A kept book has a unique name that identifies its owner: the book itself has the pid of the
 * innermost namespace only, and after the process has exited nobody else knows its pid in ours.
 * systemd passes all names in one environment variable, which the kernel limits to 128 KiB; so
 * names are short, and books whose names would not fit are not stored.
 *
 * Messages are sent from the loop's thread. systemd normally reads them at once; if it does not, we
 * block.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"

/* Same as "FileDescriptorStoreMax=" in our unit. */
#define SYSTEMD_BOOKS_MAX 4096u

/* Of all names together: the limit of one variable, less its own name. */
#define SYSTEMD_NAMES_MAX (UINT32_C(131072) - 64)

/* A book and its owner. */
struct systemd_book {
	int fd;
	struct process_id process;
	uint64_t inode;
};

/* Another descriptor: @what says to the next daemon what it is. */
struct systemd_held {
	int fd;
	uint32_t what;
	uint64_t inode;
};

struct systemd {
	/* Read-only for others. */
	bool is_there;
	uint32_t books_max;   /* how many it keeps, 0 = none: then the keeper has to */
	uint64_t watchdog_ns; /* longest time between two watchdog messages, 0 = no watchdog */

	uint32_t books; /* and others */
	size_t names;   /* bytes */
};

/* What was passed at the start. The caller owns the descriptors; -1 = none. */
struct systemd_fds {
	int native; /* listening; nonblocking */
	int legacy;
	struct systemd_book *books;
	size_t count;
	struct systemd_held *held;
	size_t held_count;
	size_t refused; /* with unknown names, or not of the kind that their names say: closed */
};

#define SYSTEMD_FDS_NULL ((struct systemd_fds){.native = -1, .legacy = -1})

void systemd_init(struct systemd *systemd);

/*
 * Takes over what we were started with. Changes the environment, so call it before there are
 * threads. 0 or a negative errno. Pass what is left afterwards to systemd_fds_deinit(), which
 * closes every descriptor that has not been set to -1.
 */
int systemd_listen_fds(struct systemd *systemd, struct systemd_fds *ret_fds);
void systemd_fds_deinit(struct systemd_fds *fds);

/* All of these return 0, or a negative errno that callers can do little about. */
int systemd_notify_ready(const struct systemd *systemd);
int systemd_notify_stopping(const struct systemd *systemd);
int systemd_notify_watchdog(const struct systemd *systemd);
/* One line for "systemctl status". */
int systemd_notify_status(const struct systemd *systemd, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Gives systemd a copy of a book. 0, -ENOSPC if no more fit, -EOPNOTSUPP if it keeps none, or
 * another negative errno.
 */
int systemd_store(struct systemd *systemd, const struct systemd_book *book);

/* Makes systemd drop a book that was stored, or passed at the start. @book->fd is not used. */
int systemd_unstore(struct systemd *systemd, const struct systemd_book *book);

/* The same for descriptors other than books. @what is not 0. */
int systemd_hold(struct systemd *systemd, uint32_t what, int fd);
int systemd_release(struct systemd *systemd, uint32_t what, int fd);
