/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Continues after a restart. A book is sealed: only the mapping of the daemon that made it could
 * write, and that is gone. So its last state is written into a new book, with names, stacks and
 * creation times; buffers and totals are the same, cumulative counters restart at zero.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/read/view.h"
#include "book/write/writer.h"
#include "legacy/server/legacy-log.h"
#include "legacy/server/legacy-private.h"
#include "source/books/scan.h"

#define ADOPT_REFS_MAX UINT64_C(4000000) /* references are counted one by one */

struct adopt {
	struct scan_book *old;
	struct legacy_client *client;
	struct view *view;
	uint64_t refs;
};

static uint32_t adopt_string(struct adopt *adopt, uint32_t id)
{
	char text[BOOK_PATH_MAX + 1];
	size_t length;
	const char *bytes = reader_string(&adopt->old->reader, id, &length);

	if (!bytes)
		return 0;
	length = bits_min(length, BOOK_PATH_MAX);
	memcpy(text, bytes, length);
	text[length] = '\0';
	return intern_string(adopt->client->writer, text, BOOK_PATH_MAX);
}

static uint32_t adopt_stack(struct adopt *adopt, uint32_t id)
{
	struct book_frame frames[INTERN_FRAMES_MAX];
	struct book_stack head;
	size_t count = reader_stack(&adopt->old->reader, id, &head, frames, INTERN_FRAMES_MAX);

	for (size_t i = 0; i < count; i++) {
		uint64_t function = adopt_string(adopt, (uint32_t)(frames[i].value >> 32));

		frames[i].value = function << 32 | adopt_string(adopt, (uint32_t)frames[i].value);
	}
	return intern_stack(adopt->client->writer, frames, count);
}

static void adopt_record(struct adopt *adopt, uint32_t device, const struct book_record *record)
{
	struct writer *writer = adopt->client->writer;
	uint32_t refs = book_meta_refs(record->meta);
	struct shard_buffer buffer = {
		.address = record->address,
		.size = record->size,
		.type = book_meta_type(record->meta),
		.flags = book_meta_flags(record->meta),
		.thread = book_thread(record->thread_space),
		.name = adopt_string(adopt, record->name),
		.phase = adopt_string(adopt, record->phase),
		.stack = adopt_stack(adopt, record->stack),
	};
	struct book_shape shape = reader_shape(&adopt->old->reader, record->shape);

	if (buffer.type >= BOOK_TYPES)
		return;
	if (record->shape)
		buffer.shape = intern_shape(writer, &shape);
	writer_alloc_born(writer, device, &buffer, record->birth);
	for (uint32_t i = 1; i < refs && adopt->refs < ADOPT_REFS_MAX; i++, adopt->refs++)
		writer_alloc_born(writer, device, &buffer, record->birth);
	legacy_log_add(adopt->client->server->log, device, buffer.type, buffer.size);
}

static int adopt_shards(struct adopt *adopt)
{
	int64_t device = reader_next_shard(&adopt->old->reader, 0);

	while (device >= 0) {
		struct view_iterator it = {0};
		/* Nobody writes there any more. */
		int r = view_read(adopt->view, &adopt->old->reader, (uint32_t)device, VIEW_DEAD);

		if (r < 0)
			return r;
		while (view_next(adopt->view, &it))
			adopt_record(adopt, (uint32_t)device, it.record);
		device = reader_next_shard(&adopt->old->reader, (uint32_t)device + 1);
	}
	return device == -ENXIO ? 0 : (int)device;
}

static void adopt_free_view(struct view **view)
{
	if (*view)
		view_deinit(*view);
	free(*view);
}

static int adopt_book(struct legacy_server *server, struct scan_book *book, int pid_fd)
{
	CLEANUP(adopt_free_view) struct view *view = calloc(1, sizeof(*view));
	struct adopt adopt = {.old = book, .view = view};
	CLEANUP_CLOSE int owned = pid_fd;
	struct scan_book *mine;
	int r;

	if (!view)
		return -ENOMEM;
	if (book->owner.id.start_ticks == 0)
		return -ESRCH;
	if (owned < 0)
		owned = legacy_client_ended_fd();
	if (owned < 0)
		return owned;
	if (server->counts.clients >= LEGACY_CLIENTS_MAX)
		return -ENOSPC;
	r = legacy_client_make(server, &book->owner, &book->reader.header, &adopt.client, &mine);
	if (r < 0)
		return r;
	adopt.client->old = book->id;
	r = adopt_shards(&adopt);
	if (r < 0) {
		scan_book_free(mine);
		legacy_client_free(adopt.client);
		return r;
	}
	/* Only now may it outlive us: an incomplete book would be worse than the old one. */
	return legacy_client_add_consume(adopt.client, mine, cleanup_steal_fd(&owned));
}

int legacy_server_adopt_consume(struct legacy_server *server, struct scan_book *book, int pid_fd)
{
	int r = adopt_book(server, book, pid_fd);

	scan_book_free(book);
	return r;
}
