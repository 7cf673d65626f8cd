/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.buffers/1, ttmem.incidents/1, ttmem.growth/1 and ttmem.history/1. */

#include "core/document.h"

#include "base/json.h"
#include "core/growth.h"
#include "core/history.h"
#include "core/snapshot.h"
#include "core/types.h"

#define DOCUMENT_KEY 8192 /* a type and a text of the pool */
#define DOCUMENT_KERNEL 6 /* TTMEM_KERNEL */

static uint64_t document_part_uid(const struct snapshot *snapshot, uint32_t process,
				  uint32_t device)
{
	const struct snapshot_part *part = snapshot_find_part(snapshot, process, device);

	return part ? part->facts.unique_id : 0;
}

/* Who and where, the same in every list. */
static void document_where(struct json *json, const struct snapshot *snapshot, uint32_t process,
			   uint32_t device)
{
	json_u64(json, "pid", snapshot->processes[process].pid);
	json_string(json, "comm", snapshot->processes[process].comm);
	json_u64(json, "device", device);
	document_uid(json, "device_uid", document_part_uid(snapshot, process, device));
}

void document_buffer(struct json *json, const struct snapshot *snapshot,
		     const struct snapshot_buffer *buffer)
{
	json_open_object(json, NULL);
	document_where(json, snapshot, buffer->process, buffer->device);
	json_string(json, "type", types_name(buffer->type));
	json_hex(json, "address", buffer->address);
	json_u64(json, "size", buffer->size);
	json_u64(json, "refs", buffer->refs);
	json_u64(json, "born_ns", buffer->born_ns);
	json_u64(json, "age_ns",
		 snapshot->time_ns > buffer->born_ns ? snapshot->time_ns - buffer->born_ns : 0);
	json_string(json, "name", buffer->name);
	json_string(json, "phase", buffer->phase);
	json_u64(json, "thread", buffer->thread);
	document_flags(json, buffer->flags);
	if (buffer->type == DOCUMENT_KERNEL)
		json_string(json, "kernel", types_kernel_sort_name(buffer->kernel_sort));
	document_stack(json);
	json_close_object(json);
}

void document_buffers(struct json *json, const struct snapshot *snapshot)
{
	document_open(json, "ttmem.buffers/1", snapshot->time_ns);
	json_open_array(json, "buffers");
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		document_buffer(json, snapshot, &snapshot->buffers[i]);
	json_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

void document_groups(struct json *json, const struct snapshot *snapshot, enum group_kind kind,
		     const struct group *groups, size_t count)
{
	char key[DOCUMENT_KEY];

	document_open(json, "ttmem.buffers/1", snapshot->time_ns);
	json_open_array(json, "groups");
	for (size_t i = 0; i < count; i++) {
		const struct group *group = &groups[i];

		json_open_object(json, NULL);
		json_string(json, "key", group_key(snapshot, kind, group, key, sizeof(key)));
		json_u64(json, "bytes", group->bytes);
		json_u64(json, "buffers", group->buffers);
		json_u64(json, "oldest_ns", group->oldest_ns);
		json_close_object(json);
	}
	json_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

static void document_party(struct json *json, const char *key, const struct snapshot_party *party)
{
	if (!party->known) {
		json_null(json, key);
		return;
	}
	json_open_object(json, key);
	json_u64(json, "time_ns", party->time_ns);
	json_u64(json, "thread", party->thread);
	json_string(json, "name", party->name);
	json_string(json, "phase", party->phase);
	json_u64(json, "size", party->size);
	document_stack(json);
	json_close_object(json);
}

void document_incident(struct json *json, const struct snapshot *snapshot,
		       const struct snapshot_incident *incident)
{
	json_open_object(json, NULL);
	json_string(json, "kind", incident->kind);
	json_u64(json, "time_ns", incident->time_ns);
	json_u64(json, "last_ns", incident->last_ns);
	document_where(json, snapshot, incident->process, incident->device);
	json_string(json, "type", types_name(incident->type));
	if (incident->has_address)
		json_hex(json, "address", incident->address);
	else
		json_null(json, "address");
	json_u64(json, "size", incident->size);
	if (incident->largest_free != UINT64_MAX)
		json_u64(json, "largest_free", incident->largest_free);
	else
		json_null(json, "largest_free");
	json_u64(json, "count", incident->count);
	document_party(json, "first", &incident->first);
	document_party(json, "second", &incident->second);
	json_close_object(json);
}

void document_incidents(struct json *json, const struct snapshot *snapshot)
{
	document_open(json, "ttmem.incidents/1", snapshot->time_ns);
	json_open_array(json, "incidents");
	for (size_t i = 0; i < snapshot->incident_count; i++)
		document_incident(json, snapshot, &snapshot->incidents[i]);
	json_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

void document_growth(struct json *json, const struct snapshot *snapshot,
		     const struct growth *growth)
{
	document_open(json, "ttmem.growth/1", snapshot->time_ns);
	json_u64(json, "samples", growth->samples);
	json_u64(json, "span_ns", growth->last_ns - growth->first_ns);
	json_open_array(json, "sites");
	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_site *site = &growth->sites[i];

		json_open_object(json, NULL);
		json_u64(json, "pid", site->pid);
		json_string(json, "comm", site->comm);
		json_string(json, "type", types_name(site->type));
		json_string(json, "name", site->name);
		json_string(json, "phase", site->phase);
		document_stack(json);
		json_u64(json, "bytes", site->last_bytes);
		json_u64(json, "bytes_before", site->first_bytes);
		json_u64(json, "grown", site->last_bytes - site->first_bytes);
		json_u64(json, "buffers", site->last_buffers);
		json_u64(json, "buffers_before", site->first_buffers);
		json_close_object(json);
	}
	json_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

static void document_life_event(struct json *json, const struct history_event *event)
{
	json_open_object(json, NULL);
	json_string(json, "op", types_op_name(event->op));
	json_u64(json, "time_ns", event->time_ns);
	if (event->number)
		json_u64(json, "number", event->number);
	else
		json_null(json, "number");
	json_u64(json, "size", event->size);
	json_u64(json, "refs", event->refs);
	json_u64(json, "thread", event->thread);
	json_string(json, "name", event->name);
	json_string(json, "phase", event->phase);
	json_bool(json, "reused", event->reused);
	json_bool(json, "size_change", event->size_change);
	document_stack(json);
	json_close_object(json);
}

void document_history(struct json *json, const struct snapshot *snapshot,
		      const struct history *history, uint64_t address)
{
	document_open(json, "ttmem.history/1", snapshot->time_ns);
	json_hex(json, "address", address);
	json_open_array(json, "buffers");
	for (size_t i = 0; i < history->count; i++) {
		const struct history_life *life = &history->lives[i];

		json_open_object(json, NULL);
		document_where(json, snapshot, life->process, life->device);
		json_bool(json, "alive", snapshot->processes[life->process].alive);
		json_string(json, "type", types_name(life->type));
		json_hex(json, "address", life->address);
		json_u64(json, "allocs", life->allocs);
		json_u64(json, "frees", life->frees);
		json_bool(json, "live", life->live);
		json_bool(json, "complete", life->complete);
		json_open_array(json, "events");
		for (size_t k = 0; k < life->count; k++)
			document_life_event(json, &life->events[k]);
		json_close_array(json);
		json_close_object(json);
	}
	json_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
