/* SPDX-License-Identifier: Apache-2.0 */

/* A free tells the phase in which its buffer was allocated, so only allocations count. */

#include "cli/export/export-phases.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "book/format/layout.h"
#include "cli/export/format/export-form.h"

/* NULL: no memory. */
static struct export_phase *phases_of(struct export_phases *phases,
				      const struct export_event *event)
{
	uint32_t before = phases->index.count, number;
	struct export_phase *list =
		array_grow(phases->list, &phases->capacity, (size_t)before + 1, sizeof(*list));

	if (!list)
		return NULL;
	phases->list = list;
	if (map_add(&phases->index, event->process, event->thread, &number) < 0)
		return NULL;
	if (phases->index.count > before)
		list[before] =
			(struct export_phase){.process = event->process, .thread = event->thread};
	return &list[number - 1];
}

int export_phases_event(struct export_phases *phases, const struct export_event *event,
			export_phase_fn *fn, void *context)
{
	struct export_phase *phase;
	int r = 0;

	/* What was live before, or became so in a gap, was allocated at another time. */
	if (event->kind != EXPORT_CALL || event->number == 0 || event->op != BOOK_OP_ALLOC)
		return 0;
	phase = phases_of(phases, event);
	if (!phase)
		return -ENOMEM;
	phase->end_ns = event->time_ns;
	if (phase->name == event->phase)
		return 0;
	if (phase->name)
		r = fn(context, phase);
	phase->name = event->phase;
	phase->begin_ns = event->time_ns;
	return r;
}

int export_phases_end(struct export_phases *phases, export_phase_fn *fn, void *context)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < phases->index.count; i++) {
		if (phases->list[i].name)
			r = fn(context, &phases->list[i]);
	}
	return r;
}

void export_phases_deinit(struct export_phases *phases)
{
	map_deinit(&phases->index);
	free(phases->list);
	*phases = EXPORT_PHASES_NULL;
}
