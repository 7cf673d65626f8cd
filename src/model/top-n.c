/* SPDX-License-Identifier: Apache-2.0 */

/* The heap is the snapshot's own list of buffers; snapshot_sort_buffers() sorts it in the end. */

#include "model/top-n.h"

static void top_n_swap(struct snapshot_buffer *a, struct snapshot_buffer *b)
{
	struct snapshot_buffer other = *a;

	*a = *b;
	*b = other;
}

bool top_n_wants(const struct snapshot *snapshot, const struct snapshot_buffer *buffer,
		 size_t limit, enum snapshot_order order)
{
	return snapshot->buffer_count < limit ||
	       snapshot_compare_buffers(buffer, &snapshot->buffers[0], order) < 0;
}

static void top_n_rise(struct snapshot_buffer *heap, size_t at, enum snapshot_order order)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;

		if (snapshot_compare_buffers(&heap[at], &heap[parent], order) <= 0)
			return;
		top_n_swap(&heap[at], &heap[parent]);
		at = parent;
	}
}

static void top_n_sink(struct snapshot_buffer *heap, size_t count, enum snapshot_order order)
{
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= count)
			return;
		if (child + 1 < count &&
		    snapshot_compare_buffers(&heap[child + 1], &heap[child], order) > 0)
			child++;
		if (snapshot_compare_buffers(&heap[child], &heap[at], order) <= 0)
			return;
		top_n_swap(&heap[child], &heap[at]);
		at = child;
	}
}

int top_n_add(struct snapshot *snapshot, const struct snapshot_buffer *buffer, size_t limit,
	      enum snapshot_order order)
{
	int r;

	if (snapshot->buffer_count < limit) {
		r = snapshot_add_buffer(snapshot, buffer);
		if (r < 0)
			return r;
		top_n_rise(snapshot->buffers, snapshot->buffer_count - 1, order);
		return 0;
	}
	snapshot->buffers[0] = *buffer;
	top_n_sink(snapshot->buffers, snapshot->buffer_count, order);
	return 0;
}
