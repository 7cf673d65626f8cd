/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Default locations of the socket and the state: the system-wide place if it is writable, else the
 * user's own. Folders made by systemd take precedence over both.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/own-socket.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"

const struct config_places config_places_usual = {
	.run = "/run/ttmem",
	.state = "/var/lib/ttmem",
	.file = "/etc/ttmem/ttmemd.conf",
};

static bool is_writable(const char *folder)
{
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

/* Whether files can be created in @folder, which may not exist yet. */
static bool can_write(const char *folder)
{
	const char *slash = strrchr(folder, '/');
	char parent[PATH_MAX];

	if (is_writable(folder))
		return true;
	if (errno != ENOENT || !slash || slash == folder ||
	    (size_t)(slash - folder) >= sizeof(parent))
		return false;
	memcpy(parent, folder, (size_t)(slash - folder));
	parent[slash - folder] = '\0';
	return is_writable(parent);
}

/* The folder named by a variable, or NULL. XDG says that relative paths must be ignored. */
static const char *folder_variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value == '/' ? value : NULL;
}

/* systemd separates several folders by colons; ours is the first. */
static int length_of_first(const char *list)
{
	return (int)strcspn(list, ":");
}

/* Takes ownership of @path. 0, CONFIG_WRONG or -ENOMEM. */
static int set_path_consume(struct config *config, const char *name, char *path, FILE *errors)
{
	const struct config_key *key = config_keys_find(name, strlen(name));
	int r = config_keys_set(config, key, path);

	if (r == CONFIG_WRONG)
		fprintf(errors, "ttmemd: %s expects %s, got \"%s\"; use --%s\n", name, key->expects,
			path, name);
	free(path);
	return r;
}

static int choose_socket(struct config *config, const struct config_places *places, FILE *errors)
{
	const char *made = folder_variable("RUNTIME_DIRECTORY");
	char *path, own[PATH_MAX];
	int n, r;

	if (made)
		n = asprintf(&path, "%.*s/ttmemd.sock", length_of_first(made), made);
	else if (can_write(places->run))
		n = asprintf(&path, "%s/ttmemd.sock", places->run);
	else {
		r = own_socket_find(own, sizeof(own));
		if (r == -EPERM) {
			fprintf(errors,
				"ttmemd: no place for the native socket: %s cannot be written to, "
				"XDG_RUNTIME_DIR is not set, and the folder of %s is not only "
				"yours; use "
				"--socket PATH\n",
				places->run, own);
			return CONFIG_WRONG;
		}
		n = asprintf(&path, "%s", own);
	}
	return n < 0 ? -ENOMEM : set_path_consume(config, "socket", path, errors);
}

static int choose_state(struct config *config, const struct config_places *places, FILE *errors)
{
	const char *made = folder_variable("STATE_DIRECTORY");
	const char *own = folder_variable("XDG_STATE_HOME");
	const char *home = folder_variable("HOME");
	char *path;
	int n;

	if (made)
		n = asprintf(&path, "%.*s", length_of_first(made), made);
	else if (can_write(places->state))
		n = asprintf(&path, "%s", places->state);
	else if (own)
		n = asprintf(&path, "%s/ttmem", own);
	else if (home)
		n = asprintf(&path, "%s/.local/state/ttmem", home);
	else {
		fprintf(errors,
			"ttmemd: no place for the past: %s cannot be written to, and neither "
			"XDG_STATE_HOME nor HOME is set; use --state DIR\n",
			places->state);
		return CONFIG_WRONG;
	}
	return n < 0 ? -ENOMEM : set_path_consume(config, "state", path, errors);
}

int config_places_choose(struct config *config, const struct config_places *places, FILE *errors)
{
	char *path;
	int r = 0;

	if (!config->socket)
		r = choose_socket(config, places, errors);
	if (r == 0 && !config->state)
		r = choose_state(config, places, errors);
	if (r == 0 && !config->token_file)
		r = asprintf(&path, "%s/http-token", config->state) < 0
			    ? -ENOMEM
			    : set_path_consume(config, "token-file", path, errors);
	return r;
}

/* Makes @path and its missing parents, with a mode that does not depend on the umask. */
static int make_folder(char *path, mode_t mode)
{
	char *slash;
	int r;

	if (mkdir(path, mode) == 0)
		return chmod(path, mode) == 0 ? 0 : -errno;
	if (errno != ENOENT)
		return errno == EEXIST ? 0 : -errno;
	slash = strrchr(path, '/');
	if (!slash || slash == path)
		return -ENOENT;
	*slash = '\0';
	r = make_folder(path, 0755);
	*slash = '/';
	if (r < 0)
		return r;
	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	return chmod(path, mode) == 0 ? 0 : -errno;
}

static int make_copied(const char *path, size_t length, mode_t mode)
{
	CLEANUP_FREE char *copy = strndup(path, length);

	return copy ? make_folder(copy, mode) : -ENOMEM;
}

/*
 * With a mode for everybody: who may see what is decided for each connection. Only the one in /tmp, which others may
 * make too, must be ours.
 */
int config_make_socket_folder(const struct config *config)
{
	const char *slash = strrchr(config->socket, '/');
	char own[PATH_MAX];
	int found = own_socket_find(own, sizeof(own));
	size_t length;

	if (!slash || slash == config->socket)
		return 0;
	length = (size_t)(slash - config->socket);
	if (found == 0 || strcmp(own, config->socket) != 0)
		return make_copied(config->socket, length, 0755);
	if (found != -ENOENT)
		return found;
	found = make_copied(config->socket, length, 0700);
	return found < 0 ? found : own_socket_find(own, sizeof(own));
}

int config_make_state_folder(const struct config *config)
{
	return make_copied(config->state, strlen(config->state), 0700);
}
