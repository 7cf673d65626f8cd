/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The service manager, that is systemd: it gives us sockets that it has bound, is told how we are, and
 * keeps the books while we are down. Without one (NOTIFY_SOCKET is not set) nothing here does anything.
 *
 * A kept book has a name of its own, from which its owner is known again: a book tells the pid in the
 * innermost namespace, and once the process is gone nobody else knows the other one. systemd hands all
 * names over in one environment variable, which the kernel limits to 128 KiB; so names are short, and what
 * would not fit is not given to it.
 *
 * Messages are sent from the loop's thread. systemd reads them at once; while it does not, we wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many as "FileDescriptorStoreMax=" in our unit. */
#define SYSTEMD_BOOKS_MAX 4096u

/* Of all names together: what one variable may hold, less its own name. */
#define SYSTEMD_NAMES_MAX (UINT32_C(131072) - 64)

/* A book and who owns it. */
struct systemd_book {
	int fd;
	uint32_t pid; /* as we see it */
	uint64_t start_ticks;
	uint64_t inode;
};

struct systemd {
	/* Others may read. */
	bool is_there;
	uint32_t books_max;   /* how many it keeps, 0 = none: then somebody else has to */
	uint64_t watchdog_ns; /* it wants to hear of us at least so often, 0 = it does not */

	uint32_t books;
	size_t names; /* bytes */
};

/* What was handed over at the start. The descriptors are the caller's; -1 = none. */
struct systemd_fds {
	int native; /* listening; not blocking */
	int legacy;
	struct systemd_book *books;
	size_t count;
	size_t refused; /* those of unknown names or of another sort than their names say: closed */
};

#define SYSTEMD_FDS_NULL ((struct systemd_fds){.native = -1, .legacy = -1})

void systemd_init(struct systemd *systemd);

/*
 * Takes over what we were started with. Changes the environment: before there are threads. 0 or a
 * negative errno. What is no longer needed afterwards goes to systemd_fds_deinit(), which closes every
 * descriptor that has not been set to -1.
 */
int systemd_listen_fds(struct systemd *systemd, struct systemd_fds *ret_fds);
void systemd_fds_deinit(struct systemd_fds *fds);

/* All of these: 0, or a negative errno that nobody can do much about. */
int systemd_notify_ready(const struct systemd *systemd);
int systemd_notify_stopping(const struct systemd *systemd);
int systemd_notify_watchdog(const struct systemd *systemd);
/* One line for "systemctl status". */
int systemd_notify_status(const struct systemd *systemd, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Gives a copy of a book to systemd. 0, -ENOSPC if no more fit, -EOPNOTSUPP if it keeps none, or another
 * negative errno.
 */
int systemd_store(struct systemd *systemd, const struct systemd_book *book);

/* systemd forgets it. @book->fd is not used. Only for what was stored, or handed over at the start. */
int systemd_unstore(struct systemd *systemd, const struct systemd_book *book);
