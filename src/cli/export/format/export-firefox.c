/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For Firefox Profiler: its processed format, version 48, which later ones convert. A type of memory of a
 * process is a thread with its allocations (nativeAllocations) and a counter of what is in use. The format
 * has a list for each column, so all events are kept until the end.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/emit.h"
#include "book/format/layout.h"
#include "cli/common/must.h"
#include "cli/export/format/export-firefox.h"
#include "cli/export/format/export-form.h"
#include "model/types.h"

static void *firefox_begin(struct export_target *target)
{
	struct firefox *firefox = must_alloc(1, sizeof(*firefox));

	firefox->target = target;
	return firefox;
}

static struct firefox_thread *firefox_find_thread(struct firefox *firefox,
						  const struct export_event *event)
{
	uint32_t before = firefox->index.count;
	uint32_t number = must_number(&firefox->index, event->process, event->type);

	if (number > before) {
		must_grow(firefox->threads, &firefox->capacity, number);
		firefox->threads[before] =
			(struct firefox_thread){.process = event->process, .type = event->type};
	}
	return &firefox->threads[number - 1];
}

static void firefox_event(void *state, const struct export_event *event)
{
	struct firefox *firefox = state;
	struct firefox_thread *thread;
	struct firefox_row row = {.time_ns = event->time_ns,
				  .bytes = event->bytes,
				  .is_free = event->op == BOOK_OP_FREE,
				  .thread = event->thread};

	if (event->kind != EXPORT_CALL || event->bytes == 0 ||
	    (event->op != BOOK_OP_ALLOC && !row.is_free))
		return;
	if (firefox->rows++ >= firefox->target->rows_max) {
		snprintf(firefox->target->problem, sizeof(firefox->target->problem),
			 "more than %" PRIu64 " events, which nobody could open; choose some with "
			 "--pid, --device, --type or --at, or allow more with --rows",
			 firefox->target->rows_max);
		return;
	}
	thread = firefox_find_thread(firefox, event);
	/* A buffer is known by a number: addresses of devices and spaces are not apart. */
	row.buffer = must_number(&firefox->addresses, event->address,
				 (uint64_t)event->device << 32 | event->space);
	row.node = export_stacks_site(&thread->stacks, 0, event->birth, event->name);
	must_grow(thread->rows, &thread->capacity, thread->count + 1);
	thread->rows[thread->count++] = row;
}

static void firefox_free(void *state)
{
	struct firefox *firefox = state;

	for (uint32_t i = 0; i < firefox->index.count; i++) {
		export_stacks_deinit(&firefox->threads[i].stacks);
		free(firefox->threads[i].rows);
	}
	map_deinit(&firefox->index);
	map_deinit(&firefox->addresses);
	free(firefox->threads);
	free(firefox);
}

const struct export_form export_firefox = {
	.name = "firefox",
	.is_course = true,
	.begin = firefox_begin,
	.event = firefox_event,
	.finish = firefox_finish,
	.free = firefox_free,
};
