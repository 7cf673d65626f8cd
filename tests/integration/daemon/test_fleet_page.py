# SPDX-License-Identifier: Apache-2.0
"""Several machines on one page: what a daemon asks of others, whom it believes, and what comes first."""

import itertools
import json
import subprocess
import threading

import pytest

from conftest import LIMIT
from pretender import pretend  # noqa: F401 (fixture)
from test_fleet import prometheus
from test_web_metrics import query
from ttmemd import Ttmemd, get
from world import check_schema, wait_for


def host(used=100, capacity=1000, incidents=0, growth=0, **more):
    """A document as another machine could send it."""
    amount = {"used": used, "capacity": capacity}
    return {
        "schema": "ttmem.host/1", "status": "ok", "devices": 1, "processes": 2, "bytes": used, "buffers": 3,
        "memory": {"DRAM": amount, "L1": {"used": 0, "capacity": None}},
        "fullest": {"device": 0, "type": "DRAM", **amount},
        "hour": {"over_ns": 3600 * 10**9, "bytes": growth, "incidents": incidents},
        **more,
    }  # fmt: skip


def fleet(daemon):
    status, text = daemon.fetch("/api/v1/fleet")
    assert status == 200, text
    return check_schema(json.loads(text))


def problems(document):
    return {row["host"]: row["problem"] for row in document["hosts"]}


@pytest.fixture
def other(build, clean_env, tmp_path):
    """A second daemon, on a port of its own, that sees only its own process."""
    daemon = Ttmemd(build, clean_env, tmp_path)
    blind = daemon.folder / "blind"
    blind.mkdir()
    daemon.start("--http", "127.0.0.1:0", env={"TTMEM_PROC_ROOT": str(blind)})
    player = daemon.player()
    (blind / str(player.pid)).symlink_to(f"/proc/{player.pid}")
    player.play("device 0 0x1 wormhole_b0 n150 0 1000 100", "alloc 0 DRAM 0x1000 950", "alloc 0 L1 0x10 5")
    wait_for(lambda: daemon.json("status")["books"] == 1, "the process")
    wait_for(lambda: get(daemon, "/healthz")["status"] == "ok", "the history, which is opened meanwhile")
    daemon.busy = player
    yield daemon
    daemon.close()


def test_a_host_describes_itself_in_one_row(other):
    said = wait_for(lambda: (row := get(other, "/api/v1/host"))["hour"]["over_ns"] and row, "a sample")
    check_schema(said)
    assert (said["devices"], said["processes"], said["bytes"], said["buffers"]) == (1, 1, 955, 2)
    assert said["memory"] == {"DRAM": {"used": 950, "capacity": 1000}, "L1": {"used": 5, "capacity": 100}}
    assert said["fullest"] == {"device": 0, "type": "DRAM", "used": 950, "capacity": 1000}
    assert said["hour"]["incidents"] == 0
    before = said["hour"]["bytes"]
    other.busy.play("free 0 L1 0x10", "free 0 L1 0x10")
    wait_for(lambda: get(other, "/api/v1/host")["hour"]["incidents"] == 1, "the double free")
    wait_for(lambda: get(other, "/api/v1/host")["hour"]["bytes"] == before - 5, "the change")
    assert "player" not in json.dumps(said)  # totals only


def test_the_fleet_is_sorted_by_trouble(ttmemd, other, pretend):
    fine, wrong, grows = pretend(host()), pretend(host(incidents=7)), pretend(host(growth=1 << 30))
    names = [fine.name, grows.name, wrong.name, other.address(), "127.0.0.1:1"]
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", ", ".join(names))
    document = fleet(ttmemd)
    rows = document["hosts"]
    assert [row["host"] for row in rows] == ["127.0.0.1:1", other.address(), wrong.name, grows.name, fine.name]
    assert [row["trouble"] for row in rows] == [["silent"], ["full"], ["incidents"], ["grows"], []]
    assert rows[0]["problem"] == "connection refused" and rows[0]["facts"] is None
    assert rows[1]["url"] == f"http://{other.address()}/" and rows[1]["facts"]["bytes"] == 955
    assert rows[1]["facts"]["fullest"] == {"device": 0, "type": "DRAM", "used": 950, "capacity": 1000}
    assert rows[3]["facts"]["hour"]["bytes"] == 1 << 30 and document["notes"] == []
    assert get(ttmemd, "/healthz")["fleet"] is True


def endless():
    yield b"HTTP/1.0 200 OK\r\n\r\n"
    yield from itertools.repeat(b" " * 65536)


def test_hostile_hosts_do_not_hide_others(ttmemd, other, pretend):
    """Each is a row with its reason; nothing of what they say is passed on."""
    evil = "<script>\x1b[2J\u202e"
    hostile = {
        pretend(endless).name: "its answer is too long",
        pretend(b'{"schema": "ttmem.host/1", "x": "' + b"x" * 10**6 + b'"}').name: "its answer is too long",
        pretend(b"[" * 50000).name: "its answer is no ttmem.host",
        pretend(b"\xff\xfe").name: "its answer is no ttmem.host",
        pretend({**host(), "schema": evil}).name: "its answer is no ttmem.host",
        pretend(b"", status="302 Found\r\nLocation: http://127.0.0.1:1/").name: "it answers 302",
        pretend(b"", status=f"200 {evil.encode().hex()}").name: "it answers 200",
    }
    odd = pretend(host(used=-5, capacity="x", incidents=[1], growth=1e300, notes=[evil], status=evil, name=evil))
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", ",".join([*hostile, odd.name, other.address()]))
    status, text = ttmemd.fetch("/api/v1/fleet")
    assert status == 200 and "script" not in text and len(text) < 9 * 1024
    document = check_schema(json.loads(text))
    assert problems(document) == {**hostile, odd.name: None, other.address(): None}
    rows = {row["host"]: row for row in document["hosts"]}
    assert rows[odd.name]["facts"]["bytes"] == 0 and rows[odd.name]["trouble"] == ["degraded"]
    assert rows[other.address()]["facts"]["bytes"] == 955


def test_a_host_that_hangs_delays_only_the_fleet(ttmemd, pretend):
    """Nothing else waits: neither other pages nor commands. And it ends."""
    release = threading.Event()

    def silence():
        release.wait(LIMIT)
        yield b""

    slow, good = pretend(silence), pretend(host())
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", f"{slow.name} {good.name}")
    ttmemd.player("alloc 0 DRAM 0x1000 64")
    answers = []
    askers = [threading.Thread(target=lambda: answers.append(fleet(ttmemd))) for _ in range(3)]
    for asker in askers:
        asker.start()
    wait_for(lambda: slow.asked, "the question")
    assert get(ttmemd, "/healthz")["fleet"] and get(ttmemd, "/api/v1/buffers")["buffers"]
    assert ttmemd.json("ps")["processes"] and get(ttmemd, "/api/v1/smi")["processes"]
    for asker in askers:
        asker.join(LIMIT)
    release.set()
    assert [problems(answer) for answer in answers] == 3 * [{slow.name: "no answer within 5 seconds", good.name: None}]
    # Who came meanwhile got the same answer.
    assert len(good.asked) == 1


def test_hosts_are_asked_only_while_somebody_looks(ttmemd, pretend):
    asked = pretend(host())
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", asked.name)
    assert ttmemd.fetch("/metrics")[0] == 200 and get(ttmemd, "/api/v1/host")["devices"] == 0
    assert asked.asked == []
    fleet(ttmemd)
    (request,) = asked.asked
    assert request.startswith("GET /api/v1/host HTTP/1.1\r\n") and "Authorization" not in request


def test_the_daemon_ends_while_a_host_hangs(ttmemd, pretend):
    release = threading.Event()
    slow = pretend(lambda: [b"", release.wait(LIMIT) and b""])
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", slow.name)
    where = ttmemd.address()
    asker = subprocess.Popen(["curl", "-s", f"http://{where}/api/v1/fleet"], stdout=subprocess.DEVNULL)
    wait_for(lambda: slow.asked, "the question")
    assert ttmemd.stop() == 0
    asker.wait(LIMIT)
    release.set()


def test_without_a_fleet_there_is_no_page(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    assert get(ttmemd, "/healthz")["fleet"] is False
    status, text = ttmemd.fetch("/api/v1/fleet")
    assert status == 404 and "no fleet is configured" in text


def targets(*names):
    rows = [{"metric": {"instance": name, "job": "ttmem"}, "value": [0, "1"]} for name in names]
    return {"status": "success", "data": {"resultType": "vector", "result": rows}}


def test_hosts_of_a_prometheus_join_those_that_are_named(ttmemd, pretend):
    named, found = pretend(host()), pretend(host())
    evil = ["user@evil", "a/b", "a\nHost: b", "<b>", "", 7, "x" * 300]
    server = pretend(targets(found.name, named.name, *evil))
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", named.name, "--fleet-prometheus", f"http://{server.name}/",
                 env={"TTMEM_PROMETHEUS_TOKEN": "abc"})  # fmt: skip
    assert problems(fleet(ttmemd)) == {named.name: None, found.name: None}
    assert "GET /api/v1/query?query=up%7Bjob%3D~%22ttmem.*%22%7D " in server.asked[0]
    assert "Authorization: Bearer abc" in server.asked[0]
    assert "Authorization" not in found.asked[0] and len(named.asked) == 1


def test_more_hosts_than_are_asked_are_counted(ttmemd, pretend):
    server = pretend(targets(*(f"127.0.0.1:{port}" for port in range(1, 300))))
    ttmemd.start("--http", "127.0.0.1:0", "--fleet-prometheus", f"http://{server.name}")
    document = fleet(ttmemd)
    assert len(document["hosts"]) == 256 and document["notes"] == ["43 more hosts are not asked: 256 is the most"]


@pytest.mark.parametrize("body, why", [(b"<html>", "its answer is not a Prometheus'"), (endless, "its answer is too long")])
def test_a_prometheus_that_fails_is_a_note(ttmemd, pretend, body, why):
    named, server = pretend(host()), pretend(body)
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", named.name, "--fleet-prometheus", f"http://user:secret@{server.name}")
    document = fleet(ttmemd)
    assert problems(document) == {named.name: None}
    assert document["notes"] == [f"Prometheus cannot be asked for hosts: {why}"]
    assert "secret" not in json.dumps(document)


def test_hosts_of_a_real_prometheus(ttmemd, other, tmp_path):
    port = prometheus(other, tmp_path, other.address(), "127.0.0.1:1")
    wait_for(lambda: len(query(port, 'up{job="ttmem"}')) == 2, "both targets")
    ttmemd.start("--http", "127.0.0.1:0", "--fleet-prometheus", f"http://127.0.0.1:{port}")
    assert problems(fleet(ttmemd)) == {"127.0.0.1:1": "connection refused", other.address(): None}


@pytest.mark.parametrize("option, value", [
    ("--fleet", "a/b"), ("--fleet", "a,user@b"), ("--fleet", " , "), ("--fleet", ",".join(map(str, range(257)))),
    ("--fleet-prometheus", "ftp://a"), ("--fleet-prometheus", "prometheus:9090"),
])  # fmt: skip
def test_invalid_fleets_are_refused(ttmemd, option, value):
    command = [*map(str, ttmemd.command(option, value, "--check"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and option in done.stderr
