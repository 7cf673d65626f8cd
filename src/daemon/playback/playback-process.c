/* SPDX-License-Identifier: Apache-2.0 */

/* Serves until whoever has started it is gone. */

#include "daemon/playback/playback-process.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process/child.h"
#include "base/text.h"
#include "daemon/playback/playback.h"
#include "daemon/registry/access.h"
#include "model/query.h"
#include "source/proc/proc.h"
#include "web/server/sessions.h"

#define PLAYBACK_ADDRESS "127.0.0.1:0"
#define PLAYBACK_LINK_SIZE 256
#define PLAYBACK_MS NS_PER_MS

struct playback_process {
	struct playback playback;
	struct sessions *sessions;
	struct web *web;
	uint32_t browser; /* the user whose browser may come */
	uint64_t at_ns;   /* where links lead to */
};

static void playback_process_cleanup(struct playback_process *process)
{
	web_free(process->web);
	sessions_free(process->sessions);
	playback_deinit(&process->playback);
}

static int playback_process_fail(const char *what, const char *why)
{
	char shown[2 * RECORDING_WHY_SIZE];

	text_escape(why, shown, sizeof(shown));
	fprintf(stderr, "ttmem report: %s%s\n", what, shown);
	return EXIT_FAILURE;
}

/* The page knows whole milliseconds: what happened at the moment has happened in the next one. */
static int playback_process_find(struct playback_process *process, const char *at)
{
	const struct recording_filter all = RECORDING_FILTER_ALL;
	struct recording *recording = process->playback.recording;
	struct recording_moment moment;
	char why[RECORDING_WHY_SIZE];
	int r = recording_find(recording, *at ? at : "peak", &all, &moment, why);

	if (r < 0 && !*at) /* nothing was ever in use */
		r = recording_find(recording, "end", &all, &moment, why);
	if (r < 0)
		return playback_process_fail("", why);
	process->at_ns = (moment.time_ns + PLAYBACK_MS - 1) / PLAYBACK_MS * PLAYBACK_MS;
	return 0;
}

static int playback_process_serve(struct playback_process *process)
{
	struct web_provider provider;
	const struct web_config config = {
		.address = PLAYBACK_ADDRESS,
		.is_private = true,
		.provider = &provider,
	};
	const char *problem = NULL;
	int r;

	process->sessions = sessions_new();
	if (!process->sessions)
		return playback_process_fail("cannot serve it: ", strerror(ENOMEM));
	playback_provide(&process->playback, &provider);
	provider.sessions = process->sessions;
	r = web_new(&process->web, &config, &problem);
	return r < 0 ? playback_process_fail("cannot serve it: ", problem ? problem : strerror(-r))
		     : 0;
}

static int playback_process_tell(struct playback_process *process)
{
	char code[SESSIONS_SECRET_SIZE], name[SESSIONS_NAME_SIZE], link[PLAYBACK_LINK_SIZE];
	const struct access_peer peer = {.uid = process->browser, .sees_all = true};
	const struct query_asker asker = {
		.peer = &peer,
		.peer_size = sizeof(peer),
		.user_id = process->browser,
		.sees_all = true,
	};
	const struct sessions_wish wish = {
		.asker = &asker, .name = name, .browser = process->browser};
	size_t length;
	int r;

	proc_user_name(process->browser, name, sizeof(name));
	r = sessions_give(process->sessions, &wish, clock_ns(CLOCK_BOOTTIME), code);
	if (r < 0)
		return playback_process_fail("cannot make a link: ", strerror(-r));
	(void)snprintf(link, sizeof(link), "http://%s/#/open/%s/?at=%" PRIu64 "\n",
		       web_address(process->web), code, process->at_ns); /* fits */
	length = strlen(link);
	return write(CHILD_FD, link, length) == (ssize_t)length ? 0 : EXIT_FAILURE;
}

static int playback_process_run(struct playback_process *process)
{
	for (;;) {
		char wish;
		ssize_t got = read(CHILD_FD, &wish, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return EXIT_SUCCESS;
		if (wish == '\n' && playback_process_tell(process) != 0)
			return EXIT_FAILURE;
	}
}

bool playback_process_is_meant(int argc, char *const *argv)
{
	return argc == 5 && strcmp(argv[1], PLAYBACK_PROCESS_ARGUMENT) == 0;
}

int playback_process_main(int argc, char *const *argv)
{
	CLEANUP(playback_process_cleanup) struct playback_process process = {.web = NULL};
	char why[RECORDING_WHY_SIZE];
	uint64_t user;
	int r;

	r = playback_init(&process.playback, argc == 5 ? argv[2] : "", why);
	if (r < 0)
		return playback_process_fail("", why);
	if (text_parse_u64(argv[4], &user) < 0 || user >= UINT32_MAX)
		return playback_process_fail("", "no such user");
	process.browser = (uint32_t)user;
	(void)signal(SIGPIPE, SIG_IGN); /* who has started us may end at any time */
	r = playback_process_find(&process, argv[3]);
	if (r == 0)
		r = playback_process_serve(&process);
	return r == 0 ? playback_process_run(&process) : r;
}
