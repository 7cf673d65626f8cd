# SPDX-License-Identifier: Apache-2.0
"""ttmemd --strict-close: what was live when its device was closed is an incident, for those who want to know."""

import json

import pytest

from world import check_schema, wait_for

# Two call sites, one closing: "place" and "alloc" are different lines of the program.
CLOSES = ("place 3 DRAM 0x1000 64 1 0 0", "place 3 DRAM 0x2000 64 1 0 0", "end 3 1",
          "alloc 3 DRAM 0x1000 8 small", "alloc 3 L1 0x9000 5 freed", "free 3 L1 0x9000", "end 3 0")  # fmt: skip


def incidents(daemon, query=""):
    status, body = daemon.fetch(f"/api/v1/incidents{query}", token=True)
    assert status == 200, body
    return check_schema(json.loads(body))["incidents"]


def metric(daemon):
    (line,) = [line for line in daemon.fetch("/metrics")[1].splitlines() if 'kind="held_at_close"' in line]
    return int(line.split()[-1])


@pytest.fixture
def ended(ttmemd):
    """Call with options of ttmemd: a process has closed what it held, and has been judged."""

    def start(*options):
        ttmemd.start("--http", "127.0.0.1:0", *options)
        player = ttmemd.player(*CLOSES, "alloc 0 DRAM 0x5000 7 left")
        player.end()
        wait_for(lambda: incidents(ttmemd, "?kind=leak"), "the judgement")
        return ttmemd, player.pid

    return start


def test_held_at_close_is_silent_unless_asked_for(ended):
    daemon, _ = ended()
    assert {row["kind"] for row in incidents(daemon)} == {"leak"}
    assert metric(daemon) == 0 and "held_at_close" not in daemon.text()


def test_strict_close_reports_each_call_site(ended):
    daemon, pid = ended("--strict-close")

    def stored():
        rows = incidents(daemon, "?kind=held_at_close")
        return rows if len(rows) == 2 else None

    rows = wait_for(stored, "both call sites")
    assert sorted((row["pid"], row["device"], row["type"], row["size"], row["count"]) for row in rows) == [
        (pid, 3, "DRAM", 8, 1), (pid, 3, "DRAM", 128, 2)]  # fmt: skip
    # Both were freed by the closing; they are told apart by who allocated them.
    (small,) = [row for row in rows if row["size"] == 8]
    assert (small["first"]["name"], small["address"]) == ("small", "0x1000")
    assert all(row["first"]["stack"] and row["second"]["stack"] for row in rows)
    assert metric(daemon) == 3
    assert f"held_at_close: pid {pid} (player), device 3, DRAM, 128 B, 2 times" in daemon.run("incidents").stdout
    wait_for(lambda: f"held_at_close: pid {pid} (player), device 3, DRAM" in daemon.text(), "the notice")
    # It is no leak.
    (leak,) = [row for row in incidents(daemon) if row["kind"] == "leak"]
    assert (leak["device"], leak["size"]) == (0, 7)
    (process,) = daemon.json("leaks")["processes"]
    assert process["bytes"] == 7


def test_the_space_of_a_stored_incident_is_told(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    ttmemd.player("place 0 L1 0x100 10 2 0 0", "take 0 L1 0x100 2", "take 0 L1 0x100 2")
    (row,) = wait_for(lambda: incidents(ttmemd, "?kind=double_free"), "the incident")
    assert (row["address"], row["space"]) == ("0x100", 2)
