/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem-legacy: serves clients of the old allocation server. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/config/config.h"
#include "legacy/program/legacy-program.h"
#include "model/sites/site.h"
#include "symbol/symbolizer-process.h"

/*
 * The first word, if ttmemd has started us: it says what cannot be served, and may have a socket of systemd's that
 * listens.
 */
#define STARTED "--started-by-ttmemd="

int main(int argc, char **argv)
{
	bool is_started = argc > 1 && strncmp(argv[1], STARTED, strlen(STARTED)) == 0;
	int listening = -1;
	struct config config;
	int r;

	if (symbolizer_process_is_meant(argc, argv))
		return symbolizer_process_main(argc, argv);
	if (is_started) {
		listening = atoi(argv[1] + strlen(STARTED)); /* it comes from ttmemd */
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	r = config_parse(&config, argc, argv, stdout, stderr);
	if (r != 0) {
		config_deinit(&config);
		return config_exit_code(r);
	}
	/* So that ps and pkill know it. */
	if (config.is_old_name)
		(void)prctl(PR_SET_NAME, program_invocation_short_name);
	/* Without memory for it the next call fails. */
	(void)site_skip_frames(config.skip_frames);
	r = legacy_program_run(&config, is_started, listening);
	config_deinit(&config);
	return r;
}
