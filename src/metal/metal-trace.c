/* SPDX-License-Identifier: Apache-2.0 */

/* Traces and their ranges, which are sorted when the capture ends. */

#include "metal/metal-trace.h"

#include <stdlib.h>

#include "base/bits.h"

/* A capture of a whole model has a few thousand; further ones are left out. */
#define METAL_TRACE_RANGES_MAX 65536u

struct metal_trace {
	const void *device;
	struct metal_trace *next;
	struct metal_trace_range *ranges; /* owned */
	size_t count;
	size_t capacity;
	uint32_t id;
	bool is_open; /* being captured */
};

static struct metal_trace *metal_traces; /* the newest first */

static void metal_trace_free(struct metal_trace *trace)
{
	free(trace->ranges);
	free(trace);
}

/* Frees those that are not wanted any more. */
static void metal_trace_drop(bool (*is_wanted)(const struct metal_trace *trace, const void *device,
					       uint32_t id),
			     const void *device, uint32_t id)
{
	struct metal_trace **link = &metal_traces;

	while (*link) {
		struct metal_trace *trace = *link;

		if (is_wanted(trace, device, id)) {
			link = &trace->next;
		} else {
			*link = trace->next;
			metal_trace_free(trace);
		}
	}
}

void metal_trace_begin(const void *device)
{
	struct metal_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return;
	trace->device = device;
	trace->is_open = true;
	trace->next = metal_traces;
	metal_traces = trace;
}

bool metal_trace_is_any(void)
{
	return metal_traces != NULL;
}

bool metal_trace_is_open(const void *device)
{
	for (const struct metal_trace *trace = metal_traces; trace; trace = trace->next) {
		if (trace->is_open && trace->device == device)
			return true;
	}
	return false;
}

static bool metal_trace_grow(struct metal_trace *trace)
{
	size_t wanted = trace->capacity ? trace->capacity * 2 : 64;
	struct metal_trace_range *ranges;

	if (trace->count < trace->capacity)
		return true;
	if (wanted > METAL_TRACE_RANGES_MAX)
		return false;
	ranges = realloc(trace->ranges, wanted * sizeof(*ranges));
	if (!ranges)
		return false;
	trace->ranges = ranges;
	trace->capacity = wanted;
	return true;
}

/* Several command queues may be captured at once: whose it is cannot be told, so it is everyone's. */
void metal_trace_add(const void *device, const struct metal_trace_range *range)
{
	for (struct metal_trace *trace = metal_traces; trace; trace = trace->next) {
		if (trace->is_open && trace->device == device && metal_trace_grow(trace))
			trace->ranges[trace->count++] = *range;
	}
}

/* Which memory it is in. */
static int metal_trace_compare_memory(const struct metal_trace_range *a,
				      const struct metal_trace_range *b)
{
	if (a->space != b->space)
		return bits_compare((uintptr_t)a->space, (uintptr_t)b->space);
	return bits_compare(a->type, b->type);
}

static int metal_trace_compare(const void *left, const void *right)
{
	const struct metal_trace_range *a = left, *b = right;
	int order = metal_trace_compare_memory(a, b);

	if (order != 0)
		return order;
	if (a->start != b->start)
		return bits_compare(a->start, b->start);
	return bits_compare(a->end, b->end);
}

/* Each range once; the same ones are given out again and again. */
static void metal_trace_sort(struct metal_trace *trace)
{
	size_t kept = 0;

	if (trace->count)
		qsort(trace->ranges, trace->count, sizeof(*trace->ranges), metal_trace_compare);
	for (size_t i = 0; i < trace->count; i++) {
		struct metal_trace_range *range = &trace->ranges[i];
		const struct metal_trace_range *last = kept ? &trace->ranges[kept - 1] : NULL;

		if (last && metal_trace_compare(last, range) == 0)
			continue;
		range->reach = range->end;
		if (last && metal_trace_compare_memory(last, range) == 0 &&
		    last->reach > range->reach)
			range->reach = last->reach;
		trace->ranges[kept++] = *range;
	}
	trace->count = kept;
}

/* The capture that has been open for longest: with several, they are nearly the same. */
void metal_trace_end(const void *device, uint32_t id)
{
	struct metal_trace *ended = NULL;

	for (struct metal_trace *trace = metal_traces; trace; trace = trace->next) {
		if (trace->is_open && trace->device == device)
			ended = trace;
	}
	if (!ended)
		return;
	ended->is_open = false;
	ended->id = id;
	metal_trace_sort(ended);
}

static bool metal_trace_is_other(const struct metal_trace *trace, const void *device, uint32_t id)
{
	return trace->is_open || trace->device != device || trace->id != id;
}

void metal_trace_release(const void *device, uint32_t id)
{
	metal_trace_drop(metal_trace_is_other, device, id);
}

/* The first one in that memory that may reach beyond the start of @range. */
static size_t metal_trace_first(const struct metal_trace *trace,
				const struct metal_trace_range *range)
{
	size_t low = 0, high = trace->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct metal_trace_range *at = &trace->ranges[middle];
		int order = metal_trace_compare_memory(at, range);

		if (order < 0 || (order == 0 && at->reach <= range->start))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct metal_trace_range *metal_trace_find_in(const struct metal_trace *trace,
							   const struct metal_trace_range *range)
{
	for (size_t i = metal_trace_first(trace, range); i < trace->count; i++) {
		const struct metal_trace_range *at = &trace->ranges[i];

		if (metal_trace_compare_memory(at, range) != 0 || at->start >= range->end)
			return NULL;
		if (!at->is_gone && at->end > range->start)
			return at;
	}
	return NULL;
}

const struct metal_trace_range *metal_trace_find(const struct metal_trace_range *range,
						 uint32_t *ret_id)
{
	for (const struct metal_trace *trace = metal_traces; trace; trace = trace->next) {
		const struct metal_trace_range *found =
			trace->is_open ? NULL : metal_trace_find_in(trace, range);

		if (found) {
			*ret_id = trace->id;
			return found;
		}
	}
	return NULL;
}

void metal_trace_clear(const struct metal_space *space)
{
	for (struct metal_trace *trace = metal_traces; trace; trace = trace->next) {
		for (size_t i = 0; i < trace->count; i++) {
			if (trace->ranges[i].space == space)
				trace->ranges[i].is_gone = true;
		}
	}
}

static bool metal_trace_is_elsewhere(const struct metal_trace *trace, const void *device,
				     uint32_t id)
{
	(void)id; /* all of that device */
	return device && trace->device != device;
}

void metal_trace_close(const void *device)
{
	metal_trace_drop(metal_trace_is_elsewhere, device, 0);
}

void metal_trace_forget(void)
{
	metal_traces = NULL; /* the parent's */
}
