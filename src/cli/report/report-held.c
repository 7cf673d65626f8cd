/* SPDX-License-Identifier: Apache-2.0 */

/* What is live at a moment, by call site; and incidents. */

#include <errno.h>
#include <stdlib.h>

#include "answers/sites.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/report/report.h"
#include "model/sites/group.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "recording/read/recording-source.h"
#include "source/collect.h"
#include "source/source.h"

static void report_cleanup_source(struct source **source)
{
	source_free(*source);
}

int report_take(const struct report *report, const struct recording_moment *moment, bool ended,
		struct snapshot **ret_snapshot)
{
	CLEANUP(report_cleanup_source) struct source *source = NULL;
	const struct snapshot_request request = {
		.buffers = true,
		.incidents = true,
		.ended = ended,
		.namer = recording_namer(report->recording),
	};
	struct collect_sources sources;
	int r = recording_source_new(&source, report->recording, moment);

	if (r < 0)
		return r;
	recording_source_sources(source, &sources);
	return collect_machine(&sources, &request, ret_snapshot);
}

#define ROW struct report_site

const struct field report_site_fields[] = {
	FIELD("type", NAME, type, .names = types_name),
	FIELD_OR_NULL("phase", TEXT, phase),
	REPORT_STACK,
	FIELD_END,
};

struct report_held {
	struct report_stacks *stacks;
	const struct group_list *list;
	uint64_t time_ns, bytes, unexplained, buffers;
};

struct report_group {
	const struct call_site *group;
	struct report_site site;
	struct site_names names;
};

static const void *report_each_group(const void *context, size_t *at, struct fields_room *room)
{
	const struct report_held *held = context;
	struct report_group *row = FIELDS_IN(room, struct report_group);
	const struct call_site *group;

	if (*at >= bits_min(held->list->count, REPORT_SITES_MAX))
		return NULL;
	row->group = group = &held->list->groups[(*at)++];
	row->site = (struct report_site){group->type, group->phase,
					 report_stacks_index(held->stacks, group->stack)};
	row->names = site_names_of(held->list->names + group->first_name,
				   bits_min(group->names, REPORT_NAMES_MAX), group->names);
	return row;
}

#undef ROW
#define ROW struct report_group

static const struct field report_group[] = {
	FIELD_MORE_OF(site, report_site_fields),
	FIELD_MORE_OF(names, site_names_fields),
	FIELD_VIA(group, struct call_site, "bytes", BYTES, bytes),
	FIELD_VIA(group, struct call_site, "buffers", NUMBER, buffers),
	FIELD_END,
};

#undef ROW
#define ROW struct report_held

static const struct field report_held[] = {
	FIELD("time_ns", TIME, time_ns),
	FIELD("bytes", BYTES, bytes),
	FIELD("unexplained", BYTES, unexplained),
	FIELD("buffers", NUMBER, buffers),
	FIELD_VIA(list, struct group_list, "site_count", NUMBER, count),
	FIELD_MADE("sites", report_each_group, report_group),
	FIELD_END,
};

/* @bytes: what was in use; what its buffers do not explain was lost in a gap. */
int report_put_held(struct report *report, const char *key, const struct snapshot *snapshot,
		    uint64_t bytes)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	struct report_held held = {.stacks = &report->stacks, .list = &list};
	int r;

	if (!snapshot) {
		emit_null(&report->json, key);
		return 0;
	}
	r = group_buffers(snapshot, GROUP_SITE, false, &list);
	if (r < 0)
		return r;
	held.time_ns = snapshot->time_ns;
	for (size_t i = 0; i < list.count; i++) {
		held.bytes += list.groups[i].bytes;
		held.buffers += list.groups[i].buffers;
	}
	held.unexplained = bytes - bits_min(bytes, held.bytes);
	held.bytes += held.unexplained;
	fields_put_object(&report->json, key, report_held, &held);
	return 0;
}

struct report_party {
	struct snapshot_party party;
	struct report_index stack;
};

struct report_incident {
	struct snapshot_incident incident;
	const struct snapshot_process *process;
	struct report_party parties[2];
	bool has_largest_free;
};

#undef ROW
#define ROW struct report_party

static const struct field report_party[] = {
	FIELD("time_ns", TIME, party.time_ns),
	FIELD("thread", SHORT, party.thread),
	FIELD_OR_NULL("name", TEXT, party.name),
	FIELD_OR_NULL("phase", TEXT, party.phase),
	FIELD("size", BYTES, party.size),
	REPORT_STACK,
	FIELD_END,
};

#undef ROW
#define ROW struct report_incident
#define PARTY(KEY, AT)                                                     \
	FIELD_STRUCT(KEY, parties[AT], report_party, .absent = FIELD_NULL, \
		     .known = FIELD_KNOWN(parties[AT].party.known))

static const struct field report_incident[] = {
	FIELD("kind", TEXT, incident.kind),
	FIELD("time_ns", TIME, incident.time_ns),
	FIELD("last_ns", TIME, incident.last_ns),
	FIELD_VIA(process, struct snapshot_process, "pid", SHORT, id.pid),
	FIELD_VIA(process, struct snapshot_process, "comm", TEXT, comm),
	FIELD("device", SHORT, incident.device),
	FIELD_OR_NULL("type", NAME, incident.type, .names = types_name),
	FIELD_IF(incident.has_address, "address", HEX, incident.address),
	FIELD("size", BYTES, incident.size),
	FIELD_IF(has_largest_free, "largest_free", BYTES, incident.largest_free),
	FIELD("count", NUMBER, incident.count),
	PARTY("first", 0),
	PARTY("second", 1),
	FIELD_END,
};

static int report_compare_incidents(const void *left, const void *right)
{
	const struct snapshot_incident *a = left, *b = right;

	return bits_compare(a->time_ns, b->time_ns);
}

static struct report_party report_party_of(struct report_stacks *stacks,
					   const struct snapshot_party *party)
{
	return (struct report_party){
		*party, report_stacks_index(stacks, party->known ? party->stack : NULL)};
}

void report_put_incidents(struct report *report)
{
	const struct snapshot *end = report->end;
	struct report_stacks *stacks = &report->stacks;
	struct emit *json = &report->json;

	if (end->incident_count > 0)
		qsort(end->incidents, end->incident_count, sizeof(*end->incidents),
		      report_compare_incidents);
	emit_u64(json, "incident_count", end->incident_count);
	emit_open_array(json, "incidents");
	for (size_t i = 0; i < bits_min(end->incident_count, REPORT_INCIDENTS_MAX); i++) {
		const struct snapshot_incident *incident = &end->incidents[i];
		struct report_incident row = {
			.incident = *incident,
			.process = &end->processes[incident->process],
			.has_largest_free = incident->largest_free != UINT64_MAX,
		};

		row.parties[0] = report_party_of(stacks, &incident->first);
		row.parties[1] = report_party_of(stacks, &incident->second);
		fields_put_row(json, report_incident, &row);
	}
	emit_close_array(json);
}
