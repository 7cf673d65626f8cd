/* SPDX-License-Identifier: Apache-2.0 */

/* ttmemd: records for the whole machine what no single process can. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/custody/keeper-process.h"
#include "daemon/daemon.h"
#include "daemon/playback/playback-process.h"
#include "model/sites/site.h"
#include "symbol/symbolizer-process.h"

int main(int argc, char **argv)
{
	struct config config;
	struct daemon daemon;
	int r;

	if (keeper_process_is_meant(argc, argv))
		return keeper_process_main(argc, argv);
	if (symbolizer_process_is_meant(argc, argv))
		return symbolizer_process_main(argc, argv);
	if (playback_process_is_meant(argc, argv))
		return playback_process_main(argc, argv);
	r = config_parse(&config, argc, argv, stdout, stderr);
	if (r != 0) {
		config_deinit(&config);
		return config_exit_code(r);
	}
	/* Without memory for it the next call fails. */
	(void)site_skip_frames(config.skip_frames);
	r = daemon_open(&daemon, &config);
	if (r == 0) {
		r = daemon_run(&daemon);
		if (r < 0) {
			fprintf(stderr, "ttmemd: %s\n", strerror(-r));
			r = 1;
		}
	}
	daemon_close(&daemon);
	config_deinit(&config);
	return r == DAEMON_RUNS_ALREADY ? daemon_legacy_become(argv) : r;
}
