/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.smi/1 and ttmem.ps/1: devices, processes and what they hold. */

#include "core/document.h"

#include "base/json.h"
#include "core/filter.h"
#include "core/merge.h"
#include "core/snapshot.h"
#include "core/types.h"

static void document_peak(struct json *json, uint64_t peak, bool is_unknown)
{
	if (is_unknown)
		json_null(json, "peak");
	else
		json_u64(json, "peak", peak);
}

static void document_device(struct json *json, const struct snapshot_device *device)
{
	json_open_object(json, NULL);
	json_u64(json, "device", device->device);
	document_uid(json, "uid", device->unique_id);
	json_string(json, "arch", device->arch);
	json_string(json, "card", device->card);
	json_bool(json, "remote", device->remote);
	json_bool(json, "by_number", device->by_number);
	json_open_object(json, "memory");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_device_memory *memory = &device->memory[type];

		json_open_object(json, types_name(type));
		json_u64(json, "used", memory->used);
		json_u64(json, "buffers", memory->buffers);
		document_peak(json, memory->peak, memory->peak_is_unknown);
		if (memory->capacity)
			json_u64(json, "capacity", memory->capacity);
		else
			json_null(json, "capacity");
		json_string(json, "bound", document_bound(memory->bound));
		json_close_object(json);
	}
	json_close_object(json);
	json_close_object(json);
}

static void document_counters(struct json *json, const struct snapshot_memory *memory)
{
	json_u64(json, "allocs", memory->allocs);
	json_u64(json, "frees", memory->frees);
	json_u64(json, "unknown_frees", memory->unknown_frees);
	json_u64(json, "double_frees", memory->double_frees);
	json_u64(json, "size_changes", memory->size_changes);
	json_u64(json, "realloc_live", memory->realloc_live);
	json_u64(json, "ambiguous_frees", memory->ambiguous_frees);
	json_u64(json, "hooked", memory->hooked);
	json_u64(json, "overflow_frees", memory->overflow_frees);
	if (memory->last_ns)
		json_u64(json, "last_activity_ns", memory->last_ns);
	else
		json_null(json, "last_activity_ns");
}

static void document_part(struct json *json, const struct snapshot_part *part, bool counters)
{
	json_open_object(json, NULL);
	json_u64(json, "device", part->device);
	document_uid(json, "uid", part->facts.unique_id);
	json_bool(json, "closed", part->facts.closed_ns != 0);
	json_open_object(json, "memory");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		json_open_object(json, types_name(type));
		json_u64(json, "used", memory->used);
		json_u64(json, "buffers", memory->buffers);
		document_peak(json, memory->peak, memory->peak_is_unknown);
		json_string(json, "bound", document_bound(memory->bound));
		if (counters)
			document_counters(json, memory);
		json_close_object(json);
	}
	json_close_object(json);
	json_close_object(json);
}

static void document_rejected(struct json *json, const struct book_rejected *rejected)
{
	json_open_object(json, "rejected");
	json_u64(json, "device", rejected->device);
	json_u64(json, "type", rejected->type);
	json_u64(json, "size", rejected->size);
	json_u64(json, "arguments", rejected->arguments);
	json_u64(json, "room", rejected->room);
	json_u64(json, "reentry", rejected->reentry);
	json_u64(json, "lock", rejected->lock);
	json_u64(json, "paused", rejected->paused);
	json_close_object(json);
}

static bool document_wants_part(const struct snapshot *snapshot, const struct filter *filter,
				const struct snapshot_part *part)
{
	const struct snapshot_device *row = &snapshot->devices[part->row];

	return !filter || filter_wants_device(filter, row->device, row->unique_id);
}

static bool document_wants_process(const struct snapshot *snapshot, const struct filter *filter,
				   const struct snapshot_process *process)
{
	for (size_t i = 0; i < process->part_count; i++) {
		if (document_wants_part(snapshot, filter, &process->parts[i]))
			return true;
	}
	return !filter || filter->device_count == 0;
}

static void document_process(struct json *json, const struct snapshot *snapshot,
			     const struct snapshot_process *process, const struct filter *filter,
			     bool counters)
{
	json_open_object(json, NULL);
	json_u64(json, "pid", process->pid);
	json_u64(json, "ns_pid", process->ns_pid);
	json_u64(json, "start_ns", process->start_ns);
	json_string(json, "comm", process->comm);
	json_string(json, "user", process->user);
	json_u64(json, "user_id", process->user_id);
	json_string(json, "container", process->container);
	json_u64(json, "last_activity_ns", process->last_ns);
	json_string(json, "source", process->source);
	json_bool(json, "alive", process->alive);
	json_bool(json, "exact", process->exact);
	if (counters)
		document_rejected(json, &process->rejected);
	json_open_array(json, "devices");
	for (size_t i = 0; i < process->part_count; i++) {
		if (document_wants_part(snapshot, filter, &process->parts[i]))
			document_part(json, &process->parts[i], counters);
	}
	json_close_array(json);
	json_close_object(json);
}

static void document_processes(struct json *json, const struct snapshot *snapshot,
			       const struct filter *filter, bool counters)
{
	json_open_array(json, "processes");
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (document_wants_process(snapshot, filter, process))
			document_process(json, snapshot, process, filter, counters);
	}
	json_close_array(json);
	document_list_end(json, snapshot->exact);
}

void document_smi(struct json *json, const struct snapshot *snapshot, const struct filter *filter)
{
	uint64_t bytes = 0, buffers = 0;

	document_open(json, "ttmem.smi/1", snapshot->time_ns);
	json_open_array(json, "devices");
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		if (!filter_wants_device(filter, device->device, device->unique_id))
			continue;
		document_device(json, device);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			bytes = merge_add(bytes, device->memory[type].used);
			buffers = merge_add(buffers, device->memory[type].buffers);
		}
	}
	json_close_array(json);
	document_processes(json, snapshot, filter, false);
	json_open_object(json, "totals");
	json_u64(json, "bytes", bytes);
	json_u64(json, "buffers", buffers);
	json_close_object(json);
	document_close(json, snapshot);
}

void document_ps(struct json *json, const struct snapshot *snapshot)
{
	document_open(json, "ttmem.ps/1", snapshot->time_ns);
	document_processes(json, snapshot, NULL, true);
	document_close(json, snapshot);
}
