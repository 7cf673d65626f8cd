# SPDX-License-Identifier: Apache-2.0
"""How a process ended is the kernel's word about that process: nobody can lend or borrow another's end."""

import os
import subprocess

import pytest

from common import AS_NOBODY
from world import wait_for

# Keeps a book that the library does not offer, and offers it with the pidfd of another process.
# argv: the socket, the other process. Ends with 5 when it gets a line.
IMPOSTOR = r"""
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static int find_book(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	char path[300], target[300];

	while ((entry = readdir(folder))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && strncmp(target, "/memfd:ttmem-book", 17) == 0)
			return open(path, O_RDONLY);
	}
	abort();
}

int main(int argc, char **argv)
{
	uint32_t offer[4] = {0x464f5454, 1, 16, 0};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	struct iovec bytes = {offer, sizeof(offer)};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int fds[2], link = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char byte;

	(void)argc;
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 100, "left");
	fds[0] = find_book();
	fds[1] = (int)syscall(SYS_pidfd_open, atoi(argv[2]), 0);
	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (fds[1] < 0 || connect(link, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    sendmsg(link, &message, 0) < 0)
		abort();
	if (write(1, "\n", 1) != 1 || read(0, &byte, 1) != 1)
		abort();
	_exit(5);
}
"""


def say(process):
    process.stdin.write(b"\n")
    process.stdin.flush()


@pytest.mark.needs_root
def test_a_lent_pidfd_ends_nobody_and_its_status_is_not_taken(ttmemd, compile_c):
    program = compile_c(IMPOSTOR, "impostor")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    ttmemd.start()
    victim = ttmemd.adopt(subprocess.Popen(["sh", "-c", "echo; read line; exit 3"], **pipes))
    assert victim.stdout.readline() == b"\n"
    impostor = ttmemd.adopt(
        subprocess.Popen(
            [*AS_NOBODY, program, str(ttmemd.socket), str(victim.pid)],
            env={**ttmemd.env, "TTMEM": "1", "TTMEM_SOCKET": "none"},
            **pipes,
        )
    )
    assert impostor.stdout.readline() == b"\n"
    wait_for(lambda: ttmemd.json("status")["books"] == 1, "the book")
    say(victim)
    assert victim.wait() == 3
    # A process that ends later is judged later.
    other = ttmemd.player("alloc 0 DRAM 0x1000 5")
    wait_for(lambda: ttmemd.json("status")["books"] == 2, "another book")
    other.kill()
    ttmemd.wait_for_leak(other.pid)
    assert ttmemd.leaks(impostor.pid) == []
    say(impostor)
    os.waitid(os.P_PID, impostor.pid, os.WEXITED | os.WNOWAIT)
    assert ttmemd.wait_for_leak(impostor.pid)["exit"] == {"code": 5, "signal": None, "name": None}
