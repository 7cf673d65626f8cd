/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.incidents/1, ttmem.growth/1 and ttmem.history/1. */

#include "answers/document.h"

#include <string.h>

#include "answers/document-stacks.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/history.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "model/types.h"

#define DOCUMENT_KEY 8192 /* a type and a text of the pool */

static uint64_t document_part_uid(const struct snapshot *snapshot, uint32_t process,
				  uint32_t device)
{
	const struct snapshot_part *part = snapshot_find_part(snapshot, process, device);

	return part ? part->facts.unique_id : 0;
}

void document_where(struct emit *json, const struct snapshot *snapshot, uint32_t process,
		    uint32_t device)
{
	emit_u64(json, "pid", snapshot->processes[process].id.pid);
	emit_string(json, "comm", snapshot->processes[process].comm);
	emit_u64(json, "device", device);
	document_uid(json, "device_uid", document_part_uid(snapshot, process, device));
}

void document_name(struct emit *json, const struct call_site *name)
{
	emit_open_object(json, NULL);
	emit_string(json, "name", name->name);
	emit_string(json, "phase", name->phase);
	emit_u64(json, "bytes", name->bytes);
	emit_u64(json, "buffers", name->buffers);
	emit_close_object(json);
}

void document_names(struct emit *json, const struct call_site *names, size_t listed, size_t count)
{
	emit_string(json, "name", count == 1 && listed ? names->name : NULL);
	emit_u64(json, "name_count", count);
	emit_open_array(json, "names");
	for (size_t i = 0; i < listed; i++)
		document_name(json, &names[i]);
	emit_close_array(json);
}

static void document_party(struct emit *json, const char *key, const struct snapshot_party *party)
{
	if (!party->known) {
		emit_null(json, key);
		return;
	}
	emit_open_object(json, key);
	emit_u64(json, "time_ns", party->time_ns);
	emit_u64(json, "thread", party->thread);
	emit_string(json, "name", party->name);
	emit_string(json, "phase", party->phase);
	emit_u64(json, "size", party->size);
	document_stack(json, party->stack);
	emit_close_object(json);
}

void document_incident_fields(struct emit *json, const struct snapshot *snapshot,
			      const struct snapshot_incident *incident)
{
	emit_string(json, "kind", incident->kind);
	emit_u64(json, "time_ns", incident->time_ns);
	emit_u64(json, "last_ns", incident->last_ns);
	document_where(json, snapshot, incident->process, incident->device);
	emit_string(json, "type", types_name(incident->type));
	if (incident->has_address)
		emit_hex(json, "address", incident->address);
	else
		emit_null(json, "address");
	emit_u64(json, "size", incident->size);
	if (incident->space)
		emit_u64(json, "space", incident->space);
	if (incident->largest_free != UINT64_MAX)
		emit_u64(json, "largest_free", incident->largest_free);
	else
		emit_null(json, "largest_free");
	if (incident->size_per_bank)
		emit_u64(json, "size_per_bank", incident->size_per_bank);
	if (incident->banks)
		emit_u64(json, "banks", incident->banks);
	if (incident->bank_size) {
		emit_u64(json, "bank_size", incident->bank_size);
		emit_u64(json, "bank_free", incident->bank_free);
	}
	emit_u64(json, "count", incident->count);
	document_party(json, "first", &incident->first);
	document_party(json, "second", &incident->second);
	if (incident->explanation)
		emit_string(json, "explanation", incident->explanation);
}

static void document_holder(struct emit *json, const struct snapshot_process *process,
			    uint32_t type, uint64_t used)
{
	emit_open_object(json, NULL);
	emit_u64(json, "pid", process->id.pid);
	emit_string(json, "comm", process->comm);
	emit_u64(json, "user_id", process->user_id);
	emit_string(json, "type", types_name(type));
	emit_u64(json, "used", used);
	emit_u64(json, "buffers", 1);
	emit_close_object(json);
}

void document_incident(struct emit *json, const struct snapshot *snapshot,
		       const struct snapshot_incident *incident)
{
	emit_open_object(json, NULL);
	document_incident_fields(json, snapshot, incident);
	if (incident->has_other) {
		emit_open_array(json, "holders");
		document_holder(json, &snapshot->processes[incident->other], incident->type,
				incident->first.size);
		document_holder(json, &snapshot->processes[incident->process], incident->type,
				incident->second.size);
		emit_close_array(json);
	}
	emit_close_object(json);
}

void document_incidents(struct emit *json, const struct snapshot *snapshot)
{
	document_open_at(json, "ttmem.incidents/1", snapshot);
	emit_open_array(json, "incidents");
	for (size_t i = 0; i < snapshot->incident_count; i++)
		document_incident(json, snapshot, &snapshot->incidents[i]);
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

static void document_trends(struct emit *json, const struct growth *growth)
{
	emit_open_array(json, "trends");
	for (size_t i = 0; i < growth->trend_count; i++) {
		const struct growth_trend *trend = &growth->trends[i];

		emit_open_object(json, NULL);
		emit_u64(json, "pid", trend->pid);
		emit_u64(json, "from_ns", trend->first_ns);
		emit_u64(json, "to_ns", trend->last_ns);
		emit_u64(json, "bytes_before", trend->first_bytes);
		emit_u64(json, "bytes", trend->last_bytes);
		emit_double(json, "bytes_per_second", trend->per_second);
		emit_close_object(json);
	}
	emit_close_array(json);
}

void document_growth_sites(struct emit *json, const struct growth *growth)
{
	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_site *site = &growth->sites[i];

		emit_open_object(json, NULL);
		emit_u64(json, "pid", site->process.pid);
		emit_string(json, "comm", site->comm);
		emit_string(json, "type", types_name(site->last.type));
		document_names(json, growth->names + site->last.first_name, site->listed,
			       site->last.names);
		emit_string(json, "phase", site->last.phase);
		document_stack(json, site->last.stack);
		emit_u64(json, "bytes", site->last.bytes);
		emit_u64(json, "bytes_before", site->last.bytes - growth_bytes(site));
		emit_u64(json, "grown", growth_bytes(site));
		emit_u64(json, "buffers", site->last.buffers);
		emit_u64(json, "buffers_before", site->last.buffers - growth_buffers(site));
		emit_double(json, "per_second", growth_per_second(growth, site));
		emit_u64(json, "looked_ns", growth_span(growth, site));
		emit_string(json, "confidence",
			    growth_confidence_name(growth_confidence(growth, site)));
		emit_u64(json, "oldest_ns", site->last.oldest_ns);
		emit_open_array(json, "ages");
		for (uint32_t age = 0; age < CALL_SITE_AGES; age++)
			emit_u64(json, NULL, site->last.ages[age]);
		emit_close_array(json);
		emit_close_object(json);
	}
}

void document_growth(struct emit *json, const struct snapshot *snapshot,
		     const struct growth *growth)
{
	document_open_at(json, "ttmem.growth/1", snapshot);
	emit_u64(json, "samples", growth->samples);
	emit_u64(json, "span_ns", growth->last_ns - growth->first_ns);
	emit_u64(json, "past_ns", growth->past_ns);
	emit_open_array(json, "sites");
	document_growth_sites(json, growth);
	emit_close_array(json);
	document_trends(json, growth);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

static void document_life_event(struct emit *json, const struct history_event *event)
{
	emit_open_object(json, NULL);
	emit_string(json, "op", types_op_name(event->op));
	emit_u64(json, "time_ns", event->time_ns);
	if (event->number)
		emit_u64(json, "number", event->number);
	else
		emit_null(json, "number");
	emit_u64(json, "size", event->size);
	emit_u64(json, "refs", event->refs);
	emit_u64(json, "thread", event->thread);
	emit_string(json, "name", event->name);
	emit_string(json, "phase", event->phase);
	emit_bool(json, "reused", event->reused);
	emit_bool(json, "size_change", event->size_change);
	document_stack(json, event->stack);
	emit_close_object(json);
}

static void document_remembered(struct emit *json, const struct document_past *past)
{
	if (!past) {
		emit_null(json, "past");
		return;
	}
	emit_open_object(json, "past");
	emit_raw(json, "leaks", past->leaks);
	emit_raw(json, "incidents", past->incidents);
	emit_close_object(json);
}

void document_history(struct emit *json, const struct snapshot *snapshot,
		      const struct history *history, uint64_t address,
		      const struct document_past *past)
{
	document_open_at(json, "ttmem.history/1", snapshot);
	emit_hex(json, "address", address);
	emit_open_array(json, "buffers");
	for (size_t i = 0; i < history->count; i++) {
		const struct history_life *life = &history->lives[i];

		emit_open_object(json, NULL);
		document_where(json, snapshot, life->process, life->device);
		emit_bool(json, "alive", snapshot->processes[life->process].alive);
		emit_string(json, "type", types_name(life->type));
		emit_hex(json, "address", life->address);
		if (life->space)
			emit_u64(json, "space", life->space);
		emit_u64(json, "allocs", life->allocs);
		emit_u64(json, "frees", life->frees);
		emit_bool(json, "live", life->live);
		emit_bool(json, "complete", life->complete);
		emit_open_array(json, "events");
		for (size_t k = 0; k < life->count; k++)
			document_life_event(json, &life->events[k]);
		emit_close_array(json);
		emit_close_object(json);
	}
	emit_close_array(json);
	document_remembered(json, past);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
