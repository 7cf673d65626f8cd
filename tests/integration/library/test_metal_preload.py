# SPDX-License-Identifier: Apache-2.0
"""tt-metal's buffers by libttmem-metal.so, which needs no headers of it, with stand-ins for three releases.

tests/programs/metal/play.cpp makes every kind of report; STEPS below has what must be counted after each.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from cxx import run
from metalshapes import FLAGS, SOURCES, Shapes
from oldlogs import agrees, events, replay
from world import wait_for

SHAPES = [62, 66, 70]

ONE = {(0, "DRAM"): (65536, 1)}
TYPES = {**ONE, (1, "L1"): (12288, 2), (1, "SYSTEM_MEMORY"): (128, 1), (1, "L1_SMALL"): (512, 1),
         (1, "TRACE"): (3072, 1)}  # fmt: skip
# Device 0 has a buffer of its own at that address, of another allocator.
MESH = {**TYPES, (0, "DRAM"): (65536 + 16384, 2), **{(device, "DRAM"): (16384, 1) for device in (1, 2, 3)}}
LATER = {**TYPES, (3, "L1_SMALL"): (96, 1)}

# Step: {(device, type): (bytes, buffers)}, nothing else being live.
STEPS = {
    "open": {},
    "one": ONE,
    "types": TYPES,
    "hooked": TYPES,
    "mesh": MESH,
    "submesh at the same address": {**MESH, (2, "DRAM"): (16384 + 4096, 2)},
    "mesh buffer freed": {**TYPES, (2, "DRAM"): (4096, 1)},
    "submesh closed": {**TYPES, (1, "L1"): (12288 + 2048, 3), **{(device, "L1"): (2048, 1) for device in (0, 2, 3)}},
    "mesh closed": TYPES,
    "its buffer dropped": TYPES,
    "sub-device": {**LATER, (3, "L1"): (640, 1), (3, "TRACE"): (1024, 1)},
    "sub-device ended": {**LATER, (3, "TRACE"): (1024, 1)},
    "program": {**LATER, (0, "CB"): (1024, 1)},
    "another": {**LATER, (0, "CB"): (1792, 1)},
    "the first ends": {**LATER, (0, "CB"): (1024, 1)},
    "programs end": LATER,
    "refused": {**LATER, (0, "L1"): (2048, 1), (0, "CB"): (1024, 1)},
    "refused on a mesh": {**LATER, **{(n, "L1"): (2048, 1) for n in (2, 3)}, **{(n, "CB"): (1024, 1) for n in (2, 3)}},
    "threads": LATER,
    "child": {(2, "DRAM"): (320, 1)},
    "full": LATER,
    "closed": {},
    "open again": {(0, "DRAM"): (96, 1)},
    "sub-devices first": {(0, "DRAM"): (96, 1), (1, "L1"): (1024, 1), (1, "L1_SMALL"): (64, 1)},
    "per core": {(2, "L1"): (4096 + 2048 + 1024 + 8192, 4)},
    "one of them ends": {(2, "L1"): (4096 + 1024 + 8192, 3)},
    "another comes": {(2, "L1"): (3072 + 1024 + 8192, 3)},
    "end": {},
}

# Before 0.70 the end of a program is not told, only that of its device.
UNTOLD = {
    **{step: {**LATER, (0, "CB"): (1792, 1)} for step in ("the first ends", "programs end")},
    **{step: {**STEPS[step], (0, "CB"): (2304, 1)} for step in ("refused", "refused on a mesh", "threads", "full")},
}


def steps_of(shape):
    per_core = ("per core", "one of them ends", "another comes")
    return STEPS if shape >= 70 else {k: v for k, v in {**STEPS, **UNTOLD}.items() if k not in per_core}


def tell(text):
    """The lines of play as {step: {(device, type): (bytes, buffers)}}."""
    steps = {}
    for line in text.splitlines():
        step, colon, rest = line.partition(":")
        if colon:
            words = [re.fullmatch(r"(\d+)/(\w+)=(\d+)/(\d+)", word) for word in rest.split()]
            steps[step] = {(int(w[1]), w[2]): (int(w[3]), int(w[4])) for w in words}
    return steps


@pytest.fixture(scope="module")
def shapes(build, tmp_path_factory):
    if not (build / "src" / "metal" / "libttmem-metal.so").exists():
        pytest.skip("libttmem-metal.so is not built")
    if not shutil.which("g++"):
        pytest.skip("no g++")
    return Shapes(tmp_path_factory.mktemp("shapes"))


@pytest.fixture
def run_metal(ttmem, tmp_path):
    """Call as run_metal(program, ...): the completed "ttmem run --metal" and its report."""

    def run_it(*command, options=(), **more):
        path = tmp_path / "report.json"
        done = ttmem("run", "--quiet", "--json", path, *options, "--metal", "--", *command,
                     stdin=subprocess.DEVNULL, **more)
        return done, json.loads(path.read_text()) if path.exists() else None

    return run_it


def commands(folder):
    return {"linked": [folder / "play"], "loaded": [folder / "loader", folder / "play.so"]}


@pytest.mark.parametrize("how", ["linked", "loaded"])
@pytest.mark.parametrize("shape", SHAPES)
def test_right_figures_with_every_shape(run_metal, shapes, shape, how):
    """Nothing was compiled for ttmem; tt-metal in sight of others, or not."""
    done, report = run_metal(*commands(shapes(shape))[how])
    assert (done.returncode, done.stderr) == (0, "")
    assert tell(done.stdout) == steps_of(shape)
    # All of its functions were reached.
    plain = run(*commands(shapes(shape))[how], stdin=subprocess.DEVNULL)
    assert done.stdout.splitlines()[-1] == plain.splitlines()[-1] != "tracked 0"
    assert report["leaked_buffers"] == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_closed_devices_leave_no_leaks_and_open_ones_do(run_metal, shapes, shape):
    done, report = run_metal(shapes(shape) / "play", options=["--fail-on-leak"])
    assert (done.returncode, report["leaked_buffers"]) == (0, 0)
    done, report = run_metal(shapes(shape) / "play", options=["--fail-on-leak"], env={"PLAY_LEAK": "1"})
    assert done.returncode == 86
    assert [(b["device"], b["type"], b["size"]) for p in report["processes"] for b in p["buffers"]] == [
        (0, "DRAM", 96)
    ]


# What is different, and what is said of it.
CONTRADICTIONS = {
    "METAL_OTHER_SIZE": "size is not page_size() x num_pages()",
    "METAL_OTHER_ADDRESS": "address is not what address() says",
    "METAL_OTHER_DEVICE": "a buffer has no device",
    "METAL_OTHER_SLOTS": "the number of a device cannot be told",
    "METAL_OTHER_IDS": "by id() and",
}


@pytest.mark.parametrize("difference", CONTRADICTIONS)
def test_refuses_with_one_line_where_two_ways_differ(run_metal, shapes, tmp_path, difference):
    other = shapes.make(tmp_path / "other", 70, f"-D{difference}")
    done, report = run_metal(other / "play")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ttmem: tt-metal is not tracked: {other}/libtt_metal.so: ")
    assert CONTRADICTIONS[difference] in line
    # From then on nothing is tracked, and what was is gone. The application knows nothing of it.
    steps = tell(done.stdout)
    assert set(steps) == set(STEPS) and steps["full"] == {}
    assert report["leaked_buffers"] == 0


def test_refuses_a_library_without_the_names(run_metal, shapes, tmp_path):
    """Before the start, at the first call that arrives, or, if none ever does, at the end."""
    for which, flags in {
        "two": ["-Dtrack_allocate=note_allocate", "-Dtrack_deallocate=note_deallocate"],
        "accessor": ["-Dis_trace=is_of_a_trace"],
    }.items():
        other = shapes.make(tmp_path / which, 70, *flags, module=True)
        for command in commands(other).values():
            done, report = run_metal(*command)
            assert done.returncode == 0
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"ttmem: tt-metal is not tracked: {other}/libtt_metal.so has no _Z")
            assert all(not step for step in tell(done.stdout).values())


@pytest.fixture
def playing(world, build, shapes):
    """Call as playing(shape, step): play, stopped there, and visible in world."""

    def play(folder, step, **settings):
        shim = build / "src" / "metal" / "libttmem-metal.so"
        process = world.adopt(
            subprocess.Popen([folder / "play"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env={**world.env, "TTMEM": "1", "LD_PRELOAD": str(shim), "PLAY_STOP": step,
                                  **settings}))
        world.show(process.pid)
        wait_for(lambda: process.stdout.readline().startswith(f"{step}:"), step)
        return process

    return play


def metal_found(world):
    """What doctor says; that the stand-in holds little is a warning."""
    findings = json.loads(world.run("doctor", "--json").stdout)["findings"]
    return [finding["what"] for finding in findings if finding["id"] == "metal-found"]


@pytest.mark.parametrize("shape", SHAPES)
def test_devices_are_declared(world, shapes, playing, shape):
    """map works out of the box."""
    playing(shapes(shape), "types")
    maps = {m["type"]: m for m in world.json("map", "--device", "1")["maps"]}
    assert {kind: (m["banks"], m["base"], m["bank_size"]) for kind, m in maps.items()} == {
        "L1": (8, "0x10000", 0x156000),
        "L1_SMALL": (8, "0x166000", 0x8000),
        "TRACE": (4, "0x4100000", 0x100000),
    }
    # Each of its 8 cores has 64 bytes of it; what an allocator gives out is aligned as in DRAM.
    assert maps["L1_SMALL"]["used"] == (64 if shape == 66 else 128)
    sharded = [b for b in world.json("buffers")["buffers"] if b["size"] == 8192]
    # The second shape does not say on how many cores a buffer is, so what it takes is not known.
    known = (None, None) if shape == 66 else (2048, 4)
    assert [(b.get("size_per_bank"), b.get("banks")) for b in sharded] == [known]


@pytest.mark.parametrize("shape", SHAPES)
def test_devices_are_declared_whole_while_sub_devices_have_some_of_it(world, shapes, playing, shape):
    playing(shapes(shape), "sub-devices first")
    maps = {m["type"]: m for m in world.json("map", "--device", "1")["maps"]}
    assert {kind: (m["base"], m["bank_size"]) for kind, m in maps.items()} == {
        "L1": ("0x10000", 0x156000), "L1_SMALL": ("0x166000", 0x8000)}  # fmt: skip


def test_peaks_tell_what_each_bank_held(world, shapes, playing):
    """A page of 3 goes to each of 4 banks: a region of the bytes alone, spread over the banks, would be too small."""
    playing(shapes(70), "types")
    peaks = {(p["device"], p["type"]): p for p in world.json("peak")["peaks"]}
    trace = peaks[1, "TRACE"]
    assert (trace["bytes"], trace["per_bank"]) == (3072, {"bytes": 1024, "bound": "exact", "banks": 4})
    assert peaks[1, "L1_SMALL"]["per_bank"] == {"bytes": 128, "bound": "exact", "banks": 8}
    # 4 pages of 1024 over 8 banks, and 4 of 2048 on 4 cores.
    assert peaks[1, "L1"]["per_bank"] == {"bytes": 1024 + 2048, "bound": "exact", "banks": 8}
    assert peaks[1, "SYSTEM_MEMORY"]["per_bank"] is None
    assert re.search(r"device 1 TRACE peak 3\.0 KiB .*, exact, 1\.0 KiB in each of 4 banks, 4\.0 KiB together$",
                     world.text("peak"), re.M)


def test_buffers_of_one_address_on_different_cores_are_all_there(world, shapes, playing):
    """Each with the cores that it has an address on; what is asked for by address is all of them."""
    playing(shapes(70), "another comes")
    rows = [b for b in world.json("buffers")["buffers"] if b["device"] == 2]
    assert sorted((b["size"], b["size_per_bank"], b["banks"]) for b in rows) == [
        (1024, 1024, 1), (3072, 3072, 1), (8192, 8192, 1)]  # fmt: skip
    assert len({b["address"] for b in rows if b["size"] != 8192}) == 1
    (device,) = [d for d in world.json("ps")["processes"][0]["devices"] if d["device"] == 2]
    assert device["memory"]["L1"]["occupied"] == 1024 + 3072 + 8192


@pytest.mark.parametrize("shape", SHAPES)
def test_architecture_is_declared(world, shapes, playing, shape):
    """Of a single device, and of those that only a mesh was used of."""
    playing(shapes(shape), "mesh")
    devices = {d["device"]: d for d in world.json("smi")["devices"]}
    assert {n: (d["arch"], d["remote"]) for n, d in devices.items()} == {
        n: ("wormhole_b0", n >= 2) for n in range(4)
    }


def test_card_and_unique_id_are_what_tt_metal_was_told(world, shapes, playing):
    """Two chips of each board; an older one does not ask."""
    playing(shapes(70), "mesh")
    devices = {d["device"]: d for d in world.json("smi")["devices"]}
    assert {n: (d["uid"], d["card"], d["joined"]) for n, d in devices.items()} == {
        n: (hex(0xA0 + n), "n300", "uid") for n in range(4)
    }


def test_card_and_unique_id_are_unknown_where_nobody_asks(world, shapes, playing):
    playing(shapes(66), "mesh")
    assert {(d["uid"], d["card"]) for d in world.json("smi")["devices"]} == {(None, None)}


@pytest.mark.parametrize("shape, step, headroom", [
    # One program ends at 0x10100, the other at 0x10280; no buffer is in L1 of that device.
    (70, "program", 0x156000 - 0x100), (70, "another", 0x156000 - 0x280), (70, "the first ends", 0x156000 - 0x280),
    (62, "another", 0x156000 - 0x280),
])  # fmt: skip
def test_map_tells_the_headroom_over_circular_buffers(world, shapes, playing, shape, step, headroom):
    playing(shapes(shape), step)
    (l1,) = world.json("map", "--device", "0", "--type", "L1")["maps"]
    assert (l1["headroom"], l1["guessed"]) == (headroom, 0)
    assert "headroom: " in world.run("map", "--device", "0", "--type", "L1").stdout


@pytest.mark.parametrize("step, devices", [("refused", [0]), ("refused on a mesh", [2, 3])])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_program_that_is_refused_is_a_clash_with_both_stacks(world, shapes, playing, shape, step, devices):
    """Its circular buffers end at 0x10100, the buffer begins at 0x10000; the program that fits is none."""
    playing(shapes(shape), step, TTMEM_STACKS="fp")
    document = world.json("incidents")
    found = [i for i in document["incidents"] if i["kind"] == "clash" and i["device"] in devices]
    assert [i["device"] for i in found] == devices and {i["kind"] for i in document["incidents"]} == {"clash"}
    for clash in found:
        assert (clash["type"], clash["address"], clash["size"], clash["count"]) == ("L1", "0x10000", 0x100, 2)
        assert clash["first"]["size"] == 2048 and clash["second"]["size"] == 0x100
        assert clash["second"]["name"] == "circular buffers"
        first, second = [[frame["function"] or "" for frame in clash[side]["stack"]] for side in ("first", "second")]
        assert any("make_tensor" in name for name in first), first
        assert "run_program" in second[0], second  # the shim's own frames are left out


def test_what_is_not_agreed_on_is_left_unknown(world, shapes, tmp_path, playing):
    """get_statistics() and get_bank_size() differ for DRAM: its place is not known; L1's is."""
    playing(shapes.make(tmp_path / "other", 70, "-DMETAL_OTHER_STATISTICS"), "types")
    assert [m["type"] for m in world.json("map", "--device", "1")["maps"] if m.get("banks")] == [
        "L1", "L1_SMALL"]  # fmt: skip
    (dram,) = [b for b in world.json("buffers")["buffers"] if b["type"] == "DRAM"]
    assert dram["size"] == 65536


@pytest.mark.parametrize("shape", SHAPES)
def test_doctor_says_what_was_found_and_learned(world, shapes, playing, shape):
    process = playing(shapes(shape), "types")
    found = metal_found(world)
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-nW", shapes(shape) / "libtt_metal.so"))
    which, learned = found
    library = shapes(shape) / "libtt_metal.so"
    assert which == f"play: tt-metal: build id {build_id[1]}, version unknown, {library}"[: len(which)]
    assert build_id[1] in which and process.poll() is None
    words = dict(word.split("=", 1) for word in learned.split(": ")[-1].split())
    assert words["size"] == "page_size*num_pages," + {62: "+24", 66: "+64", 70: "+24"}[shape]
    assert words["device"] == {62: "+16", 66: "+56", 70: "+16"}[shape] + ",allocator()"
    assert words["id"] == ("vtable,get_device_ids()")
    assert words["cb"] == ("get_total_cb_allocated()" if shape == 70 else "union")


def test_doctor_finds_a_tt_metal_that_nothing_tracks(world, build, shapes, tmp_path, playing):
    """The process has a book, for another reason, and the preload library is not loaded."""
    (tmp_path / "book.c").write_text("""
        #include <ttmem/ttmem.h>
        __attribute__((constructor)) static void begin(void) { ttmem_phase_process("any"); }""")
    library = build / "src" / "lib"
    run("gcc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", tmp_path / "book.c", "-o", tmp_path / "book.so",
        f"-L{library}", "-lttmem", f"-Wl,-rpath,{library}")  # fmt: skip
    playing(shapes(70), "one", LD_PRELOAD=str(tmp_path / "book.so"))
    findings = json.loads(world.run("doctor", "--json").stdout)["findings"]
    (found,) = (finding for finding in findings if finding["id"] == "metal-untracked")
    assert "tt-metal's library loaded, and its book is empty" in found["what"]
    assert "ttmem run --metal" in found["fix"]


def test_version_of_a_wheel_is_known(world, shapes, tmp_path, playing):
    packages = tmp_path / "site-packages"
    folder = shapes.make(packages / "ttnn" / "lib", 70)
    (packages / "ttnn-0.70.1.dist-info").mkdir()
    playing(folder, "types")
    assert ", version 0.70.1, " in metal_found(world)[0]


def test_process_without_tt_metal_notices_nothing(run_metal, build):
    done, report = run_metal("sh", "-c", "echo fine; /bin/true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert report["leaked_buffers"] == 0
    shim = build / "src" / "metal" / "libttmem-metal.so"
    assert "tt_metal" not in run("readelf", "-dW", shim)
    assert "tt_metal" not in run("nm", "-D", "--undefined-only", shim)
    exported = run("nm", "-DC", "--defined-only", shim).splitlines()
    assert len(exported) == 26 and all(" T tt::tt_metal::" in line or " T tt::umd::" in line for line in exported)


def test_process_that_has_only_the_library_below_notices_nothing(run_metal, tmp_path):
    """As tt-smi, which asks it for its chips, too."""
    flags = [*FLAGS, "-DMETAL_SHAPE=70", f"-I{SOURCES}"]
    (tmp_path / "ask.cpp").write_text("""
        #include "metal.hpp"
        #include <cstdio>
        int main()
        {
            const auto &chips = tt::umd::ClusterDescriptor::instance();
            std::printf("%zu %d\\n", chips.get_chip_unique_ids().size(),
                        chips.get_board_id_for_chip(3) == (std::uint64_t{0x14} << 36 | 1));
        }""")
    run("g++", *flags, "-shared", SOURCES / "umd.cpp", "-o", tmp_path / "libumd.so")
    run("g++", *flags, tmp_path / "ask.cpp", "-o", tmp_path / "ask", f"-L{tmp_path}", "-lumd",
        f"-Wl,-rpath,{tmp_path}")  # fmt: skip
    done, _ = run_metal(tmp_path / "ask")
    assert (done.returncode, done.stdout, done.stderr) == (0, "4 1\n", "")


@pytest.mark.parametrize("shape, forms", [(62, 1), (66, 2), (70, 4)])
def test_allocation_where_a_trace_writes_is_an_incident(run_metal, shapes, shape, forms):
    """By each form of the functions that this release has; only while the trace can be replayed."""
    done, report = run_metal(shapes(shape) / "traces")
    assert (done.returncode, done.stderr) == (0, "")
    traces = dict(line.split() for line in done.stdout.splitlines())
    assert len(traces) == forms
    found = {incident["device"]: incident for incident in report["incidents"]}
    assert len(report["incidents"]) == forms
    assert {str(device): incident["first"]["name"].split()[1] for device, incident in found.items()} == traces
    for incident in found.values():
        first, second = incident["first"], incident["second"]
        assert (incident["kind"], incident["type"], incident["size"], incident["count"]) == (
            "trace_overlap", "DRAM", 1024, 1)  # fmt: skip
        assert (first["size"], second["size"]) == (4096, 1024)
        assert any("intermediate" in frame["function"] for frame in first["stack"])
        assert any("victim" in frame["function"] for frame in second["stack"])
        assert first["time_ns"] <= second["time_ns"]


def test_incidents_tell_of_traces(world, shapes, build):
    process = world.adopt(subprocess.Popen(
        [shapes(62) / "traces"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**world.env, "TTMEM": "1", "LD_PRELOAD": str(build / "src" / "metal" / "libttmem-metal.so")}))
    assert process.stdout.readline() == "0 77\n"
    world.show(process.pid)
    (incident,) = world.json("incidents")["incidents"]
    assert (incident["kind"], incident["first"]["name"]) == ("trace_overlap", "trace 77")
    assert "trace_overlap" in world.text("incidents")


def test_tracking_that_is_off_stays_off(shapes, build, clean_env):
    shim = build / "src" / "metal" / "libttmem-metal.so"
    done = run(shapes(70) / "play", env={**clean_env, "LD_PRELOAD": str(shim), "TTMEM": "0"},
               stdin=subprocess.DEVNULL)
    assert all(not step for step in tell(done).values())


def test_family_of_processes(run_metal, shapes):
    """As pytest-xdist or mpirun: workers of a parent that has no tt-metal itself."""
    script = f"""if True:
        import subprocess
        workers = [subprocess.Popen([{str(shapes(70) / "play")!r}], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL) for _ in range(3)]
        raise SystemExit(max(worker.wait() for worker in workers))
    """
    done, report = run_metal(sys.executable, "-c", script, env={"PLAY_LEAK": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert [b["size"] for p in report["processes"] for b in p["buffers"]] == [96] * 3


@pytest.mark.parametrize("wish", ["1", "0"])
def test_pth_file_for_python_without_ttmem_run(build, shapes, clean_env, tmp_path, wish):
    """It opens the library before a module brings tt-metal in, with RTLD_LOCAL."""
    line = (build / "python" / "ttmem-metal.pth").read_text()
    shim = build / "src" / "metal" / "libttmem-metal.so"
    line, count = re.subn(r'CDLL\("[^"]*"', f'CDLL("{shim}"', line)
    assert count == 1
    line = line.replace("/usr/local/lib/python", str(build / "python"))
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "ttmem-metal.pth").write_text(line)
    script = f"import site; site.addsitedir({str(packages)!r}); import ctypes; "
    script += f"ctypes.CDLL({str(shapes(66) / 'play.so')!r}).play()"
    done = run(sys.executable, "-S", "-c", script, env={**clean_env, "TTMEM_METAL": wish},
               stdin=subprocess.DEVNULL)
    assert tell(done) == (steps_of(66) if wish == "1" else {step: {} for step in steps_of(66)})


def test_stacks_begin_in_the_application(world, shapes, playing):
    playing(shapes(70), "one", TTMEM_STACKS="auto")
    (row,) = world.json("buffers")["buffers"]
    assert row["stack"][0]["function"].startswith("tt::tt_metal::Buffer::create(")
    assert [os.path.basename(f["file"]) for f in row["stack"][1:3]] == ["play.cpp"] * 2


@pytest.mark.legacy
def test_the_old_buffer_log_tells_of_tt_metals_buffers(run_metal, shapes, tmp_path):
    """Who owns what, under which address, and whose call it was; not how ttmem learned of it."""
    log = tmp_path / "log"
    run_metal(shapes(70) / "play", env={"TT_BUFFER_DEBUG_LOG": "1", "TT_BUFFER_DEBUG_LOG_FILE": str(log)})
    records = log.read_text().split("═" * 59 + "\n")[1:]
    assert sum("Hooked: yes" in text for text in records) == 1
    live, names = {}, []
    for text, (title, fields) in zip(records, events(log)):
        if fields["Type"] == "CB":  # of a program
            continue
        place = tuple(fields[name] for name in ("Device", "Type", "Address", "Space"))
        if title == "BUFFER ALLOCATED":
            assert any(f"\n{pair}\n" in text for pair in ("Owns Data: yes\nHooked: no", "Owns Data: no\nHooked: yes"))
            (name,) = re.findall(r"\nCall Stack:\n    libtt_metal.so: (.*)\n", text)
            names.append(name.partition("(")[0])
        if fields.get("Hooked") != "yes":
            # That of a free is the one of its allocation.
            assert live.setdefault(place, fields["Buffer*"]) == fields["Buffer*"]
        if title == "BUFFER DEALLOCATED":
            del live[place]
        assert re.fullmatch("0x[0-9a-f]+", fields["Buffer*"])
    assert not live
    # In a child of a process that has had threads, libstdc++ must not be called.
    decoded = "tt::tt_metal::Buffer::create"
    assert set(names) == {decoded, "_ZN2tt8tt_metal6Buffer6createERKNS1_7SettingE"}
    assert names.count(decoded) == len(names) - 1
    assert "ttmem" not in log.read_text() and "GraphTracker" not in log.read_text()


@pytest.mark.legacy
@pytest.mark.parametrize("env", [{}, {"PLAY_LEAK": "1"}])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_old_buffer_log_agrees_with_the_report(run_metal, shapes, tmp_path, shape, env):
    """Meshes, submeshes, sub-devices and cores have allocators of their own, which may give out the same address."""
    log = tmp_path / "log"
    env = {"TT_BUFFER_DEBUG_LOG": "1", "TT_BUFFER_DEBUG_LOG_FILE": str(log), **env}
    _, report = run_metal(shapes(shape) / "play", env=env)
    model = replay(log)
    agrees(model, report)
    assert (len(model.live), model.double_frees, model.unknown_frees, model.size_changes) == (len(env) - 2, 0, 0, 0)


def test_missing_library_is_said_before_anything_runs(build, clean_env, tmp_path):
    shutil.copytree(build / "src" / "cli", tmp_path / "cli")
    shutil.copytree(build / "src" / "lib", tmp_path / "lib", symlinks=True)
    done = subprocess.run([tmp_path / "cli" / "ttmem", "run", "--metal", "--", "echo", "ran"], env=clean_env,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"ttmem run: --metal: \S+libttmem-metal\.so: No such file or directory\n", done.stderr)


def test_the_library_that_was_built_from_headers_is_gone(ttmem):
    for option in (["--metal-shim", "libttmem-metal.so"], ["--metal-shim=libttmem-metal.so"]):
        done = ttmem("run", *option, "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (2, "")
        assert f'unknown option "{option[0]}"; did you mean --metal?' in done.stderr


def test_a_library_that_cannot_be_named_is_said_before_anything_runs(build, clean_env, tmp_path):
    for part in ("cli", "lib", "metal"):
        shutil.copytree(build / "src" / part, tmp_path / "a b" / part, symlinks=True)
    done = subprocess.run([tmp_path / "a b" / "cli" / "ttmem", "run", "--metal", "--", "echo", "ran"], env=clean_env,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "libttmem-metal.so: has a blank or a colon in its path: install ttmem elsewhere\n" in done.stderr
