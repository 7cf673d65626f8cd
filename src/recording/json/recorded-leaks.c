/* SPDX-License-Identifier: Apache-2.0 */

/* The same rows as ttmemd's, made of the books in a recording. */

#include "recording/json/recorded-leaks.h"

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "base/bits.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "recording/json/recorded-process.h"

/* The call sites of a process, in the room for all. */
static size_t recorded_leaks_sites(const struct recorded_leaks *leaks, uint32_t process)
{
	size_t count = 0;

	for (size_t i = 0; i < leaks->sites.count; i++) {
		const struct call_site *site = &leaks->sites.groups[i];

		if (site->process != process)
			continue;
		leaks->rows[count] = (struct site_row){
			.type = site->type,
			.names = site_names_of(leaks->sites.names + site->first_name,
					       bits_min(site->names, GROUP_NAMES_LISTED),
					       site->names),
			.phase = site->phase,
			.phases = &site->phase,
			.phase_count = site->phase != NULL,
			.stack = call_stack_of(site->stack, &leaks->stacks[count]),
			.bytes = site->bytes,
			.buffers = site->buffers,
			.oldest_ns = site->oldest_ns,
		};
		count++;
	}
	return count;
}

static const void *recorded_leaks_each(const void *context, size_t *at, struct fields_room *room)
{
	return recorded_leaks_next(context, at, FIELDS_IN(room, struct recorded_leak));
}

const struct leaks_row *recorded_leaks_next(const struct recorded_leaks *leaks, size_t *at,
					    struct recorded_leak *room)
{
	while (*at < leaks->snapshot->process_count) {
		uint32_t index = (uint32_t)(*at)++;
		const struct snapshot_process *process = &leaks->snapshot->processes[index];
		struct leaks_row *row = &room->row;
		struct ending ending;

		if (!recorded_process_end(leaks->recording, leaks->scan, process, &ending) ||
		    ending.ended_ns < leaks->query->since_ns)
			continue;
		*row = (struct leaks_row){
			.ended = ended_row_of(process, &ending, &room->ended),
			.sites = leaks->rows,
		};
		leaks_row_count(row, leaks->snapshot, index,
				leaks->query->given & QUERY_BUFFERS ? leaks->query->buffers_max
								    : UINT64_MAX);
		if (!row->ended.buffers)
			continue;
		row->site_count = recorded_leaks_sites(leaks, index);
		return row;
	}
	return NULL;
}

#define ROW struct recorded_leaks

void recorded_leaks_put(struct emit *json, const struct recorded_leaks *leaks)
{
	static const struct field members[] = {
		FIELD_MADE("processes", recorded_leaks_each, leaks_fields),
		FIELD_END,
	};
	struct document document = leaks_document;

	document.members = members;
	document_put(json, &document, leaks->snapshot, leaks);
}

int recorded_leaks_init(struct recorded_leaks *leaks)
{
	int r;

	snapshot_sort_buffers(leaks->snapshot, SNAPSHOT_BY_SIZE);
	r = group_buffers(leaks->snapshot, GROUP_SITE, true, &leaks->sites);
	if (r < 0)
		return r;
	leaks->rows = calloc(leaks->sites.count + 1, sizeof(*leaks->rows));
	leaks->stacks = calloc(leaks->sites.count + 1, sizeof(*leaks->stacks));
	return leaks->rows && leaks->stacks ? 0 : -ENOMEM;
}

void recorded_leaks_deinit(struct recorded_leaks *leaks)
{
	group_list_deinit(&leaks->sites);
	free(leaks->rows);
	free(leaks->stacks);
}
