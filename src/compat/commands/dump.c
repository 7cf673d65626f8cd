/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem dump: the old server's report of remaining buffers, on one's own terminal. */

#include <string.h>

#include "base/cleanup.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "source/daemon-client/daemon-client.h"

static void dump_cleanup(struct daemon_client **remote)
{
	daemon_client_free(*remote);
}

static int dump_run(int argc, char **argv)
{
	CLEANUP(dump_cleanup) struct daemon_client *remote = NULL;
	CLEANUP_FREE char *text = NULL;
	const struct options options = {
		.command = "dump",
		.summary = "The old server's report of remaining buffers, those of ended processes "
			   "included.",
	};
	size_t length;
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = daemon_client_new(&remote);
	if (r < 0)
		return output_fail("dump", "cannot ask ttmemd", r);
	r = daemon_client_get(remote, "/api/v1/dump", &text, &length);
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
