# SPDX-License-Identifier: Apache-2.0
"""What the reading commands leave out when asked to: processes, devices, names, users, rows."""

import csv
import io
import json
import os
import pwd

import pytest

from common import LIMIT
from world import check_schema


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def two(world):
    first = world.player("alloc 0 DRAM 0x1000 10 =kv.0", "alloc 1 L1 0x1000 30 kv.1", TTMEM_STACKS="off")
    second = world.player("alloc 0 DRAM 0x2000 20 kv.2", "alloc 0 DRAM 0x3000 5", TTMEM_STACKS="off")
    return world, first, second


def held(rows):
    return sorted((int(r["pid"]), int(r["device"]), r["type"], int(r["used"])) for r in rows)


def test_ps_of_a_process_and_a_device(two):
    world, first, second = two
    rows = [(first.pid, 0, "DRAM", 10), (first.pid, 1, "L1", 30), (second.pid, 0, "DRAM", 25)]
    assert held(table(world.text("ps", "--csv"))) == sorted(rows)
    assert held(table(world.text("ps", "--csv", "--pid", first.pid))) == rows[:2]
    assert held(table(world.text("ps", "--csv", "-d", "1"))) == rows[1:2]
    document = world.json("ps", "--pid", first.pid, "-d", "1")
    (process,) = document["processes"]
    assert process["pid"] == first.pid and [d["device"] for d in process["devices"]] == [1]
    lines = world.text("ps", "-d", "1").splitlines()
    assert len(lines) == 2 and str(first.pid) in lines[1]


def test_ps_says_what_is_not_there(two):
    world = two[0]
    result = world.run("ps", "--pid", "4000000")
    assert result.returncode == 1 and "there is no process 4000000" in result.stderr
    result = world.run("ps", "-d", "7")
    assert result.returncode == 1 and "there is no device 7; there are 0, 1" in result.stderr


def test_buffers_by_name_and_limit(two):
    world = two[0]

    def names(*args):
        return [b["name"] for b in world.json("buffers", *args)["buffers"]]

    assert names("--name", "kv.*") == ["kv.1", "kv.2"]
    assert names("--name", "kv") == [] and names("--name", "*kv.?", "--limit", "2") == ["kv.1", "kv.2"]
    document = world.json("buffers", "--limit", "3")
    assert len(document["buffers"]) == 3 and "--limit leaves out 1 row" in document["notes"]
    assert len(world.json("buffers", "--by", "name", "--limit", "1")["groups"]) == 1
    result = world.run("buffers", "--name", "nothing")
    assert result.returncode == 0 and "no live buffer with that name" in result.stderr
    # A name that a spreadsheet would run as a formula is none.
    assert "'=kv.0" in world.text("buffers", "--csv", "--name", "=*")


def test_smi_of_a_user(two):
    world, first, second = two
    me = pwd.getpwuid(os.geteuid()).pw_name
    for user in (me, os.geteuid()):
        pids = {p["pid"] for p in world.json("smi", "--user", user)["processes"]}
        assert pids == {first.pid, second.pid}
    result = world.run("smi", "--user", "nobody-here")
    assert result.returncode == 1 and 'there is no process of user "nobody-here"' in result.stderr
    assert str(first.pid) not in result.stdout


def test_smi_by_user(two):
    world = two[0]
    me = pwd.getpwuid(os.geteuid()).pw_name
    document = check_schema(world.json("smi", "--by", "user"))
    rows = {r["device"]: r for r in document["users"]}
    assert rows[0]["user"] == me and rows[0]["processes"] == 2 and rows[0]["memory"]["DRAM"]["used"] == 35
    assert rows[1]["processes"] == 1 and rows[1]["memory"]["L1"]["buffers"] == 1
    lines = [line for line in world.text("smi", "--by", "user").splitlines() if f"| {me} " in line]
    assert len(lines) == 2 and "35 B" in lines[0] and "30 B" in lines[1]
    rows = table(world.text("smi", "--by", "user", "--csv"))
    assert sum(int(r["used"]) for r in rows) == 65


def test_watch_of_a_process_ends_with_it(two):
    world, first, second = two
    watch = world.start("watch", "--format", "json", "--pid", first.pid, "-d", "0")
    assert json.loads(watch.stdout.readline())["op"] == "start"
    second.play("alloc 0 DRAM 0x9000 1")
    first.play("alloc 1 DRAM 0x9000 2", "alloc 0 DRAM 0x9000 3")
    event = json.loads(watch.stdout.readline())
    assert (event["op"], event["pid"], event["size"]) == ("alloc", first.pid, 3)
    first.kill()
    assert json.loads(watch.stdout.readline())["op"] == "end"
    assert watch.wait(timeout=LIMIT) == 0


def test_watch_of_no_process(world):
    result = world.run("watch", "--pid", "4000000")
    assert result.returncode == 1 and "there is no process 4000000" in result.stderr


def test_history_of_a_device(two):
    world = two[0]
    assert "on device 1:" in world.text("history", "0x1000", "-d", "1")
    assert "on device 0:" not in world.text("history", "0x1000", "-d", "1")
