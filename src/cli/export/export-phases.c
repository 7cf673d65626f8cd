/* SPDX-License-Identifier: Apache-2.0 */

/* A free tells the phase in which its buffer was allocated, so only allocations count. */

#include "cli/export/export-phases.h"

#include <stdlib.h>

#include "book/format/layout.h"
#include "cli/common/must.h"
#include "cli/export/format/export-form.h"

static struct export_phase *phases_of(struct export_phases *phases,
				      const struct export_event *event)
{
	uint32_t before = phases->index.count;
	uint32_t number = must_number(&phases->index, event->process, event->thread);

	if (number > before) {
		must_grow(phases->list, &phases->capacity, number);
		phases->list[before] =
			(struct export_phase){.process = event->process, .thread = event->thread};
	}
	return &phases->list[number - 1];
}

void export_phases_event(struct export_phases *phases, const struct export_event *event,
			 export_phase_fn *fn, void *context)
{
	struct export_phase *phase;

	/* What was live before, or became so in a gap, was allocated at another time. */
	if (event->kind != EXPORT_CALL || event->number == 0 || event->op != BOOK_OP_ALLOC)
		return;
	phase = phases_of(phases, event);
	phase->end_ns = event->time_ns;
	if (phase->name == event->phase)
		return;
	if (phase->name)
		fn(context, phase);
	phase->name = event->phase;
	phase->begin_ns = event->time_ns;
}

void export_phases_end(struct export_phases *phases, export_phase_fn *fn, void *context)
{
	for (uint32_t i = 0; i < phases->index.count; i++) {
		if (phases->list[i].name)
			fn(context, &phases->list[i]);
	}
}

void export_phases_deinit(struct export_phases *phases)
{
	map_deinit(&phases->index);
	free(phases->list);
	*phases = EXPORT_PHASES_NULL;
}
