/* SPDX-License-Identifier: Apache-2.0 */

/* Entries stay when their buffer is freed: allocators use the same addresses again. */

#include "cli/export/export-live.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "book/format/layout.h"

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

/* NULL: no memory. */
static struct export_live_entry *live_find(struct export_live *live,
					   const struct export_event *event)
{
	uint64_t where = (uint64_t)event->process << 32 | (uint64_t)(event->device & 0xfff) << 20 |
			 (uint64_t)(event->space & 0xffff) << 4 | event->type;
	uint32_t before = live->index.count, number;
	struct export_live_entry *entries =
		array_grow(live->entries, &live->capacity, (size_t)before + 1, sizeof(*entries));

	if (!entries)
		return NULL;
	live->entries = entries;
	if (map_add(&live->index, event->address, where, &number) < 0)
		return NULL;
	if (live->index.count > before)
		entries[before] = (struct export_live_entry){.is_live = false};
	return &entries[number - 1];
}

int export_live_apply(struct export_live *live, const struct export_event *event)
{
	struct export_live_entry *entry;

	if (event->kind != EXPORT_CALL || (event->op != BOOK_OP_ALLOC && event->op != BOOK_OP_FREE))
		return 0;
	entry = live_find(live, event);
	if (!entry)
		return -ENOMEM;
	entry->is_live = event->op == BOOK_OP_ALLOC;
	entry->round = live->round;
	if (entry->is_live)
		entry->alloc = *event;
	return 0;
}

void export_live_begin(struct export_live *live)
{
	live->round++;
}

/* Ends an entry's buffer, at the time of @now. */
static int live_free(struct export_live_entry *entry, const struct export_event *now,
		     export_live_fn *fn, void *context)
{
	struct export_event event = entry->alloc;

	event.op = BOOK_OP_FREE;
	event.refs = 0;
	event.stack = NULL; /* nobody saw it */
	event.time_ns = now->time_ns;
	event.number = now->number;
	entry->is_live = false;
	return fn(context, &event);
}

int export_live_seen(struct export_live *live, const struct export_event *alloc, export_live_fn *fn,
		     void *context)
{
	struct export_live_entry *entry = live_find(live, alloc);
	int r = 0;

	if (!entry)
		return -ENOMEM;
	entry->round = live->round;
	if (entry->is_live && entry->alloc.size == alloc->size &&
	    entry->alloc.birth == alloc->birth)
		return 0;
	if (entry->is_live)
		r = live_free(entry, alloc, fn, context);
	if (r == 0)
		r = export_live_apply(live, alloc);
	return r == 0 ? fn(context, alloc) : r;
}

int export_live_end(struct export_live *live, const struct export_event *gap, export_live_fn *fn,
		    void *context)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < live->index.count; i++) {
		struct export_live_entry *entry = &live->entries[i];

		if (entry->is_live && entry->round != live->round &&
		    entry->alloc.process == gap->process && entry->alloc.device == gap->device)
			r = live_free(entry, gap, fn, context);
	}
	return r;
}
