/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For Firefox Profiler: its processed format, version 48, which later ones convert. A type of memory of a
 * process is a thread with its allocations (nativeAllocations) and a counter of what is in use. The format
 * has a list for each column, so all events are kept until the end.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/emit.h"
#include "book/format/layout.h"
#include "cli/export/format/export-firefox.h"
#include "cli/export/format/export-form.h"
#include "model/types.h"

static int firefox_begin(struct export_target *target, void **ret_state)
{
	struct firefox *firefox = calloc(1, sizeof(*firefox));

	*ret_state = firefox;
	if (!firefox)
		return -ENOMEM;
	firefox->target = target;
	return 0;
}

static int firefox_find_thread(struct firefox *firefox, const struct export_event *event,
			       struct firefox_thread **ret_thread)
{
	uint32_t before = firefox->index.count, number;
	struct firefox_thread *threads = array_grow(firefox->threads, &firefox->capacity,
						    (size_t)before + 1, sizeof(*threads));
	int r;

	if (!threads)
		return -ENOMEM;
	firefox->threads = threads;
	r = map_add(&firefox->index, event->process, event->type, &number);
	if (r < 0)
		return r;
	*ret_thread = &threads[number - 1];
	if (firefox->index.count > before)
		**ret_thread =
			(struct firefox_thread){.process = event->process, .type = event->type};
	return 0;
}

static int firefox_event(void *state, const struct export_event *event)
{
	struct firefox *firefox = state;
	struct firefox_thread *thread;
	struct firefox_row row = {.time_ns = event->time_ns,
				  .bytes = event->bytes,
				  .is_free = event->op == BOOK_OP_FREE,
				  .thread = event->thread};
	struct firefox_row *rows;
	int r;

	if (event->kind != EXPORT_CALL || event->bytes == 0 ||
	    (event->op != BOOK_OP_ALLOC && !row.is_free))
		return 0;
	if (firefox->rows++ >= firefox->target->rows_max) {
		snprintf(firefox->target->problem, sizeof(firefox->target->problem),
			 "more than %" PRIu64 " events, which nobody could open; choose some with "
			 "--pid, --device, --type or --at, or allow more with --rows",
			 firefox->target->rows_max);
		return -E2BIG;
	}
	r = firefox_find_thread(firefox, event, &thread);
	/* A buffer is known by a number: addresses of devices and spaces are not apart. */
	if (r == 0)
		r = map_add(&firefox->addresses, event->address,
			    (uint64_t)event->device << 32 | event->space, &row.buffer);
	if (r == 0)
		r = export_stacks_site(&thread->stacks, 0, event->birth, event->name, &row.node);
	if (r < 0)
		return r;
	rows = array_grow(thread->rows, &thread->capacity, thread->count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	thread->rows = rows;
	rows[thread->count++] = row;
	return 0;
}

static void firefox_free(void *state)
{
	struct firefox *firefox = state;

	if (!firefox)
		return;
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
