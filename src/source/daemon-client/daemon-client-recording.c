/* SPDX-License-Identifier: Apache-2.0 */

/* Files of the flight recorder, which only the daemon can read. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "source/daemon-client/daemon-client-private.h"
#include "source/daemon-client/daemon-client.h"

static int daemon_client_recording_packet(void *context, const void *payload, size_t length, int fd)
{
	int *got = context;

	(void)payload; /* later versions may say something about it */
	(void)length;
	if (fd < 0 || *got >= 0) {
		if (fd >= 0)
			(void)close(fd); /* a second one */
		return DAEMON_CLIENT_GARBAGE;
	}
	*got = fd;
	return 0;
}

int daemon_client_recording(struct daemon_client *remote, const char *name, int *ret_fd)
{
	struct native_request request;
	int fd = -1, r;

	native_request_init(&request, NATIVE_RECORDING);
	if (strlen(name) >= sizeof(request.old))
		return -ENAMETOOLONG;
	memcpy(request.old, name, strlen(name));
	r = daemon_client_talk(remote, &request, daemon_client_recording_packet, &fd);
	if (r == 0 && fd < 0)
		r = daemon_client_settle(remote, DAEMON_CLIENT_GARBAGE);
	if (r == 0)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd); /* the answer was not complete */
	return r;
}
