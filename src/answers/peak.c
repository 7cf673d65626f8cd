/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.peak/1. */

#include "answers/peak.h"

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "model/filter.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"
#include "model/types.h"

#define ROW struct peak_per_bank

static const struct field peak_per_bank[] = {
	FIELD("bytes", BYTES, bytes),
	FIELD("bound", TEXT, bound),
	FIELD_OR_NULL("banks", SHORT, banks),
	FIELD_END,
};

#undef ROW
#define ROW struct peak_row

const struct field peak_fields[] = {
	FIELD("pid", SHORT, pid, .least = 1),
	FIELD("comm", TEXT, comm),
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	FIELD("start_ns", TIME, start_ns),
	FIELD_OR_NOTHING("ended", BOOL, is_ended),
	FIELD("type", NAME, type, .names = types_name),
	FIELD("bytes", BYTES, bytes),
	FIELD("bound", NAME, bound, .names = document_bound),
	FIELD("time_ns", TIME, time_ns),
	FIELD("moment_ns", TIME, moment_ns),
	FIELD("exact", BOOL, is_exact),
	FIELD("known_bytes", BYTES, known),
	FIELD("unknown_bytes", BYTES, unknown),
	FIELD("buffers", NUMBER, buffers),
	FIELD_STRUCT("per_bank", per_bank, peak_per_bank, .known = FIELD_KNOWN(has_per_bank),
		     .is_later = true),
	FIELD_MORE_OF(groups, buffers_groups_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct peak_list

const struct field peak_list_fields[] = {
	FIELD_ARRAY_AT("peaks", ROWS, rows, count, .fields = peak_fields),
	FIELD_END,
};

const struct document peak_document = {
	.schema = "ttmem.peak/1",
	.title = "ttmem peak --json: what was live at the highest moments",
	.members = peak_list_fields,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};

static struct peak_per_bank peak_per_bank_of(const struct snapshot_process *process,
					     const struct snapshot_peak *peak)
{
	struct peak_per_bank row = {
		.bytes = peak->per_bank.bytes,
		.bound = peak->per_bank.is_all ? "exact" : "at_least",
	};

	if (!peak->per_bank.is_known)
		return (struct peak_per_bank){.bytes = 0};
	for (size_t i = 0; i < process->part_count && !row.banks; i++) {
		if (process->parts[i].device == peak->device)
			row.banks = process->parts[i].facts.windows[peak->type].banks;
	}
	return row;
}

/* Without its groups. */
static struct peak_row peak_row_of(const struct snapshot *snapshot,
				   const struct snapshot_peak *peak)
{
	const struct snapshot_process *process = &snapshot->processes[peak->process];

	return (struct peak_row){
		.pid = process->id.pid,
		.comm = process->comm,
		.device = peak->device,
		.device_uid = snapshot_part_uid(snapshot, peak->process, peak->device),
		.start_ns = process->start_ns,
		.is_ended = !process->alive,
		.type = peak->type,
		.bytes = peak->bytes,
		.bound = peak->bound,
		.time_ns = peak->time_ns,
		.moment_ns = peak->moment_ns,
		.is_exact = peak->exact,
		.known = peak->known,
		.unknown = snapshot_peak_unknown(peak),
		.buffers = peak->buffers,
		.has_per_bank = peak->per_bank.is_known,
		.per_bank = peak_per_bank_of(process, peak),
	};
}

bool peak_is_wanted(const struct peak_row *row, const struct filter *filter)
{
	return filter_wants_pid(filter, row->pid) && filter_wants_type(filter, row->type) &&
	       filter_wants_device(filter, row->device, row->device_uid);
}

int peak_list_add(struct peak_list *list, const struct snapshot *snapshot,
		  const struct filter *filter, enum group_kind kind)
{
	struct peak_row *rows = array_grow(list->rows, &list->capacity,
					   list->count + snapshot->peak_count + 1, sizeof(*rows));

	list->rows = rows ? rows : list->rows;
	list->room = list->room ? list->room : malloc(sizeof(*list->room));
	if (!rows || !list->room)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->peak_count; i++) {
		const struct snapshot_peak *peak = &snapshot->peaks[i];
		struct peak_row row = peak_row_of(snapshot, peak);
		struct group_list groups;
		int r;

		if (filter && !peak_is_wanted(&row, filter))
			continue;
		r = group_peak(snapshot, peak, kind, &groups);
		if (r < 0)
			return r;
		row.groups = buffers_groups_of(snapshot, kind, &groups, list->room);
		rows[list->count++] = row;
	}
	return 0;
}

void peak_list_deinit(struct peak_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		group_list_deinit(&list->rows[i].groups.list);
	free(list->rows);
	free(list->room);
}

int peak_put_row(struct emit *json, const char *key, const struct snapshot *snapshot,
		 const struct snapshot_peak *peak, enum group_kind kind)
{
	CLEANUP(group_list_deinit) struct group_list groups = GROUP_LIST_NULL;
	struct peak_row row = peak_row_of(snapshot, peak);
	struct buffers_group_room room;
	int r = group_peak(snapshot, peak, kind, &groups);

	if (r < 0)
		return r;
	row.groups = buffers_groups_of(snapshot, kind, &groups, &room);
	fields_put_object(json, key, peak_fields, &row);
	return 0;
}

int peak_put(struct emit *json, const struct snapshot *snapshot, enum group_kind kind)
{
	CLEANUP(peak_list_deinit) struct peak_list list = PEAK_LIST_NULL;
	int r = peak_list_add(&list, snapshot, NULL, kind);

	if (r == 0)
		document_put(json, &peak_document, snapshot, &list);
	return r;
}
