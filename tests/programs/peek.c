/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What another process sees of a process's books: one JSON document per book and line, for tests
 * that must not depend on the ttmem command.
 *
 *	peek PID	every book among the descriptors of a live process, by the rules for live ones
 *	peek --fd N	the book behind an inherited descriptor, by the rules for exited processes
 *
 * Exit: 0, or 1 if a book cannot be read; having no book is not an error.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/emit.h"
#include "book/format/layout.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"

#define PEEK_BOOKS 64

static struct view peek_view; /* too large for a stack */

static void peek_text(struct emit *json, const char *key, struct reader *reader, uint32_t id)
{
	char text[BOOK_PATH_MAX + 1];
	size_t length = 0;
	const char *bytes = reader_string(reader, id, &length);

	if (!bytes || length >= sizeof(text)) {
		emit_null(json, key);
		return;
	}
	memcpy(text, bytes, length);
	text[length] = '\0';
	emit_string(json, key, text);
}

static void peek_header(struct emit *json, const struct book_header *header)
{
	const struct book_rejected *rejected = &header->rejected;

	emit_u64(json, "pid", header->pid);
	emit_u64(json, "uid", header->uid);
	emit_u64(json, "start_ticks", header->start_ticks);
	emit_string(json, "comm", header->comm);
	emit_u64(json, "state", header->state);
	emit_u64(json, "paused", header->paused);
	emit_u64(json, "room", header->room);
	emit_u64(json, "reserved_bytes", header->reserved_bytes);
	emit_u64(json, "ring_events", header->ring_events);
	emit_u64(json, "marks", header->mark_count);
	emit_open_object(json, "rejected");
	emit_u64(json, "device", rejected->device);
	emit_u64(json, "type", rejected->type);
	emit_u64(json, "size", rejected->size);
	emit_u64(json, "arguments", rejected->arguments);
	emit_u64(json, "room", rejected->room);
	emit_u64(json, "reentry", rejected->reentry);
	emit_u64(json, "lock", rejected->lock);
	emit_u64(json, "paused", rejected->paused);
	emit_close_object(json);
	emit_open_array(json, "incidents");
	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++)
		emit_u64(json, NULL, header->incident_count[kind]);
	emit_close_array(json);
}

static void peek_type(struct emit *json, uint32_t type)
{
	const struct book_hot *hot = &peek_view.hot[type];
	const struct book_cold *cold = &peek_view.cold[type];

	emit_open_object(json, NULL);
	emit_u64(json, "bytes", hot->bytes);
	emit_u64(json, "buffers", hot->buffers);
	emit_u64(json, "peak", hot->peak);
	emit_u64(json, "allocs", hot->allocs);
	emit_u64(json, "frees", hot->frees);
	emit_u64(json, "unknown_frees", cold->unknown_frees);
	emit_u64(json, "double_frees", cold->double_frees);
	emit_u64(json, "size_changes", cold->size_changes);
	emit_u64(json, "realloc_live", cold->realloc_live);
	emit_u64(json, "ambiguous_frees", cold->ambiguous_frees);
	emit_u64(json, "hooked", cold->hooked);
	emit_u64(json, "overflow_frees", cold->overflow_frees);
	emit_bool(json, "low", peek_view.inexact & BOOK_INEXACT_LOW << type);
	emit_bool(json, "high", peek_view.inexact & BOOK_INEXACT_HIGH << type);
	emit_close_object(json);
}

static void peek_row(struct emit *json, struct reader *reader, const struct book_record *record)
{
	emit_open_object(json, NULL);
	emit_u64(json, "address", record->address);
	emit_u64(json, "size", record->size);
	emit_u64(json, "type", book_meta_type(record->meta));
	emit_u64(json, "refs", book_meta_refs(record->meta));
	emit_u64(json, "flags", book_meta_flags(record->meta));
	emit_u64(json, "thread", book_thread(record->thread_space));
	emit_u64(json, "space", book_space(record->thread_space));
	peek_text(json, "name", reader, record->name);
	peek_text(json, "phase", reader, record->phase);
	emit_close_object(json);
}

static int peek_device(struct emit *json, struct reader *reader, uint32_t device,
		       enum view_owner owner)
{
	struct view_iterator it = {0};
	int r = view_read(&peek_view, reader, device, owner);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	emit_open_object(json, NULL);
	emit_u64(json, "device", device);
	emit_u64(json, "number", peek_view.number);
	emit_bool(json, "rows_exact", peek_view.rows_exact);
	emit_bool(json, "adds_up", peek_view.adds_up);
	emit_open_array(json, "types");
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		peek_type(json, type);
	emit_close_array(json);
	emit_open_array(json, "rows");
	while (view_next(&peek_view, &it))
		peek_row(json, reader, it.record);
	emit_close_array(json);
	emit_close_object(json);
	return 0;
}

static int peek_book(int fd, enum view_owner owner)
{
	struct emit json = EMIT_INIT(stdout);
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
	emit_open_object(&json, NULL);
	peek_header(&json, &reader.header);
	emit_open_array(&json, "devices");
	for (int64_t device = 0; r == 0 && device < BOOK_DEVICES; device++) {
		device = reader_next_shard(&reader, (uint32_t)device);
		if (device < 0)
			break;
		r = peek_device(&json, &reader, (uint32_t)device, owner);
	}
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
	reader_deinit(&reader);
	if (r < 0)
		fprintf(stderr, "%s\n", strerror(-r));
	return r;
}

/* A book with several descriptors counts once. */
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
