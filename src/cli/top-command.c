/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem top: the full-screen view. This file only supplies its data. */

#include "cli/top-command.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "source/daemon-client/daemon-client.h"
#include "tui/terminal.h"
#include "tui/tui.h"

#define TOP_REFRESH_MS 1000u
#define TOP_SEARCH_NS NS_PER_S /* longest delay until a new process is found */

static int top_take(void *context, const struct snapshot_request *request, bool names,
		    struct snapshot **ret_snapshot)
{
	struct session *session = context;
	struct snapshot_request named = *request;

	if (names)
		named.namer = session_namer(session);
	return session_take(session, &named, ret_snapshot);
}

static int top_recall(void *context, struct incident_rows *incident_rows)
{
	return top_past(session_remote(context), incident_rows);
}

static int top_chart(void *context, const struct snapshot *snapshot, uint64_t until_ns,
		     struct series_set *set)
{
	return top_charts(session_remote(context), snapshot, until_ns, set);
}

static enum poller_daemon top_daemon(void *context, char *ret_reason, size_t size)
{
	const struct daemon_client *remote = session_remote(context);
	int outcome = daemon_client_outcome(remote);

	if (outcome == 0)
		return POLLER_DAEMON_HELPS;
	if (outcome == DAEMON_CLIENT_NONE)
		return POLLER_DAEMON_NONE;
	(void)snprintf(ret_reason, size, "%s", daemon_client_reason(remote)); /* may be cut */
	return POLLER_DAEMON_FAILS;
}

static void top_free(void *context)
{
	session_free(context);
}

static int top_feed(struct poller_feed *ret_feed)
{
	struct session *session;
	int r = session_new(&session);

	if (r < 0)
		return r;
	session_pace(session, TOP_SEARCH_NS);
	*ret_feed = (struct poller_feed){
		.context = session,
		.take = top_take,
		.recall = top_recall,
		.chart = top_chart,
		.daemon = top_daemon,
		.free = top_free,
	};
	return 0;
}

static int top_fail(int result)
{
	if (result < 0)
		return output_fail("top", "cannot start", result);
	fprintf(stderr,
		"ttmem top: %s\n\"ttmem smi\" shows the same once, \"ttmem smi -w\" again and "
		"again.\n",
		result == TERMINAL_NONE ? "needs a terminal for its input and its output."
					: "this terminal cannot place text (see TERM).");
	return COMMAND_FAILED;
}

static int top_run(int argc, char **argv)
{
	struct tui_options tui = {.refresh_ms = TOP_REFRESH_MS, .is_stopped = output_is_stopped};
	const struct options_item items[] = {
		{'r', "refresh", "MS", "milliseconds between two refreshes (1000)", &tui.refresh_ms,
		 options_u32},
		{'d', "device", "DEV|UID", "only this device; may be given again", &tui.filter,
		 options_device},
		{'a', "all", NULL, "closed devices and ended processes too", &tui.all, NULL},
		{0, "ascii", NULL, "draw with plain letters", &tui.ascii, NULL},
	};
	const struct options options = {
		.command = "top",
		.summary = "Devices, processes, buffers and call sites on the whole screen; \"?\" "
			   "tells the keys.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	struct poller_feed feeds[2];
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	r = top_feed(&feeds[0]);
	if (r == 0) {
		r = top_feed(&feeds[1]);
		if (r < 0)
			top_free(feeds[0].context);
	}
	if (r < 0)
		return top_fail(r);
	tui.colours = output_has_colours();
	output_catch_stop();
	r = tui_run(&tui, feeds);
	return r == 0 ? COMMAND_OK : top_fail(r);
}

const struct command top_command = {
	.name = "top",
	.summary = "the same on the whole screen, with charts, buffers and call sites",
	.run = top_run,
};
