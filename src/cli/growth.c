/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem growth: call sites of living processes whose bytes keep growing, seen over a few seconds. In a
 * recording those of processes that have ended count, too: at the end of a run they all have.
 */

#include "model/sites/growth.h"

#include <inttypes.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/growth.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/growth-daemon.h"
#include "model/query.h"
#include "model/sites/site-rows.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "recording/read/recording.h"

#define GROWTH_SAMPLES 5u
#define GROWTH_SECONDS 2u /* how long to look */
#define GROWTH_INDENT "              "
#define GROWTH_PLACE (2 * CALL_SITE_NAMES + 8) /* names and a frame */

/* The trends come from the daemon. */
static void growth_print_trends(const struct growth *growth)
{
	char before[TEXT_NUMBER_SIZE], now[TEXT_NUMBER_SIZE], time[TEXT_NUMBER_SIZE];
	char rate[TEXT_NUMBER_SIZE];

	for (size_t i = 0; i < growth->trend_count; i++) {
		const struct growth_trend *trend = &growth->trends[i];
		double per_hour = trend->per_second * 3600;

		printf("pid %" PRIu32 " over the last %s: from %s to %s, %s%s per hour\n",
		       trend->pid, text_duration(trend->last_ns - trend->first_ns, time),
		       text_size(trend->first_bytes, before), text_size(trend->last_bytes, now),
		       per_hour < 0 ? "-" : "+",
		       text_size((uint64_t)(per_hour < 0 ? -per_hour : per_hour), rate));
	}
}

/*
 * One digit per quarter of the process's life, oldest first: tenths of the live buffers allocated
 * in it.
 */
static const char *growth_profile(const struct growth_site *site, char *ret_text)
{
	for (uint32_t age = 0; age < CALL_SITE_AGES; age++) {
		uint64_t tenths =
			site->last.buffers ? site->last.ages[age] * 10 / site->last.buffers : 0;

		ret_text[age] = (char)('0' + bits_min(tenths, 9));
	}
	ret_text[CALL_SITE_AGES] = '\0';
	return ret_text;
}

/* Names and line of code. */
static const char *growth_place(const struct growth_site *site, const char *place, char *text,
				size_t size)
{
	char names[CALL_SITE_NAMES];

	call_site_names(&site->last, names, sizeof(names));
	snprintf(text, size, "%s%s%s", names, *names && *place ? ", " : "",
		 *names || *place ? place : "-");
	return text;
}

/*
 * How long it looked, where there is nothing else to say; and what it could not decide.
 * @is_final: a longer look is not possible, or was not wanted.
 */
static void growth_print_span(const struct growth *growth, bool is_final)
{
	double seconds = (double)(growth->last_ns - growth->first_ns) / 1e9;
	char past[TEXT_NUMBER_SIZE];

	if (growth->count == 0 && growth->past_ns)
		printf("nothing kept growing in the last %s, as ttmemd remembers it\n",
		       text_duration(growth->past_ns, past));
	else if (growth->count == 0)
		printf("nothing kept growing in %.1f s\n", seconds);
	if (growth->count == 0 && !growth->past_ns && !is_final)
		printf("slow growth needs a longer look, such as --seconds 60, or ttmemd, which "
		       "remembers the past\n");
	if (growth->too_young)
		printf("too young to judge: %zu process%s, seen for less than %s; what grows there "
		       "may "
		       "be a model that is loaded\n",
		       growth->too_young, growth->too_young == 1 ? "" : "es",
		       text_duration(GROWTH_PAST_LEAST_NS, past));
}

static void growth_print(const struct growth *growth, const struct snapshot *snapshot,
			 bool is_final)
{
	static const struct table_column columns[] = {
		{"GROWN", true},
		{"IN", true},
		{"SURE"},
		{"PER SECOND", true, .order = 6},
		{"NOW", true, .order = 5},
		{"BUFFERS", true, .order = 2},
		{"OLDEST", true, .order = 3},
		{"AGES", .order = 4},
		{"PID", true},
		{"COMMAND", .cut = true},
		{"TYPE", .order = 7},
		{"CALL SITE", .cut = true, .below = true, .order = 1, .least = 40},
	};
	char number[TEXT_NUMBER_SIZE], profile[CALL_SITE_AGES + 1], place[GROWTH_PLACE];
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	struct table table;

	for (size_t i = 0; i < growth->count; i++)
		site_rows_add_stack(&rows, growth->sites[i].last.stack);
	site_rows_finish(&rows);
	if (growth->count)
		table_begin(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_site *site = &growth->sites[i];
		enum growth_confidence confidence = growth_confidence(growth, site);

		table_text(&table, text_size(growth_bytes(site), number));
		table_text(&table, text_duration(growth_span(growth, site), number));
		table_text(&table, growth_confidence_name(confidence));
		table_text(&table, text_size((uint64_t)growth_per_second(growth, site), number));
		table_text(&table, text_size(site->last.bytes, number));
		table_format(&table, "%" PRIu64, site->last.buffers);
		table_text(&table, text_duration(snapshot->time_ns - site->last.oldest_ns, number));
		table_text(&table, growth_profile(site, profile));
		table_format(&table, "%" PRIu32, site->process.pid);
		table_text(&table, site->comm);
		table_text(&table, types_name(site->last.type));
		table_text(&table,
			   growth_place(site, site_rows_text(&rows, i), place, sizeof(place)));
		session_print_names(table_lines(&table), growth->names + site->last.first_name,
				    site->listed, site->last.names, GROWTH_INDENT);
		session_print_stack(table_lines(&table), site->last.stack, GROWTH_INDENT);
	}
	if (growth->count)
		table_end(&table);
	session_find_tip(&rows);
	session_print_tip(stdout);
	if (growth->count)
		puts("AGES: of the live buffers, how many tenths are from the first, second, third "
		     "and "
		     "last quarter of the process's life");
	growth_print_trends(growth);
	growth_print_span(growth, is_final);
	session_print_notes(snapshot);
}

/* From when on, and for how long, samples are taken. In a recording: of what it has until the moment. */
static void growth_plan(struct session *session, uint32_t seconds, uint64_t *ret_start_ns,
			uint64_t *ret_span_ns)
{
	uint64_t span = (seconds ? seconds : GROWTH_SECONDS) * NS_PER_S;
	uint64_t end = session_now(session);

	if (session_recording(session)) {
		uint64_t all = end - recording_facts(session_recording(session))->start_ns;

		span = seconds ? bits_min(span, all) : all;
	}
	*ret_start_ns = end - span;
	*ret_span_ns = span;
}

/* When the next sample is due: in a recording that is a matter of moving there. */
static int growth_wait(struct session *session, uint64_t start_ns, uint64_t span_ns, uint32_t i)
{
	const uint64_t steps = GROWTH_SAMPLES - 1;
	/* Not step by step: the last one must be exactly at the end, where the peak may be. */
	const struct recording_moment moment = {
		.time_ns = start_ns + span_ns * i / steps,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
	};

	if (session_recording(session))
		return session_move(session, &moment);
	if (i > 0)
		output_sleep((uint32_t)bits_min(span_ns / NS_PER_MS / steps, UINT32_MAX));
	return 0;
}

/*
 * Takes evenly spaced samples. @seconds: 0 = as usual. The caller owns the last one, whose notes are
 * shown.
 */
static int growth_watch(struct session *session, struct growth *growth,
			const struct snapshot_request *request, uint32_t seconds,
			struct asked_for *asked, struct snapshot **ret_snapshot)
{
	struct snapshot_request named = *request;
	bool is_recorded = session_recording(session);
	uint64_t start_ns, span_ns;
	int r = 0;

	growth_plan(session, seconds, &start_ns, &span_ns);
	named.namer = session_namer(session);
	growth->keeps_ended = is_recorded;
	for (uint32_t i = 0; r == 0 && i < GROWTH_SAMPLES && !output_is_stopped(); i++) {
		r = growth_wait(session, start_ns, span_ns, i);
		*ret_snapshot = snapshot_free(*ret_snapshot);
		if (r == 0)
			r = session_take(session, &named, ret_snapshot);
		if (r == 0)
			r = growth_add(growth, *ret_snapshot);
	}
	if (r == 0 && *ret_snapshot)
		r = growth_recall(growth, *ret_snapshot, NULL);
	if (r == 0 && *ret_snapshot && !is_recorded)
		r = growth_daemon_recall(session_remote(session), *ret_snapshot, growth);
	growth_finish(growth, seconds > 0);
	if (r == 0 && *ret_snapshot && !is_recorded)
		r = growth_daemon_trends(session_remote(session), *ret_snapshot, growth);
	if (r == 0 && *ret_snapshot) {
		asked_for_check(asked, session, *ret_snapshot);
		asked_for_note_untracked(asked, *ret_snapshot);
	}
	return r;
}

static int growth_run(int argc, char **argv)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	CLEANUP(growth_deinit) struct growth growth = GROWTH_NULL;
	struct options_from from = {0};
	struct snapshot_request request = {.buffers = true};
	struct query query = {0};
	struct emit writer = EMIT_INIT(stdout);
	struct asked_for asked = {.command = "growth", .filter = &request.filter, .rows = true};
	uint32_t seconds = 0;
	bool json = false;
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process"},
		{0, "seconds", "N",
		 "how long to look (2, and what ttmemd remembers; a recording: all of it)",
		 &seconds, options_u32},
		OPTIONS_FROM(&from),
		{0, "json", NULL, "as JSON", &json, NULL},
	};
	const struct options options = {
		.command = "growth",
		.shows_sizes = true,
		.summary = "Call sites of living processes whose bytes keep growing.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &query,
		.answer = &answers[ANSWERS_GROWTH],
	};
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	output_catch_stop();
	asked.is_json = json;
	request.filter = query.filter;
	r = session_start(&session, "growth", &from, &request.filter);
	if (r != 0)
		return r;
	r = growth_watch(session, &growth, &request, seconds, &asked, &snapshot);
	if (r < 0)
		return output_fail("growth", "cannot look at processes", r);
	if (json && snapshot) {
		growth_put(&writer, snapshot, &growth);
	} else if (snapshot) {
		session_print_moment(session);
		growth_print(&growth, snapshot, seconds > 0 || session_recording(session));
	}
	return asked_for_exit(&asked, output_finish());
}

const struct command growth_command = {
	.name = "growth",
	.summary = "call sites whose bytes keep growing",
	.run = growth_run,
};
