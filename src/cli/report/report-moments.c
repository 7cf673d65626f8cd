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
#include "cli/common/session.h"
#include "cli/report/report.h"
#include "model/memory/memory-map.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "model/types.h"

#define REPORT_LOOKS_MAX 40u
#define REPORT_LOOKS_MIN 6u
#define REPORT_LOOK_BUFFERS UINT64_C(4000000) /* of all looks together, about */

/* A memory at each look; all 0 where it did not exist. */
struct report_space {
	struct process_id process;
	uint32_t device, type;
	const char *comm; /* of the growth's pool */
	uint64_t size, most;
	struct {
		uint64_t used, free, largest;
		bool is_known;
	} looks[REPORT_LOOKS_MAX + 2];
};

struct report_moments {
	struct growth growth;
	struct report_space *spaces; /* owned */
	size_t count, capacity;
	uint32_t steps; /* from the start to the end */
	uint32_t looks; /* done so far: after each step, and at the peak */
	uint64_t times_ns[REPORT_LOOKS_MAX + 2];
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
	return list;
}

/* A memory without buffers is not among the maps: all of it is free. */
static void report_moments_empty(struct report_moments *moments, const struct snapshot *snapshot,
				 uint32_t look)
{
	for (size_t i = 0; i < moments->count; i++) {
		struct report_space *space = &moments->spaces[i];

		if (space->looks[look].is_known || !snapshot_find_living(snapshot, space->process))
			continue;
		space->looks[look].free = space->looks[look].largest = space->size;
		space->looks[look].is_known = true;
	}
}

/* One look: what memories there are, and how they are divided. */
static int report_moments_map(struct report_moments *moments, struct snapshot *snapshot)
{
	CLEANUP(memory_map_deinit) struct memory_map map = MEMORY_MAP_NULL;
	const struct filter filter = {0};
	uint32_t look = moments->looks;
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
		space->looks[look].used = blocks->used * blocks->banks;
		space->looks[look].free = blocks->free * blocks->banks;
		space->looks[look].largest = blocks->largest * blocks->banks;
		space->looks[look].is_known = true;
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

static void report_put_grown(struct report *report, const struct growth *growth,
			     const struct growth_site *site)
{
	const struct report_site place = {
		.type = site->last.type, .stack = site->last.stack, .phase = site->last.phase};
	struct emit *json = &report->json;

	emit_open_object(json, NULL);
	report_put_site(report, &place);
	emit_string(json, "name", site->last.names == 1 ? site->last.name : NULL);
	emit_u64(json, "name_count", site->last.names);
	emit_u64(json, "pid", site->process.pid);
	emit_string(json, "comm", site->comm);
	emit_u64(json, "first_bytes", site->first_bytes);
	emit_u64(json, "last_bytes", site->last.bytes);
	emit_u64(json, "first_buffers", site->first_buffers);
	emit_u64(json, "last_buffers", site->last.buffers);
	emit_u64(json, "oldest_ns", site->last.oldest_ns);
	emit_string(json, "confidence", growth_confidence_name(growth_confidence(growth, site)));
	emit_close_object(json);
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

static void report_put_growth(struct report *report, const struct growth *growth)
{
	emit_open_object(&report->json, "growth");
	emit_u64(&report->json, "first_ns", growth->first_ns);
	emit_u64(&report->json, "last_ns", growth->last_ns);
	emit_u64(&report->json, "samples", growth->samples);
	emit_u64(&report->json, "site_count", growth->count);
	emit_open_array(&report->json, "sites");
	for (size_t i = 0; i < bits_min(growth->count, REPORT_GROWN_MAX); i++)
		report_put_grown(report, growth, &growth->sites[i]);
	emit_close_array(&report->json);
	emit_close_object(&report->json);
}

static void report_put_look(struct emit *json, bool is_known, uint64_t value)
{
	if (is_known)
		emit_u64(json, NULL, value);
	else
		emit_null(json, NULL);
}

static void report_put_space(struct emit *json, const struct report_space *space, uint32_t looks)
{
	emit_open_object(json, NULL);
	emit_u64(json, "pid", space->process.pid);
	emit_string(json, "comm", space->comm);
	emit_u64(json, "device", space->device);
	emit_string(json, "type", types_name(space->type));
	emit_u64(json, "size", space->size);
	emit_open_array(json, "used");
	for (uint32_t i = 0; i < looks; i++)
		report_put_look(json, space->looks[i].is_known, space->looks[i].used);
	emit_close_array(json);
	emit_open_array(json, "free");
	for (uint32_t i = 0; i < looks; i++)
		report_put_look(json, space->looks[i].is_known, space->looks[i].free);
	emit_close_array(json);
	emit_open_array(json, "largest");
	for (uint32_t i = 0; i < looks; i++)
		report_put_look(json, space->looks[i].is_known, space->looks[i].largest);
	emit_close_array(json);
	emit_close_object(json);
}

static void report_put_spaces(struct report *report, const struct report_moments *moments)
{
	struct emit *json = &report->json;

	emit_open_object(json, "fragmentation");
	emit_open_array(json, "times_ns");
	for (uint32_t i = 0; i < moments->looks; i++)
		emit_u64(json, NULL, moments->times_ns[i]);
	emit_close_array(json);
	emit_open_array(json, "spaces");
	for (size_t i = 0; i < bits_min(moments->count, REPORT_SPACES_MAX); i++)
		report_put_space(json, &moments->spaces[i], moments->looks);
	emit_close_array(json);
	emit_close_object(json);
}

int report_put_moments(struct report *report)
{
	CLEANUP(report_moments_deinit)
	struct report_moments moments = {.growth = {.keeps_ended = true}};
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
	report_put_growth(report, &moments.growth);
	report_put_spaces(report, &moments);
	return 0;
}
