/* SPDX-License-Identifier: Apache-2.0 */

/* Files that cannot be written do not end the command: they are told at the end. */

#include "cli/run/run-black-box.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"
#include "cli/common/frame-names.h"
#include "cli/common/record-file.h"
#include "recording/flight/flight.h"
#include "source/books/scan.h"

#define BLACK_BOX_TIME_NS (600 * NS_PER_S)
#define BLACK_BOX_SIZE (UINT64_C(256) << 20)
#define BLACK_BOX_AGAIN_NS (30 * NS_PER_S) /* between two files of one process's failures */
#define BLACK_BOX_FILES_MAX 64u            /* of a run */
#define BLACK_BOX_PATH 4096u

struct black_box_one {
	struct scan_book *book;
	uint64_t failures; /* that were known at the last look */
	uint64_t kept_ns;  /* CLOCK_MONOTONIC; 0 = never */
};

struct run_black_box {
	const char *folder;
	struct flight *flight;
	struct black_box_one *books;
	size_t count, capacity;
	char **paths; /* of the files */
	size_t path_count, path_capacity;
	uint32_t failed, refused;
};

/* With the folders above it. What fails is told by the check that follows. */
static void black_box_make(const char *folder)
{
	char path[BLACK_BOX_PATH];
	size_t length = strlen(folder);

	if (length >= sizeof(path))
		return;
	for (size_t i = 1; i <= length; i++) {
		if (folder[i] != '/' && folder[i] != '\0')
			continue;
		memcpy(path, folder, i);
		path[i] = '\0';
		(void)mkdir(path, 0777); /* it may be there */
	}
}

struct run_black_box *run_black_box_new(const char *folder)
{
	const struct flight_options options = {.time_ns = BLACK_BOX_TIME_NS,
					       .size_max = BLACK_BOX_SIZE};
	struct run_black_box *box = calloc(1, sizeof(*box));
	struct stat st;
	int r = 0;

	if (!box)
		return NULL;
	box->folder = folder;
	/* Whether it can be written to is found out now, and not when it is needed. */
	black_box_make(folder);
	if (stat(folder, &st) < 0 || access(folder, W_OK | X_OK) < 0)
		r = -errno;
	else if (!S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	if (r == 0)
		r = flight_new(&box->flight, &options);
	if (r < 0) {
		fprintf(stderr, "ttmem run: --black-box: %s: %s\n", folder, strerrordesc_np(-r));
		free(box);
		return NULL;
	}
	return box;
}

struct run_black_box *run_black_box_free(struct run_black_box *box, bool quiet)
{
	if (!box)
		return NULL;
	for (size_t i = 0; i < box->path_count; i++) {
		if (!quiet)
			fprintf(stderr, "recorded: the last minute in %s\n", box->paths[i]);
		free(box->paths[i]);
	}
	if (box->failed)
		fprintf(stderr, "ttmem run: --black-box: %" PRIu32 " file%s could not be written\n",
			box->failed, box->failed == 1 ? "" : "s");
	if (box->refused && !quiet)
		fprintf(stderr, "recorded: no more than %u files; %" PRIu32 " were not written\n",
			BLACK_BOX_FILES_MAX, box->refused);
	for (size_t i = 0; i < box->count; i++)
		flight_remove(box->flight, box->books[i].book);
	flight_free(box->flight);
	free((void *)box->paths);
	free(box->books);
	free(box);
	return NULL;
}

/* How often an allocation has failed. An incident stands for all of one call site. */
static uint64_t black_box_failures(struct scan_book *book)
{
	uint64_t failures = 0,
		 count = book->reader.header.incident_count[BOOK_INCIDENT_ALLOC_FAILED];

	count = bits_min(count, BOOK_INCIDENTS_PER_KIND);
	for (uint32_t i = 0; i < count; i++) {
		struct book_incident incident;

		if (reader_incident(&book->reader, BOOK_INCIDENT_ALLOC_FAILED, i, &incident) == 0)
			failures += bits_min(incident.count, UINT32_MAX);
	}
	return failures + book->reader.header.incident_lost[BOOK_INCIDENT_ALLOC_FAILED];
}

void run_black_box_add(struct run_black_box *box, struct scan_book *book)
{
	struct black_box_one *books;

	if (!box)
		return;
	books = array_grow(box->books, &box->capacity, box->count + 1, sizeof(*books));
	if (!books)
		return; /* its file will have what its rings know */
	box->books = books;
	books[box->count++] = (struct black_box_one){.book = book};
	(void)flight_add(box->flight, book->uid, book); /* without memory likewise */
}

/* A file that is not there yet. */
static int black_box_open(struct run_black_box *box, const struct scan_book *book, const char *why,
			  char **ret_path)
{
	char path[BLACK_BOX_PATH];
	char **paths;
	int fd;

	paths = array_grow(box->paths, &box->path_capacity, box->path_count + 1, sizeof(char *));
	if (!paths)
		return -ENOMEM;
	box->paths = paths;
	fd = record_file_make_in(box->folder, book->owner.id.pid, why, path, sizeof(path));
	if (fd < 0)
		return fd;
	*ret_path = strdup(path);
	if (*ret_path)
		return fd;
	(void)close(fd); /* nothing was written to it */
	return -ENOMEM;
}

static void black_box_write(struct run_black_box *box, struct scan_book *book,
			    const struct flight_file *file)
{
	char *path = NULL;
	int fd, r;

	if (box->path_count >= BLACK_BOX_FILES_MAX) {
		box->refused++;
		return;
	}
	fd = black_box_open(box, book, file->reason, &path);
	r = fd < 0 ? fd : flight_write(box->flight, book, fd, file);
	if (fd >= 0 && close(fd) < 0 && r == 0)
		r = -errno;
	if (path && r < 0 && r != -EFBIG)
		(void)unlink(path); /* it has nothing of use */
	if (r < 0 && r != -EFBIG) {
		box->failed++;
		free(path);
		return;
	}
	box->paths[box->path_count++] = path;
}

/* The recorder has just read the book's header. */
static void black_box_look(struct run_black_box *box, struct black_box_one *one)
{
	struct flight_file file = {.reason = "failed"};
	struct frame_names *names = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t failures = black_box_failures(one->book);

	if (failures <= one->failures || (one->kept_ns && now - one->kept_ns < BLACK_BOX_AGAIN_NS))
		return;
	one->failures = failures;
	one->kept_ns = now;
	/* Freed at once: the processes it starts would count as the command's. */
	if (frame_names_new(&names) == 0)
		file.namer = frame_names_namer(names);
	black_box_write(box, one->book, &file);
	frame_names_free(names);
}

int run_black_box_round(struct run_black_box *box, int wait_ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), next;

	if (!box)
		return wait_ms;
	next = flight_round(box->flight, now);
	for (size_t i = 0; i < box->count; i++)
		black_box_look(box, &box->books[i]);
	if (next == CLOCK_NEVER)
		return wait_ms;
	return (int)bits_min((uint64_t)clock_left_ms(clock_ns(CLOCK_MONOTONIC), next),
			     (uint64_t)wait_ms);
}

static struct black_box_one *black_box_find(struct run_black_box *box, const struct scan_book *book)
{
	for (size_t i = 0; i < box->count; i++) {
		if (box->books[i].book == book)
			return &box->books[i];
	}
	return NULL;
}

void run_black_box_ended(struct run_black_box *box, struct scan_book *book,
			 const struct ending *ending, bool has_left, struct namer *namer)
{
	const struct flight_file file = {.reason = "ended", .ending = ending, .namer = namer};
	struct black_box_one *one;

	if (!box)
		return;
	one = black_box_find(box, book);
	/* Also if an allocation has failed since the last file. */
	if (has_left || ending_signal(ending) ||
	    (one && black_box_failures(one->book) > one->failures))
		black_box_write(box, book, &file);
	flight_remove(box->flight, book);
	if (one)
		*one = box->books[--box->count];
}
