/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem-legacy: serves clients of the old allocation server. */

#include <stdio.h>

#include "daemon/config/config.h"
#include "legacy/program/legacy-program.h"
#include "model/sites/site.h"
#include "symbol/symbolizer-process.h"

int main(int argc, char **argv)
{
	struct config config;
	int r;

	if (symbolizer_process_is_meant(argc, argv))
		return symbolizer_process_main(argc, argv);
	r = config_parse(&config, argc, argv, stdout, stderr);
	if (r != 0) {
		config_deinit(&config);
		return config_exit_code(r);
	}
	/* Without memory for it the next call fails. */
	(void)site_skip_frames(config.skip_frames);
	r = legacy_program_run(&config);
	config_deinit(&config);
	return r;
}
