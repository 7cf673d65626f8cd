/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem top: the full-screen view. This file only supplies its data. */

#include "cli/top-command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/query.h"
#include "source/daemon-client/daemon-client.h"
#include "tui/terminal.h"
#include "tui/tui.h"

#define TOP_REFRESH_MS 1000u
#define TOP_SEARCH_NS NS_PER_S /* longest delay until a new process is found */

/* What a thread of the screen reads from. */
struct top_source {
	struct session *session;
	struct recording_moment peak; /* of a recording */
};

static int top_take(void *context, const struct snapshot_request *request, bool names,
		    struct snapshot **ret_snapshot)
{
	struct top_source *source = context;
	struct snapshot_request named = *request;

	if (names)
		named.namer = session_namer(source->session);
	return session_take(source->session, &named, ret_snapshot);
}

static int top_recall(void *context, struct incident_rows *incident_rows)
{
	struct daemon_client *remote = session_remote(((struct top_source *)context)->session);

	/* The snapshot of a recording has them. */
	return remote ? top_past(remote, incident_rows) : DAEMON_CLIENT_NONE;
}

static int top_move(void *context, uint64_t at_ns)
{
	struct top_source *source = context;

	return top_recording_move(source->session, &source->peak, at_ns);
}

static int top_chart(void *context, const struct snapshot *snapshot, uint64_t until_ns,
		     struct series_set *set)
{
	struct top_source *source = context;

	if (session_recording(source->session))
		return top_recording_charts(source->session, snapshot, until_ns, set);
	return top_charts(session_remote(source->session), snapshot, until_ns, set);
}

static enum poller_daemon top_daemon(void *context, char *ret_reason, size_t size)
{
	const struct daemon_client *remote =
		session_remote(((struct top_source *)context)->session);
	int outcome = remote ? daemon_client_outcome(remote) : DAEMON_CLIENT_NONE;

	if (outcome == 0)
		return POLLER_DAEMON_HELPS;
	if (outcome == DAEMON_CLIENT_NONE)
		return POLLER_DAEMON_NONE;
	(void)snprintf(ret_reason, size, "%s", daemon_client_reason(remote)); /* may be cut */
	return POLLER_DAEMON_FAILS;
}

static void top_free(void *context)
{
	struct top_source *source = context;

	session_free(source->session);
	free(source);
}

/* 0, or an exit code after the mistake was reported. */
static int top_feed(const struct options_from *from, struct poller_feed *ret_feed)
{
	struct top_source *source = calloc(1, sizeof(*source));
	int r;

	if (!source) {
		(void)output_fail("top", "cannot start", -ENOMEM); /* always the same */
		return COMMAND_FAILED;
	}
	r = session_start(&source->session, "top", from, NULL);
	if (r != 0) {
		top_free(source);
		return r;
	}
	if (!from->file)
		session_pace(source->session, TOP_SEARCH_NS);
	*ret_feed = (struct poller_feed){
		.context = source,
		.take = top_take,
		.recall = top_recall,
		.chart = top_chart,
		.daemon = top_daemon,
		.move = from->file ? top_move : NULL,
		.free = top_free,
	};
	return 0;
}

static int top_feeds(const struct options_from *from, struct poller_feed ret_feeds[2])
{
	int r = top_feed(from, &ret_feeds[0]);

	if (r != 0)
		return r;
	r = top_feed(from, &ret_feeds[1]);
	if (r != 0)
		top_free(ret_feeds[0].context);
	return r;
}

/* Unless a moment was given, a recording is first shown when most was held. */
static int top_travel(const struct options_from *from, struct poller_feed feeds[2],
		      struct top_recording *recording, struct tui_options *tui)
{
	struct top_source *sources[2] = {feeds[0].context, feeds[1].context};
	uint64_t at_ns;
	int r;

	if (!from->file)
		return 0;
	at_ns = session_moment(sources[0]->session)->time_ns;
	r = top_recording_init(recording, sources[0]->session);
	if (r < 0) {
		top_free(sources[0]);
		top_free(sources[1]);
		return output_fail("top", from->file, r);
	}
	sources[0]->peak = sources[1]->peak = recording->peak;
	tui->recording = &recording->keys;
	at_ns = from->at ? at_ns : recording->keys.peak_ns;
	tui->at_ns = bits_min(bits_max(at_ns, recording->keys.start_ns), recording->keys.end_ns);
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
	CLEANUP(top_recording_deinit) struct top_recording recording = {.incidents = NULL};
	struct options_from from = {.file = NULL};
	struct query query = {0};
	struct tui_options tui = {.refresh_ms = TOP_REFRESH_MS, .is_stopped = output_is_stopped};
	const struct options_item items[] = {
		{'r', "refresh", "MS", "milliseconds between two refreshes (1000)", &tui.refresh_ms,
		 options_u32},
		{'d', "device", "DEV|UID", "only this device; may be given again"},
		{'a', "all", NULL, "closed devices and ended processes too", &tui.all, NULL},
		{0, "ascii", NULL, "draw with plain letters", &tui.ascii, NULL},
		OPTIONS_FROM(&from),
	};
	const struct options options = {
		.command = "top",
		.summary = "Devices, processes, buffers and call sites on the whole screen; \"?\" "
			   "tells the keys.\nOf a recording, Left and Right go to other moments, "
			   "\"p\" to the peak, \"i\" to the next incident.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &query,
		.honours = QUERY_DEVICE,
	};
	struct poller_feed feeds[2];
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	tui.filter = query.filter;
	r = top_feeds(&from, feeds);
	if (r == 0)
		r = top_travel(&from, feeds, &recording, &tui);
	if (r != 0)
		return r;
	tui.colours = output_has_colours();
	tui.send = top_send;
	tui.parent_of = top_parent_of;
	output_catch_stop();
	r = tui_run(&tui, feeds);
	return r == 0 ? COMMAND_OK : top_fail(r);
}

const struct command top_command = {
	.name = "top",
	.summary = "the same on the whole screen, with charts, buffers and call sites",
	.run = top_run,
};
