# SPDX-License-Identifier: Apache-2.0
"""What all users share, and one of them who takes as much of it as there is."""

import contextlib
import re
import sqlite3
import subprocess

import pytest
from common import become
from conftest import LIMIT
from ttmemd import OldClient
from world import wait_for

ATTACKER, VICTIM = 64901, 64902

pytestmark = pytest.mark.other_user


def start(daemon, user, *command):
    """A program of a user; returns when it has printed a line."""
    process = daemon.adopt(
        subprocess.Popen(
            [str(word) for word in (*become(user), *command)],
            env={**daemon.env, "TTMEM": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    process.said = process.stdout.readline()
    process.stdout.close()
    assert process.said, "it has ended"
    return process


def script(daemon, user, text, *words):
    return start(daemon, user, "/usr/bin/python3", "-c", text, *words)


def metric(daemon, name):
    text = daemon.fetch("/metrics")[1]
    return int(re.search(rf"^{name} (\d+)$", text, re.M)[1])


@contextlib.contextmanager
def stuck_disk(daemon):
    """Nothing can be written into the history meanwhile."""
    with contextlib.closing(sqlite3.connect(daemon.state / "history.db", timeout=LIMIT)) as base:
        base.isolation_level = None
        base.execute("BEGIN IMMEDIATE")
        yield
        base.execute("ROLLBACK")


def test_failing_allocations_of_one_user_cost_another_no_leak_report(ttmemd):
    ttmemd.start()
    players = [
        ttmemd.player("alloc 0 DRAM 0x1000 7 weights", before=become(VICTIM)) for _ in range(60)
    ]
    wait_for(lambda: ttmemd.json("status")["past"]["written"], "a sample: the file is there")
    with stuck_disk(ttmemd):
        for _ in range(4):
            start(ttmemd, ATTACKER, ttmemd.build / "tests" / "programs" / "hostile", "failed")

        def storm():
            past = ttmemd.json("status")["past"]
            return past["dropped"] + past.get("joined", 0) > 4096

        wait_for(storm, "the storm")
        for player in players:
            player.kill()
        wait_for(lambda: ttmemd.json("status")["leaked"] == 60, "the ends")
    wait_for(lambda: ttmemd.json("status")["past"]["queued"] == 0, "the queue")
    left = {p["pid"] for p in ttmemd.json("leaks")["processes"]}
    assert left == {player.pid for player in players}


# What an old client sends: 72 bytes, or this much of them.
OLD = """
import os, socket, struct, sys
def message(kind, device=0, size=0, type=0, address=0):
    head = struct.pack("<B3xiQB3xiQQ", kind, device, size, type, os.getpid(), address, kind == 1)
    return head.ljust(72, b"\\0")
def connect():
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    return client
"""

# Processes with many buffers, in one write each.
MANY_BUFFERS = (
    OLD
    + """
report, heard = os.pipe()
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        client = connect()
        client.sendall(b"".join(message(1, 0, 64, 0, i) for i in range(int(sys.argv[3]))))
        client.sendall(message(3))  # answered when all has been read
        client.recv(72)
        os.write(heard, b".")
        os.read(0, 1)
        os._exit(0)
for _ in range(int(sys.argv[2])):
    os.read(report, 1)
print("ready", flush=True)
os.read(0, 1)
"""
)


def test_books_of_one_users_old_clients_leave_room_for_others(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0", "--legacy-memory", "16M")
    script(ttmemd, ATTACKER, MANY_BUFFERS, ttmemd.legacy, 12, 10000)
    wait_for(lambda: metric(ttmemd, "ttmem_legacy_room_refused_total"), "the limit")
    assert 4 << 20 < metric(ttmemd, "ttmem_legacy_memory_bytes") <= 8 << 20
    script(ttmemd, VICTIM, MANY_BUFFERS, ttmemd.legacy, 2, 10000)
    rows = [p for p in ttmemd.json("smi")["processes"] if p["user_id"] == VICTIM]
    assert len(rows) == 2
    for row in rows:
        assert row["exact"] and row["devices"][0]["memory"]["DRAM"]["buffers"] == 10000


def test_dumps_of_one_user_do_not_fill_the_log(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    script(ttmemd, ATTACKER, MANY_BUFFERS, ttmemd.legacy, 1, 10000)
    script(
        ttmemd,
        ATTACKER,
        OLD
        + """
client = connect()
for _ in range(100):
    client.sendall(message(5) + message(3))
    client.recv(72)
print("done", flush=True)
os.read(0, 1)
""",
        ttmemd.legacy,
    )
    wait_for(lambda: metric(ttmemd, "ttmem_log_left_out_total") > 50, "the limit")
    wait_for(lambda: f"about user {ATTACKER} left out" in ttmemd.text(), "the message")
    # The last dump before the limit may be larger than what was left.
    (one,) = {len(dump) for dump in re.findall(r"Received DUMP_REMAINING.*?complete", ttmemd.text(), re.S)[:1]}
    assert ttmemd.log.stat().st_size < (4 << 20) + 2 * one + (1 << 20)
    before = ttmemd.text().count("DUMP_REMAINING complete")
    script(ttmemd, VICTIM, OLD + "connect().sendall(message(5)); print(1, flush=True)", ttmemd.legacy)
    wait_for(lambda: ttmemd.text().count("DUMP_REMAINING complete") > before, "another user's")


def test_commands_for_one_users_incidents_leave_some_for_others(ttmemd):
    said = ttmemd.folder / "said"
    ttmemd.start("--http", "127.0.0.1:0", "--on-incident", f"cat >>{said}")
    # All at once: what is counted is within a minute.
    for player in [ttmemd.player("alloc 0 DRAM 0x1000 7", before=become(ATTACKER)) for _ in range(30)]:
        player.kill()
    wait_for(lambda: metric(ttmemd, "ttmem_on_incident_suppressed_total") == 20, "the limit")
    player = ttmemd.player("alloc 0 DRAM 0x1000 7", before=become(VICTIM))
    player.kill()

    def users():
        return [int(uid) for uid in re.findall(r'"user_id":(\d+)', said.read_text())]

    wait_for(lambda: VICTIM in users() and users().count(ATTACKER) >= 10, "the commands")
    assert users().count(ATTACKER) == 10


# Connections that say nothing, as many as are taken, and again whenever some are closed.
MANY_CONNECTIONS = """
import os, resource, select, socket, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
count = 10000
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, max(hard, count + 100)))
if sys.argv[1] == "http":
    host, port = sys.argv[2].rsplit(":", 1)
    where, family, kind = (host, int(port)), socket.AF_INET, socket.SOCK_STREAM
else:
    where, family = sys.argv[2], socket.AF_UNIX
    kind = socket.SOCK_SEQPACKET if sys.argv[1] == "native" else socket.SOCK_STREAM
poll = select.epoll()
held = {}
def connect():
    one = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    try:
        one.connect(where)
    except BlockingIOError:
        pass
    held[one.fileno()] = one
    poll.register(one, select.EPOLLRDHUP | select.EPOLLHUP)
while len(held) < count:
    connect()
print("ready", flush=True)
while True:
    for fd, _ in poll.poll():
        poll.unregister(fd)
        held.pop(fd).close()
        connect()
"""


def ask(daemon, door):
    if door == "old":
        with contextlib.closing(OldClient(daemon.legacy)) as client:
            client.query(0)
    elif door == "native":
        assert daemon.json("status", before=become(VICTIM))["running"]
    else:
        assert daemon.fetch("/api/v1/smi")[0] == 200


@pytest.mark.parametrize("door", ["old", "native", "http"])
def test_ten_thousand_connections_of_one_user_cost_another_no_answer(ttmemd, door):
    ttmemd.start("--http", "127.0.0.1:0")
    where = {"old": ttmemd.legacy, "native": ttmemd.socket, "http": ttmemd.address()}[door]
    script(ttmemd, ATTACKER, MANY_CONNECTIONS, door, where)
    # Without limits per user nobody else is answered before the client gives up.
    for _ in range(3):
        ask(ttmemd, door)
    counter = f"ttmem_{door.replace('old', 'legacy')}_connections_refused_total"
    wait_for(lambda: metric(ttmemd, counter), "the limit")
