/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.incidents/1. */

#include "answers/incidents.h"

#include <assert.h>

#include "answers/document.h"
#include "base/emit.h"
#include "model/snapshot.h"
#include "model/types.h"

#define INCIDENT_HOLDERS                                                                     \
	"of a failed allocation that the daemon saw: who held memory of that kind, largest " \
	"first; of an overlap: both processes, each with the size of its buffer"
#define INCIDENT_SITES "likewise by call site, over all processes; empty for who may not see all"

#define ROW struct incident_party

static const struct field incident_party[] = {
	FIELD("time_ns", TIME, time_ns),
	FIELD("thread", SHORT, thread),
	FIELD_OR_NULL("name", TEXT, name),
	FIELD_OR_NULL("phase", TEXT, phase),
	FIELD("size", BYTES, size),
	FIELD_MORE_OF(stack, call_stack_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct incident_holder

const struct field incident_holders[] = {
	FIELD("pid", SHORT, pid, .least = 1),
	FIELD("comm", TEXT, comm),
	FIELD("user_id", SHORT, user_id),
	FIELD("type", NAME, type, .names = types_name),
	FIELD("used", BYTES, used),
	FIELD("buffers", NUMBER, buffers),
	FIELD_END,
};

#undef ROW
#define ROW struct incident_row

const struct field incident_fields[] = {
	FIELD("kind", TEXT, kind, .names = types_incident_kind),
	FIELD("time_ns", TIME, time_ns, .says = "when it happened first"),
	FIELD("last_ns", TIME, last_ns, .says = "when it happened last"),
	FIELD("pid", SHORT, pid, .least = 1),
	FIELD("comm", TEXT, comm),
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	FIELD_OR_NULL("type", NAME, type, .names = types_name),
	FIELD_IF(has_address, "address", HEX, address),
	FIELD("size", BYTES, size),
	FIELD_OR_NOTHING("space", SHORT, space),
	FIELD_IF(has_largest_free, "largest_free", BYTES, largest_free),
	FIELD_OR_NOTHING("size_per_bank", BYTES, size_per_bank),
	FIELD_OR_NOTHING("banks", SHORT, banks),
	FIELD("bank_size", BYTES, bank_size, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(has_bank)),
	FIELD("bank_free", BYTES, bank_free, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(has_bank)),
	FIELD("count", NUMBER, count),
	FIELD_POINTED("first", first, incident_party),
	FIELD_POINTED("second", second, incident_party),
	FIELD_OR_NOTHING("explanation", TEXT, explanation),
	FIELD_OR_NOTHING("processes", NUMBER, processes,
			 .says = "in how many processes, `pid` being the newest"),
	FIELD_ARRAY_AT("devices", NUMBERS, devices, device_count, .absent = FIELD_NOTHING,
		       .known = FIELD_KNOWN(has_devices),
		       .says = "on which devices, `device` being the newest; not of leaks"),
	FIELD("recording", TEXT, recording, .absent = FIELD_EITHER,
	      .known = FIELD_KNOWN(has_recording),
	      .says = "file with the last minute before a failed allocation, for --from"),
	FIELD_ARRAY_AT("holders", ROWS, holders, holder_count, .absent = FIELD_NOTHING,
		       .known = FIELD_KNOWN(has_holders), .fields = incident_holders,
		       .says = INCIDENT_HOLDERS),
	FIELD_ARRAY_AT("sites", ROWS, sites, site_count, .absent = FIELD_NOTHING,
		       .known = FIELD_KNOWN(has_sites), .fields = site_fields,
		       .says = INCIDENT_SITES),
	FIELD_END,
};

static const struct incident_party *incident_party_of(const struct snapshot_party *party,
						      struct incident_party *room,
						      struct call_stack_room *stack)
{
	if (!party->known)
		return NULL;
	*room = (struct incident_party){
		.time_ns = party->time_ns,
		.size = party->size,
		.thread = party->thread,
		.name = party->name,
		.phase = party->phase,
		.stack = call_stack_of(party->stack, stack),
	};
	return room;
}

static struct incident_holder incident_holder_of(const struct snapshot_process *process,
						 uint32_t type, uint64_t used)
{
	return (struct incident_holder){
		.pid = process->id.pid,
		.comm = process->comm,
		.user_id = process->user_id,
		.type = type,
		.used = used,
		.buffers = 1,
	};
}

struct incident_row incident_row_of(const struct snapshot *snapshot,
				    const struct snapshot_incident *incident,
				    struct incident_room *room)
{
	const struct snapshot_process *process = &snapshot->processes[incident->process];
	struct incident_row row = {
		.kind = incident->kind,
		.time_ns = incident->time_ns,
		.last_ns = incident->last_ns,
		.pid = process->id.pid,
		.comm = process->comm,
		.device = incident->device,
		.device_uid = snapshot_part_uid(snapshot, incident->process, incident->device),
		.type = incident->type,
		.has_address = incident->has_address,
		.address = incident->address,
		.size = incident->size,
		.space = incident->space,
		.has_largest_free = incident->largest_free != UINT64_MAX,
		.largest_free = incident->largest_free,
		.size_per_bank = incident->size_per_bank,
		.banks = incident->banks,
		.has_bank = incident->bank_size != 0,
		.bank_size = incident->bank_size,
		.bank_free = incident->bank_free,
		.count = incident->count,
		.first = incident_party_of(&incident->first, &room->first, &room->first_stack),
		.second = incident_party_of(&incident->second, &room->second, &room->second_stack),
		.explanation = incident->explanation,
	};

	if (incident->has_other) {
		room->holders[0] = incident_holder_of(&snapshot->processes[incident->other],
						      incident->type, incident->first.size);
		room->holders[1] =
			incident_holder_of(process, incident->type, incident->second.size);
		row.has_holders = true;
		row.holders = room->holders;
		row.holder_count = 2;
	}
	return row;
}

void incident_put(struct emit *json, const struct snapshot *snapshot,
		  const struct snapshot_incident *incident)
{
	struct incident_room room;
	const struct incident_row row = incident_row_of(snapshot, incident, &room);

	fields_put_row(json, incident_fields, &row);
}

/* The row, and what it points to. */
struct incident_made {
	struct incident_row row;
	struct incident_room room;
};

static const void *incident_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct snapshot *snapshot = document;
	struct incident_made *made = FIELDS_IN(room, struct incident_made);

	if (*at >= snapshot->incident_count)
		return NULL;
	made->row = incident_row_of(snapshot, &snapshot->incidents[(*at)++], &made->room);
	return &made->row;
}

#undef ROW
#define ROW struct snapshot

const struct field incident_list_fields[] = {
	FIELD_MADE("incidents", incident_each, incident_fields),
	FIELD_END,
};

static const struct field incidents_members[] = {
	FIELD_MORE(incident_list_fields),
	DOCUMENT_HIDDEN,
	FIELD_END,
};

const struct document incidents_document = {
	.schema = "ttmem.incidents/1",
	.title = "ttmem incidents --json: of living processes, and with the daemon of the past",
	.members = incidents_members,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};

#undef ROW
#define ROW struct incident_brief

static const struct field stream_members[] = {
	FIELD("kind", TEXT, kind),
	FIELD("pid", SHORT, pid, .least = 1),
	FIELD("device", SHORT, device),
	FIELD_END,
};

const struct document stream_document = {
	.schema = "ttmem.stream/1",
	.title = "/api/v1/stream, data of \"event: incident\" for those without a token",
	.members = stream_members,
	.has = DOCUMENT_PLAIN,
};
