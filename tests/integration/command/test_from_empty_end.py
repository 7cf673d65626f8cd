# SPDX-License-Identifier: Apache-2.0
"""A recording of a run that freed everything: without --at its peak is shown, and that is said."""

import json
import sqlite3

import pytest

from world import check_schema

MIB = 1 << 20
NOTE = "nothing was live at the end of the recording: this is its peak (--at end shows the end)"
LINES = [f"device 0 0x77 wormhole_b0 n150 0 {12 << 30} {96 * MIB}",
         f"alloc 0 DRAM 0x1000 {3 * MIB} weights", f"alloc 0 DRAM 0x800000 {MIB} scratch",
         "free 0 DRAM 0x800000", "free 0 DRAM 0x1000"]  # fmt: skip


@pytest.fixture
def record(ttmem, build, tmp_path):
    def run(*lines):
        path = tmp_path / "run.ttrec"
        player = build / "tests" / "programs" / "player"
        done = ttmem("run", "-q", "--record", path, "--", player, input="\n".join(lines) + "\n")
        assert done.returncode == 0
        return path

    return run


def test_commands_that_show_what_is_live_show_the_peak(ttmem, record):
    path = record(*LINES)
    for command in ("buffers", "smi", "ps", "map", "fit"):
        words = [command, *(["1G"] if command == "fit" else []), "--from", path]
        document = check_schema(json.loads(ttmem(*words, "--json").stdout))
        assert NOTE in document["notes"], command
        done = ttmem(*words)
        assert f"note: {NOTE}" in done.stdout + done.stderr, command  # smi prints its notes below the table
        at_end = json.loads(ttmem(*words, "--at", "end", "--json").stdout)
        assert NOTE not in at_end["notes"] and at_end["time_ns"] >= document["time_ns"], command
    rows = json.loads(ttmem("buffers", "--from", path, "--json").stdout)["buffers"]
    assert {row["name"] for row in rows} == {"weights", "scratch"}
    rows = json.loads(ttmem("buffers", "--from", path, "--at", "end", "--json").stdout)["buffers"]
    assert rows == []


def test_exports_of_a_moment_show_the_peak_and_those_of_events_all_of_them(ttmem, record, tmp_path):
    path = record(*LINES)
    done = ttmem("export", "--format", "folded", path)
    assert done.returncode == 0 and NOTE in done.stderr
    assert sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()) == 4 * MIB
    done = ttmem("export", "--format", "ttnn-visualizer", "-o", tmp_path / "report", path)
    assert done.returncode == 0 and NOTE in done.stderr
    with sqlite3.connect(tmp_path / "report" / "db.sqlite") as database:
        assert database.execute("select count(*) from buffers").fetchone()[0] > 0
    done = ttmem("export", "--format", "csv", path)
    assert NOTE not in done.stderr and len(done.stdout.splitlines()) == 1 + 4


def test_a_recording_that_ends_with_live_buffers_is_shown_as_it_ended(ttmem, record):
    path = record(*LINES[:-1])
    document = json.loads(ttmem("buffers", "--from", path, "--json").stdout)
    assert [row["name"] for row in document["buffers"]] == ["weights"] and NOTE not in document["notes"]
    # Of another type nothing is live at the end, and nothing ever was.
    document = json.loads(ttmem("buffers", "--from", path, "--type", "L1", "--json").stdout)
    assert document["buffers"] == [] and NOTE not in document["notes"]


def test_commands_about_the_whole_run_still_look_back_from_its_end(ttmem, record):
    path = record(*LINES, "free 0 DRAM 0x5000")
    rows = json.loads(ttmem("incidents", "--from", path, "--json").stdout)["incidents"]
    assert [row["kind"] for row in rows] == ["unknown_free"]
