/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Old clients whose connections outlive the daemon: systemd or the keeper holds what the server says
 * (systemd has the socket that accepts anyway), and the server continues their books.
 */

#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/custody/keeper.h"
#include "daemon/daemon.h"
#include "source/books/scan.h"

static void handover_hold(void *context, enum legacy_held_kind kind, int fd)
{
	struct daemon *daemon = context;

	if (daemon->keeper)
		keeper_hold(daemon->keeper, kind, fd);
	else if (kind != LEGACY_HELD_LISTENER)
		/* Without room for it, connections end with the daemon. */
		(void)systemd_hold(&daemon->systemd, kind, fd);
}

static void handover_release(void *context, enum legacy_held_kind kind, int fd)
{
	struct daemon *daemon = context;

	if (daemon->keeper)
		keeper_release(daemon->keeper, fd);
	else
		/* Else the next daemon gets it once more, and sees that it is not current. */
		(void)systemd_release(&daemon->systemd, kind, fd);
}

struct legacy_custody daemon_handover_custody(struct daemon *daemon)
{
	if (!daemon->keeper && daemon->systemd.books_max == 0)
		return (struct legacy_custody){0};
	return (struct legacy_custody){
		.context = daemon,
		.hold = handover_hold,
		.release = handover_release,
	};
}

void daemon_handover_drop(struct daemon *daemon)
{
	struct legacy_held *held = &daemon->held;

	if (held->ledger >= 0)
		handover_release(daemon, LEGACY_HELD_LEDGER, held->ledger);
	if (held->listener >= 0)
		handover_release(daemon, LEGACY_HELD_LISTENER, held->listener);
	for (size_t i = 0; i < held->box_count; i++)
		handover_release(daemon, LEGACY_HELD_BOX, held->boxes[i]);
	legacy_held_deinit(held);
}

void daemon_handover_add(void *context, uint32_t what, int fd)
{
	struct daemon *daemon = context;
	struct legacy_held *held = &daemon->held;
	CLEANUP_CLOSE int owned = fd;

	if (what == LEGACY_HELD_LEDGER && held->ledger < 0)
		held->ledger = cleanup_steal_fd(&owned);
	else if (what == LEGACY_HELD_LISTENER && held->listener < 0)
		held->listener = cleanup_steal_fd(&owned);
	else if (what == LEGACY_HELD_BOX && held->box_count < LEGACY_BOXES)
		held->boxes[held->box_count++] = cleanup_steal_fd(&owned);
}

void daemon_handover_add_handed(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->handed.held_count; i++) {
		struct systemd_held *held = &daemon->handed.held[i];

		daemon_handover_add(daemon, held->what, cleanup_steal_fd(&held->fd));
	}
}

int daemon_handover_adopt(void *context, struct scan_book *book, int pid_fd)
{
	struct daemon *daemon = context;

	struct keeper_entry old = {
		.process = book->owner.id,
		.book = book->id,
	};
	int r;

	if (daemon->legacy) {
		r = legacy_server_adopt_consume(daemon->legacy, book, pid_fd);
		if (r == 0)
			daemon_keep_let_go(daemon, &old); /* the new one is kept instead */
		return r;
	}
	/* Nobody continues it: it is read as it is until its process ends. */
	return registry_add_consume(daemon->registry, book, pid_fd, NULL, NULL);
}

bool daemon_handover_hears(void *context, struct process_id process)
{
	struct daemon *daemon = context;

	return daemon->legacy && legacy_server_hears(daemon->legacy, process);
}
