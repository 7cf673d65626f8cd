/* SPDX-License-Identifier: Apache-2.0 */

/* Sums by user and device. */

#include "model/by-user.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/snapshot.h"

void by_user_deinit(struct by_user *list)
{
	free(list->rows);
	*list = BY_USER_NULL;
}

static struct by_user_row *by_user_find(struct by_user *list,
					const struct snapshot_process *process, uint32_t device)
{
	struct by_user_row *rows;

	for (size_t i = 0; i < list->count; i++) {
		if (list->rows[i].user_id == process->user_id && list->rows[i].device == device)
			return &list->rows[i];
	}
	rows = array_grow(list->rows, &list->capacity, list->count + 1, sizeof(*rows));
	if (!rows)
		return NULL;
	list->rows = rows;
	rows[list->count] = (struct by_user_row){
		.user = process->user, .user_id = process->user_id, .device = device};
	return &rows[list->count++];
}

static int by_user_add_part(struct by_user *list, const struct snapshot_process *process,
			    const struct snapshot_part *part)
{
	struct by_user_row *row = by_user_find(list, process, part->row);

	if (!row)
		return -ENOMEM;
	row->processes++;
	row->untracked += process->untracked;
	/* What is from before a reset, or only claimed, is in no total of the device either. */
	for (uint32_t type = 0; type < BOOK_TYPES && !part->before_reset && !process->stale; type++)
		snapshot_add_memory(&row->memory[type], &part->memory[type]);
	return 0;
}

static int by_user_compare(const void *a, const void *b)
{
	const struct by_user_row *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->user_id != y->user_id)
		return bits_compare(x->user_id, y->user_id);
	return bits_compare(x->device, y->device);
}

static void by_user_sort(struct by_user *list)
{
	for (size_t i = 0; i < list->count; i++) {
		list->rows[i].total = 0;
		for (size_t k = 0; k < list->count; k++) {
			if (list->rows[k].user_id == list->rows[i].user_id)
				list->rows[i].total =
					merge_add(list->rows[i].total,
						  by_user_amount(&list->rows[k], AMOUNT_ALL).used);
		}
	}
	if (list->count > 0)
		qsort(list->rows, list->count, sizeof(*list->rows), by_user_compare);
}

int by_user_add(struct by_user *list, const struct snapshot *snapshot, const struct filter *filter,
		bool ended)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if ((!process->alive && !ended) || !filter_wants_pid(filter, process->id.pid) ||
		    !filter_wants_user(filter, process->user, process->user_id))
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_device *row =
				&snapshot->devices[process->parts[k].row];

			if (filter_wants_device(filter, row->device, row->unique_id) &&
			    by_user_add_part(list, process, &process->parts[k]) < 0)
				return -ENOMEM;
		}
	}
	by_user_sort(list);
	return 0;
}

struct snapshot_memory by_user_amount(const struct by_user_row *row, uint32_t folded)
{
	struct snapshot_memory amount = {0};

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (folded == AMOUNT_ALL || types_folded(type) == folded)
			snapshot_add_memory(&amount, &row->memory[type]);
	}
	return amount;
}
