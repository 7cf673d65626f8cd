# SPDX-License-Identifier: Apache-2.0
"""ttmem export in the formats of other tools: read by those tools where they can be had, and compared with
what ttmem itself shows."""

import collections
import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys

import pytest

from common import LIMIT
from exported import PERFETTO, check_memory_viz, export, protoc, read_pprof  # noqa: F401 (fixtures)

START = 1700000000000000000  # of the made-up course, see src/cli/export/testing/testing-story.c

NO_STACKS = {"TTMEM_STACKS": "off"}


@pytest.fixture
def story(world):
    def write(form):
        program = world.build / "tests" / "programs" / "story"
        return subprocess.run([program, form], capture_output=True, check=True, timeout=LIMIT).stdout

    return write


@pytest.fixture
def model(world, tmp_path):
    """A process with stacks: a Python program."""
    source = tmp_path.resolve() / "model.py"
    source.write_text(
        "import sys, ttmem\n"
        "def load(address, size):\n"
        "    ttmem.alloc(0, ttmem.DRAM, address, size, name='w')\n"
        "load(0x1000, 1000)\n"
        "load(0x3000, 500)\n"
        "(lambda: ttmem.alloc(0, ttmem.L1, 0x1000, 64))()\n"
        "ttmem.alloc(3, ttmem.DRAM, 0x1000, 1 << 33)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    env = {
        **world.env, "TTMEM": "1", "PYTHONPATH": str(world.build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(world.build / "src" / "lib"),
    }  # fmt: skip
    process = world.adopt(
        subprocess.Popen([sys.executable, source], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    return process


def shown(world, pid):
    """{type: bytes}, as ttmem buffers has them."""
    sums = collections.Counter()
    for row in world.json("buffers", "--pid", pid)["buffers"]:
        sums[row["type"]] += row["size"]
    return sums


def test_folded_stacks_have_what_buffers_shows(world, model, export):
    lines = export("folded", model.pid).decode().splitlines()
    sums = collections.Counter()
    for line in lines:
        stack, size = line.rsplit(" ", 1)
        sums[stack.split(";")[1]] += int(size)
    assert sums == shown(world, model.pid) and sum(sums.values()) == 1564 + (1 << 33)
    comm = lines[0].split(";")[0]
    assert f"{comm};DRAM;module (model.py:4);load (model.py:3) 1000" in lines
    assert f"{comm};L1;module (model.py:6);lambda (model.py:6) 64" in lines


def check_speedscope(data):
    """As its schema says. Returns {name of a profile: bytes}."""
    document = json.loads(data)
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line", "col"} and frame["name"] for frame in frames)
    sums = {}
    for profile in document["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] == "bytes"
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        sums[profile["name"]] = profile["endValue"]
    return document, sums


def test_speedscope_has_a_profile_for_each_type(world, model, export):
    document, sums = check_speedscope(export("speedscope", "--pid", model.pid))
    assert {name.split()[0]: size for name, size in sums.items()} == shown(world, model.pid)
    assert all(f"(pid {model.pid})" in name for name in sums)
    frames = [(frame["name"], frame.get("line")) for frame in document["shared"]["frames"]]
    assert ("load", 3) in frames and ("module (model.py)", 4) in frames


def test_pprof_has_what_buffers_shows(world, model, export, protoc):
    samples, _ = read_pprof(protoc, export("pprof", model.pid))
    sums = collections.Counter()
    for values, _, labels in samples:
        assert set(values) == {"inuse_objects", "inuse_space"}  # nobody has counted the others
        assert labels["pid"] == str(model.pid)
        sums[labels["type"]] += values["inuse_space"]
    assert sums == shown(world, model.pid)
    (stack,) = [stack for values, stack, _ in samples if values["inuse_space"] == 500]
    assert [(name, line) for name, _, line in stack] == [("load", 3), ("module (model.py)", 5)]
    assert {labels["device"] for _, _, labels in samples} == {"0", "3"}


def test_pprof_of_a_course_has_what_was_allocated(story, protoc):
    samples, profile = read_pprof(protoc, story("pprof"))
    values = {tuple(name for name, _, _ in stack): values for values, stack, _ in samples}
    assert values[("load", "module (run.py)")] == {
        "alloc_objects": 2, "alloc_space": 1000, "inuse_objects": 2, "inuse_space": 1000,
    }  # fmt: skip
    assert values[("step", "module (run.py)")] == {
        "alloc_objects": 1, "alloc_space": 500, "inuse_objects": 0, "inuse_space": 0,
    }  # fmt: skip
    assert profile["time_nanos"] == [START + 8000000] and profile["duration_nanos"] == [8000000]


def test_pprof_itself_reads_it(world, model, export, tmp_path):
    pprof = shutil.which("pprof") or "/usr/lib/go-1.19/pkg/tool/linux_amd64/pprof"
    if not os.path.exists(pprof):
        pytest.skip("no pprof")
    (tmp_path / "profile").write_bytes(export("pprof", model.pid))
    env = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        [pprof, "-raw", tmp_path / "profile"], capture_output=True, text=True, timeout=LIMIT, env=env
    )
    assert done.returncode == 0, done.stderr
    values = [int(value) for value in re.findall(r"^ +\d+ +(\d+): ", done.stdout, re.M)]
    assert sum(values) == sum(shown(world, model.pid).values())
    assert "module (model.py)" in done.stdout and "load" in done.stdout


def test_memory_viz_has_what_buffers_shows(world, model, export):
    document = check_memory_viz(export("memory_viz", model.pid))
    sums = collections.Counter()
    for segment in document["segments"]:
        active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
        sums[segment["segment_type"]] += sum(block["requested_size"] for block in active)
    assert sums == shown(world, model.pid)
    assert {segment["device"] for segment in document["segments"]} == {0, 3}
    assert document["device_traces"] == [[], [], [], []]
    (block,) = [
        block for segment in document["segments"] for block in segment["blocks"] if block["requested_size"] == 1000
    ]
    assert [(f["name"], f["line"]) for f in block["frames"]] == [("DRAM w", 0), ("load", 3), ("module (model.py)", 4)]


def test_memory_viz_shows_the_free_memory_of_a_known_device(world, export):
    """The simulated allocator spreads its buffers over banks, and declares them."""
    process = world.adopt(
        subprocess.Popen(
            [world.build / "tests" / "programs" / "allocator", "1", "n150"],
            env={**world.env, "TTMEM": "1"}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    process.stdout.readline()
    world.show(process.pid)
    document = check_memory_viz(export("memory_viz", process.pid))
    maps = {m["type"]: m for m in world.json("map")["maps"] if m["pid"] == process.pid}
    for segment in document["segments"]:
        if segment["segment_type"] in maps:
            memory = maps[segment["segment_type"]]
            assert segment["total_size"] >= memory["banks"] * memory["bank_size"]  # which TRACE is cut off
            active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
            assert all(block["size"] >= block["requested_size"] for block in active)  # none reaches into the next
            assert sum(block["requested_size"] for block in active) == sum(
                row["size"]
                for row in world.json("buffers", "--pid", process.pid, "--type", segment["segment_type"])["buffers"]
            )


def test_memory_viz_of_a_course(story):
    document = check_memory_viz(story("memory_viz"))
    first, second = document["device_traces"]
    assert [(e["action"], e["size"]) for e in first] == [
        ("alloc", 1000), ("alloc", 500), ("alloc", 64), ("free_requested", 500), ("free_completed", 500),
        ("oom", 1 << 40),
    ]  # fmt: skip
    assert first[1]["addr"] == first[3]["addr"] == first[4]["addr"] != first[0]["addr"] != first[2]["addr"]
    assert first[0]["time_us"] == START // 1000 and first[4]["time_us"] == START // 1000 + 3000
    assert [frame["name"] for frame in first[4]["frames"]] == ["DRAM kv.0", "fill", "main"]
    assert [(e["action"], e["size"], e["frames"][0]["name"]) for e in second] == [("alloc", 4096, "DRAM kv.7")]


def test_heaptrack_itself_reads_a_course(story, tmp_path):
    (tmp_path / "data").write_bytes(story("heaptrack"))
    done = subprocess.run(
        ["heaptrack_print", "-f", "data", "-M", "massif", "-F", "folded", "--flamegraph-cost-type", "peak"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Debuggee command was: python3 run.py" in done.stdout
    assert "calls to allocation functions: 4 " in done.stdout
    in_use = re.findall(r"^mem_heap_B=(\d+)$", (tmp_path / "massif").read_text(), re.M)
    assert [int(size) for size in in_use][:5] == [1000, 1500, 1564, 1064, 5160]
    folded = (tmp_path / "folded").read_text()
    assert "python3 (pid 100);DRAM;module (run.py) (run.py);load (model.py); 1000\n" in folded
    assert "worker (pid 200);DRAM;[no stack] kv.#; 4096\n" in folded


def test_perfetto_has_counters_and_instants(story, protoc):
    packets = protoc(PERFETTO, "Trace", story("perfetto"))["packet"]
    assert all(packet["trusted_packet_sequence_id"] == [1] for packet in packets)
    assert packets[0]["sequence_flags"] == [1]
    tracks = {}
    values, instants, slices = collections.defaultdict(list), [], []
    for packet in packets:
        for track in packet["track_descriptor"]:
            tracks[track["uuid"][0]] = track
        for event in packet["track_event"]:
            track = tracks[event["track_uuid"][0]]  # described before it is used
            time = packet["timestamp"][0] - START
            if event["type"] == [4]:
                owner = tracks[track["parent_uuid"][0]]["process"][0]["pid"][0]
                values[owner, track["name"][0]].append((time // 1000000, event["counter_value"][0]))
                assert track["counter"][0]["unit"] == [3]
            elif event["type"] in ([1], [2]):
                (thread,) = track["thread"]
                slices.append((thread["pid"][0], thread["tid"][0], event["name"], time // 1000000))
            else:
                assert event["type"] == [3]
                instants.append((track["process"][0]["pid"][0], event["name"][0]))
    assert values == {
        (100, "DRAM of device 0"): [(0, 1000), (1, 1500), (3, 1000), (7, 1000)],
        (100, "L1 of device 0"): [(2, 64)],
        (200, "DRAM of device 1"): [(4, 4096)],
    }
    assert instants == [
        (100, 'step, "1"'), (100, f"allocation of {1 << 40} bytes of DRAM failed"), (100, "17 events missed"),
    ]  # fmt: skip
    assert slices == [(100, 0, ["fill"], 2), (100, 0, [], 7), (100, 1, ["step"], 1), (100, 1, [], 1)]


def test_chrome_has_counters_and_instants(story):
    events = json.loads(story("chrome"))["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {100: "python3", 200: "worker"}
    counters = [(e["pid"], e["name"], e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"]
    assert counters[:3] == [
        (100, "DRAM of device 0", 0, 1000), (100, "DRAM of device 0", 1000, 1500), (100, "L1 of device 0", 2000, 64),
    ]  # fmt: skip
    phases = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert phases == [("fill", 0, 2000, 5000), ("step", 1, 1000, 0)]
    instants = [(e["name"], e["ts"]) for e in events if e["ph"] == "i"]
    assert instants == [('step, "1"', 2000.5), ("allocation failed", 5000), ("events missed", 6000)]


def test_firefox_has_allocations_of_each_type(story):
    document = json.loads(story("firefox"))
    assert document["meta"]["preprocessedProfileVersion"] == 48
    assert document["meta"]["startTime"] == START // 1000000
    found = {}
    for thread in document["threads"]:
        for name in ("frameTable", "funcTable", "stackTable", "nativeAllocations", "markers", "samples"):
            table = thread[name]
            for column in table.values():
                assert not isinstance(column, list) or len(column) == table["length"], name
        strings, frames, stacks = thread["stringArray"], thread["frameTable"], thread["stackTable"]
        rows = thread["nativeAllocations"]
        calls = []
        for stack in rows["stack"]:
            names = []
            while stack is not None:
                assert stacks["prefix"][stack] is None or stacks["prefix"][stack] < stack
                names.append(strings[thread["funcTable"]["name"][frames["func"][stacks["frame"][stack]]]])
                stack = stacks["prefix"][stack]
            calls.append(names)
        found[thread["pid"], thread["name"]] = list(zip(rows["time"], rows["weight"], rows["memoryAddress"], calls))
    assert found["100", "DRAM"] == [
        (0, 1000, 1, ["load", "module (run.py)"]), (1, 500, 2, ["step", "module (run.py)"]),
        (3, -500, 2, ["step", "module (run.py)"]),
    ]  # fmt: skip
    assert found["100", "L1"] == [(2, 64, 1, ["fill", "main"])]
    assert [row[:2] for row in found["200", "DRAM"]] == [(4, 4096)]
    counts = {(c["pid"], c["name"]): c["samples"]["count"] for c in document["counters"]}
    assert counts["100", "DRAM"] == [0, 1000, 500, -500]  # differences, after a first one that does not count


def test_csv_is_read_by_others(story):
    rows = list(csv.DictReader(io.StringIO(story("csv").decode())))
    assert [row["event"] for row in rows] == [
        "live", "alloc", "alloc", "mark", "free", "alloc", "alloc_failed", "missed", "alloc",
    ]  # fmt: skip
    assert rows[3]["name"] == 'step, "1"' and rows[7]["missed"] == "17"
    assert int(rows[4]["time_ns"]) == START + 3000000 and rows[4]["used"] == "1000"
    assert rows[4]["address"] == "0x2000" and rows[4]["stack"] == "main @ app -> fill @ libmodel.so"


def test_all_processes_and_some(world, export):
    one = world.player("alloc 0 DRAM 0x1000 64 kv.0", "alloc 0 DRAM 0x2000 64 kv.1", "alloc 0 L1 0x1000 7", **NO_STACKS)
    two = world.player("alloc 1 DRAM 0x1000 100 kv.0", **NO_STACKS)
    _, sums = check_speedscope(export("speedscope"))
    assert f"DRAM of player (pid {one.pid})" in sums and sums[f"DRAM of player (pid {two.pid})"] == 100
    lines = export("folded", "--pid", one.pid, "--type", "DRAM").decode().splitlines()
    assert lines == ["player;DRAM;[no stack] kv.# 128"]
    document = check_memory_viz(export("memory_viz"))
    assert len({segment["device"] for segment in document["segments"]}) >= 2


def test_names_cannot_break_a_line_or_a_frame(world, export):
    player = world.player("alloc 0 DRAM 0x1000 64 a%0A;b%1B[31m", **NO_STACKS)
    (line,) = export("folded", player.pid).splitlines()
    assert re.fullmatch(rb"player;DRAM;\[no stack\] a[ -:<-~]+:b[ -:<-~]+ 64", line)


def test_files_are_complete_or_not_there(world, export, tmp_path):
    player = world.player("alloc 0 DRAM 0x1000 64")
    path = tmp_path / "out"
    path.write_text("x" * 100000)  # is replaced
    assert export("folded", player.pid, "-o", path) == b""
    assert path.read_bytes() == export("folded", player.pid)
    result = world.run("export", "--format", "folded", "-o", tmp_path / "no" / "such", player.pid)
    assert result.returncode == 1 and "No such file or directory" in result.stderr
    result = world.run("export", "--format", "folded", "-o", "/dev/full", player.pid)
    assert result.returncode == 1 and "No space left" in result.stderr
    assert os.path.exists("/dev/full")


def test_binary_formats_are_not_written_to_terminals(world):
    player = world.player("alloc 0 DRAM 0x1000 64")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [world.program, "export", "--format", "pprof", str(player.pid)],
        env=world.env, stdout=theirs, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(theirs)
    _, told = process.communicate(timeout=LIMIT)
    os.close(ours)
    assert process.returncode == 1 and "not for terminals" in told


def test_mistakes(world):
    for args, text in {
        ("--format", "heaptrack", "1"): "expects a recording",
        ("--format", "pprof", "1", "2"): "one process",
        ("--format", "nothing"): '--format expects pprof, speedscope',
    }.items():
        result = world.run("export", *args)
        assert result.returncode == 2 and text in result.stderr, args
    result = world.run("export", "--format", "pprof", 999999)
    assert result.returncode == 1 and "there is no process 999999" in result.stderr


def test_memory_viz_bears_any_address_and_device(world, export):  # noqa: F811
    player = world.player(
        "device 0 0xabc wormhole_b0 n150 0 0xffffffffffff 0xffffffffffff 0xffff",
        "alloc 0 DRAM 0xfffffffffffffff0 1000", "alloc 0 DRAM 0 0xffffffffff", "alloc 0 DRAM 0x7000 0xffffffffff",
        "alloc 0 SYSTEM_MEMORY 0x7f0000001000 4096", "alloc 0 L1 0x100 64", "alloc 0 L1 0x110 64",
    )  # fmt: skip
    document = check_memory_viz(export("memory_viz", player.pid))
    active = [b for s in document["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
    assert sum(block["requested_size"] for block in active) == sum(shown(world, player.pid).values())
