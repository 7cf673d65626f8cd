/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any packet, with a descriptor if its last byte is odd, is refused or is a message in which nothing is
 * wrong; and no descriptor is left over.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unit.h"
#include "daemon/keeper-wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MAX 4096u

static void send_packet(int socket, const uint8_t *data, size_t size, int fd)
{
	uint8_t copy[FUZZ_MAX];
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.space = {0}};
	struct iovec vector = {.iov_base = copy, .iov_len = size};
	struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};

	memcpy(copy, data, size);
	if (fd >= 0) {
		header.msg_control = control.space;
		header.msg_controllen = sizeof(control.space);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	assert(sendmsg(socket, &header, 0) == (ssize_t)size);
}

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
	send_packet(pair[0], data, size - 1, has_fd ? null : -1);
	r = keeper_wire_receive(pair[1], &message, &fd);
	if (r == 0) {
		assert(size - 1 == sizeof(message) && has_fd == (fd >= 0));
		assert(keeper_wire_is_valid(&message, has_fd));
		assert(memchr(message.comm, '\0', sizeof(message.comm)));
		assert(fd < 0 || !keeper_wire_fits(&message, fd)); /* a device is no book */
	} else {
		assert((r == -EBADMSG || r == -EPIPE) && fd < 0);
	}
	if (fd >= 0)
		assert(close(fd) == 0);
	assert(close(pair[0]) == 0 && close(pair[1]) == 0);
	/* What is opened next has the lowest number: nothing was left open. */
	r = dup(null); /* NOLINT(android-cloexec-dup): closed at once */
	assert(r == (pair[0] < pair[1] ? pair[0] : pair[1]));
	assert(close(r) == 0 && close(null) == 0);
	return 0;
}
