# SPDX-License-Identifier: Apache-2.0
"""ttmem report --serve: the dashboard's documents, of any moment of a recording."""

import contextlib
import http.client
import subprocess
import time

import pytest

from conftest import LIMIT
from playback import Playback
from world import check_schema, wait_for

MIB = 1024**2
GIB = 1024**3
PATHS = [
    "/healthz", "/api/v1/smi", "/api/v1/ps", "/api/v1/buffers", "/api/v1/buffers?by=site", "/api/v1/buffers?limit=1",
    "/api/v1/map?device=0xa1", "/api/v1/fit?size=4096", "/api/v1/leaks", "/api/v1/ended", "/api/v1/commands", "/api/v1/peak", "/api/v1/incidents",
    "/api/v1/series", "/api/v1/moments", "/api/v1/growth",
]  # fmt: skip
TIMED = ("smi", "ps", "buffers", "map", "fit")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return tmp_path_factory.mktemp("playback") / "run.ttrec"


@pytest.fixture
def served(world, recording):
    """A run that has 1 MiB, then 2 MiB more for a while, and leaves the first."""
    if not recording.exists():
        lines = [
            f"device 0 0xa1 wormhole_b0 n150 0 {12 * GIB} {96 * MIB} 12",
            f"alloc 0 DRAM 0x20 {MIB} weights", "mark loaded", f"alloc 0 DRAM 0x400000 {2 * MIB} activations",
            "free 0 DRAM 0x400000", "free 0 DRAM 0x400000",
        ]  # fmt: skip
        player = world.build / "tests" / "programs" / "player"
        words = [world.program, "run", "--record", recording, "--", player]
        with subprocess.Popen(words, env=world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, bufsize=1) as run:  # fmt: skip
            for line in lines:
                run.stdin.write(f"{line}\n")
                assert run.stdout.readline() == "ok\n"
                time.sleep(0.02)  # so that charts show each state
    playback = Playback(world, recording)
    playback.sign_in()
    yield playback
    assert playback.end() == (0, "")


def test_every_document_of_the_page_is_there_at_any_moment(served):
    for path in PATHS:
        check_schema(served.json(path))
        if path.split("/")[-1].split("?")[0] in TIMED:
            document = check_schema(served.json(f"{path}{'&' if '?' in path else '?'}at={served.at}"))
            assert document["moment"]["kind"] == "exact" and document["time_ns"] == int(served.at)


def test_links_lead_to_the_peak_and_a_moment_is_that_of_from(world, served, recording):
    then, end = served.json(f"/api/v1/smi?at={served.at}"), served.json("/api/v1/smi")
    assert then["totals"]["bytes"] == 3 * MIB and end["totals"]["bytes"] == 0
    buffers = served.json(f"/api/v1/buffers?at={served.at}")["buffers"]
    assert {buffer["name"] for buffer in buffers} == {"weights", "activations"}
    assert end["processes"] == world.json("smi", "--from", recording)["processes"]
    assert not end["processes"][0]["alive"]


def test_the_past_of_the_whole_recording_is_known(served):
    facts = served.json("/healthz")["recording"]
    assert facts["file"] == "run.ttrec" and facts["missed"] == 0
    (line,) = served.json("/api/v1/series?limit=10000")["series"]
    assert (line["pid"], line["uid"], line["type"]) == (None, "0xa1", "DRAM") and line["step_s"] < 1
    assert max(point[3] for point in line["points"]) == 3 * MIB and MIB in {point[1] for point in line["points"]}
    assert facts["start_ns"] <= line["points"][0][0] and facts["end_ns"] <= line["points"][-1][0]
    (own,) = served.json(f"/api/v1/series?pid={served.json('/api/v1/ps')['processes'][0]['pid']}&step=0.1")["series"]
    assert own["step_s"] == 0.1 and max(point[3] for point in own["points"]) == 3 * MIB
    kinds = [(one["kind"], one["name"] or one["incident"]) for one in served.json("/api/v1/moments")["moments"]]
    assert {("start", None), ("mark", "loaded"), ("incident", "double_free"), ("end", None)} <= set(kinds)
    (left,) = served.json("/api/v1/leaks?buffers=0")["processes"]
    assert (left["bytes"], left["buffer_count"], left["buffers"]) == (MIB, 1, [])
    (ended,) = served.json("/api/v1/ended")["processes"]
    assert ended == {key: left[key] for key in ended} and ended["exit"]["code"] == 0
    assert {one["kind"] for one in served.json("/api/v1/incidents?kind=leak")["incidents"]} == {"leak"}
    assert served.json("/api/v1/incidents?kind=clash")["incidents"] == []


def test_growth_is_what_the_command_finds(world, tmp_path):
    path, begun = tmp_path / "leak.ttrec", time.monotonic()
    words = [world.program, "run", "--record", path, "--", world.build / "tests" / "programs" / "player"]
    with subprocess.Popen(words, env=world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, bufsize=1) as run:  # fmt: skip
        started = None
        for i in range(1000):
            run.stdin.write(f"alloc 0 DRAM {0x100000 * (i + 1)} 4096 grows\n")
            assert run.stdout.readline() == "ok\n"
            started = started or time.monotonic()
            if i >= 50 and time.monotonic() - started > 2 * (started - begun):
                break  # it has grown for most of the time
            time.sleep(0.01)
    playback = Playback(world, path)
    playback.sign_in()
    (site,) = check_schema(playback.json(f"/api/v1/growth?at={playback.at}"))["sites"]  # the peak is the last allocation
    (same,) = world.json("growth", "--from", path, "--at", "peak")["sites"]
    assert site["name"] == "grows" and site["per_second"] > 0
    assert all(site[key] == same[key] for key in ("pid", "type", "site", "stack"))
    assert same["bytes"] == world.json("smi", "--from", path, "--at", "peak")["totals"]["bytes"]  # with the last one
    assert playback.json(f"/api/v1/growth?pid={site['pid'] + 1}&at={playback.at}")["sites"] == []
    assert playback.end() == (0, "")


def test_nothing_of_it_is_told_without_signing_in(served):
    served.jar = None
    for path in (*PATHS[1:], "/metrics", "/metrics/sites", "/api/devices", "/api/devices/0/stats", "/api/v1/stream", "/api/v1/host"):
        status, _, body = served.ask(path)
        assert status == 401 and "ttmem report --serve" in body and "player" not in body, path
    assert served.json("/healthz")["recording"] is None
    assert served.ask("/")[0] == 200  # the page is everybody's
    status, _, body = served.ask("/api/v1/sign-in", "POST", Authorization=f"Code {served.code}")
    assert status == 401 and "each link works once" in body


def test_it_ends_with_its_command(served):
    served.process.kill()

    def is_gone():
        with contextlib.suppress(OSError):
            http.client.HTTPConnection(served.address, timeout=LIMIT).request("GET", "/")
            return False
        return True

    wait_for(is_gone)
    served.process.wait(timeout=LIMIT)
    served.end = lambda: (0, "")


def test_what_cannot_be_served_is_said_in_one_line(world, served, recording, tmp_path):
    (tmp_path / "no.ttrec").write_text("something else")
    for words in ([tmp_path / "no.ttrec"], [tmp_path / "missing.ttrec"], [recording, "--at", "nowhere"]):
        result = world.run("report", "--serve", *words)
        assert result.returncode == 1 and result.stdout == ""
        assert result.stderr.startswith("ttmem report: ") and len(result.stderr.splitlines()) == 1, result.stderr
    for words in (["--serve", "--json"], ["--serve", "-o", "x"], ["--at", "end"], ["--print"]):
        assert world.run("report", *words, recording).returncode == 2
