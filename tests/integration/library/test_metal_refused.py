# SPDX-License-Identifier: Apache-2.0
"""What tt-metal refuses, and what is live when it closes something, with libttmem-metal.so and stand-ins for it.

tests/programs/metal/short.cpp runs short of memory in every way.
"""

import json
import shutil
import subprocess

import pytest

from metalshapes import Shapes
from world import check_schema

MIB = 1 << 20
DRAM, L1, L1_SMALL, TRACE = 0x4000000, 1499136 - 0x8000 - 0x10000, 0x8000, 0x100000  # of a bank

# (device, type, size, size per bank, banks, largest free block, times)
REFUSED = [
    (0, "DRAM", 512 * MIB, 128 * MIB, 4, DRAM, 1),
    (0, "L1", 16 * MIB, 2 * MIB, 8, L1 - 4096, 3),
    (0, "L1", 8 * MIB, 2 * MIB, 4, L1 - 4096, 1),
    (0, "L1_SMALL", MIB // 2, MIB // 16, 8, L1_SMALL, 1),
    (0, "L1_SMALL", 32 * MIB, 4 * MIB, 8, L1_SMALL, 1),
    (0, "TRACE", 8 * MIB, 2 * MIB, 4, TRACE, 1),
    (0, "DRAM", 1024 * MIB, 256 * MIB, 4, DRAM, 1),  # of the mesh: once
    (1, "DRAM", 2048 * MIB, 512 * MIB, 4, DRAM, 1),
    (1, "DRAM", MIB * MIB, None, 4, None, 1),  # of more pages than tt-metal counts
    (0, "CB", 8192, 8192, None, 4096, 1),
]


@pytest.fixture(scope="module")
def shapes(build, tmp_path_factory):
    if not (build / "src" / "metal" / "libttmem-metal.so").exists():
        pytest.skip("libttmem-metal.so is not built")
    if not shutil.which("g++"):
        pytest.skip("no g++")
    return Shapes(tmp_path_factory.mktemp("shapes"))


@pytest.fixture
def run_short(ttmem, shapes, tmp_path):
    """Call as run_short(70, options): the completed "ttmem run --metal" and its report."""

    def run_it(shape, *options, **more):
        path = tmp_path / "report.json"
        done = ttmem("run", "--json", path, *options, "--metal", "--", shapes(shape) / "short",
                     stdin=subprocess.DEVNULL, **more)
        return done, check_schema(json.loads(path.read_text()))

    return run_it


@pytest.mark.parametrize("shape", [62, 66, 70])
def test_every_refused_allocation_is_an_incident(run_short, shape):
    done, report = run_short(shape, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rows = [row for row in report["incidents"] if row["kind"] == "alloc_failed"]
    found = [(row["device"], row["type"], row["size"], row.get("size_per_bank"), row.get("banks"),
              row["largest_free"], row["count"]) for row in rows]
    # 0.66's stand-in does not tell on how many cores a buffer lies.
    hidden = [(8 * MIB, 4), (MIB // 2, 8), (32 * MIB, 8)] if shape == 66 else []
    if not hidden:
        assert sorted(found, key=str) == sorted(REFUSED, key=str)
    assert sum(row[-1] for row in found) == sum(row[-1] for row in REFUSED)
    assert {row[:3] for row in found if (row[2], 8) not in hidden and (row[2], 4) not in hidden} == {
        row[:3] for row in REFUSED if (row[2], 8) not in hidden and (row[2], 4) not in hidden}
    for row in rows:
        calls = [frame["function"] for frame in row["second"]["stack"]]
        assert any("refusals" in (call or "") for call in calls), calls


@pytest.mark.parametrize("shape", [62, 70])
def test_what_is_live_at_a_closing_was_held(run_short, shape):
    """On a device, a mesh and a submesh; a mesh's buffer is one on each of its devices."""
    done, report = run_short(shape, "-q", "--strict-close")
    assert done.returncode == 0
    held = sorted((row["device"], row["type"], row["size"]) for row in report["incidents"]
                  if row["kind"] == "held_at_close" and row["size"] != 4096 * 1)
    meshes = sorted((row["device"], row["type"]) for row in report["incidents"]
                    if row["kind"] == "held_at_close" and row["size"] == 4096)
    assert held == [(0, "DRAM", MIB), (1, "L1", 2048)]
    assert meshes == [(0, "DRAM"), (1, "DRAM")]
    assert report["held_at_close"] == {"bytes": MIB + 2048 + 2 * 4096, "buffers": 4}
    assert run_short(shape, "-q", "--strict-close", "--fail-on-leak")[0].returncode == 86
    assert run_short(shape, "-q", "--fail-on-leak")[0].returncode == 0


def test_a_recording_ends_where_an_allocation_failed(run_short, ttmem, tmp_path):
    file = tmp_path / "run.ttmem"
    assert run_short(70, "-q", "--record", file)[0].returncode == 0
    document = json.loads(ttmem("buffers", "--from", file, "--at", "failed", "--json", check=True).stdout)
    assert document["buffers"] == []  # the first of them, before anything else was allocated
    rows = json.loads(ttmem("incidents", "--from", file, "--json", check=True).stdout)["incidents"]
    assert document["time_ns"] in {row["time_ns"] for row in rows if row["kind"] == "alloc_failed"}


@pytest.mark.parametrize("check", ["--fail-on-leak", "--require-tracking"])
def test_a_check_fails_where_the_preload_library_gave_up(ttmem, shapes, tmp_path, check):
    other = shapes.make(tmp_path / "other", 70, "-DMETAL_OTHER_SIZE")
    path = tmp_path / "report.json"
    done = ttmem("run", "-q", "--json", path, check, "--metal", "--", other / "play", stdin=subprocess.DEVNULL)
    assert done.returncode == 87
    report = check_schema(json.loads(path.read_text()))
    reason = "libtt_metal.so: a buffer's size is not page_size() x num_pages()"
    assert report["gave_up"] == reason
    assert any(line.startswith("ttmem run: ") and reason in line for line in done.stderr.splitlines())


def test_one_paragraph_tells_why_the_program_failed(run_short):
    """Nobody catches the last refusal: then no function returns, and what is free cannot be asked."""
    done, report = run_short(70, env={"SHORT_FATAL": "1"})
    assert done.returncode == 128 + 6
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("out of memory: ")]
    assert "4.0 GiB of DRAM on device 1 (1.0 GiB in each of 4 banks) were asked for by main (short.cpp:" in line
    assert " By its live buffers, 64.0 MiB were free of 64.0 MiB in each of 4 banks, in blocks of at most 64.0 MiB." in line
    assert line.endswith(" This process held nothing of it. No bank is that large: whatever goes, it does not fit.")
    assert "12 more allocations failed" in done.stderr
    (row,) = [row for row in report["incidents"] if row["size"] == 4096 * MIB]
    assert (row["kind"], row["largest_free"], row["size_per_bank"]) == ("alloc_failed", None, 1024 * MIB)


def test_refusals_that_the_program_survives_are_only_counted(run_short):
    done, _report = run_short(70)
    assert "12 failed allocations were handled by the program" in done.stderr
    assert "out of memory" not in done.stderr
