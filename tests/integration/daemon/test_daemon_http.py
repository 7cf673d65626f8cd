# SPDX-License-Identifier: Apache-2.0
"""HTTP of the real daemon: the same data as in the commands, and counters that never decrease."""

import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess

import pytest

from common import LIMIT
from ttmemd import get
from world import check_schema, used, wait_for


@pytest.fixture
def served(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    return ttmemd


def metric(daemon, name, **labels):
    """The sum over all rows that have these labels."""
    _, text = daemon.fetch("/metrics")
    total = None
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if found:
            has = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[1] or ""))
            if all(has.get(key) == value for key, value in labels.items()):
                total = (total or 0) + float(found[2])
    return total


def test_http_and_command_show_the_same(served):
    player = served.player("alloc 0 DRAM 0x1000 100 weights", "alloc 1 L1 0x2000 7")
    wait_for(lambda: get(served, "/api/v1/ps")["processes"], "the process")
    over_http = check_schema(get(served, "/api/v1/smi"))
    assert used(over_http, player.pid) == used(served.json("smi"), player.pid)
    assert over_http["totals"] == {"bytes": 107, "buffers": 2}
    rows = check_schema(get(served, "/api/v1/buffers"))["buffers"]
    assert {(r["pid"], r["address"], r["size"]) for r in rows} == {
        (player.pid, "0x1000", 100),
        (player.pid, "0x2000", 7),
    }
    life = check_schema(get(served, "/api/v1/history?address=0x1000"))
    assert life["schema"] == "ttmem.history/1"
    assert life["past"] == {"leaks": [], "incidents": []}


def test_details_need_the_token(served):
    served.player("alloc 0 DRAM 0x1000 100 secret")
    for path in ("buffers", "leaks", "incidents", "history?address=0x1000"):
        status, body = served.fetch(f"/api/v1/{path}")
        assert status == 401 and "secret" not in body
    assert (served.state / "http-token").stat().st_mode & 0o777 == 0o600
    for path in ("/api/v1/smi", "/api/v1/ps", "/metrics", "/healthz"):
        status, body = served.fetch(path)
        assert status == 200 and "secret" not in body


def has_ipv6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_http_can_listen_on_ipv6(ttmemd):
    ttmemd.start("--http", "[::1]:0")
    where = ttmemd.address()
    assert re.fullmatch(r"\[::1\]:[1-9]\d*", where)
    ttmemd.player("alloc 0 DRAM 0x1000 100 weights")
    wait_for(lambda: get(ttmemd, "/api/v1/smi")["totals"]["bytes"] == 100, "the buffer")
    # It knows its own names.
    for host, status in ((where, 200), ("localhost", 200), ("evil.example", 421)):
        connection = http.client.HTTPConnection(where, timeout=LIMIT)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz", headers={"Host": host})
            assert connection.getresponse().status == status, host


def test_http_shows_leaks_of_exited_processes(served):
    served.player("alloc 7 DRAM 0x1000 1")
    player = served.player(
        "alloc 0 DRAM 0x1000 100 weights", "free 0 DRAM 0x9999", "alloc 0 DRAM 0x2000 5"
    )
    player.kill()
    wait_for(lambda: served.wait_for_leak(player.pid)["recording"], "its recording")
    leak = served.wait_for_leak(player.pid)
    (over_http,) = check_schema(get(served, f"/api/v1/leaks?pid={player.pid}"))["processes"]
    for address, size in (("0x1000", 100), ("0x2000", 5)):
        life = check_schema(get(served, f"/api/v1/history?address={address}&pid={player.pid}"))
        (dead,) = life["past"]["leaks"]
        assert [(b["address"], b["size"]) for b in dead["buffers"]] == [(address, size)]
        assert life["past"]["incidents"] == []
        assert life["past"] == served.json("history", address, "--pid", player.pid)["past"]
    (free,) = get(served, "/api/v1/history?address=0x9999")["past"]["incidents"]
    assert (free["kind"], free["pid"]) == ("unknown_free", player.pid)
    other = get(served, "/api/v1/history?address=0x1000&device=5")["past"]
    assert other == {"leaks": [], "incidents": []}
    assert over_http == leak and over_http["bytes"] == 105
    kinds = {i["kind"] for i in check_schema(get(served, "/api/v1/incidents"))["incidents"]}
    assert kinds == {"leak", "unknown_free"}
    assert get(served, "/api/v1/incidents?kind=size_change")["incidents"] == []
    status, body = served.fetch("/api/v1/incidents?kind=nonsense", token=True)
    assert status == 400 and "nonsense" in body and "alloc_failed, clash, trace_overlap, leak, overlap or held_at_close" in body, body
    wait_for(lambda: get(served, "/api/v1/series")["series"], "a line over time")
    check_schema(get(served, "/api/v1/series"))


def test_a_clash_is_kept_with_both_sides_after_its_process(served):
    player = served.player(
        "push load", "alloc 0 L1 0x9000 4096 tensor", "pop", "push run", "clash 0 L1 0x9000 0 0x1000 0x8800 cbs",
        "free 0 L1 0x9000",
    )
    player.end()
    (clash,) = wait_for(lambda: get(served, "/api/v1/incidents?kind=clash")["incidents"], "the clash")
    assert (clash["pid"], clash["type"], clash["address"], clash["size"]) == (player.pid, "L1", "0x9000", 0x800)
    first, second = clash["first"], clash["second"]
    assert (first["name"], first["phase"], first["size"]) == ("tensor", "load", 4096)
    assert (second["name"], second["phase"], second["size"]) == ("cbs", "run", 0x8800)
    assert metric(served, "ttmem_incidents_total", kind="clash") == 1
    check_schema(get(served, "/api/v1/incidents"))


def test_counters_never_go_down(served):
    player = served.player(*["alloc 0 DRAM 0x1000 1", "free 0 DRAM 0x1000"] * 10)
    want = {"device": "0", "type": "DRAM"}
    wait_for(lambda: metric(served, "ttmem_allocations_total", **want) == 10, "the counter")
    player.end()
    wait_for(lambda: metric(served, "ttmem_books") == 0, "the end")
    assert metric(served, "ttmem_allocations_total", **want) == 10
    assert metric(served, "ttmem_frees_total", **want) == 10
    if shutil.which("promtool"):
        _, text = served.fetch("/metrics")
        subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True)


def test_every_incident_is_on_the_stream(served):
    connection = http.client.HTTPConnection(served.address(), timeout=LIMIT)
    with contextlib.closing(connection):
        token = (served.state / "http-token").read_text().strip()
        connection.request("GET", "/api/v1/stream", headers={"Authorization": f"Bearer {token}"})
        stream = connection.getresponse()
        player = served.player("alloc 0 DRAM 0x1000 10 left", "free 0 L1 0x77")
        seen = []
        while len(seen) < 2:
            line = stream.readline().decode()
            assert line, "the stream has ended"
            if line.startswith("event: incident"):
                seen.append(json.loads(stream.readline().decode()[len("data: ") :]))
                player.kill()
    assert [(i["kind"], i["pid"]) for i in seen] == [
        ("unknown_free", player.pid),
        ("leak", player.pid),
    ]
    # Whichever it is, what a list of them shows is there.
    for incident in seen:
        assert incident["time_ns"] <= incident["last_ns"] and incident["count"] == 1
    assert [i["size"] for i in seen] == [0, 10]


def test_daemon_stops_while_many_processes_die(served):
    """Reports of those who died last are made when nobody serves pages any more."""
    program = str(served.build / "tests" / "programs" / "load")
    crowd = [
        served.adopt(subprocess.Popen([program, "0", "500", "0", "crowd"], env={**served.env, "TTMEM": "1"},
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for _ in range(50)
    ]  # fmt: skip
    for one in crowd:
        with one.stdout:
            assert one.stdout.readline() == b"ok\n"
    wait_for(lambda: len(served.json("ps")["processes"]) == len(crowd), "everybody is known")
    served.process.send_signal(signal.SIGSTOP)  # so that it learns of all of it at once
    for one in crowd:
        one.kill()
        one.stdin.close()
    served.process.send_signal(signal.SIGTERM)
    served.process.send_signal(signal.SIGCONT)
    assert served.stop() == 0
    served.start("--http", "127.0.0.1:0")
    dead = {one.pid for one in crowd}

    def reported():
        pids, query = set(), "limit=1000&buffers=0"
        while query:
            document = json.loads(served.fetch(f"/api/v1/leaks?{query}", token=True)[1])
            pids |= {process["pid"] for process in document["processes"]}
            query = document["next"] and f"limit=1000&buffers=0&cursor={document['next']}"
        return pids

    wait_for(lambda: dead <= reported(), "all reports")
