# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are above the daemon, beside it, or have the number of one that has ended."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from common import become
from conftest import LIMIT
from nativesocket import ask
from world import wait_for

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make namespaces"),
]

CONTAINER = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
USER = 12345

# Connects and ends; a child, with its connection, asks.
LEAVES = """
import os, socket, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect(sys.argv[1])
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent:
    pass
client.send(b"GET /api/v1/leaks HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
client.settimeout(60)
answer = client.recv(65536)
sys.stdout.write((answer + (client.recv(65536) if answer.endswith(b"\\r\\n\\r\\n") else b"")).decode())
"""


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


def leave(daemon, name, before=()):
    """A process that leaves a buffer behind; returns what its pid namespace was."""
    player = daemon.player(f"alloc 0 DRAM 0x1000 64 {name}", before=before)
    children = Path(f"/proc/{player.pid}/task/{player.pid}/children")
    (inner,) = wait_for(lambda: children.read_text().split(), "the process")
    number = os.stat(f"/proc/{inner}/ns/pid").st_ino
    os.kill(int(inner), 9)
    wait_for(lambda: name in daemon.run("leaks").stdout, "the report")
    player.process.wait(LIMIT)
    return number


def test_a_later_container_with_the_same_number_sees_nothing(daemon):
    """The kernel gives the number of a pid namespace that has ended to the next one."""
    daemon.start("--keeper", "no")
    number = leave(daemon, "secret", before=CONTAINER)
    script = 'stat -Lc %i /proc/self/ns/pid; exec "$@"'
    for _ in range(200):
        result = subprocess.run(
            [*CONTAINER, "sh", "-c", script, "sh", daemon.build / "src" / "cli" / "ttmem", "leaks"],
            env={**daemon.env, **daemon.blind}, capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        assert "secret" not in result.stdout
        if result.stdout.startswith(f"{number}\n"):
            return
    pytest.skip("the number was not given out again")


def above_can_be_told():
    """Linux 6.11 has the call that tells."""
    return tuple(map(int, platform.release().split(".")[:2])) >= (6, 11)


def test_root_above_the_daemon_sees_all_and_root_beside_it_does_not(daemon):
    daemon.start("--keeper", "no", before=("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"))
    # In the daemon's own namespaces.
    (inner,) = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    inside = ("nsenter", "--target", inner, "--mount", "--pid")
    daemon.player("alloc 0 DRAM 0x1000 64 secret", before=inside)

    def buffers(*before):
        return daemon.run("buffers", "--json", before=before, env=daemon.blind).stdout

    wait_for(lambda: "secret" in buffers(*inside), "the book")
    assert ("secret" in buffers()) == above_can_be_told()
    assert "secret" not in buffers(*CONTAINER)
    assert "secret" not in buffers(*become(USER))


def test_root_who_has_ended_and_left_the_connection_sees_nothing(daemon):
    """The pid of the process that connected may be any other's by then."""
    daemon.start("--keeper", "no")
    player = daemon.player("alloc 0 DRAM 0x1000 64 secret")
    player.kill()
    daemon.wait_for_leak(player.pid)
    os.kill(daemon.process.pid, 19)
    try:
        asker = subprocess.Popen([sys.executable, "-c", LEAVES, daemon.socket], stdout=subprocess.PIPE, text=True)
        asker.wait(LIMIT)
    finally:
        os.kill(daemon.process.pid, 18)
    with asker.stdout as stdout:
        answer = stdout.read()
    assert "HTTP/1.1 200" in answer and "secret" not in answer and '"hidden":1' in answer


# Allocates with the old protocol, waits until the server has it, and asks for all buffers.
OLD = """
import os, socket, struct, sys
def connect():
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(60)
    client.connect(sys.argv[1])
    return client
def message(kind, size=0, address=0):
    return struct.pack("<B3xiQB3xiQQ", kind, 0, size, 0, os.getpid(), address, 1).ljust(72, b"\\0")
own, asks = connect(), connect()
own.sendall(message(1, 4096, int(sys.argv[2], 16)) + message(3))
own.recv(72)
asks.sendall(b"QUERY_ALL\\n")
text = b""
while b"\\n\\n" not in text:
    text += asks.recv(65536)
print(text.decode())
"""


def old_clients_buffers(daemon, before, address):
    return subprocess.run([*before, sys.executable, "-c", OLD, daemon.legacy, address], capture_output=True, text=True,
                          timeout=LIMIT, check=True).stdout  # fmt: skip


def test_old_clients_do_not_see_each_others_buffers(daemon):
    """Their books are the daemon's files; what counts is who they are kept for."""
    daemon.start("--keeper", "no")
    client = daemon.old_client()
    client.alloc(0, 0, 0x5EED1000, 4096)
    assert client.query(0)[0] == 4096
    assert "0x5eed1000" in old_clients_buffers(daemon, (), "0x5eed2000")
    seen = old_clients_buffers(daemon, become(USER), "0x5eed3000")
    assert "0x5eed1000" not in seen and "0x5eed3000" in seen
    # At least: the buffer of the process before may not be gone yet.
    assert re.search(r"DRAM: [23] buffers", seen) and re.search(r"Not listed: [12] buffers of other users", seen)
    client.close()


def test_a_socket_alone_says_nothing_about_others(daemon):
    """What everybody is told has no names and no addresses."""
    daemon.start("--keeper", "no")
    daemon.player("alloc 0 DRAM 0x5eed1000 64 secret")
    wait_for(lambda: daemon.json("status")["books"] == 1, "the book")
    for page in ("smi", "ps", "series", "cards", "status"):
        status, body = ask(daemon, f"/api/v1/{page}")
        assert status == 200 and b"secret" not in body and b"5eed" not in body


def test_who_ended_before_being_seen_is_shown_to_few(daemon):
    """Nobody can tell any more where it was; in a container it was not, if its book says so."""
    daemon.start("--keeper", "no", "--scan-interval", "1d")
    os.kill(daemon.process.pid, 19)
    try:
        for before, name in (((*CONTAINER, *become(USER)), "contained"), (become(USER), "mine")):
            player = daemon.player(f"alloc 0 DRAM 0x1000 64 {name}", before=before)
            player.process.stdin.close()
            player.process.wait(LIMIT)
    finally:
        os.kill(daemon.process.pid, 18)

    def shown(*before):
        text = daemon.run("leaks", before=before).stdout
        return {name for name in ("contained", "mine") if name in text}

    wait_for(lambda: shown() == {"contained", "mine"}, "the reports")
    assert shown(*become(USER)) == {"mine"}
    assert shown(*CONTAINER) == set()
