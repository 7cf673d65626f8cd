/* SPDX-License-Identifier: Apache-2.0 */

/* The same document as ttmemd's, made of the books in a recording. */

#include "recording/json/recorded-leaks.h"

#include "answers/buffers.h"
#include "answers/call-stack.h"
#include "answers/document.h"
#include "answers/ended.h"
#include "answers/sites.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/query.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "recording/json/recorded-process.h"
#include "recording/read/recording.h"

struct recorded_leaks {
	struct emit *json;
	const struct recording *recording;
	const struct scan *scan;
	const struct query *query;
	struct snapshot *snapshot;
	struct group_list sites;
};

static void recorded_leaks_sites(struct recorded_leaks *leaks, uint32_t process)
{
	emit_open_array(leaks->json, "sites");
	for (size_t i = 0; i < leaks->sites.count; i++) {
		const struct call_site *site = &leaks->sites.groups[i];

		struct call_stack_room room;
		const struct site_row row = {
			.type = site->type,
			.names = site_names_of(leaks->sites.names + site->first_name,
					       bits_min(site->names, GROUP_NAMES_LISTED),
					       site->names),
			.phase = site->phase,
			.phases = &site->phase,
			.phase_count = site->phase != NULL,
			.stack = call_stack_of(site->stack, &room),
			.bytes = site->bytes,
			.buffers = site->buffers,
			.oldest_ns = site->oldest_ns,
		};

		if (site->process == process)
			fields_put_row(leaks->json, site_leak_fields, &row);
	}
	emit_close_array(leaks->json);
}

static void recorded_leaks_buffers(struct recorded_leaks *leaks, uint32_t process)
{
	struct leaks_row row = {.listed = 0};
	uint64_t listed;

	for (size_t i = 0; i < leaks->snapshot->buffer_count; i++) {
		if (leaks->snapshot->buffers[i].process != process)
			continue;
		row.ended.bytes += leaks->snapshot->buffers[i].size;
		row.ended.buffers++;
	}
	listed = leaks->query->given & QUERY_BUFFERS
			 ? bits_min(row.ended.buffers, leaks->query->buffers_max)
			 : row.ended.buffers;
	row.listed = listed;
	fields_put(leaks->json, leaks_facts, &row);
	recorded_leaks_sites(leaks, process);
	emit_open_array(leaks->json, "buffers");
	for (size_t i = 0; listed > 0 && i < leaks->snapshot->buffer_count; i++) {
		if (leaks->snapshot->buffers[i].process != process)
			continue;
		buffers_put_row(leaks->json, leaks->snapshot, &leaks->snapshot->buffers[i]);
		listed--;
	}
	emit_close_array(leaks->json);
}

static bool recorded_leaks_has(const struct snapshot *snapshot, uint32_t process)
{
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].process == process)
			return true;
	}
	return false;
}

static void recorded_leaks_write(struct recorded_leaks *leaks)
{
	document_begin(leaks->json, &leaks_document, leaks->snapshot);
	emit_open_array(leaks->json, "processes");
	for (uint32_t i = 0; i < leaks->snapshot->process_count; i++) {
		const struct snapshot_process *process = &leaks->snapshot->processes[i];
		struct ended_room room;
		struct ended_row row;
		struct ending ending;

		if (!recorded_process_end(leaks->recording, leaks->scan, process, &ending) ||
		    ending.ended_ns < leaks->query->since_ns ||
		    !recorded_leaks_has(leaks->snapshot, i))
			continue;
		emit_open_object(leaks->json, NULL);
		row = ended_row_of(process, &ending, &room);
		fields_put(leaks->json, ended_facts, &row);
		recorded_leaks_buffers(leaks, i);
		emit_close_object(leaks->json);
	}
	emit_close_array(leaks->json);
	document_list_end(leaks->json, leaks->snapshot->exact);
	document_close(leaks->json, leaks->snapshot);
}

int recorded_leaks_document(struct emit *json, struct snapshot *snapshot,
			    const struct recording *recording, const struct scan *scan,
			    const struct query *query)
{
	struct recorded_leaks leaks = {.json = json,
				       .recording = recording,
				       .scan = scan,
				       .query = query,
				       .snapshot = snapshot};
	int r;

	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_SIZE);
	r = group_buffers(snapshot, GROUP_SITE, true, &leaks.sites);
	if (r == 0)
		recorded_leaks_write(&leaks);
	group_list_deinit(&leaks.sites);
	return r;
}
