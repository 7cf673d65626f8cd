/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Feeds arbitrary packets, with a descriptor if the last byte is odd: each is refused or is a valid
 * message, and no descriptor leaks.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "daemon/custody/keeper-wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct keeper_wire message;
	int pair[2], null, fd = -1, r;
	bool has_fd;

	if (size == 0 || size > FUZZ_MAX)
		return 0;
	has_fd = data[size - 1] & 1;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert(null >= 0);
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	assert(fd_pass_send(pair[0], data, size - 1, &null, has_fd, 0) == 0);
	r = keeper_wire_receive(pair[1], &message, &fd);
	if (r == 0) {
		assert(size - 1 == sizeof(message) && has_fd == (fd >= 0));
		assert(keeper_wire_is_valid(&message, has_fd));
		assert(memchr(message.comm, '\0', sizeof(message.comm)));
		assert(fd < 0 || !keeper_wire_fits(&message, fd)); /* a device is not a book */
	} else {
		assert((r == -EBADMSG || r == -EPIPE) && fd < 0);
	}
	if (fd >= 0)
		assert(close(fd) == 0);
	assert(close(pair[0]) == 0 && close(pair[1]) == 0);
	/* open() and dup() return the lowest free number, so nothing was left open. */
	r = dup(null); /* NOLINT(android-cloexec-dup): closed at once */
	assert(r == (pair[0] < pair[1] ? pair[0] : pair[1]));
	assert(close(r) == 0 && close(null) == 0);
	return 0;
}
