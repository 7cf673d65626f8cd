/* SPDX-License-Identifier: Apache-2.0 */

/* Default locations, and the folders that are made for them. */

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"

#define NOBODY 65534

static char place_run[300], place_state[300];
static const struct config_places places = {place_run, place_state, NULL};

static void make_places(void)
{
	snprintf(place_run, sizeof(place_run), "%s/run", unit_dir());
	snprintf(place_state, sizeof(place_state), "%s/state", unit_dir());
	unsetenv("RUNTIME_DIRECTORY");
	unsetenv("STATE_DIRECTORY");
	unsetenv("XDG_STATE_HOME");
}

/* If the case runs as root, continues as another user: root can write everywhere. */
static void become_nobody(void)
{
	if (geteuid() == 0) {
		assert(chmod(unit_dir(), 0755) == 0);
		assert(setgroups(0, NULL) == 0);
		assert(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
	}
}

static void become_root(void)
{
	if (getuid() == 0)
		assert(seteuid(0) == 0 && setegid(0) == 0);
}

/* Checks the locations of socket and state; "" = refused. */
static void check_places(const char *socket, const char *state)
{
	struct config config;
	char said[512] = "";
	FILE *errors = fmemopen(said, sizeof(said), "w");
	int r;

	assert(errors && config_init(&config) == 0);
	r = config_places_choose(&config, &places, errors);
	assert(fclose(errors) == 0);
	if (*socket) {
		assert(r == 0);
		assert(strcmp(config.socket, socket) == 0 && strcmp(config.state, state) == 0);
	} else {
		assert(r == CONFIG_WRONG && config_exit_code(r) == 1);
		assert(strstr(said, state));
	}
	config_deinit(&config);
}

UNIT(places_of_the_machine)
{
	char socket[400];

	make_places();
	snprintf(socket, sizeof(socket), "%s/ttmemd.sock", place_run);
	check_places(socket, place_state); /* missing, but can be created */
	assert(mkdir(place_run, 0755) == 0 && mkdir(place_state, 0755) == 0);
	check_places(socket, place_state);
}

UNIT(places_of_a_user)
{
	make_places();
	assert(mkdir(place_run, 0555) == 0 && mkdir(place_state, 0555) == 0);
	become_nobody();
	setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
	setenv("HOME", "/home/u", 1);
	check_places("/run/user/1/ttmem/ttmemd.sock", "/home/u/.local/state/ttmem");
	setenv("XDG_STATE_HOME", "/home/u/state", 1);
	check_places("/run/user/1/ttmem/ttmemd.sock", "/home/u/state/ttmem");
	setenv("XDG_STATE_HOME", "relative", 1);
	check_places("/run/user/1/ttmem/ttmemd.sock", "/home/u/.local/state/ttmem");
	unsetenv("HOME");
	check_places("", "XDG_STATE_HOME nor HOME is set; use --state DIR");
	become_root();
}

/* What su, cron and containers leave: see base/files/own-socket.h. */
UNIT(places_of_a_user_without_a_session)
{
	const uid_t user = 1000000 + (uid_t)getpid();
	struct config config;
	char folder[64], socket[80];
	struct stat st;

	if (geteuid() != 0)
		unit_skip("needs root");
	snprintf(folder, sizeof(folder), "/tmp/ttmem-%u", user);
	snprintf(socket, sizeof(socket), "%s/ttmemd.sock", folder);
	make_places();
	assert(mkdir(place_run, 0555) == 0 && mkdir(place_state, 0555) == 0);
	assert(chmod(unit_dir(), 0755) == 0 && setgroups(0, NULL) == 0 && seteuid(user) == 0);
	unsetenv("XDG_RUNTIME_DIR");
	setenv("HOME", "/home/u", 1);
	check_places(socket, "/home/u/.local/state/ttmem");

	assert(config_init(&config) == 0);
	config.socket = strdup(socket);
	umask(0);
	for (int i = 0; i < 2; i++)
		assert(config_make_socket_folder(&config) == 0);
	assert(lstat(folder, &st) == 0 && (st.st_mode & 07777) == 0700 && st.st_uid == user);
	check_places(socket, "/home/u/.local/state/ttmem");

	become_root();
	assert(chown(folder, 0, 0) == 0 && seteuid(user) == 0);
	assert(config_make_socket_folder(&config) == -EPERM);
	check_places("", "XDG_RUNTIME_DIR is not set, and the folder of /tmp/ttmem-");
	become_root();
	assert(rmdir(folder) == 0);
	config_deinit(&config);
}

UNIT(places_of_systemd)
{
	make_places();
	setenv("RUNTIME_DIRECTORY", "/run/a:/run/b", 1);
	setenv("STATE_DIRECTORY", "/var/lib/a", 1);
	check_places("/run/a/ttmemd.sock", "/var/lib/a");
	setenv("RUNTIME_DIRECTORY",
	       "/run/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	       "aaaaaaaaaaaaaaaaaaaaaa",
	       1);
	check_places("", "socket expects a path of at most 107 bytes, got \"/run/aaa");
}

UNIT(folders_are_made)
{
	struct config config;
	char socket[400], state[400];
	struct stat st;

	umask(077);
	assert(config_init(&config) == 0);
	snprintf(socket, sizeof(socket), "%s/a/b/s", unit_dir());
	snprintf(state, sizeof(state), "%s/a/c", unit_dir());
	config.socket = strdup(socket);
	config.state = strdup(state);
	for (int i = 0; i < 2; i++)
		assert(config_make_socket_folder(&config) == 0 &&
		       config_make_state_folder(&config) == 0);
	assert(stat(state, &st) == 0 && (st.st_mode & 07777) == 0700);
	*strrchr(socket, '/') = '\0';
	assert(stat(socket, &st) == 0 && (st.st_mode & 07777) == 0755);

	free(config.state);
	config.state = strdup("/proc/1/no/such/place");
	assert(config_make_state_folder(&config) < 0);
	free(config.socket);
	config.socket = strdup("/proc/1/no/such/socket");
	assert(config_make_socket_folder(&config) < 0);
	config_deinit(&config);
}
