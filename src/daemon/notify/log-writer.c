/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring of bytes between those who speak and one thread that writes. That thread may hang in write()
 * for as long as it likes: it takes a piece out of the ring under the lock and writes it without.
 */

#include "daemon/notify/log-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pthreads.h"
#include "base/small-file.h"

#define OUTLET_PIECE 65536u
#define OUTLET_LINE 4096u /* of outlet_print(); longer ones are cut */
#define OUTLET_PATIENCE_NS NS_PER_S

struct outlet {
	char *path; /* NULL: the fd is the caller's */
	pthread_t thread;

	pthread_mutex_t lock; /* for what is below */
	pthread_cond_t more;  /* bytes to write, or the end */
	int fd;
	char *ring;
	size_t room;
	uint64_t put, written; /* bytes since the beginning */
	uint64_t dropped;      /* puts */
	uint64_t gap;          /* of them not yet told in the output */
	bool reopen;
	bool is_ending;
};

static void outlet_copy_in(struct outlet *outlet, const char *text, size_t length)
{
	size_t at = (size_t)(outlet->put % outlet->room);
	size_t first = bits_min(length, outlet->room - at);

	memcpy(outlet->ring + at, text, first);
	memcpy(outlet->ring, text + first, length - first);
	outlet->put += length;
}

static bool outlet_fits(const struct outlet *outlet, size_t length)
{
	return length <= outlet->room - (size_t)(outlet->put - outlet->written);
}

/* Where something was dropped, the output says so before it goes on. */
static bool outlet_tell_gap(struct outlet *outlet)
{
	char text[96];
	int length;

	if (outlet->gap == 0)
		return true;
	length = snprintf(text, sizeof(text),
			  "... %" PRIu64 " messages lost here: the output was too slow\n",
			  outlet->gap);
	if (!outlet_fits(outlet, (size_t)length))
		return false;
	outlet_copy_in(outlet, text, (size_t)length);
	outlet->gap = 0;
	return true;
}

static int outlet_open_path(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);

	return fd < 0 ? -errno : fd;
}

/* A path that cannot be opened any more leaves the old file in use. */
static void outlet_open_again(struct outlet *outlet)
{
	int fd = outlet_open_path(outlet->path);
	int old;

	if (fd < 0)
		return;
	pthread_mutex_lock(&outlet->lock);
	old = outlet->fd;
	outlet->fd = fd;
	pthread_mutex_unlock(&outlet->lock);
	(void)close(old); /* what was written is with the kernel */
}

/* Takes a piece out of the ring; 0 at the end. */
static size_t outlet_take(struct outlet *outlet, char *piece, bool *ret_reopen)
{
	size_t length, at, first;

	pthread_mutex_lock(&outlet->lock);
	while (outlet->put == outlet->written && !outlet->is_ending && !outlet->reopen)
		pthread_cond_wait(&outlet->more, &outlet->lock);
	*ret_reopen = outlet->reopen;
	outlet->reopen = false;
	length = (size_t)bits_min(outlet->put - outlet->written, OUTLET_PIECE);
	at = (size_t)(outlet->written % outlet->room);
	first = bits_min(length, outlet->room - at);
	memcpy(piece, outlet->ring + at, first);
	memcpy(piece + first, outlet->ring, length - first);
	outlet->written += length;
	pthread_mutex_unlock(&outlet->lock);
	return length;
}

static void *outlet_thread(void *context)
{
	struct outlet *outlet = context;
	char *piece = malloc(OUTLET_PIECE);
	bool reopen;
	size_t length;

	while (piece) {
		length = outlet_take(outlet, piece, &reopen);
		if (reopen)
			outlet_open_again(outlet);
		else if (length == 0)
			break;
		/* Else it is lost: a closed pipe, a full disk. There is nobody to tell. */
		(void)small_file_write_fd(outlet->fd, piece, length);
	}
	free(piece);
	return NULL;
}

static void outlet_cleanup(struct outlet **outlet)
{
	if (!*outlet)
		return;
	if ((*outlet)->path && (*outlet)->fd >= 0)
		(void)close((*outlet)->fd); /* what was written is with the kernel */
	free((*outlet)->path);
	free((*outlet)->ring);
	free(*outlet);
}

int outlet_new(struct outlet **ret_outlet, const char *path, int fd, size_t room)
{
	CLEANUP(outlet_cleanup) struct outlet *outlet = calloc(1, sizeof(*outlet));
	int r;

	if (!outlet)
		return -ENOMEM;
	outlet->room = room ? room : OUTLET_ROOM_DEFAULT;
	outlet->ring = malloc(outlet->room);
	outlet->fd = fd;
	if (path) {
		outlet->fd = -1;
		outlet->path = strdup(path);
	}
	if (!outlet->ring || (path && !outlet->path))
		return -ENOMEM;
	if (path) {
		outlet->fd = outlet_open_path(path);
		if (outlet->fd < 0)
			return outlet->fd;
	}
	pthreads_init(&outlet->lock, &outlet->more);
	r = pthreads_start(&outlet->thread, "outlet", outlet_thread, outlet);
	if (r < 0)
		return r;
	*ret_outlet = cleanup_steal(outlet);
	return 0;
}

struct outlet *outlet_free(struct outlet *outlet)
{
	if (!outlet)
		return NULL;
	pthread_mutex_lock(&outlet->lock);
	(void)outlet_tell_gap(outlet); /* no room: then it stays untold */
	outlet->is_ending = true;
	pthread_cond_signal(&outlet->more);
	pthread_mutex_unlock(&outlet->lock);
	if (!pthreads_join(outlet->thread, clock_ns(CLOCK_MONOTONIC) + OUTLET_PATIENCE_NS)) {
		/* It hangs in a write that nobody reads, and ends with the process: its memory stays. */
		(void)pthread_detach(outlet->thread);
		return NULL;
	}
	pthread_cond_destroy(&outlet->more);
	pthread_mutex_destroy(&outlet->lock);
	outlet_cleanup(&outlet);
	return NULL;
}

bool outlet_put(struct outlet *outlet, const char *text, size_t length)
{
	bool taken;

	pthread_mutex_lock(&outlet->lock);
	taken = outlet_tell_gap(outlet) && outlet_fits(outlet, length);
	if (taken) {
		outlet_copy_in(outlet, text, length);
		pthread_cond_signal(&outlet->more);
	} else {
		outlet->dropped++;
		outlet->gap++;
	}
	pthread_mutex_unlock(&outlet->lock);
	return taken;
}

bool outlet_vprint(struct outlet *outlet, const char *format, va_list arguments)
{
	char line[OUTLET_LINE];
	int length = vsnprintf(line, sizeof(line), format, arguments);

	return outlet_put(outlet, line,
			  bits_min((size_t)(length > 0 ? length : 0), sizeof(line) - 1));
}

bool outlet_print(struct outlet *outlet, const char *format, ...)
{
	va_list arguments;
	bool taken;

	va_start(arguments, format);
	taken = outlet_vprint(outlet, format, arguments);
	va_end(arguments);
	return taken;
}

void outlet_reopen(struct outlet *outlet)
{
	if (!outlet->path)
		return;
	pthread_mutex_lock(&outlet->lock);
	outlet->reopen = true;
	pthread_cond_signal(&outlet->more);
	pthread_mutex_unlock(&outlet->lock);
}

uint64_t outlet_dropped(struct outlet *outlet)
{
	uint64_t dropped;

	pthread_mutex_lock(&outlet->lock);
	dropped = outlet->dropped;
	pthread_mutex_unlock(&outlet->lock);
	return dropped;
}
