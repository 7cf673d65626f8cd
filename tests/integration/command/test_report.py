# SPDX-License-Identifier: Apache-2.0
"""ttmem report: a recording as one page, and the document in it."""

import json
import re
import subprocess

import pytest

from conftest import LIMIT
from world import check_schema

MIB = 1024**2
GIB = 1024**3
EVIL = "</script><script>window.hacked=1</script><!--"
PAGE_MAX = 2 * MIB  # what a typical run may have

RUN = [
    f"device 0 0xa1 wormhole_b0 n150 0 {12 * GIB} {96 * MIB} 12",
    "push load",
    f"alloc 0 DRAM 0x20 {MIB} weights",
    "pop",
    "mark loaded",
    "push step%201",
    f"alloc 0 DRAM 0x400000 {2 * MIB} activations",
    "free 0 DRAM 0x400000",
    "free 0 DRAM 0x400000",
    "pop",
    "burst 1 1000",
    "alloc 0 L1 0x20000 65536 " + "".join(f"%{byte:02x}" for byte in EVIL.encode()),
]


def record(world, path, lines=RUN, **settings):
    """Records a run of the player; it ends without freeing what it has."""
    player = world.build / "tests" / "programs" / "player"
    result = subprocess.run(
        [world.program, "run", "--record", path, "--", player],
        input="".join(f"{line}\n" for line in lines),
        env={**world.env, **settings}, capture_output=True, text=True, timeout=LIMIT,
    )
    assert path.exists(), result.stderr
    return path


@pytest.fixture
def recording(world, tmp_path):
    return record(world, tmp_path / "run.ttrec")


def names(sites):
    return {one["name"] for site in sites for one in site["names"]}


def test_document_has_what_the_run_did(world, recording):
    document = world.json("report", recording)
    assert document["file"] == "run.ttrec" and "player" in document["command"]
    assert document["missed"] == 0 and document["exact"] and document["complete"]
    (process,) = document["processes"]
    assert process["comm"] == "player" and process["exit"] == {"code": 0, "signal": None}
    assert process["start_ns"] <= process["ended_ns"]
    assert [mark["name"] for mark in document["marks"]] == ["loaded"]
    assert [span["phase"] for span in document["phases"]] == ["load", "step 1"]
    assert all(span["from_ns"] <= span["to_ns"] for span in document["phases"])
    kinds = [incident["kind"] for incident in document["incidents"]]
    assert "double_free" in kinds and len(kinds) == document["incident_count"]
    assert document["gaps"] == [] and document["growth"]["sites"] == []


def test_peak_is_the_highest_point_of_the_timeline(world, recording):
    document = world.json("report", recording)
    types = document["timeline"]["types"]
    totals = [sum(step) for step in zip(*(kind["bytes"] for kind in types.values()), strict=True)]
    peak = document["peak"]
    assert peak["bytes"] == max(totals) >= 3 * MIB
    assert peak["unexplained"] == 0
    assert sum(site["bytes"] for site in peak["sites"]) == peak["bytes"]
    assert {"weights", "activations"} == names(peak["sites"])
    assert totals[-1] in (0, document["end"]["bytes"]), "what the process had is gone with it"


def test_what_is_left_is_listed(world, recording):
    end = world.json("report", recording)["end"]
    assert {site["name"]: site["bytes"] for site in end["sites"]} == {"weights": MIB, EVIL: 65536}
    assert end["bytes"] == MIB + 65536 and end["buffers"] == 2


def test_temporaries_are_found_though_no_moment_shows_them(world, recording):
    document = world.json("report", recording)
    short = [site for site in document["temporaries"]["sites"] if sum(site["lives"][:11]) > 0]
    assert max(site["frees"] for site in short) >= 1000
    assert all(sum(site["lives"]) == site["frees"] <= site["allocs"] for site in short)


def test_memory_is_mapped_at_the_peak_and_over_time(world, recording):
    document = world.json("report", recording)
    (dram,) = [one for one in document["maps"] if one["type"] == "DRAM" and one["device"] == 0]
    assert {buffer["name"] for buffer in dram["buffers"]} == {"weights", "activations"}
    assert dram["blocks"] == 2 and dram["hole_count"] == len(dram["holes"]) > 0
    fragmentation = document["fragmentation"]
    (over,) = [one for one in fragmentation["spaces"] if one["type"] == "DRAM" and one["device"] == 0]
    assert len(over["used"]) == len(fragmentation["times_ns"])
    for used, free, largest in zip(over["used"], over["free"], over["largest"], strict=True):
        assert (used is None) == (free is None) == (largest is None)
        assert free is None or largest <= free <= over["size"]


def test_stacks_are_there_once_and_have_names(world, tmp_path):
    document = world.json("report", record(world, tmp_path / "s.ttrec", TTMEM_STACKS="fp"))
    frames, stacks = document["frames"], document["stacks"]
    lines = [json.dumps(frame) for frame in frames]
    assert len(lines) == len(set(lines)) > 0
    for stack in stacks:
        assert all(number < len(frames) for number in stack["frames"])
    sites = [site for site in document["end"]["sites"] if site["stack"] is not None]
    assert sites, "the player was built with frame pointers"
    assert "play" in {frames[number]["function"] for number in stacks[sites[0]["stack"]]["frames"]}


def page_of(world, *args):
    result = world.run("report", *args)
    if "built without npm" in result.stderr:
        pytest.skip("the page is not built in")
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_page_holds_the_document_and_nothing_ends_it_early(world, recording, tmp_path):
    page = page_of(world, "-o", "-", recording)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert "<" not in data and EVIL in data.replace("\\u003c", "<")
    assert check_schema(json.loads(data)) == world.json("report", recording)
    assert page.count("</script") == 3 and page.count("<script") == 3
    assert not re.search(r"<[^>]*(src|href)=", page.split("<body>")[0].split("<style>")[0])
    assert "default-src 'none'; script-src 'sha256-" in page
    assert len(page) < PAGE_MAX
    assert str(tmp_path) not in data.replace(json.dumps(str(recording)), ""), "a path says too much"


def test_page_is_written_where_it_was_asked_for(world, recording, tmp_path):
    page_of(world, "-o", tmp_path / "x.html", recording)
    result = world.run("report", recording, cwd=tmp_path)
    assert result.returncode == 0 and result.stdout.startswith("run.html: ")
    assert (tmp_path / "run.html").read_bytes() == (tmp_path / "x.html").read_bytes()


def test_what_is_no_recording_is_refused_in_one_line(world, tmp_path):
    (tmp_path / "no.ttrec").write_text("something else")
    for name in ("no.ttrec", "missing.ttrec"):
        result = world.run("report", "--json", tmp_path / name)
        assert result.returncode == 1 and result.stdout == ""
        assert result.stderr.startswith("ttmem report: ") and result.stderr.count("\n") == 1
    for args in ((), ("a", "b")):
        assert world.run("report", "--json", *args).returncode == 2


def test_page_that_cannot_be_written_is_a_failure(world, recording, tmp_path):
    result = world.run("report", "-o", tmp_path / "no" / "x.html", recording)
    if "built without npm" in result.stderr:
        pytest.skip("the page is not built in")
    assert result.returncode == 1 and "cannot write" in result.stderr


def test_torn_recording_is_reported_as_far_as_it_goes(world, recording):
    whole = recording.read_bytes()
    recording.write_bytes(whole[: len(whole) - 100])
    document = world.json("report", recording)
    assert not document["complete"]
    assert document["end"]["bytes"] >= MIB
