/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.peak/1: what was live at the highest moments. */

#include "answers/buffers.h"
#include "answers/document.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"
#include "model/types.h"

/* How many banks the memory of a peak has; 0 = not known. */
static uint32_t document_peak_banks(const struct snapshot_process *process,
				    const struct snapshot_peak *peak)
{
	for (size_t i = 0; i < process->part_count; i++) {
		if (process->parts[i].device == peak->device)
			return process->parts[i].facts.windows[peak->type].banks;
	}
	return 0;
}

static void document_per_bank(struct emit *json, const struct snapshot_process *process,
			      const struct snapshot_peak *peak)
{
	uint32_t banks = document_peak_banks(process, peak);

	if (!peak->per_bank.is_known) {
		emit_null(json, "per_bank");
		return;
	}
	emit_open_object(json, "per_bank");
	emit_u64(json, "bytes", peak->per_bank.bytes);
	emit_string(json, "bound", peak->per_bank.is_all ? "exact" : "at_least");
	if (banks)
		emit_u64(json, "banks", banks);
	else
		emit_null(json, "banks");
	emit_close_object(json);
}

int document_peak_row(struct emit *json, const char *key, const struct snapshot *snapshot,
		      const struct snapshot_peak *peak, enum group_kind kind)
{
	const struct snapshot_process *process = &snapshot->processes[peak->process];
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	int r = group_peak(snapshot, peak, kind, &list);

	if (r < 0)
		return r;
	emit_open_object(json, key);
	emit_u64(json, "pid", process->id.pid);
	emit_string(json, "comm", process->comm);
	emit_u64(json, "device", peak->device);
	document_uid(json, "device_uid", snapshot_part_uid(snapshot, peak->process, peak->device));
	emit_u64(json, "start_ns", process->start_ns);
	if (!process->alive)
		emit_bool(json, "ended", true);
	emit_string(json, "type", types_name(peak->type));
	emit_u64(json, "bytes", peak->bytes);
	emit_string(json, "bound", document_bound(peak->bound));
	emit_u64(json, "time_ns", peak->time_ns);
	emit_u64(json, "moment_ns", peak->moment_ns);
	emit_bool(json, "exact", peak->exact);
	emit_u64(json, "known_bytes", peak->known);
	emit_u64(json, "unknown_bytes", snapshot_peak_unknown(peak));
	emit_u64(json, "buffers", peak->buffers);
	document_per_bank(json, process, peak);
	buffers_put_group_rows(json, snapshot, kind, &list);
	emit_close_object(json);
	return 0;
}

int document_peaks(struct emit *json, const struct snapshot *snapshot, enum group_kind kind)
{
	int r = 0;

	document_open_at(json, "ttmem.peak/1", snapshot);
	emit_open_array(json, "peaks");
	for (size_t i = 0; r == 0 && i < snapshot->peak_count; i++)
		r = document_peak_row(json, NULL, snapshot, &snapshot->peaks[i], kind);
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
	return r;
}
