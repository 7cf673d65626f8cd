/* SPDX-License-Identifier: Apache-2.0 */

/* Entries stay when their buffer is freed: allocators use the same addresses again. */

#include "cli/export/export-live.h"

#include <stdbool.h>
#include <stdlib.h>

#include "book/format/layout.h"
#include "cli/common/must.h"

struct export_live_entry {
	struct export_event alloc;
	bool is_live;
	uint32_t round; /* in which it was seen last */
};

void export_live_deinit(struct export_live *live)
{
	map_deinit(&live->index);
	free(live->entries);
	*live = EXPORT_LIVE_NULL;
}

static struct export_live_entry *live_find(struct export_live *live,
					   const struct export_event *event)
{
	uint64_t where = (uint64_t)event->process << 32 | (uint64_t)(event->device & 0xfff) << 20 |
			 (uint64_t)(event->space & 0xffff) << 4 | event->type;
	uint32_t before = live->index.count;
	uint32_t number = must_number(&live->index, event->address, where);

	if (number > before) {
		must_grow(live->entries, &live->capacity, number);
		live->entries[before] = (struct export_live_entry){.is_live = false};
	}
	return &live->entries[number - 1];
}

void export_live_apply(struct export_live *live, const struct export_event *event)
{
	struct export_live_entry *entry;

	if (event->kind != EXPORT_CALL || (event->op != BOOK_OP_ALLOC && event->op != BOOK_OP_FREE))
		return;
	entry = live_find(live, event);
	entry->is_live = event->op == BOOK_OP_ALLOC;
	entry->round = live->round;
	if (entry->is_live)
		entry->alloc = *event;
}

void export_live_begin(struct export_live *live)
{
	live->round++;
}

/* Ends an entry's buffer, at the time of @now. */
static void live_free(struct export_live_entry *entry, const struct export_event *now,
		      export_live_fn *fn, void *context)
{
	struct export_event event = entry->alloc;

	event.op = BOOK_OP_FREE;
	event.refs = 0;
	event.stack = NULL; /* nobody saw it */
	event.time_ns = now->time_ns;
	event.number = now->number;
	entry->is_live = false;
	fn(context, &event);
}

void export_live_seen(struct export_live *live, const struct export_event *alloc,
		      export_live_fn *fn, void *context)
{
	struct export_live_entry *entry = live_find(live, alloc);

	entry->round = live->round;
	if (entry->is_live && entry->alloc.size == alloc->size &&
	    entry->alloc.birth == alloc->birth)
		return;
	if (entry->is_live)
		live_free(entry, alloc, fn, context);
	export_live_apply(live, alloc);
	fn(context, alloc);
}

void export_live_end(struct export_live *live, const struct export_event *gap, export_live_fn *fn,
		     void *context)
{
	for (uint32_t i = 0; i < live->index.count; i++) {
		struct export_live_entry *entry = &live->entries[i];

		if (entry->is_live && entry->round != live->round &&
		    entry->alloc.process == gap->process && entry->alloc.device == gap->device)
			live_free(entry, gap, fn, context);
	}
}
