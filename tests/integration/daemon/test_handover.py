# SPDX-License-Identifier: Apache-2.0
"""A restart of the daemon under old clients: their connections stay open, and every message counts once."""

import contextlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys

import pytest
from oldloop import OldLoop
from ttmemd import SERVES, OldClient

from common import AS_NOBODY
from conftest import LIMIT
from world import wait_for

RESTARTS = 20


def loop(ttmemd, size):
    return ttmemd.adopt(OldLoop(ttmemd.legacy, size))


def served(ttmemd, *options):
    """A daemon, and a client of which it knows 5 bytes."""
    ttmemd.start(*options)
    client = OldClient(ttmemd.legacy)
    client.alloc(0, 1, 0x1000, 5)
    assert client.query(0)[1] == 5
    return client


def held(ttmemd, pid):
    """(buffers, bytes) of a process, as the daemon knows them."""
    rows = ttmemd.json("buffers", "--pid", pid)["buffers"]
    return len(rows), sum(row["size"] * row["refs"] for row in rows)


def old_clients(ttmemd):
    return ttmemd.json("status")["old_clients"]


def test_old_clients_in_a_tight_loop_survive_twenty_restarts(ttmemd):
    ttmemd.start()
    clients = [loop(ttmemd, 72), loop(ttmemd, 144)]
    wait_for(lambda: old_clients(ttmemd)["connections"] == len(clients), "the connections")
    for _ in range(RESTARTS):
        assert ttmemd.stop() == 0
        ttmemd.start()
        assert old_clients(ttmemd)["taken_over"] == len(clients)
        for client in clients:
            client.go_on()
    truths = [client.stop() for client in clients]
    for client, (buffers, size, sent, asked) in zip(clients, truths):
        assert sent > RESTARTS and asked >= RESTARTS
        wait_for(lambda: held(ttmemd, client.pid) == (buffers, size), f"{buffers} buffers, {size} bytes")
    assert old_clients(ttmemd)["in_doubt"] == 0
    assert ttmemd.json("incidents")["incidents"] == []
    for client, truth in zip(clients, truths):
        client.kill()
        leak = ttmemd.wait_for_leak(client.pid)
        assert (leak["buffer_count"], leak["bytes"]) == truth[:2]


def test_a_killed_daemon_doubts_no_more_than_it_counts(ttmemd):
    ttmemd.start()
    client = loop(ttmemd, 144)
    doubts = 0
    for _ in range(RESTARTS):
        client.go_on()
        ttmemd.kill()
        ttmemd.start()
        now = old_clients(ttmemd)
        assert now["connections"] == 1 and now["in_doubt"] <= 1
        doubts += now["in_doubt"]
    buffers, size, sent, asked = client.stop()
    assert sent > RESTARTS and asked >= RESTARTS
    if doubts:
        wait_for(lambda: abs(held(ttmemd, client.pid)[0] - buffers) <= doubts, f"about {buffers} buffers")
    else:
        wait_for(lambda: held(ttmemd, client.pid) == (buffers, size), f"{buffers} buffers, {size} bytes")


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("size, cut", [(72, 1), (72, 71), (144, 72), (648, 300)])
def test_half_a_message_before_a_restart_and_half_after_it(ttmemd, end, size, cut):
    ttmemd.start()
    client = OldClient(ttmemd.legacy, size)
    client.alloc(0, 1, 0x1000, 100)
    assert client.query(0)[1] == 100
    message = client.message(client.ALLOC, 0, 1000, 1, 0x2000)
    client.socket.sendall(client.message(client.ALLOC, 0, 10, 1, 0x3000) + message[:cut])
    wait_for(lambda: held(ttmemd, os.getpid()) == (2, 110), "the whole message")
    getattr(ttmemd, end)()
    ttmemd.start()
    client.socket.sendall(message[cut:])
    assert client.query(0)[1] == 1110
    assert held(ttmemd, os.getpid()) == (3, 1110)
    client.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_first_bytes_of_a_connection_wait_for_the_next_daemon(ttmemd, end):
    """Its dialect is not known yet: the bytes could be several."""
    ttmemd.start()
    client = OldClient(ttmemd.legacy, 144)
    message = client.message(client.ALLOC, 0, 1000, 1, 0x2000)
    client.socket.sendall(message[:50])
    wait_for(lambda: old_clients(ttmemd)["connections"] == 1, "the connection")
    getattr(ttmemd, end)()
    ttmemd.start()
    client.socket.sendall(message[50:])
    assert client.query(0)[1] == 1000
    client.close()


def test_questions_that_wait_in_the_socket_are_answered_by_the_next_daemon(ttmemd):
    ttmemd.start()
    client = OldClient(ttmemd.legacy)
    assert client.query(0)[1] == 0
    ttmemd.process.send_signal(signal.SIGSTOP)
    for i in range(5):
        client.alloc(0, 1, 0x1000 * (i + 1), 10)
        client.socket.sendall(client.message(client.QUERY, 0, pid=0))
    ttmemd.kill()
    ttmemd.start()
    answers = b""
    while len(answers) < 5 * 72:
        answers += client.socket.recv(4096)
    assert [struct.unpack_from("<Q", answers, 72 * i + 48)[0] for i in range(5)] == [10, 20, 30, 40, 50]
    client.close()


def test_a_client_that_connects_while_no_daemon_runs_is_served(ttmemd):
    ttmemd.start()
    ttmemd.stop()
    client = OldClient(ttmemd.legacy)
    client.alloc(0, 1, 0x1000, 77)
    ttmemd.start()
    assert client.query(0)[1] == 77
    client.close()


@pytest.mark.parametrize(
    "user", [pytest.param((), id="itself"), pytest.param(AS_NOBODY, marks=pytest.mark.other_user, id="nobody")]
)
def test_what_a_client_said_before_it_died_counts_for_its_leaks(ttmemd, user):
    """It dies while no daemon runs, and its last messages are still in its connection. Its own user sees them."""
    ttmemd.start()
    script = (
        "import os, signal, socket, struct, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "def say(kind, size, address):\n"
        "    s.sendall(struct.pack('<B3xiQB3xiQQ', kind, 0, size, 1, os.getpid(), address, 1).ljust(72, b'\\0'))\n"
        "say(1, 100, 0x1000); say(1, 10, 0x2000); print('ok', flush=True)\n"
        "sys.stdin.readline()\n"
        "say(2, 0, 0x1000); say(1, 1, 0x3000)\n"
    )
    process = ttmemd.adopt(subprocess.Popen([*user, sys.executable, "-c", script, str(ttmemd.legacy)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # fmt: skip
    assert process.stdout.readline() == "ok\n"
    wait_for(lambda: held(ttmemd, process.pid) == (2, 110), "its buffers")
    ttmemd.stop()
    process.communicate("\n", timeout=LIMIT)
    assert process.returncode == 0
    ttmemd.start()
    assert ttmemd.wait_for_leak(process.pid, before=user)["bytes"] == 11
    assert len(ttmemd.leaks(process.pid, before=user)) == 1


def test_thousands_of_connections_are_taken_over(ttmemd):
    ttmemd.start()
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
        for end in (ttmemd.stop, ttmemd.kill):
            end()
            ttmemd.start()
            now = old_clients(ttmemd)
            assert now["taken_over"] == now["connections"] == count // 2
        client = OldClient.__new__(OldClient)
        client.size, client.socket = 72, sockets[-1]
        client.alloc(0, 1, 0x1000, 5)
        assert client.query(0)[1] == 5


def test_a_lost_keeper_gets_the_connections_again(ttmemd):
    client = served(ttmemd)
    keeper = ttmemd.keeper(ttmemd.holds_connections)
    os.kill(keeper, signal.SIGKILL)
    ttmemd.keeper(ttmemd.holds_connections, besides=keeper)
    ttmemd.kill()
    ttmemd.start()
    assert old_clients(ttmemd)["taken_over"] == 1
    assert client.query(0)[1] == 5
    client.close()


def test_without_a_keeper_connections_end_with_the_daemon(ttmemd):
    client = served(ttmemd, "--keeper", "no")
    ttmemd.stop()
    assert client.socket.recv(1) == b""
    with pytest.raises(FileNotFoundError):
        OldClient(ttmemd.legacy)


def test_a_daemon_that_serves_no_old_clients_ends_their_connections(ttmemd):
    client = served(ttmemd)
    ttmemd.stop()
    ttmemd.start("--legacy-socket", "none")
    assert client.socket.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        OldClient(ttmemd.legacy)


def test_another_path_is_served_after_a_restart(ttmemd):
    """The connections go on; the socket that accepts is another."""
    client = served(ttmemd)
    ttmemd.stop()
    ttmemd.legacy = ttmemd.folder / "new"
    ttmemd.start()
    other = OldClient(ttmemd.legacy)
    other.alloc(0, 1, 0x2000, 7)
    assert other.query(0)[1] == client.query(0)[1] == 12
    client.close()
    other.close()


def test_metrics_count_what_was_taken_over(ttmemd):
    client = served(ttmemd, "--http", "127.0.0.1:0")
    ttmemd.stop()
    ttmemd.start("--http", "127.0.0.1:0")
    wait_for(lambda: len(SERVES.findall(ttmemd.text())) == 2, "the second daemon's address")
    _, text = ttmemd.fetch("/metrics")
    assert re.search(r"^ttmem_legacy_taken_over_total 1$", text, re.M)
    assert re.search(r"^ttmem_legacy_in_doubt_total 0$", text, re.M)
    client.close()
