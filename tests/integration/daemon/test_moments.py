# SPDX-License-Identifier: Apache-2.0
"""Documents of moments of the past: "at=NS" over HTTP and on the daemon's socket."""

import json
import time

import pytest

from world import check_schema, wait_for


@pytest.fixture
def daemon(ttmemd):
    return ttmemd.start("--http", "127.0.0.1:0")


def rows(document):
    """All that a list of buffers says, but for ages, and times that are converted anew by every reading."""
    return sorted(
        (b["pid"], b["comm"], b["device"], b["type"], b["address"], b["size"], b["refs"], b["name"], b["phase"],
         b["thread"], json.dumps(b["stack"]))
        for b in document["buffers"]
    )  # fmt: skip


def sums(document):
    """Bytes and buffers of every process, device and type."""
    of_processes = {
        (p["pid"], p["start_ns"], p["comm"], p["alive"], d["device"], d["joined"], name, m["used"], m["buffers"], m["peak"])
        for p in document["processes"]
        for d in p["devices"]
        for name, m in d["memory"].items()
    }
    of_devices = {
        (d["device"], d["uid"], name, m["used"], m["buffers"])
        for d in document["devices"]
        for name, m in d["memory"].items()
    }
    return of_processes, of_devices, document["totals"]


def checked(daemon, path):
    """On a busy machine a moment may have to be asked for again."""

    def ask():
        status, text = daemon.fetch(path, token=True)
        return None if status == 503 else (status, text)

    status, text = wait_for(ask, path)
    assert status == 200, text
    return check_schema(json.loads(text))


class Seen:
    """What was said of a moment while it was now."""

    def __init__(self, daemon):
        before = checked(daemon, "/api/v1/smi")
        self.buffers = checked(daemon, "/api/v1/buffers?limit=10000")
        self.smi = checked(daemon, "/api/v1/smi")
        self.map = checked(daemon, "/api/v1/map")
        self.fit = checked(daemon, "/api/v1/fit?size=4096&device=0&type=DRAM")
        self.at = time.time_ns()
        # Nothing has happened meanwhile.
        assert sums(before) == sums(self.smi)
        assert self.smi["moment"] is None and self.buffers["moment"] is None

    def compare(self, daemon):
        smi = checked(daemon, f"/api/v1/smi?at={self.at}")
        assert sums(smi) == sums(self.smi)
        assert smi["time_ns"] == self.at and smi["exact"] is True
        assert smi["moment"]["kind"] == "exact" and smi["moment"]["asked_ns"] == self.at
        assert smi["moment"]["exact_from_ns"] <= self.at
        buffers = checked(daemon, f"/api/v1/buffers?limit=10000&at={self.at}")
        assert rows(buffers) == rows(self.buffers)
        assert buffers["moment"]["kind"] == "exact" and buffers["time_ns"] == self.at
        assert {p["pid"] for p in checked(daemon, f"/api/v1/ps?at={self.at}")["processes"]} == {
            p["pid"] for p in self.smi["processes"]
        }
        assert checked(daemon, f"/api/v1/map?at={self.at}")["maps"] == self.map["maps"]
        fit = checked(daemon, f"/api/v1/fit?size=4096&device=0&type=DRAM&at={self.at}")
        assert fit["answers"] == self.fit["answers"]


DEVICE = "device 0 0xabc wormhole_b0 n150 0 1073741824 1048576"


def test_a_moment_before_buffers_were_freed_is_what_was_said_then(daemon):
    first = daemon.player(DEVICE, "push load", *(f"alloc 0 DRAM {0x1000 * (i + 1)} {64 * (i + 1)} weights-{i}" for i in range(50)))
    second = daemon.player(DEVICE, "alloc 0 L1 0x1000 30 b", "alloc 3 DRAM 0x2000 5", TTMEM_STACKS="off")
    gone = daemon.player(DEVICE, "alloc 0 DRAM 0x900000 4096 of-the-ended", "alloc 0 DRAM 0xa00000 8192 too")
    wait_for(lambda: len(checked(daemon, "/api/v1/smi")["processes"]) == 3, "all of them")
    full = Seen(daemon)
    for i in range(50):
        first.play(f"free 0 DRAM {0x1000 * (i + 1)}")
    second.play("alloc 0 DRAM 0x700000 77 later")
    empty = Seen(daemon)
    assert len(empty.buffers["buffers"]) < len(full.buffers["buffers"])
    gone.kill()
    daemon.wait_for_leak(gone.process.pid)
    without = Seen(daemon)
    assert gone.process.pid not in {p["pid"] for p in without.smi["processes"]}
    first.play("alloc 0 DRAM 0x1000 64 again")
    for seen in (full, empty, without, empty, full):
        seen.compare(daemon)


def test_pages_groups_and_filters_work_for_a_moment_too(daemon):
    player = daemon.player(*(f"alloc {i % 2} DRAM {0x1000 * (i + 1)} 64 n{i % 3}" for i in range(30)))
    wait_for(lambda: checked(daemon, "/api/v1/smi")["totals"]["buffers"] == 30, "all buffers")
    at = time.time_ns()
    by_name = checked(daemon, "/api/v1/buffers?by=name")["groups"]
    assert len(by_name) == 3
    player.play(*(f"free {i % 2} DRAM {0x1000 * (i + 1)}" for i in range(30)))
    groups = checked(daemon, f"/api/v1/buffers?by=name&at={at}")["groups"]
    assert [(g["key"], g["bytes"], g["buffers"]) for g in groups] == [(g["key"], g["bytes"], g["buffers"]) for g in by_name]
    found, cursor = [], ""
    while cursor is not None:
        page = checked(daemon, f"/api/v1/buffers?limit=7&at={at}{cursor and '&cursor=' + cursor}")
        found += page["buffers"]
        cursor = page["next"]
    assert len({(b["device"], b["address"]) for b in found}) == len(found) == 30
    only = checked(daemon, f"/api/v1/buffers?device=1&at={at}")["buffers"]
    assert len(only) == 15 and {b["device"] for b in only} == {1}
    largest = checked(daemon, f"/api/v1/buffers?sort=size&limit=5&at={at}")["buffers"]
    assert len(largest) == 5


def test_who_began_later_is_not_in_an_earlier_moment(daemon):
    first = daemon.player("alloc 0 DRAM 0x1000 64 a")
    wait_for(lambda: checked(daemon, "/api/v1/smi")["processes"], "the first")
    at = time.time_ns()
    second = daemon.player("alloc 0 DRAM 0x1000 64 a")
    wait_for(lambda: len(checked(daemon, "/api/v1/smi")["processes"]) == 2, "the second")
    assert [p["pid"] for p in checked(daemon, f"/api/v1/smi?at={at}")["processes"]] == [first.process.pid]
    both = checked(daemon, f"/api/v1/smi?at={time.time_ns()}")["processes"]
    assert {p["pid"] for p in both} == {first.process.pid, second.process.pid}


def test_moments_that_nobody_can_know_are_refused_in_words(daemon):
    daemon.player("alloc 0 DRAM 0x1000 64 a")
    for value in ("-1", "0", "now", "1e18", "0x10q", "18446744073709551616", "9" * 400, ""):
        for route in ("smi", "ps", "buffers", "map"):
            status, text = daemon.fetch(f"/api/v1/{route}?at={value}", token=True)
            assert status == 400 and '\\"at\\"' in text, (route, value, text)
    status, text = daemon.fetch(f"/api/v1/smi?at={time.time_ns() + 3600 * 10**9}", token=True)
    assert status == 400 and "future" in text
    for route in ("buffers", "map", "fit?size=1"):
        mark = "&" if "?" in route else "?"
        status, text = daemon.fetch(f"/api/v1/{route}{mark}at=1000", token=True)
        assert status == 404 and "exact moments are known from" in text, text
    assert daemon.fetch("/api/v1/leaks?at=1000", token=True)[0] == 400
    assert daemon.fetch(f"/api/v1/buffers?at={time.time_ns()}")[0] == 401


def test_without_a_flight_recorder_no_moment_is_exact(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0", "--flight", "off")
    ttmemd.player("alloc 0 DRAM 0x1000 64 a")
    for route in ("buffers", "map"):
        status, text = ttmemd.fetch(f"/api/v1/{route}?at={time.time_ns()}", token=True)
        assert status == 404 and "no flight recorder" in text
