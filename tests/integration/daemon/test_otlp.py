# SPDX-License-Identifier: Apache-2.0
"""Pushing to an OpenTelemetry collector: what it receives. test_otlp_hostile.py has one that misbehaves."""

import json
import os
import pwd
import socket
import subprocess

import pytest

from collector import attributes, collector, counts  # noqa: F401 (fixture)
from conftest import LIMIT
from world import wait_for


def test_metrics_are_pushed_to_the_collector(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s")
    ttmemd.player("device 0 0xabc wormhole_b0 n150 0 1000 100", "alloc 0 DRAM 0x1000 64 weights")
    key = (("device", "0"), ("type", "DRAM"), ("uid", "0xabc"))
    row = wait_for(lambda: collector.points("ttmem_device_bytes").get(key), "the device")
    wait_for(lambda: collector.points("ttmem_device_bytes")[key]["asInt"] == "64", "the bytes")
    assert "startTimeUnixNano" not in row
    row = collector.points("ttmem_allocations")[key]
    assert row["asInt"] == "1" and int(row["startTimeUnixNano"]) < int(row["timeUnixNano"])
    resource = collector.taken["/v1/metrics"][-1]["resourceMetrics"][0]["resource"]
    assert attributes(resource)["service.name"] == "ttmemd"
    assert attributes(resource)["host.name"]


def test_incidents_are_pushed_to_the_collector(ttmemd, collector):
    ttmemd.start("--otlp", collector.url + "/", "--otlp-interval", "1d")
    player = ttmemd.player("alloc 3 DRAM 0x1000 64 weights")
    player.kill()
    record = wait_for(collector.incidents, "the leak")[0]
    said = attributes(record)
    assert said["ttmem.kind"] == "leak" and said["process.pid"] == player.pid
    body = json.loads(record["body"]["stringValue"])
    assert body["kind"] == "leak" and body["pid"] == player.pid


def test_leaks_have_program_user_bytes_and_site_as_attributes(ttmemd, collector):
    """What one filters and adds up by must not be hidden in the text of the body."""
    ttmemd.start("--otlp", collector.url + "/", "--otlp-interval", "1d")
    player = ttmemd.player("alloc 3 L1 0x1000 64 weights", "alloc 3 L1 0x2000 36", TTMEM_STACKS="auto")
    player.kill()
    record = wait_for(collector.incidents, "the leak")[0]
    said = attributes(record)
    body = json.loads(record["body"]["stringValue"])
    site = body["buffers"][0]["site"]
    user = os.getuid()
    assert (said["process.executable.name"], said["process.pid"]) == ("player", player.pid)
    assert (said["process.user.id"], said["process.user.name"]) == (user, pwd.getpwuid(user).pw_name)
    assert (said["ttmem.bytes"], said["ttmem.buffers"], said["ttmem.count"]) == (100, 2, 1)
    assert (said["ttmem.device"], said["ttmem.type"]) == ("3", "L1")
    assert (said["code.function.name"], said.get("code.file.path"), said.get("code.line.number")) == (
        site["function"], site["file"], site["line"],
    )  # fmt: skip


def test_attributes_that_are_not_known_are_left_out(ttmemd, collector):
    ttmemd.start("--otlp", collector.url + "/", "--otlp-interval", "1d")
    ttmemd.player("alloc 0 L1 0x1000 64", "alloc 0 DRAM 0x2000 36", TTMEM_STACKS="off").kill()
    said = attributes(wait_for(collector.incidents, "the leak")[0])
    assert said["ttmem.bytes"] == 100
    assert not {key for key in said if key.startswith("code.")} | said.keys() & {"ttmem.site", "ttmem.type"}


def test_incidents_have_their_call_site_as_an_attribute(ttmemd, collector):
    ttmemd.start("--otlp", collector.url + "/", "--otlp-interval", "1d")
    player = ttmemd.player("alloc 3 DRAM 0x1000 64 weights", TTMEM_STACKS="auto")
    player.play("free 3 DRAM 0x1000", "free 3 DRAM 0x1000")
    record = wait_for(collector.incidents, "the double free")[0]
    site = json.loads(record["body"]["stringValue"])["second"]["site"]
    assert attributes(record)["ttmem.kind"] == "double_free"
    assert attributes(record)["ttmem.site"].startswith(site["function"] + " (")
    assert attributes(record)["code.function.name"] == site["function"]
    assert (attributes(record)["ttmem.bytes"], attributes(record)["ttmem.type"]) == (64, "DRAM")


def test_incidents_are_kept_while_the_collector_is_down(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s", "--http", "127.0.0.1:0")
    wait_for(lambda: collector.taken["/v1/metrics"], "a first push")
    collector.status = 503
    wait_for(lambda: counts(ttmemd)["failed"] >= 1, "a push that fails")
    pids = []
    for _ in range(5):
        player = ttmemd.player("alloc 0 DRAM 0x1000 64")
        player.kill()
        pids.append(player.pid)
    collector.status = 200
    wait_for(lambda: len(collector.incidents()) >= 5, "the incidents")
    assert sorted(attributes(r)["process.pid"] for r in collector.incidents()) == sorted(pids)
    assert counts(ttmemd)["dropped"] == 0


def test_retries_back_off_while_the_collector_is_down(ttmemd, collector):
    collector.status = 503
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s")
    ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    for path, times in collector.times.items():
        wait_for(lambda: len(times) >= 3, f"three tries of {path}")
        # A second, then two, a quarter more or less; counted from the answer, so never less than that.
        assert times[1] - times[0] >= 0.75 and times[2] - times[1] >= 1.5


LATER = {"Retry-After": "300"}


def test_refused_metrics_do_not_delay_incidents(ttmemd, collector):
    collector.statuses = {"/v1/metrics": 503}
    collector.more_headers = LATER
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s", "--http", "127.0.0.1:0")
    wait_for(lambda: counts(ttmemd)["failed"] == 1, "a push that fails")
    for _ in range(2):
        ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    wait_for(lambda: len(collector.incidents()) == 2, "the incidents")
    wait_for(lambda: counts(ttmemd)["queued"] == 0, "an empty queue")
    assert counts(ttmemd)["failed"] == 1 and counts(ttmemd)["dropped"] == 0
    # The one line stays true until metrics are taken again.
    wait_for(lambda: "it answers 503 to /v1/metrics" in ttmemd.text(), "the line")
    assert ttmemd.text().count("it answers 503 to /v1/metrics") == 1 and "works again" not in ttmemd.text()


@pytest.mark.parametrize("status, queued, dropped", [(503, 1, 0), (404, 0, 1)], ids=["away", "refused"])
def test_refused_incidents_do_not_delay_metrics(ttmemd, collector, status, queued, dropped):
    collector.statuses = {"/v1/logs": status}
    collector.more_headers = LATER
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s", "--http", "127.0.0.1:0")
    ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    wait_for(lambda: counts(ttmemd)["failed"] == 1, "a push that fails")
    before = counts(ttmemd)["sent"]
    wait_for(lambda: counts(ttmemd)["sent"] >= before + 2, "more metrics")
    said = counts(ttmemd)
    assert (said["failed"], said["queued"], said["dropped"]) == (1, queued, dropped)
    wait_for(lambda: f"it answers {status} to /v1/logs" in ttmemd.text(), "the line")
    assert ttmemd.text().count(f"it answers {status} to /v1/logs") == 1 and "works again" not in ttmemd.text()


def test_incidents_refused_with_400_are_dropped(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1d", "--http", "127.0.0.1:0")
    wait_for(lambda: collector.taken["/v1/metrics"], "a first push")
    collector.status = 400
    ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    wait_for(lambda: counts(ttmemd)["dropped"] == 1, "the drop")
    collector.status = 200
    player = ttmemd.player("alloc 0 DRAM 0x1000 64")
    player.kill()
    wait_for(collector.incidents, "the next one")
    assert [attributes(r)["process.pid"] for r in collector.incidents()] == [player.pid]


def test_configured_headers_are_sent_to_the_collector(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, env={"OTEL_EXPORTER_OTLP_HEADERS": "api-key=s3cret,x=y=z"})
    wait_for(lambda: collector.taken["/v1/metrics"], "a push")
    assert collector.headers["api-key"] == "s3cret" and collector.headers["x"] == "y=z"


def test_a_hanging_collector_does_not_delay_exit(ttmemd):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        ttmemd.start("--otlp", f"http://127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        with connection:
            assert connection.recv(4)
            ttmemd.player("alloc 0 DRAM 0x1000 64")
            assert ttmemd.json("ps")["processes"]
            assert ttmemd.stop() == 0


@pytest.mark.parametrize("url", ["collector", "ftp://a", "http://", "http:///x", "http://a b"])
def test_invalid_collector_urls_are_refused(ttmemd, url):
    command = [*map(str, ttmemd.command("--otlp", url, "--check"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and "--otlp" in done.stderr
