/* SPDX-License-Identifier: Apache-2.0 */

/* The program under the old servers' names. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"

static char place_run[300], place_state[300];
static const struct config_places places = {.file = "none", .run = place_run, .state = place_state};

static void check_name(const char *program, const char *option, bool events, bool history)
{
	char *argv[] = {strdup(program), strdup("--config=none"), option ? strdup(option) : NULL,
			NULL};
	FILE *streams[2] = {stdout, stderr};
	struct config config;

	assert(config_parse_at(&config, &places, option ? 3 : 2, argv, streams) == 0);
	assert(config.log_events == events && config.log_history == history);
	config_deinit(&config);
	for (size_t i = 0; argv[i]; i++)
		free(argv[i]);
}

UNIT(the_old_servers_names_mean_their_lines)
{
	snprintf(place_run, sizeof(place_run), "%s/run", unit_dir());
	snprintf(place_state, sizeof(place_state), "%s/state", unit_dir());
	unsetenv("RUNTIME_DIRECTORY");
	unsetenv("STATE_DIRECTORY");
	check_name("ttmemd", NULL, false, false);
	check_name("/opt/allocation_server_poc/ttmemd", NULL, false, false);
	check_name("allocation_server_poc", NULL, true, false);
	check_name("./allocation_server_poc", "--log-events=no", false, false);
	check_name("/usr/bin/allocation_server_enhanced", NULL, true, true);
	check_name("allocation_server_enhanced", "--log-history=no", true, false);
}

static bool help_names_the_page(const char *program)
{
	char *argv[] = {strdup(program), strdup("--help"), NULL};
	struct config config;
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	bool found;

	assert(out && config_parse(&config, 2, argv, out, stderr) == CONFIG_DONE);
	assert(fclose(out) == 0);
	found = strstr(text, "from-the-old-tools.md");
	config_deinit(&config);
	free(text);
	free(argv[0]);
	free(argv[1]);
	return found;
}

UNIT(help_of_an_old_name_says_where_the_others_went)
{
	assert(help_names_the_page("allocation_server_poc"));
	assert(!help_names_the_page("ttmemd"));
}
