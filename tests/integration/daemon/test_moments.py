# SPDX-License-Identifier: Apache-2.0
"""Documents of moments of the past: "at=NS" over HTTP and on the daemon's socket."""

import http.client
import json
import time

import pytest

from conftest import LIMIT
from machines import Machine
from ttmemd import get
from world import check_schema, descriptors, wait_for


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


def test_beyond_the_flight_recorder_there_are_sums(ttmemd):
    """A daemon that was started again has the history of the one before."""
    ttmemd.start("--http", "127.0.0.1:0")
    player = ttmemd.player(DEVICE, "alloc 0 DRAM 0x1000 4096 a", "alloc 0 L1 0x1000 30 b")
    wait_for(lambda: checked(ttmemd, "/api/v1/smi")["totals"]["bytes"] == 4126, "both buffers")
    before = checked(ttmemd, "/api/v1/smi")
    path = f"/api/v1/series?pid={player.process.pid}&step=1"
    # Points are of whole seconds: of one that has begun, everything is known that the next one is known of.
    points = wait_for(lambda: (s := checked(ttmemd, path)["series"]) and len(s) == 2 and all(len(x["points"]) > 1 for x in s) and s, "points")
    at = max(point[0] for one in points for point in one["points"][:-1])
    assert ttmemd.stop() == 0
    ttmemd.start("--http", "127.0.0.1:0")
    player.play("free 0 DRAM 0x1000")
    smi = checked(ttmemd, f"/api/v1/smi?at={at}")
    assert smi["moment"]["kind"] == "sums" and smi["exact"] is False and smi["time_ns"] == at
    assert smi["moment"]["sums_from_ns"] <= at < smi["moment"]["exact_from_ns"]
    assert smi["totals"] == before["totals"]
    (process,) = smi["processes"]
    assert process["pid"] == player.process.pid and process["exact"] is False
    assert {n: (m["used"], m["buffers"]) for n, m in process["devices"][0]["memory"].items() if m["used"]} == {"DRAM": (4096, 1), "L1": (30, 1)}
    assert [p["pid"] for p in checked(ttmemd, f"/api/v1/ps?at={at}")["processes"]] == [player.process.pid]
    status, text = ttmemd.fetch(f"/api/v1/buffers?at={at}", token=True)
    assert status == 404 and str(smi["moment"]["exact_from_ns"])[:6] in text
    status, text = ttmemd.fetch("/api/v1/smi?at=1000", token=True)
    assert status == 404 and "sums are known from" in text


def moments(daemon, parameters="", token=True):
    status, text = daemon.fetch(f"/api/v1/moments?{parameters}", token=token)
    assert status in (200, 503), text
    return check_schema(json.loads(text)) if status == 200 else None


def test_what_happened_is_listed_in_the_order_of_time(daemon):
    player = daemon.player("mark first", "push load", "alloc 0 DRAM 0x1000 64 a", "pop", "alloc 0 DRAM 0x2000 64 b",
                           "push train", "alloc 1 DRAM 0x3000 64 c", "mark second", "free 1 DRAM 0x9000")
    other = daemon.player("alloc 0 DRAM 0x1000 64 left")
    pid, gone = player.process.pid, other.process.pid
    other.kill()
    daemon.wait_for_leak(gone)

    def all_of_it():
        document = moments(daemon)
        kinds = {(m["kind"], m["pid"]) for m in document["moments"]} if document else set()
        return {("mark", pid), ("phase", pid), ("incident", pid), ("start", pid), ("start", gone), ("end", gone)} <= kinds and document

    document = wait_for(all_of_it, "everything")
    listed = document["moments"]
    assert [m["time_ns"] for m in listed] == sorted(m["time_ns"] for m in listed)
    assert document["exact"] is True and document["exact_from_ns"] > 0
    assert [m["name"] for m in listed if m["kind"] == "mark"] == ["first", "second"]
    assert [m["name"] for m in listed if m["kind"] == "phase"] == ["load", "train"]
    assert {m["incident"] for m in listed if m["pid"] == pid and m["kind"] == "incident"} == {"unknown_free"}
    assert [m["kind"] for m in listed if m["pid"] == gone and m["kind"] != "incident"] == ["start", "end"]
    assert "restart" in {m["kind"] for m in listed}
    assert {m["pid"] for m in moments(daemon, f"pid={gone}")["moments"]} <= {gone, None}
    assert len(moments(daemon, "limit=2")["moments"]) == 2 and moments(daemon, "limit=2")["exact"] is False
    # A moment of the list can be looked at.
    second = next(m for m in listed if m["name"] == "second")
    assert len(checked(daemon, f"/api/v1/buffers?pid={pid}&at={second['time_ns']}")["buffers"]) == 3
    # Names are details; without the token there are not even times of marks.
    open_to_all = moments(daemon, token=False)["moments"]
    assert {m["kind"] for m in open_to_all} == {"restart", "start", "end", "incident"}
    assert all(m["name"] is None for m in open_to_all)
    assert daemon.fetch("/api/v1/moments?from=20&to=10")[0] == 400


def test_who_asks_for_many_moments_has_to_wait_and_others_are_served(daemon):
    """Eight requests of a user wait; others are refused at once, and the queue has room for who asks for now."""
    daemon.player(*(f"alloc 0 DRAM {0x1000 * (i + 1)} 64 n{i}" for i in range(100)))
    wait_for(lambda: checked(daemon, "/api/v1/smi")["totals"]["buffers"] == 100, "all buffers")
    at = time.time_ns()
    connections = [http.client.HTTPConnection(daemon.address(), timeout=LIMIT) for _ in range(60)]
    token = (daemon.state / "http-token").read_text().strip()
    for i, connection in enumerate(connections):
        connection.request("GET", f"/api/v1/buffers?at={at - i}", headers={"Authorization": f"Bearer {token}"})
    # Meanwhile.
    assert get(daemon, "/api/v1/buffers?limit=1")["buffers"]
    assert daemon.json("status")["running"]
    answers = []
    for connection in connections:
        answer = connection.getresponse()
        answers.append((answer.status, answer.read()))
        connection.close()
    assert {status for status, _ in answers} <= {200, 503}
    assert sum(status == 200 for status, _ in answers) >= 8
    # All of them can be had in the end.
    assert len(checked(daemon, f"/api/v1/buffers?limit=1000&at={at - 59}")["buffers"]) == 100


def test_moments_of_the_ended_need_no_book_and_no_more_memory_than_the_recorder_may(ttmemd):
    """Books are memory of those who made them; and whoever makes large ones and dies would fill the machine."""
    ttmemd.start("--http", "127.0.0.1:0", "--flight", "10m,1M")

    def held():
        return descriptors(ttmemd.process.pid).count("/memfd:ttmem-book")

    before = held()
    small = ttmemd.player("alloc 0 DRAM 0x1000 64 small")
    wait_for(lambda: held() > before, "the small book")
    at = time.time_ns()
    small.kill()
    ttmemd.wait_for_leak(small.pid)
    wait_for(lambda: held() == before, "the small book to be closed")
    (known,) = checked(ttmemd, f"/api/v1/smi?at={at}")["processes"]
    assert (known["pid"], known["alive"]) == (small.pid, True)
    (buffer,) = checked(ttmemd, f"/api/v1/buffers?at={at}")["buffers"]
    assert (buffer["name"], buffer["size"]) == ("small", 64)
    large = ttmemd.player("many 0 DRAM 0x1000 64 15000")
    wait_for(lambda: held() > before, "the large book")
    at = time.time_ns()
    large.kill()
    ttmemd.wait_for_leak(large.pid)
    wait_for(lambda: held() == before, "the large book to be closed")
    # It was there at that moment. What it had is known if the copy fits; if not, that is said.
    moment = checked(ttmemd, f"/api/v1/smi?at={at}")
    said = [note for note in moment["notes"] if note.startswith("1 process that has ended since is not in it")]
    rows = [process for process in moment["processes"] if process["pid"] == large.pid]
    assert (len(rows), bool(said)) in ((1, False), (0, True)) and moment["exact"] is not bool(said)


def test_what_the_driver_tells_is_not_known_of_the_past(ttmemd, tmp_path):
    machine = Machine(tmp_path / "machine")
    machine.card(0, "p150a", "blackhole", chip=1)
    ttmemd.start("--http", "127.0.0.1:0", env=machine.env())
    ttmemd.player("alloc 0 DRAM 0x1000 64 a")
    wait_for(lambda: checked(ttmemd, "/api/v1/smi")["processes"], "it")
    now = checked(ttmemd, "/api/v1/smi")
    assert not [note for note in now["notes"] if "not recorded" in note]
    past = checked(ttmemd, f"/api/v1/smi?at={time.time_ns()}")
    assert [note for note in past["notes"] if note.startswith("sensors, memory of the driver")]
    assert not any(any(device["telemetry"].values()) for device in past["devices"] if device["telemetry"])
