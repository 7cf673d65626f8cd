# SPDX-License-Identifier: Apache-2.0
"""tt-metal's buffers, by the observer and by the preloaded library, with a stand-in for its names.

examples/tt-metal/stand-in/story.cpp makes every report that tt-metal may make; STORY below has what
must be counted after each step. The library is built by the command in the documents.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from conftest import LIMIT, ROOT
from cxx import WARNINGS, installed_tree, run
from world import wait_for

METAL = ROOT / "examples" / "tt-metal"
STAND_IN = METAL / "stand-in"
FLAGS = ["-std=c++20", "-g", "-fPIC", "-pthread", *WARNINGS, "-Wno-conversion",
         f"-I{STAND_IN}"]  # fmt: skip

MESH = {(device, "L1"): (4096, 1) for device in range(8)}
MESH_CB = {(device, "CB"): (32, 1) for device in range(8)}
SINGLES = {(0, "DRAM"): (1024, 1), (1, "DRAM"): (128, 1)}
KERNELS = {(device, "KERNEL"): (0, 1) for device in range(8)}
THREADS = {(device, "L1_SMALL"): (32, 1) for device in range(4)}

# Step: {(device, type): (bytes, buffers)}, nothing else being live.
STORY = {
    "mesh": MESH,
    "views": MESH,
    "views end": MESH,
    "cb": {**MESH, (0, "CB"): (1024, 1)},
    "cb of another program, smaller": {**MESH, (0, "CB"): (1024, 1)},
    "cb of another program, larger": {**MESH, (0, "CB"): (2048, 1)},
    "global cb": {**MESH, (0, "CB"): (2048, 2)},
    "mesh cb": {**MESH, **MESH_CB, (0, "CB"): (2080, 3)},
    "cb end": {**MESH, **MESH_CB},
    "mesh cb end": MESH,
    "mesh end": {},
    "program": {(0, "KERNEL"): (0, 1)},
    "the same program": {(0, "KERNEL"): (0, 1)},
    "mesh program": {**KERNELS, (0, "KERNEL"): (0, 2)},
    "mesh program on a device of it": {**KERNELS, (0, "KERNEL"): (0, 2)},
    "program end": KERNELS,
    "program runs again": {**KERNELS, (0, "KERNEL"): (0, 2)},
    "mesh program end": {(0, "KERNEL"): (0, 1)},
    "all programs end": {},
    "plain": {(0, "DRAM"): (1024, 1)},
    "preallocated": {(0, "DRAM"): (1024, 1), (1, "DRAM"): (64, 1)},
    "preallocated ends unsaid": SINGLES,
    "hooked": SINGLES,
    "hooked end": SINGLES,
    "empty": SINGLES,
    "unknown": SINGLES,
    "device closed first": {(2, "TRACE"): (256, 1)},
    "its memory used again": {(2, "TRACE"): (512, 1)},
    "late free": {(2, "TRACE"): (512, 1)},
    "threads": THREADS,
    "child": {(5, "DRAM"): (80, 1)},
    "end": {**THREADS, (7, "DRAM"): (4096, 1), **KERNELS, (0, "KERNEL"): (0, 2)},
}

# What the books have counted of it by the end, over all devices and types.
COUNTERS = {
    "allocs": 8 + 11 + 10 + 3 + 3 + 4 * 1001 + 1 + 9,
    "frees": 8 + 11 + 10 + 3 + 3 + 4 * 1000,
    "unknown_frees": 1,
    "hooked": 1,
    "double_frees": 0,
    "size_changes": 0,
    "realloc_live": 0,
    "ambiguous_frees": 0,
}

LOADER = r"""
#include <dlfcn.h>
#include <stdio.h>

/* As Python loads its modules: what comes in is for nobody else to see. */
int main(int argc, char **argv)
{
	void *module = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*story)(void) = module ? (int (*)(void))dlsym(module, "story") : NULL;

	if (!story) {
		puts(dlerror());
		return 9;
	}
	return story();
}
"""

# Like a binding: operations that run a program, and weights that are never freed.
MODULE = r"""
#include <memory>
#include <vector>
#include <tt-metalium/graph_tracking.hpp>
#include <tt-metalium/mesh_device.hpp>

using namespace tt::tt_metal;

namespace
{
class Device : public IDevice {
      public:
	int id() const override { return 0; }
	bool is_initialized() const override { return true; }
};

Device device;
char programs[8];
std::vector<std::shared_ptr<Buffer>> kept;
} /* namespace */

extern "C" void operation(int program)
{
	auto buffer = Buffer::create({&device, BufferType::DRAM, 0x1000, 4096});
	auto *what = reinterpret_cast<Program *>(&programs[program]);

	GraphTracker::instance().track_program(what, &device);
	GraphTracker::instance().track_allocate_cb(CoreRangeSet(4), 0x100, 256, true, &device);
}

extern "C" __attribute__((noinline)) void load_weights()
{
	kept.push_back(Buffer::create({&device, BufferType::DRAM, 0x9000, 4096}));
}
"""

RENAMED = ["-Dtrack_allocate=note_allocate", "-Dtrack_deallocate=note_deallocate"]
ALL_RENAMED = [*RENAMED, "-Dtrack_allocate_cb=note_cb", "-Dtrack_deallocate_cb=note_cb_end",
               "-Dtrack_program=note_program"]  # fmt: skip


def tell(text):
    """The story's lines as {step: {(device, type): (bytes, buffers)}}."""
    steps = {}
    for line in text.splitlines():
        if ":" not in line:
            continue
        step, rest = line.split(":", 1)
        steps[step] = {}
        for word in rest.split():
            place, figures = word.split("=")
            device, kind = place.split("/")
            steps[step][int(device), kind] = tuple(map(int, figures.split("/")))
    return steps


def compile_stand_in(folder, *flags):
    """libtt_metal.so, a story linked with it, and the same as a module with its loader."""
    folder.mkdir()
    link = [f"-L{folder}", "-ltt_metal", f"-Wl,-rpath,{folder}"]
    run("g++", *FLAGS, *flags, "-shared", STAND_IN / "buffer.cpp", STAND_IN / "tracker.cpp",
        "-o", folder / "libtt_metal.so")
    run("g++", *FLAGS, *flags, "-c", STAND_IN / "story.cpp", "-o", folder / "story.o")
    run("g++", folder / "story.o", "-pthread", "-o", folder / "story", *link)
    run("g++", folder / "story.o", "-pthread", "-shared", "-o", folder / "story.so", *link)
    (folder / "loader.c").write_text(LOADER)
    run("cc", folder / "loader.c", "-o", folder / "loader")
    return folder


@pytest.fixture(scope="module")
def metal(build_folder, tmp_path_factory):
    """Everything built once: the stand-in, the observed story, and the library to preload."""
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    installed = installed_tree(build_folder, tmp_path_factory)
    folder = tmp_path_factory.mktemp("metal")
    stand_in = compile_stand_in(folder / "stand-in")
    observed = folder / "observed"
    run("g++", *FLAGS, "-DSTORY_OBSERVED", STAND_IN / "story.cpp", METAL / "ledger.cpp",
        "-o", observed, f"-L{stand_in}", "-ltt_metal", f"-Wl,-rpath,{stand_in}",
        *installed.flags())
    # The one command of docs/integrate-tt-metal.md.
    run("sh", METAL / "build.sh", folder / "shim", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={installed.prefix}",
        f"-DTT-Metalium_DIR={STAND_IN}",
        f"-DSTAND_IN_LIBRARY={stand_in / 'libtt_metal.so'}")
    return SimpleNamespace(
        folder=folder,
        stand_in=stand_in,
        observed=observed,
        shim=folder / "shim" / "libttmem-metal.so",
    )


@pytest.fixture
def run_shimmed(ttmem, metal, tmp_path):
    """Call as run_shimmed(program, ...): the completed "ttmem run --metal-shim" and its report."""

    def run_it(*command, **options):
        path = tmp_path / "report.json"
        done = ttmem("run", "--quiet", "--json", path, "--metal-shim", metal.shim, "--", *command,
                     stdin=subprocess.DEVNULL, **options)
        return done, json.loads(path.read_text()) if path.exists() else None

    return run_it


def test_observer_counts_the_story(metal, clean_env):
    done = run(metal.observed, env={**clean_env, "TTMEM": "1"}, stdin=subprocess.DEVNULL)
    assert tell(done) == STORY
    assert "touched 0\n" in done


WATCH = r"""
#include <cstdio>
#include "observer.hpp"

using namespace tt::tt_metal;

/* tt-metal's own, which it puts there when a device is opened. */
class Region : public IGraphProcessor {
};

int main()
{
	auto &tracker = GraphTracker::instance();
	auto before = std::make_shared<Region>(), first = before, second = std::make_shared<Region>();

	tracker.push_processor(before);
	{
		ttmem_metal::Watch watch;

		tracker.push_processor(first = std::make_shared<Region>());
		tracker.push_processor(second);
	}
	const auto &left = tracker.get_processors();
	std::printf("%d\n", left.size() == 3 && left[0] == before && left[1] == first && left[2] == second);
	{
		ttmem_metal::Watch watch;

		while (!left.empty())
			tracker.pop_processor();
		tracker.push_processor(first);
	}
	std::printf("%d\n", left.size() == 1 && left[0] == first);
}
"""


def test_watch_takes_only_its_own_processor_away(metal, build_folder, tmp_path_factory, tmp_path):
    (tmp_path / "watch.cpp").write_text(WATCH)
    installed = installed_tree(build_folder, tmp_path_factory)
    run("g++", *FLAGS, f"-I{METAL}", tmp_path / "watch.cpp", METAL / "ledger.cpp", "-o", tmp_path / "watch",
        f"-L{metal.stand_in}", "-ltt_metal", f"-Wl,-rpath,{metal.stand_in}", *installed.flags())
    assert run(tmp_path / "watch") == "1\n1\n"


def test_observer_compiles_with_versions_before_0_68(build_folder, tmp_path_factory, tmp_path):
    installed = installed_tree(build_folder, tmp_path_factory)
    (tmp_path / "old.cpp").write_text('#include "observer.hpp"\nttmem_metal::Observer observer;\n')
    run("g++", *FLAGS, "-DSTAND_IN_BEFORE_68", f"-I{METAL}", "-c", tmp_path / "old.cpp",
        "-o", tmp_path / "old.o", *installed.flags())


@pytest.mark.parametrize("how", ["linked", "loaded"])
def test_shim_counts_the_story(run_shimmed, metal, how):
    """Not compiled for ttmem, no thread registered; tt-metal in sight of others, or not."""
    command = {
        "linked": [metal.stand_in / "story"],
        "loaded": [metal.stand_in / "loader", metal.stand_in / "story.so"],
    }[how]
    done, report = run_shimmed(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert tell(done.stdout) == STORY
    assert "touched 0\n" in done.stdout
    left = sorted(
        (b["device"], b["type"], b["size"]) for p in report["processes"] for b in p["buffers"]
    )
    assert left == [
        (0, "L1_SMALL", 32), (1, "L1_SMALL", 32), (2, "L1_SMALL", 32), (3, "L1_SMALL", 32),
        (5, "DRAM", 80), (7, "DRAM", 4096),
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["observed", "shim"])
def test_counters_at_the_end_of_the_story(world, metal, how):
    env = {**world.env, "TTMEM": "1"}
    if how == "shim":
        env["LD_PRELOAD"] = str(metal.shim)
    program = metal.observed if how == "observed" else metal.stand_in / "story"
    story = world.adopt(
        subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    world.show(story.pid)
    wait_for(lambda: story.stdout.readline().startswith("end:"), "the end of the story")
    (process,) = world.json("ps")["processes"]
    memories = [m for device in process["devices"] for m in device["memory"].values()]
    assert {name: sum(m[name] for m in memories) for name in COUNTERS} == COUNTERS
    rows = world.json("buffers")["buffers"]
    (late,) = [b for b in rows if b["type"] == "DRAM"]
    kernels = [b for b in rows if b["type"] == "KERNEL"]
    assert {(b["name"], b["kernel"], b["size"], *b["flags"]) for b in kernels} == {
        ("kernels of a program", "application", 0, "alias")}
    assert late["phase"] == ("ttnn::matmul" if how == "observed" else None)


@pytest.mark.parametrize("how", ["observed", "shim"])
def test_call_sites_are_not_our_own(world, metal, how):
    """Whoever wanted the memory comes first, not how ttmem learned of it."""
    env = {"LD_PRELOAD": str(metal.shim)} if how == "shim" else {}
    program = metal.observed if how == "observed" else metal.stand_in / "story"
    story = world.adopt(
        subprocess.Popen([program], env={**world.env, "TTMEM": "1", "TTMEM_STACKS": "auto", **env},
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    world.show(story.pid)
    wait_for(lambda: story.stdout.readline().startswith("end:"), "the end of the story")
    rows = world.json("buffers")["buffers"]
    (late,) = [b["stack"] for b in rows if b["type"] == "DRAM"]
    assert late[0]["function"].startswith("tt::tt_metal::Buffer::create(")
    assert (late[1]["function"], os.path.basename(late[1]["file"])) == ("story", "story.cpp")
    kernels = [b["stack"] for b in rows if b["type"] == "KERNEL"]
    assert kernels and all("programs_that_stay" in stack[0]["function"] for stack in kernels)
    sites = world.text("buffers", "--by", "site")
    assert "programs_that_stay" in sites
    assert "ttmem_metal" not in sites and "GraphTracker" not in sites


def test_the_old_buffer_log_tells_of_tt_metals_buffers(metal, clean_env, tmp_path):
    """Who owns what, under which address, and whose call it was; not how ttmem learned of it."""
    log = tmp_path / "log"
    env = {**clean_env, "LD_PRELOAD": str(metal.shim), "TT_BUFFER_DEBUG_LOG": "1", "TT_BUFFER_DEBUG_LOG_FILE": str(log)}
    run(metal.stand_in / "story", env=env, stdin=subprocess.DEVNULL)
    records = [text for text in log.read_text().split("═" * 59 + "\n") if text.startswith("BUFFER ALLOCATED")]
    plain = [text for text in records if "\nType: DRAM\n" in text or "\nType: L1\n" in text]
    assert len(plain) > 8
    for text in plain:
        assert any(f"\n{pair}\n" in text for pair in ("Owns Data: yes\nHooked: no", "Owns Data: no\nHooked: yes"))
        assert re.search(r"\nBuffer\*: 0x[0-9a-f]+\n", text) or "\nHooked: yes\n" in text
        assert "\nCall Stack:\n    libtt_metal.so: tt::tt_metal::Buffer::create(" in text
    circular = [text for text in records if "\nSize: 1024 bytes" in text and "\nType: OTHER\n" in text]
    assert circular and all("\nBuffer*: unknown\n" in text for text in circular)
    assert "ttmem" not in log.read_text() and "GraphTracker" not in log.read_text()


@pytest.mark.parametrize("how", ["observed", "shim"])
def test_kernels_are_not_leaks(ttmem, metal, how):
    """tt-metal does not tell their end; they hold no memory of their own."""
    options = ["--metal-shim", metal.shim] if how == "shim" else []
    program = metal.observed if how == "observed" else metal.stand_in / "story"
    done = ttmem("run", "--quiet", "--fail-on-leak", *options, "--", program,
                 env={"STORY_OF_PROGRAMS": "1"}, stdin=subprocess.DEVNULL)
    assert tell(done.stdout) == {"programs stay": {**KERNELS, (0, "KERNEL"): (0, 2)}}
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def module(metal):
    """MODULE, for ctypes."""
    source = metal.folder / "module.cpp"
    source.write_text(MODULE)
    run("g++", *FLAGS, "-shared", source, "-o", metal.folder / "module.so", f"-L{metal.stand_in}",
        "-ltt_metal", f"-Wl,-rpath,{metal.stand_in}")
    return metal.folder / "module.so"


def test_programs_are_no_leak_of_the_test_that_runs_them_first(run_pytest, metal, module):
    """Nor are circular buffers that lie in another buffer; what holds memory is."""
    done = run_pytest(
        f"""
        import ctypes
        module = ctypes.CDLL({str(module)!r})

        def test_first(ttmem_tracker):
            module.operation(0)
            assert any(row["type"] == "KERNEL" for row in ttmem.buffers())
            ttmem_tracker.check()

        def test_second():
            module.operation(0)
            module.operation(1)

        def test_leaks():
            module.operation(1)
            module.load_weights()
        """,
        LD_PRELOAD=str(metal.shim),
    )
    assert (done.leaked, done.failed) == ({"test_leaks"}, set()), done.text
    assert "left 1 buffer, 4.0 KiB" in done.section("test_leaks")
    assert "KERNEL" not in done.text and "2 passed" in done.text
    assert "ttmem_metal" not in done.text
    assert re.search(r"1 x DRAM without a name at load_weights \S+/module\.cpp:\d+$", done.text, re.M)
    assert re.search(r"at load_weights .*module\.cpp:\d+$", done.section("test_leaks"), re.M)


def test_programs_of_a_child_that_ends_at_once_are_no_leak(ttmem, metal, module):
    """As multiprocessing ends its children: by _exit(), without exit handlers."""
    script = f"""if True:
        import ctypes, multiprocessing
        module = ctypes.CDLL({str(module)!r})
        child = multiprocessing.get_context("fork").Process(target=module.operation, args=(3,))
        child.start()
        child.join()
        module.operation(1)
    """
    done = ttmem("run", "--fail-on-leak", "--metal-shim", metal.shim, "--", sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr
    assert "2 processes tracked" in done.stderr
    assert "leaks: none" in done.stderr
    # Nor is there a peak of what holds nothing.
    assert re.findall(r"^peak: .*", done.stderr, re.M) == [
        "peak: device 0 DRAM 4.0 KiB (several processes: at least)"
    ]


def test_shim_is_harmless_where_there_is_no_tt_metal(run_shimmed, metal):
    done, report = run_shimmed("sh", "-c", "echo fine; /bin/true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert report["leaked_buffers"] == 0
    needed = run("readelf", "-dW", metal.shim)
    assert "libttmem.so" in needed and "tt_metal" not in needed
    assert "tt_metal" not in run("nm", "-D", "--undefined-only", metal.shim)
    exported = run("nm", "-DC", "--defined-only", metal.shim).splitlines()
    assert exported and all("GraphTracker::track_" in line for line in exported)


@pytest.mark.parametrize("names", [RENAMED, ALL_RENAMED], ids=["two", "all"])
def test_shim_refuses_a_library_without_the_names(run_shimmed, tmp_path, names):
    """Before the start, at the first call that arrives, or, if none ever does, at the end."""
    other = compile_stand_in(tmp_path / "renamed", *names)
    for command in ([other / "story"], [other / "loader", other / "story.so"]):
        check_refusal(other, *run_shimmed(*command))


def check_refusal(other, done, report):
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ttmem: tt-metal is not tracked: {other}/libtt_metal.so has no ")
    assert "track_allocate" in line
    assert all(not p["buffers"] for p in report["processes"])
    # The application knows nothing of it.
    assert set(tell(done.stdout)) == set(STORY)


def test_shim_refuses_a_library_of_another_layout(run_shimmed, tmp_path):
    other = compile_stand_in(tmp_path / "moved", "-DSTAND_IN_OTHER_LAYOUT")
    done, report = run_shimmed(other / "story")
    assert done.returncode == 0
    assert "built with the headers of another version" in done.stderr
    assert done.stderr.count("\n") == 1
    assert all(not p["buffers"] for p in report["processes"])


def test_shim_goes_before_other_preloaded_libraries(run_shimmed, metal):
    done, _ = run_shimmed("sh", "-c", "echo $LD_PRELOAD; echo $TTMEM", env={"LD_PRELOAD": ""})
    assert done.stdout == f"{metal.shim.resolve()}\n1\n"
    other = metal.stand_in / "libtt_metal.so"
    done, _ = run_shimmed("sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": str(other)})
    assert done.stdout == f"{metal.shim.resolve()}:{other}\n"


def test_relative_path_of_the_shim_is_made_absolute(ttmem, metal):
    done = ttmem("run", "-q", "--metal-shim", "shim/libttmem-metal.so", "--", "sh", "-c",
                 "cd / && echo $LD_PRELOAD && /bin/true", cwd=metal.folder)
    assert (done.stdout, done.stderr) == (f"{metal.shim.resolve()}\n", "")


def spoil(metal, path, offset, value):
    data = bytearray(metal.shim.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)


def bad_shims(metal, folder):
    """(path, what is said of it); in each only that is wrong."""
    (folder / "text").write_text("#!/bin/sh\necho a script that is long enough to have a header\n" * 9)
    (folder / "short").write_bytes(metal.shim.read_bytes()[:63])
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "a b").mkdir()
    shutil.copy(metal.shim, folder / "a b" / "x.so")
    (folder / "a:b").mkdir()
    shutil.copy(metal.shim, folder / "a:b" / "x.so")
    spoil(metal, folder / "class", 4, b"\1")
    spoil(metal, folder / "machine", 18, b"\xf3\0")
    spoil(metal, folder / "object", 16, b"\1\0")
    spoil(metal, folder / "headers", 32, b"\xff" * 7)
    spoil(metal, folder / "many", 56, b"\xff\xff")
    spoil(metal, folder / "odd", 54, b"\1\0")
    yield folder / "none", "No such file"
    yield folder / "text", "is not a shared library"
    yield folder / "short", "is not a shared library"
    yield folder / "folder", "is not a file"
    yield folder / "pipe", "is not a file"
    yield folder / "a b" / "x.so", "has a blank or a colon in its path"
    yield folder / "a:b" / "x.so", "has a blank or a colon in its path"
    yield folder / "class", "is for another kind of machine"
    yield folder / "machine", "is for another kind of machine"
    yield folder / "object", "is not a shared library"
    yield folder / "headers", "is damaged"
    yield folder / "many", "is damaged"
    yield folder / "odd", "is damaged"
    yield metal.stand_in / "story", "is a program, not a shared library"


def test_what_cannot_be_preloaded_is_said_before_anything_runs(ttmem, metal, tmp_path):
    for path, reason in bad_shims(metal, tmp_path):
        done = ttmem("run", "--metal-shim", path, "--", "sh", "-c", "echo ran")
        assert (done.returncode, done.stdout) == (2, ""), path
        assert done.stderr.startswith(f"ttmem run: --metal-shim: {path}: {reason}"), done.stderr
        assert done.stderr.count("\n") == 1
