/* SPDX-License-Identifier: Apache-2.0 */

/*
 * "ttmem watch --format seed": the lines of the old allocation server. What that server never
 * reported goes to stderr.
 */

#include "cli/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <ttmem/ttmem.h>

#include "answers/seed-lines.h"
#include "source/books/scan.h"

/* Total of all processes on the device, as the old server counted. */
static uint64_t watch_seed_total(const struct watch *watch, uint32_t device, uint32_t type)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < watch->count; i++) {
		const struct follow *follow = watch->follows[i];

		for (size_t k = 0; k < follow->count; k++) {
			if (follow->shards[k].device == device)
				bytes += follow->shards[k].hot[type].bytes;
		}
	}
	return bytes;
}

static void watch_seed_event(const struct watch *watch, const struct follow_event *event)
{
	const struct book_record *record = &event->event.record;
	struct seed_lines_event line = {
		.event = &event->event,
		.pid = event->follow->book->owner.id.pid,
		.device = event->follow->shards[event->shard].device,
		.decimal = watch->decimal,
	};
	char text[SEED_LINES_SIZE];

	if (seed_lines_has_total(&event->event)) {
		line.total = watch_seed_total(watch, line.device, book_meta_type(record->meta));
		line.kernel_sort =
			reader_shape(&event->follow->book->reader, record->shape).kernel_sort;
	}
	if (seed_lines_event(&line, text))
		fputs(text, stdout);
}

static void watch_seed_missed(const struct watch *watch, const struct follow_event *event)
{
	(void)watch;
	fprintf(stderr, "note: pid %" PRIu32 ", device %" PRIu32 ": %" PRIu64 " event%s missed\n",
		event->follow->book->owner.id.pid, event->follow->shards[event->shard].device,
		event->missed, event->missed == 1 ? "" : "s");
}

static void watch_seed_started(const struct watch *watch, const struct follow *follow)
{
	(void)watch;
	(void)follow; /* the old server printed nothing either */
}

static void watch_seed_ended(const struct watch *watch, const struct follow *follow)
{
	struct seed_lines_dead dead = {.pid = follow->book->owner.id.pid};
	char text[SEED_LINES_SIZE];
	uint64_t bytes, buffers;

	(void)watch;
	watch_totals(follow, BOOK_TYPES, &bytes, &buffers);
	if (buffers == 0)
		return;
	watch_totals(follow, TTMEM_CB, &dead.cb_bytes, &dead.cbs);
	watch_totals(follow, TTMEM_KERNEL, &dead.kernel_bytes, &dead.kernels);
	dead.bytes = bytes - dead.cb_bytes - dead.kernel_bytes;
	dead.buffers = buffers - dead.cbs - dead.kernels;
	seed_lines_dead(&dead, text);
	fputs(text, stdout);
}

const struct watch_form watch_seed = {
	.name = "seed",
	.event = watch_seed_event,
	.missed = watch_seed_missed,
	.started = watch_seed_started,
	.ended = watch_seed_ended,
};
