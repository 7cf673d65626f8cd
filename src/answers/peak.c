/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.peak/1: what was live at the highest moments. */

#include "answers/peak.h"

#include "answers/buffers.h"
#include "answers/document.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"
#include "model/types.h"

struct peak_per_bank {
	uint64_t bytes;
	const char *bound;
	uint32_t banks; /* 0 = not known */
};

struct peak_row {
	const struct snapshot_peak *peak;
	const struct snapshot_process *process;
	const struct peak_per_bank *per_bank; /* NULL = not known */
	uint64_t device_uid, unknown;
	bool is_ended;

	/* For its groups: */
	const struct snapshot *snapshot;
	enum group_kind kind;
	const struct group_list *list;
};

static void peak_put_groups(struct emit *json, const char *key, const void *context)
{
	const struct peak_row *row = context;

	(void)key;
	buffers_put_group_rows(json, row->snapshot, row->kind, row->list);
}

#define ROW struct peak_per_bank

static const struct field peak_per_bank[] = {
	FIELD("bytes", BYTES, bytes),
	FIELD("bound", TEXT, bound),
	FIELD_OR_NULL("banks", SHORT, banks),
	FIELD_END,
};

#undef ROW
#define ROW struct peak_row
#define PEAK(...) FIELD_VIA(peak, struct snapshot_peak, __VA_ARGS__)
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

static const struct field peak_groups[] = {
	FIELD_LISTED("groups", buffers_group_fields),
	FIELD_END,
};

const struct field peak_fields[] = {
	PROCESS("pid", SHORT, id.pid, .least = 1),
	PROCESS("comm", TEXT, comm),
	PEAK("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	PROCESS("start_ns", TIME, start_ns),
	FIELD_OR_NOTHING("ended", BOOL, is_ended),
	PEAK("type", NAME, type, .names = types_name),
	PEAK("bytes", BYTES, bytes),
	PEAK("bound", NAME, bound, .names = document_bound),
	PEAK("time_ns", TIME, time_ns),
	PEAK("moment_ns", TIME, moment_ns),
	PEAK("exact", BOOL, exact),
	PEAK("known_bytes", BYTES, known),
	FIELD("unknown_bytes", BYTES, unknown),
	PEAK("buffers", NUMBER, buffers),
	FIELD_POINTED("per_bank", per_bank, peak_per_bank),
	FIELD_CODED("groups", peak_put_groups, .fields = peak_groups),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot

static const struct field peak_members[] = {
	FIELD_LISTED("peaks", peak_fields),
	FIELD_END,
};

const struct document peak_document = {
	.schema = "ttmem.peak/1",
	.title = "ttmem peak --json: what was live at the highest moments",
	.members = peak_members,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};

/* How many banks the memory of a peak has; 0 = not known. */
static uint32_t peak_banks(const struct snapshot_process *process, const struct snapshot_peak *peak)
{
	for (size_t i = 0; i < process->part_count; i++) {
		if (process->parts[i].device == peak->device)
			return process->parts[i].facts.windows[peak->type].banks;
	}
	return 0;
}

int peak_put_row(struct emit *json, const char *key, const struct snapshot *snapshot,
		 const struct snapshot_peak *peak, enum group_kind kind)
{
	const struct snapshot_process *process = &snapshot->processes[peak->process];
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	const struct peak_per_bank per_bank = {
		.bytes = peak->per_bank.bytes,
		.bound = peak->per_bank.is_all ? "exact" : "at_least",
		.banks = peak_banks(process, peak),
	};
	const struct peak_row row = {
		.peak = peak,
		.process = process,
		.per_bank = peak->per_bank.is_known ? &per_bank : NULL,
		.device_uid = snapshot_part_uid(snapshot, peak->process, peak->device),
		.unknown = snapshot_peak_unknown(peak),
		.is_ended = !process->alive,
		.snapshot = snapshot,
		.kind = kind,
		.list = &list,
	};
	int r = group_peak(snapshot, peak, kind, &list);

	if (r < 0)
		return r;
	emit_open_object(json, key);
	fields_put(json, peak_fields, &row);
	emit_close_object(json);
	return 0;
}

int peak_put(struct emit *json, const struct snapshot *snapshot, enum group_kind kind)
{
	int r = 0;

	document_begin(json, &peak_document, snapshot);
	emit_open_array(json, "peaks");
	for (size_t i = 0; r == 0 && i < snapshot->peak_count; i++)
		r = peak_put_row(json, NULL, snapshot, &snapshot->peaks[i], kind);
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
	return r;
}
