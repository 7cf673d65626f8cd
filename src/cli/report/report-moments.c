/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is seen only by looking several times: call sites that keep growing, and how free memory is
 * divided.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/process-id.h"
#include "cli/report/report.h"
#include "model/memory/memory-map.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "model/types.h"

#define REPORT_LOOKS_MAX 40u
#define REPORT_LOOKS_ROOM (REPORT_LOOKS_MAX + 2) /* also at the start, and at the peak */
#define REPORT_LOOKS_MIN 6u
#define REPORT_LOOK_BUFFERS UINT64_C(4000000) /* of all looks together, about */

/* A memory at each look. */
struct report_space {
	struct process_id process;
	uint32_t device, type;
	const char *comm; /* of the growth's pool */
	uint64_t size, most;
	size_t looks;
	struct {
		uint64_t used[REPORT_LOOKS_ROOM], free[REPORT_LOOKS_ROOM];
		uint64_t largest[REPORT_LOOKS_ROOM];
	} at; /* UINT64_MAX where it did not exist */
};

struct report_moments {
	struct report_stacks *stacks;
	struct growth growth;
	struct report_space *spaces; /* owned */
	size_t count, capacity;
	size_t looks;   /* done so far: after each step, and at the peak */
	uint32_t steps; /* from the start to the end */
	uint64_t times_ns[REPORT_LOOKS_ROOM];
};

static void report_moments_deinit(struct report_moments *moments)
{
	growth_deinit(&moments->growth);
	free(moments->spaces);
}

static struct report_space *report_moments_space(struct report_moments *moments,
						 const struct space *space)
{
	struct report_space *list;

	for (size_t i = 0; i < moments->count; i++) {
		list = &moments->spaces[i];
		if (process_id_equal(list->process, space->process->id) &&
		    list->type == space->type && list->device == space->device->device)
			return list;
	}
	if (moments->count == 8 * (size_t)REPORT_SPACES_MAX)
		return NULL;
	list = array_grow(moments->spaces, &moments->capacity, moments->count + 1, sizeof(*list));
	if (!list)
		return NULL;
	moments->spaces = list;
	list += moments->count++;
	*list = (struct report_space){
		.process = space->process->id,
		.device = space->device->device,
		.type = space->type,
		.comm = pool_text(&moments->growth.texts, space->process->comm,
				  strlen(space->process->comm)),
	};
	memset(&list->at, 0xff, sizeof(list->at));
	return list;
}

/* A memory without buffers is not among the maps: all of it is free. */
static void report_moments_empty(struct report_moments *moments, const struct snapshot *snapshot,
				 size_t look)
{
	for (size_t i = 0; i < moments->count; i++) {
		struct report_space *space = &moments->spaces[i];

		if (space->at.used[look] != UINT64_MAX ||
		    !snapshot_find_living(snapshot, space->process))
			continue;
		space->at.used[look] = 0;
		space->at.free[look] = space->at.largest[look] = space->size;
	}
}

/* One look: what memories there are, and how they are divided. */
static int report_moments_map(struct report_moments *moments, struct snapshot *snapshot)
{
	CLEANUP(memory_map_deinit) struct memory_map map = MEMORY_MAP_NULL;
	const struct filter filter = {0};
	size_t look = moments->looks;
	int r = memory_map_find(snapshot, &filter, &map);

	if (r < 0)
		return r;
	moments->times_ns[moments->looks++] = snapshot->time_ns;
	for (size_t i = 0; i < map.count; i++) {
		const struct free_blocks *blocks = &map.list[i].free_blocks;
		struct report_space *space = report_moments_space(moments, &map.list[i]);

		if (!space)
			continue;
		space->size = blocks->size * blocks->banks;
		space->most = bits_max(space->most, blocks->used * blocks->banks);
		space->at.used[look] = blocks->used * blocks->banks;
		space->at.free[look] = blocks->free * blocks->banks;
		space->at.largest[look] = blocks->largest * blocks->banks;
	}
	report_moments_empty(moments, snapshot, look);
	return 0;
}

/*
 * Growth is looked for in the second half, because a model that is loaded grows too, and not at the very
 * end, where programs free what they have.
 */
static int report_moments_look(struct report *report, struct report_moments *moments, uint32_t step,
			       uint64_t time_ns)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct recording_moment moment = {
		.time_ns = time_ns,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
	};
	int r = report_take(report, &moment, false, &snapshot);

	if (r == 0 && step >= moments->steps / 2 && step < moments->steps)
		r = growth_add(&moments->growth, snapshot);
	return r < 0 ? r : report_moments_map(moments, snapshot);
}

/* All looks in order of time; the peak is one of them, however short it was. */
static int report_moments_look_all(struct report *report, struct report_moments *moments)
{
	uint64_t length = report->facts->end_ns - report->facts->start_ns;
	bool has_peak = false;
	int r = 0;

	for (uint32_t step = 0; r == 0 && step <= moments->steps; step++) {
		uint64_t left = length / moments->steps * (moments->steps - step);
		uint64_t time_ns = report->facts->end_ns - left;

		if (report->peak && !has_peak && report->peak->time_ns <= time_ns) {
			has_peak = true;
			r = report_moments_map(moments, report->peak);
		}
		if (r == 0)
			r = report_moments_look(report, moments, step, time_ns);
	}
	return r;
}

static int report_compare_spaces(const void *left, const void *right)
{
	const struct report_space *a = left, *b = right;

	return bits_compare(b->most, a->most);
}

/* Whether a process was there from the first look on: what was started later is still being loaded. */
static bool report_moments_has_begun(const struct report *report, const struct growth *growth,
				     const struct growth_site *site)
{
	for (size_t i = 0; i < report->facts->books; i++) {
		const struct recording_owner *owner = recording_owner(report->recording, i);

		if (owner && process_id_equal(recording_process(&owner->book), site->process))
			return owner->book.start_ns < growth->first_ns;
	}
	return false;
}

static void report_moments_drop_young(const struct report *report, struct growth *growth)
{
	size_t kept = 0;

	for (size_t i = 0; i < growth->count; i++) {
		if (report_moments_has_begun(report, growth, &growth->sites[i]))
			growth->sites[kept++] = growth->sites[i];
	}
	growth->count = kept;
}

struct report_growth_site {
	const struct growth_site *grown;
	struct report_site site;
	const char *name, *confidence;
};

static const void *report_each_growth_site(const void *context, size_t *at,
					   struct fields_room *room)
{
	const struct report_moments *moments = context;
	const struct growth *growth = &moments->growth;
	struct report_growth_site *row = FIELDS_IN(room, struct report_growth_site);
	const struct growth_site *grown;

	if (*at >= bits_min(growth->count, REPORT_GROWN_MAX))
		return NULL;
	row->grown = grown = &growth->sites[(*at)++];
	row->site = (struct report_site){grown->last.type, grown->last.phase,
					 report_stacks_index(moments->stacks, grown->last.stack)};
	row->name = grown->last.names == 1 ? grown->last.name : NULL;
	row->confidence = growth_confidence_name(growth_confidence(growth, grown));
	return row;
}

#define ROW struct report_growth_site
#define GROWN(...) FIELD_VIA(grown, struct growth_site, __VA_ARGS__)

static const struct field report_growth_site[] = {
	FIELD_MORE_OF(site, report_site_fields),
	FIELD_OR_NULL("name", TEXT, name),
	GROWN("name_count", NUMBER, last.names),
	GROWN("pid", SHORT, process.pid),
	GROWN("comm", TEXT, comm),
	GROWN("first_bytes", BYTES, first_bytes),
	GROWN("last_bytes", BYTES, last.bytes),
	GROWN("first_buffers", NUMBER, first_buffers),
	GROWN("last_buffers", NUMBER, last.buffers),
	GROWN("oldest_ns", TIME, last.oldest_ns),
	FIELD("confidence", TEXT, confidence),
	FIELD_END,
};

#undef ROW
#define ROW struct report_moments

static const struct field report_growth[] = {
	FIELD("first_ns", TIME, growth.first_ns),
	FIELD("last_ns", TIME, growth.last_ns),
	FIELD("samples", SHORT, growth.samples),
	FIELD("site_count", NUMBER, growth.count),
	FIELD_MADE("sites", report_each_growth_site, report_growth_site),
	FIELD_END,
};

#undef ROW
#define ROW struct report_space
#define LOOKS(MEMBER) \
	FIELD_FIXED(#MEMBER, at.MEMBER, .count = offsetof(ROW, looks), .has_nulls = true)

static const struct field report_space[] = {
	FIELD("pid", SHORT, process.pid),
	FIELD("comm", TEXT, comm),
	FIELD("device", SHORT, device),
	FIELD("type", NAME, type, .names = types_name),
	FIELD("size", BYTES, size),
	LOOKS(used),
	LOOKS(free),
	LOOKS(largest),
	FIELD_END,
};

#undef ROW
#define ROW struct report_moments

static const struct field report_fragmentation[] = {
	FIELD_FIXED("times_ns", times_ns, .count = offsetof(ROW, looks)),
	FIELD_ARRAY_AT("spaces", ROWS, spaces, count, .fields = report_space),
	FIELD_END,
};

int report_put_moments(struct report *report)
{
	CLEANUP(report_moments_deinit)
	struct report_moments moments = {.stacks = &report->stacks,
					 .growth = {.keeps_ended = true}};
	uint64_t buffers = report->peak ? bits_max(report->peak->buffer_count, 1) : 1;
	int r;

	moments.steps = (uint32_t)bits_max(
		bits_min(REPORT_LOOK_BUFFERS / buffers, REPORT_LOOKS_MAX), REPORT_LOOKS_MIN);
	r = report_moments_look_all(report, &moments);
	if (r < 0)
		return r;
	growth_finish(&moments.growth, true);
	report_moments_drop_young(report, &moments.growth);
	if (moments.count > 0)
		qsort(moments.spaces, moments.count, sizeof(*moments.spaces),
		      report_compare_spaces);
	moments.count = bits_min(moments.count, REPORT_SPACES_MAX);
	for (size_t i = 0; i < moments.count; i++)
		moments.spaces[i].looks = moments.looks;
	fields_put_object(&report->json, "growth", report_growth, &moments);
	fields_put_object(&report->json, "fragmentation", report_fragmentation, &moments);
	return 0;
}
