/* SPDX-License-Identifier: Apache-2.0 */

/* Collecting memories from a snapshot. Only of living processes with books: nobody else knows addresses. */

#include "model/memory-map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/snapshot.h"
#include "model/types.h"

static bool spaces_wants(const struct snapshot_part *part, const struct filter *filter,
			 uint32_t type)
{
	if (filter->has_type)
		return filter->type == type;
	/* Memory that nobody has used is worth no line. */
	return part->memory[type].buffers > 0 ||
	       (type == TYPES_DRAM && part->memory[TYPES_KERNEL].buffers > 0) ||
	       (type == TYPES_L1 && part->memory[TYPES_CB].buffers > 0);
}

static int spaces_add(struct spaces *spaces, struct snapshot *snapshot, uint32_t index,
		      const struct snapshot_part *part, uint32_t type)
{
	const struct snapshot_process *process = &snapshot->processes[index];
	struct space *list = array_grow(spaces->list, &spaces->capacity, spaces->count + 1,
					sizeof(*spaces->list));
	int r;

	if (!list)
		return -ENOMEM;
	spaces->list = list;
	list += spaces->count;
	*list = (struct space){
		.process = process, .device = &snapshot->devices[part->row], .type = type};
	r = holes_find(snapshot, index, part, type, &list->holes);
	if (r == HOLES_UNKNOWN) {
		snapshot_note(snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": where its %s lies was never declared (ttmem_device)",
			      process->pid, list->device->device, types_name(type));
		return 0;
	}
	if (r == 0)
		spaces->count++;
	return r;
}

static int spaces_add_process(struct spaces *spaces, struct snapshot *snapshot,
			      const struct filter *filter, uint32_t index)
{
	const struct snapshot_process *process = &snapshot->processes[index];
	int r = 0;

	for (size_t i = 0; r == 0 && i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		const struct snapshot_device *row = &snapshot->devices[part->row];

		if (!filter_wants_device(filter, row->device, row->unique_id))
			continue;
		for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
			if (holes_is_memory(type) && spaces_wants(part, filter, type))
				r = spaces_add(spaces, snapshot, index, part, type);
		}
	}
	return r;
}

int spaces_find(struct snapshot *snapshot, const struct filter *filter, struct spaces *ret_spaces)
{
	CLEANUP(spaces_deinit) struct spaces spaces = SPACES_NULL;
	int r = 0;

	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_PLACE);
	for (uint32_t i = 0; r == 0 && i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process->alive && process->books > 0 && filter_wants_pid(filter, process->pid))
			r = spaces_add_process(&spaces, snapshot, filter, i);
	}
	if (r < 0)
		return r;
	*ret_spaces = spaces;
	spaces = SPACES_NULL;
	return 0;
}

void spaces_deinit(struct spaces *spaces)
{
	for (size_t i = 0; i < spaces->count; i++)
		holes_deinit(&spaces->list[i].holes);
	free(spaces->list);
	*spaces = SPACES_NULL;
}

size_t spaces_fit(const struct spaces *spaces, uint64_t size, uint64_t page_size,
		  struct holes_fit *ret_fits)
{
	size_t refused = 0;

	for (size_t i = 0; i < spaces->count; i++) {
		uint32_t type = spaces->list[i].type;
		bool top = type == TYPES_L1 || type == TYPES_L1_SMALL;

		holes_fit(&spaces->list[i].holes, size, page_size, top, &ret_fits[i]);
		refused += ret_fits[i].verdict != HOLES_FITS;
	}
	return refused;
}
