/* SPDX-License-Identifier: Apache-2.0 */

/* The list of a leak report: its buffers in packed chunks. */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "store/store-item.h"

/* How much of a list was packed. */
struct store_list {
	size_t bytes_max;
	uint32_t rows;
	size_t raw, bytes; /* before and after compression */
};

/* Makes a chunk of what is in the packer. 0, 1: that would be too much, or -ENOMEM. */
static int store_item_add_chunk(struct store_item *item, struct store_packer *packer,
				struct store_list *list)
{
	struct store_chunk *to =
		array_grow(item->chunks, &item->chunk_capacity, item->chunk_count + 1, sizeof(*to));
	size_t raw = store_packer_size(packer);
	int r;

	if (!to)
		return -ENOMEM;
	item->chunks = to;
	to += item->chunk_count;
	r = store_packer_take(packer, to);
	if (r < 0)
		return r;
	to->first = list->rows;
	list->raw += raw;
	list->bytes += to->length;
	if (list->bytes > list->bytes_max) {
		free(to->bytes);
		return 1;
	}
	list->rows += to->rows;
	item->chunk_count++;
	return list->raw > STORE_LEAK_RAW_MAX;
}

static void store_packer_cleanup(struct store_packer **packer)
{
	store_packer_free(*packer);
}

int store_item_list(struct store_item *item, const struct snapshot *snapshot, uint32_t process,
		    size_t bytes_max)
{
	CLEANUP(store_packer_cleanup)
	struct store_packer *packer = store_packer_new(item->leaked_buffers);
	struct store_list list = {.bytes_max = bytes_max};
	uint32_t device = STORE_ITEM_NONE, added = 0;
	uint64_t unique_id = 0;
	int r = packer ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < snapshot->buffer_count && added < STORE_LEAK_BUFFERS_MAX;
	     i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (buffer->process != process)
			continue;
		if (buffer->device != device) {
			const struct snapshot_part *part =
				snapshot_find_part(snapshot, process, buffer->device);

			device = buffer->device;
			unique_id = part ? part->facts.unique_id : 0;
		}
		r = store_packer_add(packer, buffer, unique_id);
		added++;
		if (r == 0 && store_packer_is_full(packer))
			r = store_item_add_chunk(item, packer, &list);
	}
	if (r == 0 && store_packer_count(packer) > 0)
		r = store_item_add_chunk(item, packer, &list);
	item->cut += item->leaked_buffers - list.rows;
	return r < 0 ? r : 0;
}
