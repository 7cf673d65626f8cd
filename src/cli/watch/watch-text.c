/* SPDX-License-Identifier: Apache-2.0 */

/* Events for people, for "ttmem watch": one line each, time first. */

#include "cli/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/common/session.h"
#include "model/types.h"
#include "source/books/scan.h"

#define WATCH_TEXT_INDENT "               "

/* "12:34:56.789 python[1234]" */
static void watch_text_begin(const struct follow *follow, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	char when[16] = "", comm[WATCH_TEXT];
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(when, sizeof(when), "%T", &local);
	printf("%s.%03" PRIu64 " ", when, time_ns / NS_PER_MS % 1000);
	text_put(stdout, watch_comm(follow, comm));
	printf("[%" PRIu32 "]", follow->book->owner.id.pid);
}

static void watch_text_quoted(const char *before, const char *text, const char *after)
{
	if (!text)
		return;
	fputs(before, stdout);
	text_put(stdout, text);
	fputs(after, stdout);
}

static void watch_text_event(const struct watch *watch, const struct follow_event *event)
{
	const struct book_record *record = &event->event.record;
	uint32_t op = event->event.op_slot & BOOK_OP_MASK;
	const char *type = types_name(book_meta_type(record->meta));
	const char *word = types_op_name(op);
	char text[WATCH_TEXT], number[TEXT_NUMBER_SIZE];

	watch_text_begin(event->follow, event->time_ns);
	printf(" device %" PRIu32 ": %s %s", event->follow->shards[event->shard].device,
	       word ? word : "event", type ? type : "?");
	if (op == BOOK_OP_PEAK_RESET) {
		putchar('\n');
		return;
	}
	if (op != BOOK_OP_FAILED && op != BOOK_OP_HOOKED)
		printf(watch->decimal ? " %" PRIu64 : " 0x%" PRIx64, record->address);
	if (record->size)
		printf(", %s", text_size(record->size, number));
	if (op == BOOK_OP_REF || op == BOOK_OP_UNREF)
		printf(", %" PRIu32 " refs", book_meta_refs(record->meta));
	if (event->event.op_slot & BOOK_OP_RESIZE)
		printf(", size changes");
	watch_text_quoted(", \"", watch_string(event->follow, record->name, text), "\"");
	watch_text_quoted(", in ", watch_string(event->follow, record->phase, text), "");
	putchar('\n');
	session_print_stack(stdout, watch_stack(watch, event), WATCH_TEXT_INDENT);
}

static void watch_text_missed(const struct watch *watch, const struct follow_event *event)
{
	(void)watch;
	watch_text_begin(event->follow, event->time_ns);
	printf(" device %" PRIu32 ": %" PRIu64 " event%s missed\n",
	       event->follow->shards[event->shard].device, event->missed,
	       event->missed == 1 ? "" : "s");
}

static void watch_text_started(const struct watch *watch, const struct follow *follow)
{
	(void)watch;
	watch_text_begin(follow, clock_ns(CLOCK_REALTIME));
	puts(" is being watched");
}

static void watch_text_ended(const struct watch *watch, const struct follow *follow)
{
	char number[TEXT_NUMBER_SIZE];
	uint64_t bytes, buffers;

	(void)watch;
	watch_totals(follow, BOOK_TYPES, &bytes, &buffers);
	watch_text_begin(follow, clock_ns(CLOCK_REALTIME));
	printf(" has ended and left %" PRIu64 " buffer%s, %s\n", buffers, buffers == 1 ? "" : "s",
	       text_size(bytes, number));
}

const struct watch_form watch_text = {
	.name = "text",
	.event = watch_text_event,
	.missed = watch_text_missed,
	.started = watch_text_started,
	.ended = watch_text_ended,
};
