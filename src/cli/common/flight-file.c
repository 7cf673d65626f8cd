/* SPDX-License-Identifier: Apache-2.0 */

/* Only the name counts, "PID-START-WHY.ttrec": the folder is the daemon's, and may not exist here. */

#include "cli/common/flight-file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "source/daemon-client/daemon-client.h"

/* Skips digits and a dash. NULL if they are not there. */
static const char *flight_file_skip_number(const char *text)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;

	return digits > 0 && text[digits] == '-' ? text + digits + 1 : NULL;
}

static bool flight_file_is_name(const char *name)
{
	const char *why = flight_file_skip_number(flight_file_skip_number(name));

	return why && (strcmp(why, "failed.ttrec") == 0 || strcmp(why, "ended.ttrec") == 0);
}

int flight_file_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct daemon_client *client;
	int fd = -1, r;

	if (!slash || !flight_file_is_name(slash + 1))
		return -ENOENT;
	r = daemon_client_new(&client);
	if (r < 0)
		return r;
	r = daemon_client_recording(client, slash + 1, &fd);
	daemon_client_free(client);
	return r == 0 ? fd : -ENOENT;
}
