/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.host/1. */

#include "answers/host.h"

#include "answers/document.h"
#include "model/amount.h"
#include "model/health.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

#define ROW struct host_amount

static const struct field host_amount[] = {
	FIELD("used", BYTES, used),
	FIELD_OR_NULL("capacity", BYTES, capacity, .says = "null if not known"),
	FIELD_END,
};

#undef ROW
#define ROW __typeof__(((struct host_row *)NULL)->memory)

static const struct field host_memory[] = {
	FIELD_STRUCT("DRAM", dram, host_amount),
	FIELD_STRUCT("L1", l1, host_amount),
	FIELD_END,
};

#undef ROW
#define ROW __typeof__(((struct host_row *)NULL)->fullest)

static const struct field host_fullest[] = {
	FIELD("device", NUMBER, device),
	FIELD("type", NAME, type, .names = types_name, .says = "DRAM or L1"),
	FIELD("used", BYTES, amount.used),
	FIELD("capacity", BYTES, amount.capacity),
	FIELD_END,
};

#undef ROW
#define ROW __typeof__(((struct host_row *)NULL)->hour)

static const struct field host_hour[] = {
	FIELD("over_ns", SPAN, over_ns,
	      .says = "how long that is: less than an hour if the daemon is younger; 0: not known "
		      "yet"),
	FIELD("bytes", SIGNED, bytes, .says = "more in use than then; negative: less"),
	FIELD("incidents", NUMBER, incidents),
	FIELD_END,
};

#undef ROW
#define ROW struct host_row

const struct field host_facts[] = {
	FIELD("start_ns", TIME, start_ns, .says = "of the daemon"),
	FIELD("devices", NUMBER, devices),
	FIELD("processes", NUMBER, processes, .says = "living ones"),
	FIELD("bytes", BYTES, bytes, .says = "in use, of all types"),
	FIELD("buffers", NUMBER, buffers),
	FIELD_STRUCT(
		"memory", memory, host_memory,
		.says = "of all devices, traces counted in DRAM, small L1, circular buffers "
			"and kernels in L1; what buffers take in all banks, where that is known"),
	FIELD_STRUCT("fullest", fullest, host_fullest, .absent = FIELD_NULL,
		     .known = FIELD_KNOWN(has_fullest),
		     .says = "the memory of a device of which the largest part is in use; null if "
			     "no capacity is known"),
	FIELD_STRUCT("hour", hour, host_hour, .says = "what has changed within the last hour"),
	FIELD_END,
};

const struct field host_fields[] = {
	FIELD("status", TEXT, status, .names = health_status, .says = "as in /healthz"),
	FIELD_MORE(host_facts),
	FIELD("exact", BOOL, is_exact),
	FIELD_END,
};

const struct document host_document = {
	.schema = "ttmem.host/1",
	.title = "/api/v1/host: this machine in one row, as other machines ask for it",
	.members = host_fields,
};

/* One type of memory of all devices. Updates the fullest that was found so far, and what part of it is used. */
static struct host_amount host_sum(const struct snapshot *snapshot, uint32_t type,
				   struct host_row *row, double *fullest)
{
	struct host_amount sum = {0};

	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct snapshot_memory amount = amount_of_device(&snapshot->devices[i], type);
		uint64_t taken = amount_taken(&amount);
		double part = amount.capacity ? (double)taken / (double)amount.capacity : -1;

		sum.used = merge_add(sum.used, taken);
		sum.capacity = merge_add(sum.capacity, amount.capacity);
		if (part <= *fullest)
			continue;
		*fullest = part;
		row->has_fullest = true;
		row->fullest.device = snapshot->devices[i].device;
		row->fullest.type = type;
		row->fullest.amount = (struct host_amount){taken, amount.capacity};
	}
	return sum;
}

void host_put(struct emit *json, const struct snapshot *snapshot, const struct health *health,
	      bool is_well)
{
	struct host_row row = {
		.status = health_status(is_well),
		.is_exact = snapshot->exact,
		.start_ns = health->start_ns,
		.devices = snapshot->device_count,
		.hour.over_ns = health->hour.over_ns,
		.hour.bytes = health->hour.bytes,
		.hour.incidents = health->hour.incidents,
	};
	double fullest = -1;

	for (size_t i = 0; i < snapshot->process_count; i++)
		row.processes += snapshot->processes[i].alive;
	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct snapshot_memory amount = amount_of_device(&snapshot->devices[i], AMOUNT_ALL);

		row.bytes = merge_add(row.bytes, amount.used);
		row.buffers = merge_add(row.buffers, amount.buffers);
	}
	row.memory.dram = host_sum(snapshot, TYPES_DRAM, &row, &fullest);
	row.memory.l1 = host_sum(snapshot, TYPES_L1, &row, &fullest);
	document_put_about(json, &host_document,
			   &(struct document_about){.time_ns = snapshot->time_ns}, &row);
}
