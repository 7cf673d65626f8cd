/* SPDX-License-Identifier: Apache-2.0 */

/* The incidents of a book. */

#include "source/books/book-private.h"

#include <errno.h>
#include <inttypes.h>

#include "base/bits.h"
#include "model/snapshot-request.h"
#include "model/types.h"
#include "source/books/scan.h"

#define BOOK_EXPLAINED_MAX 16u /* each is a reading of the book */

static struct snapshot_party book_party(struct book_reading *reading, const struct book_party *from)
{
	return (struct snapshot_party){
		.known = from->time != 0,
		.time_ns = timebase_ns(&reading->timebase, from->time),
		.size = from->size,
		.thread = from->thread,
		.name = book_text(reading, from->name),
		.phase = book_text(reading, from->phase),
		.stack = book_stack(reading, from->stack),
		.stack_key = book_stack_key(reading, from->stack),
	};
}

/* When the oldest of the failed allocations that are to be explained happened last; UINT64_MAX = none is. */
static uint64_t book_explained_from(struct book_reading *reading)
{
	uint64_t count = reading->book->reader.header.incident_count[BOOK_INCIDENT_ALLOC_FAILED];
	uint64_t newest[BOOK_EXPLAINED_MAX] = {0};
	size_t most = bits_min(reading->request->explained, BOOK_EXPLAINED_MAX);
	struct book_incident incident;

	for (uint32_t i = 0; most && i < bits_min(count, BOOK_INCIDENTS_PER_KIND); i++) {
		uint64_t time = reader_incident(&reading->book->reader, BOOK_INCIDENT_ALLOC_FAILED,
						i, &incident) < 0
					? 0
					: incident.last_time;

		for (size_t k = 0; k < most; k++) {
			if (time > newest[k]) {
				uint64_t other = newest[k];

				newest[k] = time;
				time = other;
			}
		}
	}
	return most ? newest[most - 1] : UINT64_MAX;
}

static int book_collect_incident(struct book_reading *reading, uint32_t kind, uint32_t index,
				 uint64_t explained_from)
{
	struct book_incident from;
	int r = reader_incident(&reading->book->reader, kind, index, &from);
	struct snapshot_incident incident;

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (from.device >= BOOK_DEVICES)
		return 0; /* no library writes that */
	incident = (struct snapshot_incident){
		.kind = types_incident_name(kind),
		.process = reading->process,
		.device = from.device,
		.type = from.type < BOOK_TYPES ? from.type : SNAPSHOT_TYPE_NONE,
		.space = from.space,
		.has_address = kind != BOOK_INCIDENT_ALLOC_FAILED,
		.address = from.address,
		.size = from.size,
		.largest_free = from.largest_free,
		.size_per_bank = from.size_per_bank,
		.bank_size = from.bank_size,
		.bank_free = from.bank_free,
		.banks = from.banks,
		.is_per_core = from.shape_flags & BOOK_SHAPE_PER_CORE,
		.count = from.count,
		.time_ns = timebase_ns(&reading->timebase, from.second.time),
		.last_ns = timebase_ns(&reading->timebase, from.last_time),
		.first = book_party(reading, &from.first),
		.second = book_party(reading, &from.second),
	};
	if (kind == BOOK_INCIDENT_ALLOC_FAILED && from.last_time >= explained_from)
		book_explain_failed(reading, &from, &incident);
	return snapshot_add_incident(reading->snapshot, &incident);
}

/* Memory that an exited process left behind is an incident too, one for each type of memory. */
static int book_collect_leaks(struct book_reading *reading)
{
	const struct snapshot_process *process = book_process(reading);

	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &process->parts[i].memory[type];
			struct snapshot_incident incident = {
				.kind = "leak",
				.process = reading->process,
				.device = process->parts[i].device,
				.type = type,
				.size = memory->used,
				.largest_free = UINT64_MAX,
				.count = memory->buffers,
				.time_ns = memory->last_ns,
				.last_ns = memory->last_ns,
			};
			int r;

			if (memory->buffers == 0)
				continue;
			r = snapshot_add_incident(reading->snapshot, &incident);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int book_collect_incidents(struct book_reading *reading)
{
	const struct book_header *header = &reading->book->reader.header;
	uint64_t explained_from = book_explained_from(reading);
	int r = 0;

	if (!filter_wants_pid(&reading->request->filter, reading->book->owner.id.pid))
		return 0;
	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS && types_incident_name(kind); kind++) {
		uint64_t count = bits_min(header->incident_count[kind], BOOK_INCIDENTS_PER_KIND);

		for (uint32_t i = 0; r == 0 && i < count; i++)
			r = book_collect_incident(reading, kind, i, explained_from);
		if (header->incident_lost[kind])
			snapshot_note(reading->snapshot,
				      "pid %" PRIu32 ": %" PRIu64 " more of %s found no room",
				      reading->book->owner.id.pid, header->incident_lost[kind],
				      types_incident_name(kind));
	}
	if (r == 0 && reading->request->held_at_close)
		r = book_collect_held(reading, false);
	if (r == 0 && !reading->book->alive)
		r = book_collect_leaks(reading);
	return r == -ENOBUFS ? 0 : r;
}
