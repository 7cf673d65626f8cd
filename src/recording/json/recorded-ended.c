/* SPDX-License-Identifier: Apache-2.0 */

/* How processes of a recording ended, from totals alone. */

#include "recording/json/recorded-ended.h"

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "answers/ended.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "recording/json/recorded-process.h"
#include "recording/read/recording.h"

static int recorded_ended_compare(const void *left, const void *right)
{
	const struct ended_row *a = left, *b = right;

	if (a->ended_ns != b->ended_ns)
		return bits_compare(b->ended_ns, a->ended_ns);
	return bits_compare(b->pid, a->pid);
}

static struct ended_row recorded_ended_row(const struct snapshot_process *process,
					   const struct ending *ending, struct ended_room *room)
{
	struct ended_row row = ended_row_of(process, ending, room);

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		for (uint32_t type = 0; !part->summed && type < BOOK_TYPES; type++) {
			row.bytes += part->memory[type].used;
			row.buffers += part->memory[type].buffers;
		}
	}
	return row;
}

struct recorded_ended {
	struct ended_row *rows;
	size_t count;
	uint64_t hidden;
};

#define ROW struct recorded_ended

int recorded_ended_document(struct emit *json, const struct snapshot *end,
			    const struct recording *recording, const struct scan *scan,
			    const struct query *query)
{
	static const struct field members[] = {
		FIELD_ARRAY_AT("processes", ROWS, rows, count, .fields = ended_fields),
		FIELD("hidden", NUMBER, hidden),
		FIELD_END,
	};
	CLEANUP_FREE struct ended_row *rows = calloc(end->process_count + 1, sizeof(*rows));
	CLEANUP_FREE struct ended_room *rooms = calloc(end->process_count + 1, sizeof(*rooms));
	const struct document_about about = {.time_ns = end->time_ns};
	struct document document = ended_document;
	struct recorded_ended list = {.rows = rows};

	if (!rows || !rooms)
		return -ENOMEM;
	for (size_t i = 0; i < end->process_count; i++) {
		const struct snapshot_process *process = &end->processes[i];
		struct ending ending;

		if (filter_wants_pid(&query->filter, process->id.pid) &&
		    recorded_process_end(recording, scan, process, &ending) &&
		    ending.ended_ns >= query->since_ns)
			rows[list.count++] = recorded_ended_row(process, &ending, &rooms[i]);
	}
	qsort(rows, list.count, sizeof(*rows), recorded_ended_compare);
	document.members = members;
	document_put_about(json, &document, &about, &list);
	return 0;
}
