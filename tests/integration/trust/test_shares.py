# SPDX-License-Identifier: Apache-2.0
"""What all users share, and one of them who takes as much of it as there is."""

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
import time

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
    ttmemd.start("--http", "127.0.0.1:0", "--legacy-memory", "32M")
    script(ttmemd, ATTACKER, MANY_BUFFERS, ttmemd.legacy, 44, 10000)
    wait_for(lambda: metric(ttmemd, "ttmem_legacy_room_refused_total"), "the limit", 20)
    assert 8 << 20 < metric(ttmemd, "ttmem_legacy_memory_bytes") <= 16 << 20
    script(ttmemd, VICTIM, MANY_BUFFERS, ttmemd.legacy, 4, 10000)
    rows = [p for p in ttmemd.json("smi")["processes"] if p["user_id"] == VICTIM]
    assert len(rows) == 4
    for row in rows:
        assert row["exact"] and row["devices"][0]["memory"]["DRAM"]["buffers"] == 10000
