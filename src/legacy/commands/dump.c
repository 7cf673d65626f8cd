/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem dump: the old server's report of remaining buffers, on one's own terminal. */

#include <stdio.h>

#include "answers/answers.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "model/query.h"
#include "source/daemon-client/daemon-client.h"

static int dump_run(int argc, char **argv)
{
	CLEANUP(daemon_client_cleanup) struct daemon_client *remote = NULL;
	CLEANUP_FREE char *text = NULL;
	bool live = false;
	struct query query = {0};
	const struct options_item items[] = {
		{0, "live", NULL, "only of living processes", &live, NULL},
		{0, "since", "WHEN",
		 "of processes that ended, only since: 2h, 16:03, 2026-11-17, ns since 1970",
		 &query, options_since},
	};
	const struct options options = {
		.command = "dump",
		.summary = "The old server's report of remaining buffers, those of ended processes "
			   "included.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	size_t length;
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	if (live) {
		query.given = QUERY_SINCE;
		query.since_ns = UINT64_MAX; /* no process has ended since then */
	}
	output_start();
	r = daemon_client_new(&remote);
	if (r < 0)
		return output_fail("dump", "cannot ask ttmemd", r);
	r = daemon_client_get(remote, answers[ANSWERS_DUMP].path, &query, &text, &length);
	if (r != 0)
		return daemon_pages_fail("dump", remote, r);
	fwrite(text, 1, length, stdout);
	return output_finish();
}

const struct command dump_command = {
	.name = "dump",
	.summary = "the old report of remaining buffers",
	.run = dump_run,
};
