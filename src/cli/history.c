/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem history: the life of one address, oldest event first. */

#include "model/history.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/history.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "book/read/view.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/history-daemon.h"
#include "model/filter.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "recording/read/recording.h"
#include "source/books/address-history.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/daemon-client/daemon-client.h"

#define HISTORY_INDENT "          "

struct history_options {
	struct query query;
	struct options_from from;
	bool json;
	bool stacks;
};

/* What the old server called each event. */
static const char *history_word(uint32_t op)
{
	switch (op) {
	case BOOK_OP_ALLOC:
	case BOOK_OP_REF:
		return "ALLOC";
	case BOOK_OP_FREE:
	case BOOK_OP_UNREF:
		return "FREE";
	case BOOK_OP_UNKNOWN_FREE:
		return "UNKNOWN FREE";
	case BOOK_OP_DOUBLE_FREE:
		return "DOUBLE FREE";
	case BOOK_OP_LOST_ALLOC:
		return "ALLOC (not recorded)";
	case BOOK_OP_OVERFLOW_FREE:
		return "FREE (of what was not recorded)";
	case BOOK_OP_HOOKED:
		return "HOOKED";
	case BOOK_OP_FAILED:
		return "FAILED ALLOC";
	default:
		return "EVENT";
	}
}

/* What a person should notice about event @i. */
static const char *history_remark(const struct history_life *life, size_t i, bool alive)
{
	const struct history_event *event = &life->events[i];
	bool holds = event->op == BOOK_OP_ALLOC || event->op == BOOK_OP_REF ||
		     event->op == BOOK_OP_UNREF;

	/* Only the last event that changes the buffer's state gets this remark. */
	for (size_t k = i + 1; k < life->count && holds; k++)
		holds = life->events[k].op > BOOK_OP_FREE;
	if (holds && life->live)
		return alive ? "  \u2190 Still allocated!" : "  \u2190 Leaked!";
	if (event->op == BOOK_OP_DOUBLE_FREE)
		return "  \u2190 Already freed!";
	if (event->size_change && event->op == BOOK_OP_ALLOC)
		return "  \u2190 Size changed!";
	return event->reused ? "  \u2190 Address reused!" : "";
}

/* Whether another life has the same title line. */
static bool history_is_ambiguous(const struct history *history, const struct history_life *life)
{
	size_t same = 0;

	for (size_t i = 0; i < history->count; i++)
		same += history->lives[i].device == life->device;
	return same > 1;
}

/* When it happened, by the local clock, and the buffer's name. */
static void history_print_when(const struct history_event *event)
{
	time_t seconds = (time_t)(event->time_ns / NS_PER_S);
	char when[32];
	struct tm local;

	if (event->time_ns && localtime_r(&seconds, &local) &&
	    strftime(when, sizeof(when), "%FT%T", &local) > 0)
		printf(" time=%s.%06u", when, (unsigned int)(event->time_ns % NS_PER_S / 1000));
	if (event->name) {
		printf(" name=\"");
		text_put(stdout, event->name);
		putchar('"');
	}
}

static void history_print_life(const struct history *history, const struct snapshot *snapshot,
			       const struct history_life *life, bool stacks)
{
	const struct snapshot_process *process = &snapshot->processes[life->process];

	printf("Buffer 0x%" PRIx64 " on device %" PRIu32 ":", life->address, life->device);
	if (history_is_ambiguous(history, life)) {
		printf(" %s of pid %" PRIu32 " (", types_name(life->type), process->id.pid);
		text_put(stdout, process->comm);
		putchar(')');
	}
	printf("\n  History (allocs=%" PRIu64 " frees=%" PRIu64 "):\n", life->allocs, life->frees);
	for (size_t i = 0; i < life->count; i++) {
		const struct history_event *event = &life->events[i];

		printf("    %s size=%" PRIu64 " pid=%" PRIu32 " ref=%" PRIu32,
		       history_word(event->op), event->size, process->id.pid, event->refs);
		history_print_when(event);
		puts(history_remark(life, i, process->alive));
		if (stacks)
			session_print_stack(stdout, event->stack, HISTORY_INDENT);
	}
}

static void history_print(const struct history *history, const struct snapshot *snapshot,
			  const struct history_options *options,
			  const struct history_daemon *daemon)
{
	bool remembered = false;

	for (size_t i = 0; i < history->count; i++) {
		if (i > 0)
			putchar('\n');
		history_print_life(history, snapshot, &history->lives[i], options->stacks);
	}
	if (daemon->past)
		remembered = history_daemon_print(daemon->past, snapshot, options->query.address,
						  options->stacks);
	if (history->count == 0 && !remembered)
		printf("nothing is known of address 0x%" PRIx64 "\n", options->query.address);
	session_print_notes(snapshot);
}

static int history_collect(struct history *history, const struct history_options *options,
			   struct session *session, struct snapshot *snapshot)
{
	CLEANUP(snapshot_cleanup) struct snapshot *totals = NULL;
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	struct snapshot_request request = {.buffers = true, .filter = options->query.filter};
	static const struct snapshot_request everything = {0};
	struct scan *scan = session_scan(session);
	int r = session_take(session, &everything, &totals);

	request.totals = totals;
	if (options->json || options->stacks)
		request.namer = session_namer(session);
	for (size_t i = 0; r == 0 && i < scan->count; i++) {
		if (!scan->books[i]->gone)
			r = address_history_collect(scan->books[i], options->query.address,
						    &request, &view, snapshot, history);
	}
	if (session_recording(session)) {
		recording_tell(session_recording(session), snapshot);
	} else {
		daemon_client_note(session_remote(session), &request, snapshot);
		book_note_scan(scan, snapshot);
		book_note_nothing(scan, daemon_client_count(session_remote(session)), snapshot);
	}
	snapshot_take_joins(totals, snapshot);
	return r == 0 ? snapshot_finish(snapshot) : r;
}

static int history_parse(int argc, char **argv, struct history_options *ret_options)
{
	const struct options_item items[] = {
		{'d', "device", "DEV|UID", "only on this device; may be given again"},
		{0, "pid", "PID", "only of this process"},
		{0, "type", "TYPE", "only of this type"},
		{0, "stacks", NULL, "with the call stack of each event", &ret_options->stacks,
		 NULL},
		OPTIONS_FROM(&ret_options->from),
		{0, "json", NULL, "as JSON, always with stacks", &ret_options->json, NULL},
	};
	const struct options options = {
		.command = "history",
		.shows_sizes = true,
		.arguments = "ADDRESS",
		.summary =
			"The life of one address (decimal, or hexadecimal with 0x), oldest first.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &ret_options->query,
		.answer = &answers[ANSWERS_HISTORY],
	};
	int count, r = options_parse(&options, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 1)
		return options_count(&options, "one address such as 0x1000 or 4096", count);
	if (query_set(&ret_options->query, query_find("address", QUERY_ADDRESS), argv[0]) < 0)
		return options_mistake("history",
				       "expects an address such as 0x1000 or 4096, got \"%s\"",
				       argv[0]);
	return 0;
}

static void history_write(const struct history *history, const struct snapshot *snapshot,
			  const struct history_options *options,
			  const struct history_daemon *daemon)
{
	struct emit writer = EMIT_INIT(stdout);

	if (options->json) {
		const struct history_answer answer = {
			.snapshot = snapshot,
			.history = history,
			.past = daemon->past,
			.address = options->query.address,
		};

		document_put(&writer, &history_document, snapshot, &answer);
	} else {
		history_print(history, snapshot, options, daemon);
	}
}

static int history_run(int argc, char **argv)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(history_deinit) struct history history = HISTORY_NULL;
	CLEANUP(history_daemon_deinit) struct history_daemon daemon = {.past = NULL};
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct history_options options = {.json = false};
	int r = history_parse(argc, argv, &options);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = session_start(&session, "history", &options.from, &options.query.filter);
	if (r != 0)
		return r;
	snapshot = must_have(snapshot_new(clock_ns(CLOCK_REALTIME)));
	r = history_collect(&history, &options, session, snapshot);
	if (r == 0 && !session_recording(session))
		r = history_daemon_ask(session_remote(session), &options.query, snapshot, &daemon);
	if (r < 0)
		return output_fail("history", "cannot look at processes", r);
	snapshot->time_ns = session_now(session);
	if (!options.json)
		session_print_moment(session);
	history_write(&history, snapshot, &options, &daemon);
	return output_finish();
}

const struct command history_command = {
	.name = "history",
	.summary = "the life of one address",
	.run = history_run,
};
