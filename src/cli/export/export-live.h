/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is live in a course of events, to find out what a gap has changed. */

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "cli/export/format/export-form.h"

struct export_live_entry;

struct export_live {
	struct map index; /* of process, device, type, space and address */
	struct export_live_entry *entries;
	size_t capacity;
	uint32_t round; /* of comparison */
};

#define EXPORT_LIVE_NULL ((struct export_live){.entries = NULL})

typedef void export_live_fn(void *context, const struct export_event *event);

void export_live_deinit(struct export_live *live);

/* An allocation or a free; other events change nothing. */
void export_live_apply(struct export_live *live, const struct export_event *event);

/*
 * Compares with what is live after a gap: first _begin(), then _seen() for each live buffer, as an
 * allocation, then _end() for what is no more. They apply and pass on the events that are missing, with the
 * time and number of what was seen, or of the gap; what is in use is for the caller to say.
 */
void export_live_begin(struct export_live *live);
void export_live_seen(struct export_live *live, const struct export_event *alloc,
		      export_live_fn *fn, void *context);
void export_live_end(struct export_live *live, const struct export_event *gap, export_live_fn *fn,
		     void *context);
