/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring of bytes between the callers and one writer thread. That thread may block in write() for
 * any time: it takes a piece out of the ring under the lock and writes it without the lock.
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
#include "base/files/heir.h"
#include "base/files/small-file.h"
#include "base/files/user-file.h"
#include "base/quota.h"
#include "base/text.h"
#include "base/threads/pthreads.h"

#define LOG_WRITER_PIECE 65536u
#define LOG_WRITER_LINE 4096u /* of log_writer_print(); longer ones are truncated */
#define LOG_WRITER_PATIENCE_NS NS_PER_S

struct log_writer {
	char *path; /* NULL = none */
	int spare;  /* the caller's: in use without a path, or while it cannot be opened */
	pthread_t thread;

	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t more;  /* bytes to write, or shutdown */
	int fd;               /* ours, or the spare one */
	int problem;          /* why the path could not be opened, negative; 0 = it was */
	char *ring;
	size_t room;
	uint64_t put, written;  /* bytes since the start */
	uint64_t dropped;       /* number of puts */
	uint64_t gap;           /* of those, not yet reported in the output */
	struct quota_rate rate; /* of what users cause */
	bool reopen;
	bool is_ending;
};

static void log_writer_copy_in(struct log_writer *log_writer, const char *text, size_t length)
{
	size_t at = (size_t)(log_writer->put % log_writer->room);
	size_t first = bits_min(length, log_writer->room - at);

	memcpy(log_writer->ring + at, text, first);
	memcpy(log_writer->ring, text + first, length - first);
	log_writer->put += length;
}

static bool log_writer_fits(const struct log_writer *log_writer, size_t length)
{
	return length <= log_writer->room - (size_t)(log_writer->put - log_writer->written);
}

/* Reports dropped messages in the output, at the place of the gap. */
static bool log_writer_tell_gap(struct log_writer *log_writer)
{
	char text[96];
	int length;

	if (log_writer->gap == 0)
		return true;
	length = snprintf(text, sizeof(text),
			  "... %" PRIu64 " messages lost here: the output was too slow\n",
			  log_writer->gap);
	if (!log_writer_fits(log_writer, (size_t)length))
		return false;
	log_writer_copy_in(log_writer, text, (size_t)length);
	log_writer->gap = 0;
	return true;
}

static int log_writer_open_path(const char *path)
{
	int fd = user_file_open(path, O_APPEND, 0640);

	if (fd >= 0)
		(void)heir_give_path(path); /* on failure its user cannot write it, and says so */
	return fd;
}

/* Not under the lock: some file systems wait in it. */
static void log_writer_close(const struct log_writer *log_writer, int fd)
{
	if (fd != log_writer->spare)
		(void)close(fd); /* all data is with the kernel */
}

/* If the path cannot be opened, what is in use stays in use. */
static void log_writer_open_again(struct log_writer *log_writer)
{
	int fd = log_writer_open_path(log_writer->path);
	int old;

	pthread_mutex_lock(&log_writer->lock);
	log_writer->problem = fd < 0 ? fd : 0;
	old = log_writer->fd;
	if (fd >= 0)
		log_writer->fd = fd;
	pthread_mutex_unlock(&log_writer->lock);
	if (fd >= 0)
		log_writer_close(log_writer, old);
}

/* Takes a piece out of the ring; 0 at shutdown. */
static size_t log_writer_take(struct log_writer *log_writer, char *piece, bool *ret_reopen)
{
	size_t length, at, first;

	pthread_mutex_lock(&log_writer->lock);
	while (log_writer->put == log_writer->written && !log_writer->is_ending &&
	       !log_writer->reopen)
		pthread_cond_wait(&log_writer->more, &log_writer->lock);
	*ret_reopen = log_writer->reopen;
	log_writer->reopen = false;
	length = (size_t)bits_min(log_writer->put - log_writer->written, LOG_WRITER_PIECE);
	at = (size_t)(log_writer->written % log_writer->room);
	first = bits_min(length, log_writer->room - at);
	memcpy(piece, log_writer->ring + at, first);
	memcpy(piece + first, log_writer->ring, length - first);
	log_writer->written += length;
	pthread_mutex_unlock(&log_writer->lock);
	return length;
}

static void *log_writer_thread(void *context)
{
	struct log_writer *log_writer = context;
	char *piece = malloc(LOG_WRITER_PIECE);
	bool reopen;
	size_t length;

	while (piece) {
		length = log_writer_take(log_writer, piece, &reopen);
		if (reopen)
			log_writer_open_again(log_writer);
		else if (length == 0)
			break;
		/*
		 * On failure (closed pipe, full disk) the piece is lost: there is nowhere to report
		 * it.
		 */
		(void)small_file_write_fd(log_writer->fd, piece, length);
	}
	free(piece);
	return NULL;
}

static void log_writer_cleanup(struct log_writer **log_writer)
{
	if (!*log_writer)
		return;
	log_writer_close(*log_writer, (*log_writer)->fd);
	free((*log_writer)->path);
	free((*log_writer)->ring);
	free(*log_writer);
}

int log_writer_new(struct log_writer **ret_log_writer, const char *path, int fd, size_t room)
{
	CLEANUP(log_writer_cleanup) struct log_writer *log_writer = calloc(1, sizeof(*log_writer));
	int r;

	if (!log_writer)
		return -ENOMEM;
	log_writer->room = room ? room : LOG_WRITER_ROOM_DEFAULT;
	log_writer->ring = malloc(log_writer->room);
	log_writer->rate.id = QUOTA_LOG_LEFT_OUT;
	log_writer->rate.burst = LOG_WRITER_USER_BURST;
	log_writer->rate.per_second = LOG_WRITER_USER_PER_S;
	log_writer->fd = log_writer->spare = fd;
	if (path)
		log_writer->path = strdup(path);
	if (!log_writer->ring || (path && !log_writer->path))
		return -ENOMEM;
	pthreads_init(&log_writer->lock, &log_writer->more);
	if (path)
		log_writer_open_again(log_writer);
	r = pthreads_start(&log_writer->thread, "log writer", log_writer_thread, log_writer);
	if (r < 0)
		return r;
	*ret_log_writer = cleanup_steal(log_writer);
	return 0;
}

struct log_writer *log_writer_free(struct log_writer *log_writer)
{
	if (!log_writer)
		return NULL;
	pthread_mutex_lock(&log_writer->lock);
	(void)log_writer_tell_gap(log_writer); /* without room the gap stays unreported */
	log_writer->is_ending = true;
	pthread_cond_signal(&log_writer->more);
	pthread_mutex_unlock(&log_writer->lock);
	if (!pthreads_join(log_writer->thread,
			   clock_ns(CLOCK_MONOTONIC) + LOG_WRITER_PATIENCE_NS)) {
		/*
		 * The thread is blocked in write() and ends with the process: its memory is leaked.
		 */
		(void)pthread_detach(log_writer->thread);
		return NULL;
	}
	pthread_cond_destroy(&log_writer->more);
	pthread_mutex_destroy(&log_writer->lock);
	log_writer_cleanup(&log_writer);
	return NULL;
}

/* Takes text that is harmless. Without memory for such a text (NULL) it counts as dropped. */
static bool log_writer_take_in(struct log_writer *log_writer, const char *text, size_t length)
{
	bool taken;

	pthread_mutex_lock(&log_writer->lock);
	taken = text && log_writer_tell_gap(log_writer) && log_writer_fits(log_writer, length);
	if (taken) {
		log_writer_copy_in(log_writer, text, length);
		pthread_cond_signal(&log_writer->more);
	} else {
		log_writer->dropped++;
		log_writer->gap++;
	}
	pthread_mutex_unlock(&log_writer->lock);
	return taken;
}

/* The one way into every log: whatever wrote the text, a terminal shows it and does not obey it. */
bool log_writer_put(struct log_writer *log_writer, const char *text, size_t length)
{
	CLEANUP_FREE char *safe = NULL;

	if (text_harmless(text, length) == length)
		return log_writer_take_in(log_writer, text, length);
	safe = malloc(TEXT_ESCAPE_SIZE(length));
	return log_writer_take_in(log_writer, safe,
				  safe ? text_escape_lines(text, length, safe) : 0);
}

bool log_writer_charge(struct log_writer *log_writer, uint32_t uid, size_t length)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), untold = 0;
	bool may;

	pthread_mutex_lock(&log_writer->lock);
	may = quota_rate_take(&log_writer->rate, uid, length, now);
	if (!may)
		untold = quota_rate_report(&log_writer->rate, uid, now);
	pthread_mutex_unlock(&log_writer->lock);
	if (untold > 0)
		(void)log_writer_print(log_writer,
				       "... %" PRIu64 " messages about user %" PRIu32
				       " left out: there are too many\n",
				       untold, uid); /* a drop is counted */
	return may;
}

bool log_writer_vprint(struct log_writer *log_writer, const char *format, va_list arguments)
{
	char line[LOG_WRITER_LINE];
	int length = vsnprintf(line, sizeof(line), format, arguments);

	return log_writer_put(log_writer, line,
			      bits_min((size_t)(length > 0 ? length : 0), sizeof(line) - 1));
}

bool log_writer_print(struct log_writer *log_writer, const char *format, ...)
{
	va_list arguments;
	bool taken;

	va_start(arguments, format);
	taken = log_writer_vprint(log_writer, format, arguments);
	va_end(arguments);
	return taken;
}

void log_writer_reopen(struct log_writer *log_writer)
{
	if (!log_writer->path)
		return;
	pthread_mutex_lock(&log_writer->lock);
	log_writer->reopen = true;
	pthread_cond_signal(&log_writer->more);
	pthread_mutex_unlock(&log_writer->lock);
}

int log_writer_check(struct log_writer *log_writer)
{
	int problem;

	pthread_mutex_lock(&log_writer->lock);
	problem = log_writer->problem;
	pthread_mutex_unlock(&log_writer->lock);
	if (problem < 0)
		log_writer_reopen(log_writer);
	return problem;
}

uint64_t log_writer_dropped(struct log_writer *log_writer)
{
	uint64_t dropped;

	pthread_mutex_lock(&log_writer->lock);
	dropped = log_writer->dropped;
	pthread_mutex_unlock(&log_writer->lock);
	return dropped;
}
