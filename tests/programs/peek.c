/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an outsider sees of a process's books: a JSON document for each, one per line, for tests that
 * must not depend on the command they are older than.
 *
 *	peek PID	every book among the descriptors of a living process, by the rule for the living
 *	peek --fd N	the book behind an inherited descriptor, by the rule for the dead
 *
 * Exit: 0, or 1 if a book cannot be read; no book is no error.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "book/file.h"
#include "book/layout.h"
#include "book/reader.h"
#include "book/view.h"

#define PEEK_BOOKS 64

static struct view peek_view; /* too large for a stack */

static void peek_text(struct json *json, const char *key, struct reader *reader, uint32_t id)
{
	char text[BOOK_PATH_MAX + 1];
	size_t length = 0;
	const char *bytes = reader_string(reader, id, &length);

	if (!bytes || length >= sizeof(text)) {
		json_null(json, key);
		return;
	}
	memcpy(text, bytes, length);
	text[length] = '\0';
	json_string(json, key, text);
}

static void peek_header(struct json *json, const struct book_header *header)
{
	const struct book_rejected *rejected = &header->rejected;

	json_u64(json, "pid", header->pid);
	json_u64(json, "uid", header->uid);
	json_u64(json, "start_ticks", header->start_ticks);
	json_string(json, "comm", header->comm);
	json_u64(json, "state", header->state);
	json_u64(json, "paused", header->paused);
	json_u64(json, "room", header->room);
	json_u64(json, "reserved_bytes", header->reserved_bytes);
	json_u64(json, "ring_events", header->ring_events);
	json_u64(json, "marks", header->mark_count);
	json_open_object(json, "rejected");
	json_u64(json, "device", rejected->device);
	json_u64(json, "type", rejected->type);
	json_u64(json, "size", rejected->size);
	json_u64(json, "arguments", rejected->arguments);
	json_u64(json, "room", rejected->room);
	json_u64(json, "reentry", rejected->reentry);
	json_u64(json, "lock", rejected->lock);
	json_u64(json, "paused", rejected->paused);
	json_close_object(json);
	json_open_array(json, "incidents");
	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++)
		json_u64(json, NULL, header->incident_count[kind]);
	json_close_array(json);
}

static void peek_type(struct json *json, uint32_t type)
{
	const struct book_hot *hot = &peek_view.hot[type];
	const struct book_cold *cold = &peek_view.cold[type];

	json_open_object(json, NULL);
	json_u64(json, "bytes", hot->bytes);
	json_u64(json, "buffers", hot->buffers);
	json_u64(json, "peak", hot->peak);
	json_u64(json, "allocs", hot->allocs);
	json_u64(json, "frees", hot->frees);
	json_u64(json, "unknown_frees", cold->unknown_frees);
	json_u64(json, "double_frees", cold->double_frees);
	json_u64(json, "size_changes", cold->size_changes);
	json_u64(json, "realloc_live", cold->realloc_live);
	json_u64(json, "ambiguous_frees", cold->ambiguous_frees);
	json_u64(json, "hooked", cold->hooked);
	json_u64(json, "overflow_frees", cold->overflow_frees);
	json_bool(json, "low", peek_view.inexact & BOOK_INEXACT_LOW << type);
	json_bool(json, "high", peek_view.inexact & BOOK_INEXACT_HIGH << type);
	json_close_object(json);
}

static void peek_row(struct json *json, struct reader *reader, const struct book_record *record)
{
	json_open_object(json, NULL);
	json_u64(json, "address", record->address);
	json_u64(json, "size", record->size);
	json_u64(json, "type", book_meta_type(record->meta));
	json_u64(json, "refs", book_meta_refs(record->meta));
	json_u64(json, "flags", book_meta_flags(record->meta));
	json_u64(json, "thread", record->thread);
	peek_text(json, "name", reader, record->name);
	peek_text(json, "phase", reader, record->phase);
	json_close_object(json);
}

static int peek_device(struct json *json, struct reader *reader, uint32_t device,
		       enum view_owner owner)
{
	struct view_iterator it = {0};
	int r = view_read(&peek_view, reader, device, owner);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	json_open_object(json, NULL);
	json_u64(json, "device", device);
	json_u64(json, "number", peek_view.number);
	json_bool(json, "rows_exact", peek_view.rows_exact);
	json_bool(json, "adds_up", peek_view.adds_up);
	json_open_array(json, "types");
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		peek_type(json, type);
	json_close_array(json);
	json_open_array(json, "rows");
	while (view_next(&peek_view, &it))
		peek_row(json, reader, it.record);
	json_close_array(json);
	json_close_object(json);
	return 0;
}

static int peek_book(int fd, enum view_owner owner)
{
	struct json json = JSON_INIT(stdout);
	struct reader reader;
	struct file_fd file;
	int r;

	r = file_fd_init(&file, fd);
	if (r == 0)
		r = reader_init(&reader, &file.file);
	if (r != 0) {
		fprintf(stderr, "%s\n", reader_strerror(r));
		return -1;
	}
	json_open_object(&json, NULL);
	peek_header(&json, &reader.header);
	json_open_array(&json, "devices");
	for (int64_t device = 0; r == 0 && device < BOOK_DEVICES; device++) {
		device = reader_next_shard(&reader, (uint32_t)device);
		if (device < 0)
			break;
		r = peek_device(&json, &reader, (uint32_t)device, owner);
	}
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
	reader_deinit(&reader);
	if (r < 0)
		fprintf(stderr, "%s\n", strerror(-r));
	return r;
}

/* A book that hangs on several numbers is one. */
static bool peek_is_new(int fd)
{
	static ino_t seen[PEEK_BOOKS];
	static uint32_t count;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (seen[i] == st.st_ino)
			return false;
	}
	if (count < PEEK_BOOKS)
		seen[count++] = st.st_ino;
	return true;
}

static int peek_process(const char *pid)
{
	char path[64], target[64];
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		int fd;

		target[n > 0 ? n : 0] = '\0';
		if (strncmp(target, "/memfd:ttmem-book", 17) != 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && peek_is_new(fd) && peek_book(fd, VIEW_LIVING) < 0)
			r = -1;
		if (fd >= 0)
			close(fd);
	}
	closedir(dir);
	return r;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--fd") == 0)
		return peek_book(atoi(argv[2]), VIEW_DEAD) < 0;
	if (argc == 2)
		return peek_process(argv[1]) < 0;
	fprintf(stderr, "usage: %s PID | --fd N\n", argv[0]);
	return 2;
}
