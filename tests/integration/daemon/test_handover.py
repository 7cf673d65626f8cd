# SPDX-License-Identifier: Apache-2.0
"""Restarts under old clients: of ttmemd, of which they notice nothing, and of the program that serves them."""

import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from oldloop import OldLoop
from ttmemd import OldClient
from unit import Unit

from common import AS_NOBODY, shared_folder
from conftest import LIMIT
from world import wait_for

pytestmark = pytest.mark.legacy

RESTARTS = 20


def held(ttmemd, pid):
    """(buffers, bytes) of a process, as the daemon knows them."""
    rows = ttmemd.json("buffers", "--pid", pid)["buffers"]
    return len(rows), sum(row["size"] * row["refs"] for row in rows)


def old_clients(ttmemd):
    return ttmemd.json("status")["old_clients"]


def truth_is_known(ttmemd, client, truth):
    """A client has stopped: the daemon knows what it has, and its leak is what it left."""
    buffers, size, sent, asked = truth
    assert sent > RESTARTS and asked >= RESTARTS
    wait_for(lambda: held(ttmemd, client.pid) == (buffers, size), f"{buffers} buffers, {size} bytes")
    client.kill()
    leak = ttmemd.wait_for_leak(client.pid)
    assert (leak["buffer_count"], leak["bytes"]) == (buffers, size)
    assert len(ttmemd.leaks(client.pid)) == 1


class OldServer:
    """ttmem-legacy as a unit of systemd, which keeps its connections while it is restarted."""

    def __init__(self, ttmemd):
        self.ttmemd = ttmemd
        self.unit = Unit(ttmemd.folder, native=None, legacy="old")
        self.process = None
        self.start()

    def start(self):
        program = self.ttmemd.build / "src" / "legacy" / "program" / "ttmem-legacy"
        reading, writing = os.pipe()
        os.set_inheritable(writing, True)
        command = [program, "--config", "none", "--socket", self.ttmemd.socket, "--legacy-socket", self.ttmemd.legacy,
                   "--ready-fd", writing]  # fmt: skip
        command, env, fds = self.unit.start(list(map(str, command)), self.ttmemd.env)
        with open(self.ttmemd.log, "ab") as log:
            self.process = subprocess.Popen(command, env=env, pass_fds=[writing, *fds], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)  # fmt: skip
        os.close(writing)
        try:
            assert os.read(reading, 1) == b"\n", self.ttmemd.text()
        finally:
            os.close(reading)

    def restart(self, number=signal.SIGTERM):
        self.end(number)
        self.start()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        assert self.process.wait(timeout=LIMIT) == (0 if number == signal.SIGTERM else -number)


@pytest.fixture
def old_server(ttmemd):
    ttmemd.start("--legacy-socket", "none")
    server = OldServer(ttmemd)
    yield server
    server.process.kill()
    server.process.wait()
    server.unit.close()


def test_old_clients_notice_nothing_of_a_daemon_that_is_killed(ttmemd):
    ttmemd.start()
    (server,) = ttmemd.old_servers()
    clients = [ttmemd.adopt(OldLoop(ttmemd.legacy, size)) for size in (72, 144)]
    for _ in range(RESTARTS):
        ttmemd.kill()
        for client in clients:
            client.go_on()
        ttmemd.start()
        for client in clients:
            client.go_on()
    assert server in ttmemd.old_servers()
    truths = [client.stop() for client in clients]
    now = wait_for(lambda: (now := old_clients(ttmemd))["connections"] and now, "its state")
    assert (now["connections"], now["taken_over"], now["in_doubt"]) == (2, 0, 0)
    assert ttmemd.json("incidents")["incidents"] == []
    for client, truth in zip(clients, truths):
        truth_is_known(ttmemd, client, truth)


def test_old_clients_survive_restarts_of_their_server(ttmemd, old_server):
    clients = [ttmemd.adopt(OldLoop(ttmemd.legacy, size)) for size in (72, 144)]
    for client in clients:
        client.go_on()
    for _ in range(RESTARTS):
        old_server.restart()
        for client in clients:
            client.go_on()
    truths = [client.stop() for client in clients]
    now = wait_for(lambda: (now := old_clients(ttmemd))["connections"] and now, "its state")
    assert (now["connections"], now["taken_over"], now["in_doubt"]) == (2, 2, 0)
    assert ttmemd.json("incidents")["incidents"] == []
    for client, truth in zip(clients, truths):
        truth_is_known(ttmemd, client, truth)


def test_restarts_of_both_at_once(ttmemd, old_server):
    client = ttmemd.adopt(OldLoop(ttmemd.legacy, 144))
    for _ in range(RESTARTS // 2):
        client.go_on()
        old_server.end()
        ttmemd.kill()
        ttmemd.start("--legacy-socket", "none")
        old_server.start()
        client.go_on()
    for _ in range(RESTARTS // 2):
        ttmemd.kill()
        with ThreadPoolExecutor() as threads:
            restarted = threads.submit(old_server.restart)
            ttmemd.start("--legacy-socket", "none")
            restarted.result()
        client.go_on()
    truth_is_known(ttmemd, client, client.stop())


@pytest.mark.parametrize("size, cut", [(72, 1), (72, 71), (144, 72), (648, 300)])
def test_half_a_message_before_a_restart_and_half_after_it(ttmemd, old_server, size, cut):
    client = OldClient(ttmemd.legacy, size)
    client.alloc(0, 1, 0x1000, 100)
    assert client.query(0)[1] == 100
    message = client.message(client.ALLOC, 0, 1000, 1, 0x2000)
    client.socket.sendall(client.message(client.ALLOC, 0, 10, 1, 0x3000) + message[:cut])
    wait_for(lambda: held(ttmemd, os.getpid()) == (2, 110), "the whole message")
    old_server.restart()
    client.socket.sendall(message[cut:])
    assert client.query(0)[1] == 1110
    assert held(ttmemd, os.getpid()) == (3, 1110)
    client.close()


def test_the_first_bytes_of_a_connection_wait_for_the_next_server(ttmemd, old_server):
    """Its dialect is not known yet: the bytes could be several."""
    client = OldClient(ttmemd.legacy, 144)
    message = client.message(client.ALLOC, 0, 1000, 1, 0x2000)
    client.socket.sendall(message[:50])
    wait_for(lambda: old_clients(ttmemd)["connections"] == 1, "the connection")
    old_server.restart()
    client.socket.sendall(message[50:])
    assert client.query(0)[1] == 1000
    client.close()


def test_questions_that_wait_in_the_socket_are_answered_by_the_next_server(ttmemd, old_server):
    client = OldClient(ttmemd.legacy)
    assert client.query(0)[1] == 0
    old_server.process.send_signal(signal.SIGSTOP)
    for i in range(5):
        client.alloc(0, 1, 0x1000 * (i + 1), 10)
        client.socket.sendall(client.message(client.QUERY, 0, pid=0))
    old_server.process.send_signal(signal.SIGTERM)
    old_server.restart(signal.SIGKILL)
    answers = b""
    while len(answers) < 5 * 72:
        answers += client.socket.recv(4096)
    assert [struct.unpack_from("<Q", answers, 72 * i + 48)[0] for i in range(5)] == [10, 20, 30, 40, 50]
    client.close()


def test_a_client_that_connects_while_no_server_runs_is_served(ttmemd, old_server):
    old_server.end()
    client = OldClient(ttmemd.legacy)
    client.alloc(0, 1, 0x1000, 77)
    old_server.start()
    assert client.query(0)[1] == 77
    client.close()


SAY = (
    "import os, signal, socket, struct, sys\n"
    "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
    "def say(kind, size, address):\n"
    "    s.sendall(struct.pack('<B3xiQB3xiQQ', kind, 0, size, 1, os.getpid(), address, 1).ljust(72, b'\\0'))\n"
    "say(1, 100, 0x1000); say(1, 10, 0x2000); print('ok', flush=True)\n"
    "sys.stdin.readline()\n"
    "say(2, 0, 0x1000); say(1, 1, 0x3000)\n"
)


@pytest.mark.parametrize(
    "user", [pytest.param((), id="itself"), pytest.param(AS_NOBODY, marks=pytest.mark.other_user, id="nobody")]
)
@pytest.mark.parametrize("down", ["server", "daemon", "both"])
def test_what_a_client_said_before_it_died_counts_for_its_leaks(ttmemd, old_server, user, down):
    """It dies while one is down, and its last messages are still in its connection. Its own user sees them."""
    process = ttmemd.adopt(subprocess.Popen([*user, sys.executable, "-c", SAY, str(ttmemd.legacy)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # fmt: skip
    assert process.stdout.readline() == "ok\n"
    wait_for(lambda: held(ttmemd, process.pid) == (2, 110), "its buffers")
    if down != "daemon":
        old_server.end()
    if down != "server":
        ttmemd.stop()
    process.communicate("\n", timeout=LIMIT)
    assert process.returncode == 0
    if down != "server":
        ttmemd.start("--legacy-socket", "none")
    if down != "daemon":
        old_server.start()
    assert ttmemd.wait_for_leak(process.pid, before=user)["bytes"] == 11
    assert len(ttmemd.leaks(process.pid, before=user)) == 1


def test_thousands_of_connections_are_taken_over(ttmemd, old_server):
    count = 1500
    sockets = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        # A login has 1024.
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for _ in range(count):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.connect(str(ttmemd.legacy))
            sockets.append(one)
        # Every second one ends: what is left in a box must not come back.
        for one in sockets[::2]:
            one.close()
        wait_for(lambda: old_clients(ttmemd)["connections"] == count // 2, "connections")
        old_server.restart()
        wait_for(lambda: old_clients(ttmemd)["taken_over"] == count // 2, "the connections")
        client = OldClient.__new__(OldClient)
        client.size, client.socket = 72, sockets[-1]
        client.alloc(0, 1, 0x1000, 5)
        assert client.query(0)[1] == 5


def served(ttmemd, *options):
    """A daemon, and a client of which it knows 5 bytes."""
    ttmemd.start(*options)
    client = OldClient(ttmemd.legacy)
    client.alloc(0, 1, 0x1000, 5)
    assert client.query(0)[1] == 5
    return client


def test_by_hand_connections_end_with_the_daemon_that_is_stopped(ttmemd):
    client = served(ttmemd)
    assert ttmemd.stop() == 0
    assert ttmemd.old_servers() == []
    assert client.socket.recv(1) == b""
    with pytest.raises(FileNotFoundError):
        OldClient(ttmemd.legacy)
    client.close()


@pytest.mark.other_user
def test_another_user_can_serve_after_a_daemon_that_is_stopped(ttmemd):
    """In /tmp, where nobody may remove what is another's."""
    with shared_folder() as folder:
        folder.chmod(0o1777)
        ttmemd.legacy = folder / "old.sock"
        served(ttmemd).close()
        assert ttmemd.stop() == 0
        assert not ttmemd.legacy.exists()
        ttmemd.socket, ttmemd.state = folder / "s", folder / "state"
        ttmemd.start(before=AS_NOBODY)
        client = OldClient(ttmemd.legacy)
        assert client.query(0) == (0, 0, 0, 0)
        client.close()
        assert ttmemd.stop() == 0


def test_a_killed_server_is_started_again_and_what_its_clients_had_is_known(ttmemd):
    """As with the original server, its connections end; a process that connects again goes on with its book."""
    client = served(ttmemd)
    (server,) = ttmemd.old_servers()
    os.kill(server, signal.SIGKILL)
    assert client.socket.recv(1) == b""
    wait_for(lambda: set(ttmemd.old_servers()) - {server}, "another one")
    again = wait_for(lambda: connected(ttmemd), "a connection")
    again.alloc(0, 1, 0x2000, 7)
    assert again.query(0)[1] == 12
    again.free(0, 0x1000)
    assert again.query(0)[1] == 7
    assert ttmemd.json("incidents")["incidents"] == []
    wait_for(lambda: "ttmem-legacy has ended (signal 9)" in ttmemd.text(), "the line")
    again.close()


def connected(ttmemd):
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        return OldClient(ttmemd.legacy)
    return None


def test_what_the_clients_of_a_killed_server_left_is_reported(ttmemd, old_server):
    process = ttmemd.adopt(subprocess.Popen([sys.executable, "-c", SAY, str(ttmemd.legacy)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # fmt: skip
    assert process.stdout.readline() == "ok\n"
    wait_for(lambda: held(ttmemd, process.pid) == (2, 110), "its buffers")
    old_server.end(signal.SIGKILL)
    process.kill()
    assert ttmemd.wait_for_leak(process.pid)["bytes"] == 110


def test_a_daemon_that_serves_no_old_clients(ttmemd):
    ttmemd.start("--legacy-socket", "none")
    assert ttmemd.old_servers() == []
    with pytest.raises(FileNotFoundError):
        OldClient(ttmemd.legacy)
