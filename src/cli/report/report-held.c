/* SPDX-License-Identifier: Apache-2.0 */

/* What is live at a moment, by call site; and incidents. */

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "answers/sites.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/common/session.h"
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

void report_put_site(struct report *report, const struct report_site *site)
{
	emit_string(&report->json, "type", types_name(site->type));
	emit_string(&report->json, "phase", site->phase);
	report_stacks_put(&report->stacks, &report->json, site->stack);
}

static void report_put_group(struct report *report, const struct group_list *list,
			     const struct call_site *group)
{
	const struct report_site site = {
		.type = group->type, .stack = group->stack, .phase = group->phase};

	emit_open_object(&report->json, NULL);
	report_put_site(report, &site);
	site_names_put(&report->json, list->names + group->first_name,
		       bits_min(group->names, REPORT_NAMES_MAX), group->names);
	emit_u64(&report->json, "bytes", group->bytes);
	emit_u64(&report->json, "buffers", group->buffers);
	emit_close_object(&report->json);
}

/* @bytes: what was in use; what its buffers do not explain was lost in a gap. */
int report_put_held(struct report *report, const char *key, const struct snapshot *snapshot,
		    uint64_t bytes)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	uint64_t explained = 0, buffers = 0;
	int r;

	if (!snapshot) {
		emit_null(&report->json, key);
		return 0;
	}
	r = group_buffers(snapshot, GROUP_SITE, false, &list);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.count; i++) {
		explained += list.groups[i].bytes;
		buffers += list.groups[i].buffers;
	}
	bytes = bits_max(bytes, explained);
	emit_open_object(&report->json, key);
	emit_u64(&report->json, "time_ns", snapshot->time_ns);
	emit_u64(&report->json, "bytes", bytes);
	emit_u64(&report->json, "unexplained", bytes - explained);
	emit_u64(&report->json, "buffers", buffers);
	emit_u64(&report->json, "site_count", list.count);
	emit_open_array(&report->json, "sites");
	for (size_t i = 0; i < bits_min(list.count, REPORT_SITES_MAX); i++)
		report_put_group(report, &list, &list.groups[i]);
	emit_close_array(&report->json);
	emit_close_object(&report->json);
	return 0;
}

static void report_put_party(struct report *report, const char *key,
			     const struct snapshot_party *party)
{
	struct emit *json = &report->json;

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
	report_stacks_put(&report->stacks, json, party->stack);
	emit_close_object(json);
}

static void report_put_incident(struct report *report, const struct snapshot_incident *incident)
{
	const struct snapshot_process *process = &report->end->processes[incident->process];
	struct emit *json = &report->json;

	emit_open_object(json, NULL);
	emit_string(json, "kind", incident->kind);
	emit_u64(json, "time_ns", incident->time_ns);
	emit_u64(json, "last_ns", incident->last_ns);
	emit_u64(json, "pid", process->id.pid);
	emit_string(json, "comm", process->comm);
	emit_u64(json, "device", incident->device);
	emit_string(json, "type", types_name(incident->type));
	if (incident->has_address)
		emit_hex(json, "address", incident->address);
	else
		emit_null(json, "address");
	emit_u64(json, "size", incident->size);
	if (incident->largest_free != UINT64_MAX)
		emit_u64(json, "largest_free", incident->largest_free);
	else
		emit_null(json, "largest_free");
	emit_u64(json, "count", incident->count);
	report_put_party(report, "first", &incident->first);
	report_put_party(report, "second", &incident->second);
	emit_close_object(json);
}

static int report_compare_incidents(const void *left, const void *right)
{
	const struct snapshot_incident *const *a = left, *const *b = right;

	return bits_compare((*a)->time_ns, (*b)->time_ns);
}

void report_put_incidents(struct report *report)
{
	size_t count = report->end ? report->end->incident_count : 0;
	CLEANUP_FREE const struct snapshot_incident **list = must_alloc(count + 1, sizeof(void *));

	emit_u64(&report->json, "incident_count", count);
	emit_open_array(&report->json, "incidents");
	for (size_t i = 0; i < count; i++)
		list[i] = &report->end->incidents[i];
	qsort(list, count, sizeof(void *), report_compare_incidents);
	for (size_t i = 0; i < bits_min(count, REPORT_INCIDENTS_MAX); i++)
		report_put_incident(report, list[i]);
	emit_close_array(&report->json);
}
