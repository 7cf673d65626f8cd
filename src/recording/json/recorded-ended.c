/* SPDX-License-Identifier: Apache-2.0 */

/* How processes of a recording ended, from totals alone. */

#include "recording/json/recorded-ended.h"

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "answers/ended.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "recording/json/recorded-process.h"
#include "recording/read/recording.h"

struct recorded_ended {
	const struct snapshot_process *process;
	struct ending ending;
};

static int recorded_ended_compare(const void *left, const void *right)
{
	const struct recorded_ended *a = left, *b = right;
	uint64_t one = a->ending.ended_ns, other = b->ending.ended_ns;

	if (one != other)
		return bits_compare(other, one);
	return bits_compare(b->process->id.pid, a->process->id.pid);
}

static void recorded_ended_put(struct emit *json, const struct recorded_ended *one)
{
	struct ended_room room;
	struct ended_row row = ended_row_of(one->process, &one->ending, &room);

	for (size_t i = 0; i < one->process->part_count; i++) {
		const struct snapshot_part *part = &one->process->parts[i];

		for (uint32_t type = 0; !part->summed && type < BOOK_TYPES; type++) {
			row.bytes += part->memory[type].used;
			row.buffers += part->memory[type].buffers;
		}
	}
	fields_put_row(json, ended_fields, &row);
}

int recorded_ended_document(struct emit *json, const struct snapshot *end,
			    const struct recording *recording, const struct scan *scan,
			    const struct query *query)
{
	CLEANUP_FREE struct recorded_ended *list = calloc(end->process_count + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < end->process_count; i++) {
		struct recorded_ended *one = &list[count];

		one->process = &end->processes[i];
		count += filter_wants_pid(&query->filter, one->process->id.pid) &&
			 recorded_process_end(recording, scan, one->process, &one->ending) &&
			 one->ending.ended_ns >= query->since_ns;
	}
	qsort(list, count, sizeof(*list), recorded_ended_compare);
	document_open(json, ended_document.schema, end->time_ns);
	emit_open_array(json, "processes");
	for (size_t i = 0; i < count; i++)
		recorded_ended_put(json, &list[i]);
	emit_close_array(json);
	emit_u64(json, "hidden", 0);
	document_list_end(json, true);
	document_close_bare(json);
	return 0;
}
