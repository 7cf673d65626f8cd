/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem growth: call sites of living processes whose bytes keep growing, seen over a few seconds.
 */

#include "model/growth.h"

#include <inttypes.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/growth-trend.h"
#include "model/json/document.h"
#include "model/snapshot.h"
#include "model/types.h"

#define GROWTH_SAMPLES 5u

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
	for (uint32_t age = 0; age < GROUP_AGES; age++) {
		uint64_t tenths =
			site->last_buffers ? site->ages[age] * 10 / site->last_buffers : 0;

		ret_text[age] = (char)('0' + bits_min(tenths, 9));
	}
	ret_text[GROUP_AGES] = '\0';
	return ret_text;
}

static void growth_print(const struct growth *growth, const struct snapshot *snapshot)
{
	static const struct table_column columns[] = {
		{"GROWN", 10, true, false}, {"PER SECOND", 10, true, false},
		{"NOW", 10, true, false},   {"BUFFERS", 8, true, false},
		{"OLDEST", 7, true, false}, {"AGES", 5, false, false},
		{"PID", 8, true, false},    {"COMMAND", 15, false, true},
		{"TYPE", 13, false, false}, {"NAME", 0, false, false},
	};
	double seconds = (double)(growth->last_ns - growth->first_ns) / 1e9;
	char number[TEXT_NUMBER_SIZE], profile[GROUP_AGES + 1];
	struct table table;

	table_begin(&table, stdout, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_site *site = &growth->sites[i];
		uint64_t grown = site->last_bytes - site->first_bytes;

		table_text(&table, text_size(grown, number));
		table_text(&table, text_size((uint64_t)growth_per_second(growth, site), number));
		table_text(&table, text_size(site->last_bytes, number));
		table_format(&table, "%" PRIu64, site->last_buffers);
		table_text(&table, text_duration(snapshot->time_ns - site->oldest_ns, number));
		table_text(&table, growth_profile(site, profile));
		table_format(&table, "%" PRIu32, site->pid);
		table_text(&table, site->comm);
		table_text(&table, types_name(site->type));
		if (site->name)
			table_text(&table, site->name);
		else
			table_format(&table, "%s%s", site->phase ? "in " : "-",
				     site->phase ? site->phase : "");
		session_print_stack(site->stack, "              ");
	}
	growth_print_trends(growth);
	if (growth->count == 0)
		printf("nothing kept growing in %.1f s\n", seconds);
	session_print_notes(snapshot);
}

/* Takes evenly spaced samples. The caller owns the last one, whose notes are shown. */
static int growth_watch(struct growth *growth, const struct snapshot_request *request,
			uint32_t seconds, struct asked_for *asked, struct snapshot **ret_snapshot)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct snapshot_request named = *request;
	int r = session_new(&session);

	if (r == 0)
		named.namer = session_namer(session);
	for (uint32_t i = 0; r == 0 && i < GROWTH_SAMPLES && !output_is_stopped(); i++) {
		if (i > 0)
			output_sleep((uint32_t)bits_min(
				(uint64_t)seconds * 1000 / (GROWTH_SAMPLES - 1), UINT32_MAX));
		*ret_snapshot = snapshot_free(*ret_snapshot);
		r = session_take(session, &named, ret_snapshot);
		if (r == 0)
			r = growth_add(growth, *ret_snapshot);
	}
	growth_finish(growth);
	if (r == 0 && *ret_snapshot)
		r = growth_trend_ask(session_remote(session), *ret_snapshot, growth);
	if (r == 0 && *ret_snapshot)
		asked_for_check(asked, session, *ret_snapshot);
	return r;
}

static int growth_run(int argc, char **argv)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	CLEANUP(growth_deinit) struct growth growth = GROWTH_NULL;
	struct snapshot_request request = {.buffers = true};
	struct emit writer = EMIT_INIT(stdout);
	struct asked_for asked = {.command = "growth", .filter = &request.filter, .rows = true};
	uint32_t seconds = 2;
	bool json = false;
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process", &request.filter, options_pid},
		{0, "seconds", "N", "how long to look (2)", &seconds, options_u32},
		{0, "json", NULL, "as JSON", &json, NULL},
	};
	const struct options options = {
		.command = "growth",
		.shows_sizes = true,
		.summary = "Call sites of living processes whose bytes keep growing.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	output_catch_stop();
	asked.is_json = json;
	r = growth_watch(&growth, &request, seconds, &asked, &snapshot);
	if (r < 0)
		return output_fail("growth", "cannot look at processes", r);
	if (json && snapshot)
		document_growth(&writer, snapshot, &growth);
	else if (snapshot)
		growth_print(&growth, snapshot);
	return asked_for_exit(&asked, output_finish());
}

const struct command growth_command = {
	.name = "growth",
	.summary = "call sites whose bytes keep growing",
	.run = growth_run,
};
