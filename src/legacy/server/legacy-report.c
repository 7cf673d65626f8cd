/* SPDX-License-Identifier: Apache-2.0 */

/* The old server's reports. */

#include "legacy/server/legacy-report.h"

#include <inttypes.h>
#include <stdint.h>

#include "answers/remaining-report.h"
#include "answers/seed-lines.h"
#include "legacy/server/legacy-history.h"
#include "legacy/server/legacy-totals.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

static void report_put(void *context, FILE *out, const struct snapshot_process *process,
		       const struct snapshot_buffer *buffer)
{
	legacy_history_put(context, out,
			   &(struct legacy_history_key){
				   .uid = process->maker_id,
				   .pid = process->id.pid,
				   .device = buffer->device,
				   .type = buffer->type,
				   .address = buffer->address,
			   });
}

static void report_put_double_freed(void *context, FILE *out)
{
	legacy_history_put_double_freed(context, out);
}

static struct remaining_report_history report_history(struct legacy_history *history)
{
	return (struct remaining_report_history){
		.context = history,
		.double_freed = legacy_history_double_freed(history),
		.put = report_put,
		.put_double_freed = report_put_double_freed,
	};
}

int legacy_report_remaining(FILE *out, const struct snapshot *snapshot,
			    struct legacy_history *history)
{
	const struct remaining_report_history known = report_history(history);

	return remaining_report_buffers(out, snapshot, &known);
}

void legacy_report_summary(FILE *out, const struct snapshot *snapshot)
{
	struct legacy_totals_type grand = {0};
	struct legacy_totals totals;
	uint32_t device = 0;

	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		struct legacy_totals_type sum = legacy_totals_sum(&totals, 0, BOOK_TYPES);

		device = totals.device + 1;
		if (sum.buffers == 0)
			continue;
		fprintf(out, "Device %" PRIu32 ":\n", totals.device);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			if (totals.types[type].buffers)
				fprintf(out, "  %s: %" PRIu64 " buffers, %.2f MB total\n",
					types_name(type), totals.types[type].buffers,
					(double)totals.types[type].bytes / SEED_LINES_MB);
		}
		grand.bytes = merge_add(grand.bytes, sum.bytes);
		grand.buffers = merge_add(grand.buffers, sum.buffers);
	}
	fprintf(out, "Grand total: %" PRIu64 " buffers, %.2f MB\n", grand.buffers,
		(double)grand.bytes / SEED_LINES_MB);
}

void legacy_report_statistics(FILE *out, const struct snapshot *snapshot)
{
	struct legacy_totals totals;
	uint64_t active = 0;
	uint32_t device = 0;

	fputs("\n📊 Current Statistics:\n", out);
	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		struct legacy_totals_type sum =
			legacy_totals_sum(&totals, 0, LEGACY_TOTALS_BUFFERS);

		device = totals.device + 1;
		active = merge_add(active, sum.buffers);
		if (sum.buffers == 0)
			continue;
		fprintf(out, "  Device %" PRIu32 ":\n    Buffers: %" PRIu64 "\n", totals.device,
			sum.buffers);
		for (uint32_t type = 0; type < 2; type++)
			fprintf(out, "    %s: %" PRIu64 " bytes (%g KB)\n", types_name(type),
				totals.types[type].bytes,
				(double)totals.types[type].bytes / 1024.0);
		fprintf(out, "    Total: %" PRIu64 " bytes\n", sum.bytes);
	}
	fprintf(out, "  Active allocations: %" PRIu64 "\n", active);
}

void legacy_report_goodbye(FILE *out, const struct snapshot *snapshot,
			   struct legacy_history *history)
{
	const struct remaining_report_history known = report_history(history);

	legacy_report_statistics(out, snapshot);
	remaining_report_double_freed(out, &known);
	fputs("\n🛑 Allocation Server stopped\n", out);
}
