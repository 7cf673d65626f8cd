/* SPDX-License-Identifier: Apache-2.0 */

/* The CSV of "ttmem smi": one row per device and type, raw numbers, empty if unknown. */

#include "cli/smi/smi.h"

#include <inttypes.h>

#include "answers/document.h"
#include "base/text.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "model/types.h"

static void smi_csv_number(FILE *out, uint64_t value, bool is_known)
{
	if (is_known)
		fprintf(out, "%" PRIu64, value);
	fputc(',', out);
}

static void smi_csv_device(FILE *out, const struct snapshot *snapshot,
			   const struct snapshot_device *device)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &device->memory[type];

		fprintf(out, "%" PRIu64 ",%" PRIu32 ",", snapshot->time_ns, device->device);
		if (device->unique_id)
			fprintf(out, "0x%" PRIx64, device->unique_id);
		fputc(',', out);
		text_put_csv(out, device->arch ? device->arch : "");
		fputc(',', out);
		text_put_csv(out, device->card ? device->card : "");
		fprintf(out, ",%d,%s,%" PRIu64 ",%" PRIu64 ",", device->remote, types_name(type),
			memory->used, memory->buffers);
		smi_csv_number(out, memory->peak, !memory->peak_is_unknown);
		smi_csv_number(out, memory->capacity, memory->capacity != 0);
		fprintf(out, "%s\n", document_bound(memory->bound));
	}
}

void smi_csv(FILE *out, const struct snapshot *snapshot, const struct filter *filter)
{
	fputs("time_ns,device,uid,arch,card,remote,type,used,buffers,peak,capacity,bound\n", out);
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		if (filter_wants_device(filter, device->device, device->unique_id))
			smi_csv_device(out, snapshot, device);
	}
}
