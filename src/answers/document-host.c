/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A whole machine in one row, for those who look at many: no names of processes and users, and of a
 * size that does not depend on what runs there.
 */

#include "answers/document.h"
#include "base/emit.h"
#include "model/amount.h"
#include "model/health.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

/* The kind of memory of a device that is the fullest; part is -1 if no capacity is known. */
struct document_fullest {
	uint32_t device;
	uint32_t kind;
	uint64_t used, capacity;
	double part;
};

static void document_put_amount(struct emit *json, uint64_t used, uint64_t capacity)
{
	emit_u64(json, "used", used);
	if (capacity)
		emit_u64(json, "capacity", capacity);
	else
		emit_null(json, "capacity");
}

/* One kind of memory of all devices. Updates the fullest that was found so far. */
static void document_host_kind(struct emit *json, const struct snapshot *snapshot, uint32_t kind,
			       struct document_fullest *fullest)
{
	uint64_t used = 0, capacity = 0;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct amount amount = amount_of_device(&snapshot->devices[i], kind);
		uint64_t taken = amount_taken(&amount);
		double part = amount.capacity ? (double)taken / (double)amount.capacity : -1;

		used = merge_add(used, taken);
		capacity = merge_add(capacity, amount.capacity);
		if (part <= fullest->part)
			continue;
		*fullest = (struct document_fullest){
			.device = snapshot->devices[i].device,
			.kind = kind,
			.used = taken,
			.capacity = amount.capacity,
			.part = part,
		};
	}
	emit_open_object(json, types_name(kind));
	document_put_amount(json, used, capacity);
	emit_close_object(json);
}

static void document_host_memory(struct emit *json, const struct snapshot *snapshot)
{
	struct document_fullest fullest = {.part = -1};

	emit_open_object(json, "memory");
	document_host_kind(json, snapshot, TYPES_DRAM, &fullest);
	document_host_kind(json, snapshot, TYPES_L1, &fullest);
	emit_close_object(json);
	if (fullest.part < 0) {
		emit_null(json, "fullest");
		return;
	}
	emit_open_object(json, "fullest");
	emit_u64(json, "device", fullest.device);
	emit_string(json, "type", types_name(fullest.kind));
	document_put_amount(json, fullest.used, fullest.capacity);
	emit_close_object(json);
}

void document_host(struct emit *json, const struct snapshot *snapshot, const struct health *health,
		   bool is_well)
{
	uint64_t processes = 0, bytes = 0, buffers = 0;

	for (size_t i = 0; i < snapshot->process_count; i++)
		processes += snapshot->processes[i].alive;
	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct amount amount = amount_of_device(&snapshot->devices[i], AMOUNT_ALL);

		bytes = merge_add(bytes, amount.used);
		buffers = merge_add(buffers, amount.buffers);
	}
	document_open(json, "ttmem.host/1", snapshot->time_ns);
	emit_string(json, "status", is_well ? "ok" : "degraded");
	emit_u64(json, "start_ns", health->start_ns);
	emit_u64(json, "devices", snapshot->device_count);
	emit_u64(json, "processes", processes);
	emit_u64(json, "bytes", bytes);
	emit_u64(json, "buffers", buffers);
	document_host_memory(json, snapshot);
	emit_open_object(json, "hour");
	emit_u64(json, "over_ns", health->hour.over_ns);
	emit_i64(json, "bytes", health->hour.bytes);
	emit_u64(json, "incidents", health->hour.incidents);
	emit_close_object(json);
	emit_bool(json, "exact", snapshot->exact);
	document_close_bare(json);
}
