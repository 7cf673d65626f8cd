/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libttmem-query: rows of a snapshot, copied into structs that keep their layout. It is assembled by the
 * same function as that of every command, so no monitor can disagree with `ttmem smi`.
 */

#include <ttmem/query.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/collect.h"
#include "source/source.h"

#define QUERY_EXPORT __attribute__((visibility("default")))

_Static_assert(ARRAY_SIZE(((struct ttmem_query_device *)0)->memory) == BOOK_TYPES &&
		       ARRAY_SIZE(((struct ttmem_query_share *)0)->memory) == BOOK_TYPES,
	       "rows have room for every type");

struct ttmem_query {
	struct source *books;
	struct snapshot *snapshot; /* NULL until the first refresh */
	uint32_t *living;          /* indexes of processes; owned, as the snapshot */
	size_t living_count;
};

QUERY_EXPORT int ttmem_query_new(struct ttmem_query **ret_query)
{
	CLEANUP_FREE struct ttmem_query *query = calloc(1, sizeof(*query));
	int r;

	if (!ret_query)
		return -EINVAL;
	*ret_query = NULL; /* freeing it after a failure is fine */
	if (!query)
		return -ENOMEM;
	r = book_source_new(&query->books);
	if (r < 0)
		return r;
	*ret_query = cleanup_steal(query);
	return 0;
}

static void query_drop(struct ttmem_query *query)
{
	snapshot_free(query->snapshot);
	free(query->living);
	query->snapshot = NULL;
	query->living = NULL;
	query->living_count = 0;
}

QUERY_EXPORT void ttmem_query_free(struct ttmem_query *query)
{
	if (!query)
		return;
	query_drop(query);
	source_free(query->books);
	free(query);
}

QUERY_EXPORT int ttmem_query_refresh(struct ttmem_query *query)
{
	const struct snapshot_request request = {.buffers = false};
	struct collect_sources sources;
	struct snapshot *snapshot = NULL;
	uint32_t *living;
	size_t count = 0;
	int r;

	if (!query)
		return -EINVAL;
	book_source_sources(query->books, &sources);
	r = collect_machine(&sources, &request, &snapshot);
	if (r < 0)
		return r;
	living = calloc(snapshot->process_count + 1, sizeof(*living));
	if (!living) {
		snapshot_free(snapshot);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].alive)
			living[count++] = i;
	}
	query_drop(query);
	query->snapshot = snapshot;
	query->living = living;
	query->living_count = count;
	return 0;
}

/* Cut between characters; NULL is empty. */
static void query_text(char *ret_text, size_t size, const char *text)
{
	size_t length = text ? strnlen(text, size) : 0;

	if (length >= size) {
		length = size - 1;
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	if (length > 0)
		memcpy(ret_text, text, length);
	ret_text[length] = '\0';
}

/* Copies as much of a row as the caller's version of the struct has. @least: that of the first version. */
static int query_put(void *ret_row, const void *row, size_t size, size_t least)
{
	uint32_t wanted;

	if (!ret_row)
		return -EINVAL;
	memcpy(&wanted, ret_row, sizeof(wanted));
	if (wanted < least)
		return -EINVAL;
	/* A later version's fields stay as they are; its size tells the caller nothing here. */
	memcpy((char *)ret_row + sizeof(wanted), (const char *)row + sizeof(wanted),
	       bits_min(wanted, size) - sizeof(wanted));
	return 0;
}

QUERY_EXPORT int ttmem_query_device(const struct ttmem_query *query, size_t index,
				    struct ttmem_query_device *ret_device)
{
	struct ttmem_query_device row = {.struct_size = sizeof(row)};
	const struct snapshot_device *device;

	if (!query || !query->snapshot || index >= query->snapshot->device_count)
		return -ENOENT;
	device = &query->snapshot->devices[index];
	row.device = device->device;
	row.unique_id = device->unique_id;
	row.processes = device->processes;
	row.untracked = device->untracked;
	query_text(row.card, sizeof(row.card), device->card);
	query_text(row.arch, sizeof(row.arch), device->arch);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &device->memory[type];

		row.memory[type] = (struct ttmem_query_memory){
			.bytes = memory->used,
			.buffers = memory->buffers,
			.peak_bytes = memory->peak_is_unknown ? TTMEM_UNKNOWN : memory->peak,
			.capacity = memory->capacity,
		};
	}
	return query_put(ret_device, &row, sizeof(row), sizeof(row));
}

static const struct snapshot_process *query_process(const struct ttmem_query *query, size_t index)
{
	if (!query || index >= query->living_count)
		return NULL;
	return &query->snapshot->processes[query->living[index]];
}

QUERY_EXPORT int ttmem_query_process(const struct ttmem_query *query, size_t index,
				     struct ttmem_query_process *ret_process)
{
	const struct snapshot_process *process = query_process(query, index);
	struct ttmem_query_process row = {.struct_size = sizeof(row)};

	if (!process)
		return -ENOENT;
	row.pid = process->id.pid;
	row.user_id = process->user_id;
	row.is_tracked = !process->untracked;
	row.devices = (uint32_t)process->part_count;
	query_text(row.command, sizeof(row.command), process->comm);
	query_text(row.user, sizeof(row.user), process->user);
	return query_put(ret_process, &row, sizeof(row), sizeof(row));
}

QUERY_EXPORT int ttmem_query_share(const struct ttmem_query *query, size_t process, size_t index,
				   struct ttmem_query_share *ret_share)
{
	const struct snapshot_process *owner = query_process(query, process);
	struct ttmem_query_share row = {.struct_size = sizeof(row)};
	const struct snapshot_device *device;
	const struct snapshot_part *part;

	if (!owner || index >= owner->part_count)
		return -ENOENT;
	part = &owner->parts[index];
	/* What is from before a reset is on no device. */
	device = part->row < query->snapshot->device_count ? &query->snapshot->devices[part->row]
							   : NULL;
	row.device = device ? device->device : part->device;
	row.own_device = part->device;
	row.row = device ? part->row : UINT32_MAX;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		row.memory[type] = (struct ttmem_query_memory){
			.bytes = memory->used,
			.buffers = memory->buffers,
			.peak_bytes = memory->peak_is_unknown ? TTMEM_UNKNOWN : memory->peak,
			.capacity = device ? device->memory[type].capacity : 0,
		};
	}
	return query_put(ret_share, &row, sizeof(row), sizeof(row));
}
