/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When each thread was in which phase. Events tell it: a phase begins with a thread's first allocation in it
 * and lasts until the thread allocates in another one, or in none; the last one until its last allocation.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct export_event;

struct export_phase {
	uint32_t process;
	uint32_t thread;
	const char *name; /* NULL = in none */
	uint64_t begin_ns, end_ns;
};

struct export_phases {
	struct map index;          /* of threads */
	struct export_phase *list; /* the current one of each */
	size_t capacity;
};

#define EXPORT_PHASES_NULL ((struct export_phases){.list = NULL})

typedef void export_phase_fn(void *context, const struct export_phase *phase);

/* Passes on the phase that an event ends. */
void export_phases_event(struct export_phases *phases, const struct export_event *event,
			 export_phase_fn *fn, void *context);

/* Passes on those that go on. */
void export_phases_end(struct export_phases *phases, export_phase_fn *fn, void *context);

void export_phases_deinit(struct export_phases *phases);
