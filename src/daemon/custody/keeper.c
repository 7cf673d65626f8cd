/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon's side of the keeper. A message goes straight into the socket; only what does not fit
 * there waits in a queue, each message with a descriptor of its own. A keeper that accepts nothing
 * for some seconds is given up like one that is gone: the queue is dropped, and the next keeper
 * gets all books again.
 */

#include "daemon/custody/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process/child.h"
#include "base/threads/loop.h"
#include "daemon/custody/keeper-private.h"
#include "daemon/custody/keeper-start.h"
#include "daemon/custody/keeper-wire.h"

#define KEEPER_QUEUE_MAX (2u * KEEPER_BOOKS_MAX) /* all books added, all removed */
#define KEEPER_TICK_NS UINT64_C(100000000)
#define KEEPER_STUCK_NS UINT64_C(5000000000)
#define KEEPER_DELAY_NS UINT64_C(100000000)       /* before the first retry */
#define KEEPER_DELAY_MAX_NS UINT64_C(60000000000) /* doubled up to this */
#define KEEPER_STEADY_NS (10 * NS_PER_S) /* after living this long a keeper was not the cause */
#define KEEPER_FREE_MS 1000

_Static_assert(KEEPER_COMM_SIZE == KEEPER_WIRE_COMM, "names as in messages");

static void keeper_drop_queue(struct keeper *keeper)
{
	for (; keeper->first < keeper->count; keeper->first++) {
		if (keeper->queue[keeper->first].fd >= 0)
			(void)close(keeper->queue[keeper->first].fd); /* our duplicate */
	}
	keeper->first = keeper->count = 0;
}

static void keeper_unlink(struct keeper *keeper)
{
	if (keeper->link.fd >= 0) {
		if (keeper->link.added)
			loop_remove(keeper->loop, &keeper->link);
		(void)close(keeper->link.fd); /* sent messages still arrive */
	}
	keeper->link.fd = -1;
	keeper_drop_queue(keeper);
}

void keeper_private_retire(struct keeper *keeper)
{
	uint64_t now = loop_now(keeper->loop);

	if (keeper->link.fd >= 0) {
		keeper->counts.lost++;
		if (now - keeper->linked_ns >= KEEPER_STEADY_NS)
			keeper->delay_ns = KEEPER_DELAY_NS;
	}
	keeper_unlink(keeper);
	/*
	 * Without memory for a timer there is no other keeper; unobserved exits are counted later.
	 */
	(void)loop_set(keeper->loop, &keeper->tick, now + keeper->delay_ns);
	keeper->delay_ns = bits_min(keeper->delay_ns * 2, KEEPER_DELAY_MAX_NS);
}

static void keeper_lose(struct keeper *keeper, int error)
{
	keeper_private_retire(keeper);
	if (keeper->hooks.lost)
		keeper->hooks.lost(keeper->hooks.context, error);
}

/*
 * Sends the queue. Return: 0, -EAGAIN if some is left, or the error for which the keeper was given
 * up.
 */
static int keeper_flush(struct keeper *keeper)
{
	uint32_t events = EPOLLIN;
	int r = 0;

	while (keeper->first < keeper->count) {
		struct keeper_item *item = &keeper->queue[keeper->first];

		r = keeper_wire_send(keeper->link.fd, &item->message, item->fd);
		if (r < 0)
			break;
		if (item->fd >= 0)
			(void)close(item->fd); /* our duplicate */
		keeper->first++;
		keeper->moved_ns = loop_now(keeper->loop);
	}
	if (r == 0) {
		keeper->first = keeper->count = 0;
	} else if (r == -EAGAIN || r == -ETOOMANYREFS) {
		/*
		 * No socket event reports that fewer descriptors are in flight: the timer retries.
		 */
		events |= r == -EAGAIN ? (uint32_t)EPOLLOUT : 0;
		r = loop_set(keeper->loop, &keeper->tick, loop_now(keeper->loop) + KEEPER_TICK_NS);
		if (r == 0)
			r = -EAGAIN;
	}
	if (r < 0 && r != -EAGAIN) {
		keeper_lose(keeper, r);
		return r;
	}
	if (keeper->link.added)
		(void)loop_change(keeper->loop, &keeper->link,
				  events); /* cannot fail: it is registered */
	return r;
}

static int keeper_queue(struct keeper *keeper, const struct keeper_wire *message, int fd)
{
	struct keeper_item *grown;
	int copy = -1;

	if (keeper->count - keeper->first >= KEEPER_QUEUE_MAX)
		return -ENOBUFS;
	if (keeper->first > KEEPER_QUEUE_MAX) {
		keeper->count -= keeper->first;
		memmove(keeper->queue, keeper->queue + keeper->first,
			keeper->count * sizeof(*keeper->queue));
		keeper->first = 0;
	}
	grown = array_grow(keeper->queue, &keeper->capacity, keeper->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	keeper->queue = grown;
	if (fd >= 0) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (copy < 0)
			return -errno;
	}
	if (keeper->first == keeper->count)
		keeper->moved_ns = loop_now(keeper->loop);
	grown[keeper->count++] = (struct keeper_item){.message = *message, .fd = copy};
	return 0;
}

static void keeper_send(struct keeper *keeper, const struct keeper_wire *message, int fd)
{
	int r = -EAGAIN;

	if (keeper->link.fd < 0)
		return; /* the next keeper gets all books */
	if (keeper->first == keeper->count)
		r = keeper_wire_send(keeper->link.fd, message, fd);
	if (r == -EAGAIN || r == -ETOOMANYREFS) {
		bool is_first = keeper->first == keeper->count;

		r = keeper_queue(keeper, message, fd);
		if (r == 0 && is_first)
			(void)keeper_flush(keeper); /* arms the timer; handles a loss itself */
	}
	/* No descriptor available: this book is not held, but the others are. */
	if (r == -EMFILE || r == -ENFILE)
		keeper->counts.dropped++;
	else if (r < 0)
		keeper_lose(keeper, r);
}

static void keeper_ready(struct loop_source *source, uint32_t events)
{
	struct keeper *keeper = container_of(source, struct keeper, link);
	struct keeper_wire message;
	int fd = -1, r;

	r = keeper_wire_receive(source->fd, &message, &fd);
	if (fd >= 0)
		(void)close(fd); /* unrequested */
	if (r == 0)
		r = -EBADMSG;
	if (r != -EAGAIN)
		keeper_lose(keeper, r);
	else if (events & EPOLLOUT)
		(void)keeper_flush(keeper); /* handles a loss itself */
}

static int keeper_link(struct keeper *keeper)
{
	int fd = -1, r = -ECONNREFUSED;

	/* The starter process exits at once; if it has not, it is stuck. */
	if (keeper->starter.pid > 0) {
		child_kill(&keeper->starter);
		return -EBUSY;
	}
	if (!keeper->is_stuck)
		r = keeper_start_connect(keeper->path, &fd);
	/* A full backlog means that the keeper has not accepted for long: it is stuck. */
	keeper->is_new = r == -ECONNREFUSED || r == -ENOENT || r == -EAGAIN;
	if (keeper->is_new) {
		r = keeper_start_new(keeper->path, keeper->hooks.program, keeper->loop,
				     &keeper->starter, &fd);
		keeper->counts.started += r == 0;
	}
	if (r < 0)
		return r;
	keeper->is_stuck = false;
	keeper->link.fd = fd;
	keeper->linked_ns = loop_now(keeper->loop);
	r = loop_add(keeper->loop, &keeper->link, EPOLLIN);
	if (r < 0)
		keeper_unlink(keeper);
	return r;
}

/* There is no keeper: start another. */
static void keeper_again(struct keeper *keeper)
{
	const struct keeper_wire sweep = KEEPER_WIRE_INIT(KEEPER_WIRE_SWEEP);
	int r = keeper_link(keeper);

	if (r < 0) {
		keeper_lose(keeper, r);
		return;
	}
	keeper->hooks.refill(keeper->hooks.context, keeper);
	/* It was the old keeper after all: it missed what was removed meanwhile. */
	if (!keeper->is_new)
		keeper_send(keeper, &sweep, -1);
}

static void keeper_tick(struct loop_timer *timer)
{
	struct keeper *keeper = container_of(timer, struct keeper, tick);

	if (keeper->link.fd < 0) {
		keeper_again(keeper);
		return;
	}
	if (keeper_flush(keeper) == -EAGAIN &&
	    loop_now(keeper->loop) - keeper->moved_ns >= KEEPER_STUCK_NS) {
		keeper->is_stuck = true;
		keeper_lose(keeper, -ETIMEDOUT);
	}
}

static void keeper_starter_ended(struct child *child, int status)
{
	/* If it failed, the connection has been closed, and that is handled there. */
}

static void keeper_cleanup(struct keeper **keeper)
{
	keeper_free(*keeper);
}

int keeper_new(struct keeper **ret_keeper, struct loop *loop, const char *path,
	       const struct keeper_hooks *hooks)
{
	CLEANUP(keeper_cleanup) struct keeper *keeper = calloc(1, sizeof(*keeper));
	int r;

	if (!keeper)
		return -ENOMEM;
	keeper->loop = loop;
	keeper->hooks = *hooks;
	keeper->link = (struct loop_source){.fd = -1, .ready = keeper_ready};
	keeper->starter = CHILD_NULL;
	keeper->starter.ended = keeper_starter_ended;
	keeper->tick.fire = keeper_tick;
	keeper->delay_ns = KEEPER_DELAY_NS;
	keeper->path = strdup(path);
	if (!keeper->path)
		return -ENOMEM;
	r = keeper_link(keeper);
	if (r < 0)
		keeper_lose(keeper, r);
	*ret_keeper = cleanup_steal(keeper);
	return 0;
}

struct keeper *keeper_free(struct keeper *keeper)
{
	uint64_t limit;

	if (!keeper)
		return NULL;
	/* Nobody else has the queued messages. */
	keeper->hooks.lost = NULL;
	limit = clock_ms(CLOCK_MONOTONIC) + KEEPER_FREE_MS;
	while (keeper->link.fd >= 0 && keeper_flush(keeper) == -EAGAIN &&
	       clock_ms(CLOCK_MONOTONIC) < limit) {
		struct pollfd room = {.fd = keeper->link.fd, .events = POLLOUT};

		(void)poll(&room, 1, 10); /* or too many descriptors are in flight: retry */
	}
	keeper_unlink(keeper);
	loop_cancel(keeper->loop, &keeper->tick);
	if (!child_wait(&keeper->starter, KEEPER_FREE_MS)) {
		child_kill(&keeper->starter);
		(void)child_wait(&keeper->starter, -1); /* killed */
	}
	free(keeper->queue);
	free(keeper->path);
	free(keeper);
	return NULL;
}

static bool keeper_other(uint32_t kind, int fd, struct keeper_wire *ret_message)
{
	struct stat file;

	*ret_message = KEEPER_WIRE_INIT(kind);
	if (fstat(fd, &file) < 0)
		return false;
	ret_message->device = file.st_dev;
	ret_message->inode = file.st_ino;
	return true;
}

void keeper_hold(struct keeper *keeper, uint32_t what, int fd)
{
	struct keeper_wire message;

	if (!keeper_other(KEEPER_WIRE_HOLD, fd, &message))
		return;
	message.source = what;
	keeper_send(keeper, &message, fd);
}

void keeper_release(struct keeper *keeper, int fd)
{
	struct keeper_wire message;

	if (keeper_other(KEEPER_WIRE_REMOVE, fd, &message))
		keeper_send(keeper, &message, -1);
}

void keeper_add(struct keeper *keeper, const struct keeper_entry *entry, int fd)
{
	struct keeper_wire message = KEEPER_WIRE_INIT(KEEPER_WIRE_ADD);

	message.pid = entry->process.pid;
	message.source = entry->source;
	message.start_ticks = entry->process.start_ticks;
	message.device = entry->book.device;
	message.inode = entry->book.inode;
	/* Padded with NULs; a longer name is truncated. */
	memcpy(message.comm, entry->comm, strnlen(entry->comm, sizeof(message.comm) - 1));
	keeper_send(keeper, &message, fd);
}

void keeper_remove(struct keeper *keeper, struct book_id book)
{
	struct keeper_wire message = KEEPER_WIRE_INIT(KEEPER_WIRE_REMOVE);

	message.device = book.device;
	message.inode = book.inode;
	keeper_send(keeper, &message, -1);
}

void keeper_counts(const struct keeper *keeper, struct keeper_counts *ret_counts)
{
	*ret_counts = keeper->counts;
	ret_counts->waiting = keeper->count - keeper->first;
}

int keeper_quit(const char *path)
{
	const struct keeper_wire message = KEEPER_WIRE_INIT(KEEPER_WIRE_QUIT);
	CLEANUP_CLOSE int fd = -1;
	int r = keeper_start_connect(path, &fd);

	if (r == -ECONNREFUSED || r == -ENOENT)
		return 0;
	return r < 0 ? r : keeper_wire_send(fd, &message, -1);
}
