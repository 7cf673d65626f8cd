# SPDX-License-Identifier: Apache-2.0
"""ttmem export of recordings: all formats tell the same, and what the run itself reported."""

import collections
import csv
import io
import json
import re
import resource
import subprocess
import sys

import pytest

from common import LIMIT, wait_for
from exported import PERFETTO, check_memory_viz, export, protoc, read_pprof  # noqa: F401 (fixtures)

PROGRAM = """
import ttmem
def load(address, size, name=None):
    ttmem.alloc(0, ttmem.DRAM, address, size, name=name)
def step(i):
    with ttmem.phase("step"):
        load(0x100000 + i * 0x1000, 500, f"kv.{i}")
        ttmem.alloc(1, ttmem.L1, 0x1000, 64)
        ttmem.free(1, 0x1000)
load(0x1000, 1000, "weights")
for i in range(100):
    step(i)
ttmem.mark("full")
for i in range(50):
    ttmem.free(0, 0x100000 + i * 0x1000)
ttmem.alloc_failed(0, ttmem.DRAM, 1 << 40)
"""


def record(world, folder, program):
    """A recording of a program."""
    (folder / "program.py").write_text(program)
    env = {
        **world.env, "PYTHONPATH": str(world.build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(world.build / "src" / "lib"),
    }  # fmt: skip
    result = world.run(
        "run", "--json", folder / "run.json", "--record", folder / "run.rec", "--",
        sys.executable, folder / "program.py", env=env,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return folder / "run.rec"


@pytest.fixture
def recording(world, tmp_path):
    """Of PROGRAM, and the report of the run."""
    return record(world, tmp_path, PROGRAM), json.loads((tmp_path / "run.json").read_text())


def test_a_recorded_run_is_the_same_in_every_format(world, recording, export, protoc, tmp_path):
    path, report = recording
    peak = {(row["device"], row["type"]): row["bytes"] for row in report["peaks"]}
    assert report["leaked_bytes"] == 26000 and peak == {(0, "DRAM"): 51000, (1, "L1"): 64}

    rows = list(csv.DictReader(io.StringIO(export("csv", path).decode())))
    kinds = collections.Counter(row["event"] for row in rows)
    assert kinds == {"alloc": 201, "free": 150, "mark": 1, "alloc_failed": 1}
    for (device, kind), size in peak.items():
        used = [int(row["used"]) for row in rows if row["type"] == kind and row["device"] == str(device)]
        assert max(used) == size
    times = [int(row["time_ns"]) for row in rows]
    assert times == sorted(times)
    assert [row["event"] for row in rows[-52:-50]] == ["mark", "free"] and rows[-52]["name"] == "full"

    (tmp_path / "data").write_bytes(export("heaptrack", path))
    done = subprocess.run(["heaptrack_print", "-f", "data", "-M", "massif"], cwd=tmp_path, capture_output=True, text=True)
    assert "calls to allocation functions: 201 " in done.stdout and "program.py\n" in done.stdout
    in_use = [int(n) for n in re.findall(r"^mem_heap_B=(\d+)$", (tmp_path / "massif").read_text(), re.M)]
    assert in_use[-1] == 26000

    samples, _ = read_pprof(protoc, export("pprof", path))
    sums = collections.Counter()
    for values, _, _ in samples:
        sums.update(values)
    assert sums == {
        "alloc_objects": 201, "alloc_space": 1000 + 100 * 564, "inuse_objects": 51, "inuse_space": 26000,
    }  # fmt: skip

    document = json.loads(export("firefox", path))
    retained = {thread["name"]: sum(thread["nativeAllocations"]["weight"]) for thread in document["threads"]}
    assert retained == {"DRAM": 26000, "L1": 0}

    viz = check_memory_viz(export("memory_viz", path))
    actions = collections.Counter(event["action"] for trace in viz["device_traces"] for event in trace)
    assert actions == {"alloc": 201, "free_requested": 150, "free_completed": 150, "oom": 1}

    values = collections.defaultdict(list)
    for packet in protoc(PERFETTO, "Trace", export("perfetto", path))["packet"]:
        for event in packet["track_event"]:
            values[event["track_uuid"][0]] += event["counter_value"]
    assert sorted(max(found) for found in values.values() if found) == [64, 51000]
    counters = [e["args"]["bytes"] for e in json.loads(export("chrome", path))["traceEvents"] if e["ph"] == "C"]
    assert len(counters) == 351 and max(counters) == 51000 and counters[-1] == 26000


def test_a_moment_of_a_recording_is_what_buffers_shows(world, recording, export):
    path, _ = recording
    for at, size in {"peak": 51064, "end": 26000, "full": 51000}.items():
        rows = world.json("buffers", "--from", path, "--at", at)["buffers"]
        lines = export("folded", path, "--at", at).decode().splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == sum(row["size"] for row in rows) == size
        assert len(export("csv", path, "--at", at).splitlines()) >= 1 + len(rows)
    assert export("folded", "--from", path, "--at", "end", "--type", "L1") == b""
    assert b",L1," not in export("csv", path, "-d", "0") and b",L1," in export("csv", path, "-d", "1")


def test_what_was_live_before_the_recording_is_in_it(world, export, tmp_path):
    """More events than the history of a process has, then a recorder."""
    player = world.player("many 0 DRAM 0x1000 64 20000", "alloc 1 L1 0x1000 7", TTMEM_HISTORY="16384")
    recorder = world.start("record", player.pid, "-o", tmp_path / "rec")
    wait_for(lambda: (tmp_path / "rec").exists() and (tmp_path / "rec").stat().st_size > 10000, "its first state")
    player.play("alloc 0 DRAM 0x90000000 1000", "free 0 DRAM 0x1000")
    player.end()
    recorder.communicate(timeout=LIMIT)
    rows = list(csv.DictReader(io.StringIO(export("csv", tmp_path / "rec").decode())))
    sums = collections.Counter()
    for row in rows:
        sums[row["type"]] += {"alloc": 1, "live": 1, "free": -1}[row["event"]] * int(row["size"])
    assert sums == {"DRAM": 20000 * 64 + 1000 - 64, "L1": 7}
    assert rows[-1]["used"] == str(20000 * 64 + 1000 - 64)


FAMILY = """
import os, ttmem
ttmem.alloc(0, ttmem.DRAM, 0x1000, 100)
child = os.fork()
ttmem.alloc(0, ttmem.DRAM, 0x2000, 10 if child else 7)
if child:
    os.waitpid(child, 0)
os._exit(0)
"""


def test_processes_of_a_run_are_kept_apart(world, export, protoc, tmp_path):  # noqa: F811
    path = record(world, tmp_path, FAMILY)
    rows = list(csv.DictReader(io.StringIO(export("csv", path).decode())))
    sizes = collections.defaultdict(list)
    for row in rows:
        sizes[row["pid"]].append(int(row["size"]))
    assert sorted(sizes.values()) == [[7], [100, 10]]
    (parent,) = [pid for pid, found in sizes.items() if len(found) == 2]
    assert len(export("csv", path, "--pid", parent).splitlines()) == 3
    samples, _ = read_pprof(protoc, export("pprof", path))
    sums = collections.Counter()
    for values, _, labels in samples:
        sums[labels["pid"]] += values["inuse_space"]
    assert sums == {pid: sum(found) for pid, found in sizes.items()}
    document = check_memory_viz(export("memory_viz", path))
    assert sorted(sum(event["size"] for event in trace) for trace in document["device_traces"]) == [7, 110]
    threads = json.loads(export("firefox", path))["threads"]
    assert {thread["pid"]: sum(thread["nativeAllocations"]["weight"]) for thread in threads} == sums
    result = world.run("export", "--format", "ttnn-visualizer", "-o", tmp_path / "report", path)
    assert result.returncode == 2 and "several processes" in result.stderr
    result = world.run("export", "--format", "ttnn-visualizer", "-o", tmp_path / "report", "--pid", parent, path)
    assert result.returncode == 0 and "2 live buffers" in result.stdout


def test_a_recording_that_is_none(world, tmp_path):
    (tmp_path / "file").write_text("something else")
    for args in (("file",), ("--from", "file"), ("none",)):
        result = world.run("export", "--format", "csv", *args, cwd=tmp_path)
        assert result.returncode == 1 and result.stdout == "" and f"{args[-1]}: " in result.stderr


def test_a_recording_of_no_process(world, tmp_path):
    path = tmp_path / "nothing.ttrec"
    world.run("run", "--record", path, "--", "true")
    result = world.run("export", "--format", "ttnn-visualizer", "-o", tmp_path / "report", path)
    assert (result.returncode, result.stderr) == (1, "ttmem export: there is no process in the recording\n")


def test_marks_are_in_it_in_order(world, export, tmp_path):  # noqa: F811
    """At least the newest 256, which the book still has; more if the recorder saw them before."""
    program = "import ttmem\nttmem.alloc(0, ttmem.DRAM, 4096, 64)\nfor i in range(300):\n    ttmem.mark(f'm{i}')\n"
    path = record(world, tmp_path, program)
    rows = csv.DictReader(io.StringIO(export("csv", path).decode()))
    names = [row["name"] for row in rows if row["event"] == "mark"]
    assert names[-256:] == [f"m{i}" for i in range(44, 300)] and names == sorted(names, key=lambda name: int(name[1:]))
    events = json.loads(export("chrome", path, "--at", "m250"))["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "i"][-1] == "m250"


def test_too_many_events_for_memory(world, recording, tmp_path):
    path, _ = recording
    result = world.run("export", "--format", "firefox", "--rows", "100", path, "-o", tmp_path / "out")
    assert result.returncode == 1 and "more than 100 events" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full(world, recording):
    path, _ = recording
    for form in ("csv", "chrome", "heaptrack", "memory_viz", "perfetto", "firefox", "pprof", "speedscope"):
        result = world.run("export", "--format", form, path, "-o", "/dev/full")
        assert result.returncode == 1 and "/dev/full: No space left" in result.stderr, form


def test_a_reader_that_goes_away(world, recording):
    path, _ = recording
    process = subprocess.Popen(
        [world.program, "export", "--format", "csv", path], env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    _, told = process.communicate(timeout=LIMIT)
    assert b"ttmem export:" not in told


def test_reports_of_recordings(world, recording, tmp_path):
    path, _ = recording
    result = world.run("export", "--format", "ttnn-visualizer", "-o", tmp_path / "report", "--at", "peak", path)
    assert result.returncode == 0, result.stderr
    assert "102 live buffers" in result.stdout


MANY = """
import ttmem
for i in range(100000):
    ttmem.alloc(0, ttmem.DRAM, 0x1000, 64)
    ttmem.free(0, 0x1000)
"""


def test_without_memory_no_half_written_file_is_left(world, tmp_path):
    path, out = record(world, tmp_path, MANY), tmp_path / "out"
    command = [world.build / "src" / "cli" / "ttmem", "export", "--format", "firefox", path, "-o", out]

    def run(limit):
        return subprocess.run(
            command, env=world.env, capture_output=True, text=True, timeout=LIMIT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )  # fmt: skip

    # Just below what is enough, the last list of events cannot grow.
    little, enough = 1 << 20, 1 << 30
    while enough - little > 1 << 20:
        limit = (little + enough) // 2
        little, enough = (little, limit) if run(limit).returncode == 0 else (limit, enough)
    out.unlink(missing_ok=True)
    done = run(little)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ttmem export: out of memory")
    assert not out.exists()
