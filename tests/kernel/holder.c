/* SPDX-License-Identifier: Apache-2.0 */

/*
 * holder HOW DEVICE TYPE SIZE...: allocates, says "ready", and holds it until its input ends. HOW is
 *
 *	book	with the library
 *	closed	likewise, and then closes every descriptor but the first three
 *	plain	by the calls of the old design, which are ioctls here
 *	PATH	as a client of the old protocol, at that socket
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ttmem/compat/tt_track.h>
#include <ttmem/ttmem.h>

#include "legacy/wire/legacy-encode.h"

#define HOLDER_FDS 1024

static bool holder_send(const char *path, const struct legacy_message *message)
{
	static int fd = -1;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;

	if (fd < 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
		if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
			return false;
	}
	return legacy_encode_request(LEGACY_W72, message, bytes, &length) == 0 &&
	       send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* One buffer. */
static bool holder_hold(const char *how, uint32_t device, uint32_t type, uint64_t address,
			uint64_t size)
{
	struct legacy_message message = {.type = LEGACY_ALLOC,
					 .pid = getpid(),
					 .device = (int32_t)device,
					 .buffer_type = (uint8_t)type,
					 .id = address,
					 .size = size,
					 .name = "",
					 .stack = ""};

	if (*how == '/')
		return holder_send(how, &message);
	if (strcmp(how, "plain") == 0)
		return tt_track_allocation(device, address, size, type) == 0;
	ttmem_alloc(device, type, address, size, "held");
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	for (int i = 4; i < argc; i++) {
		if (!holder_hold(argv[1], (uint32_t)strtoul(argv[2], NULL, 0),
				 (uint32_t)strtoul(argv[3], NULL, 0), (uint64_t)i * 0x10000,
				 strtoull(argv[i], NULL, 0)))
			return 1;
	}
	for (int fd = 3; strcmp(argv[1], "closed") == 0 && fd < HOLDER_FDS; fd++)
		(void)close(fd); /* whichever are open: as programs do */
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
