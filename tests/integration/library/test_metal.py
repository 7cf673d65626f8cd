# SPDX-License-Identifier: Apache-2.0
"""tt-metal's buffers, by the observer, with a stand-in for its names.

examples/tt-metal/stand-in/story.cpp makes every report that tt-metal may make; STORY below has what
must be counted after each step.
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

# Like a binding: operations that run a program, and weights that are never freed.
MODULE = r"""
#include <memory>
#include <vector>
#include <tt-metalium/graph_tracking.hpp>
#include <tt-metalium/mesh_device.hpp>
#include "observer.hpp"

using namespace tt::tt_metal;

namespace
{
ttmem_metal::Watch watch;

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


@pytest.fixture(scope="module")
def metal(build_folder, tmp_path_factory):
    """Built once: libtt_metal.so, and a story that watches itself; program(name, *sources) makes more like it."""
    installed = installed_tree(build_folder, tmp_path_factory)
    folder = tmp_path_factory.mktemp("metal")
    run("g++", *FLAGS, "-shared", STAND_IN / "buffer.cpp", STAND_IN / "tracker.cpp", "-o", folder / "libtt_metal.so")

    def program(name, *sources):
        run("g++", *FLAGS, f"-I{METAL}", *sources, METAL / "ledger.cpp", "-o", folder / name,
            f"-L{folder}", "-ltt_metal", f"-Wl,-rpath,{folder}", *installed.flags())
        return folder / name

    return SimpleNamespace(folder=folder, program=program, observed=program("observed", STAND_IN / "story.cpp"))


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


def test_watch_takes_only_its_own_processor_away(metal, tmp_path):
    (tmp_path / "watch.cpp").write_text(WATCH)
    assert run(metal.program("watch", tmp_path / "watch.cpp")) == "1\n1\n"


def test_observer_compiles_with_versions_before_0_68(build_folder, tmp_path_factory, tmp_path):
    installed = installed_tree(build_folder, tmp_path_factory)
    (tmp_path / "old.cpp").write_text('#include "observer.hpp"\nttmem_metal::Observer observer;\n')
    run("g++", *FLAGS, "-DSTAND_IN_BEFORE_68", f"-I{METAL}", "-c", tmp_path / "old.cpp",
        "-o", tmp_path / "old.o", *installed.flags())


def test_counters_at_the_end_of_the_story(world, metal):
    env = {**world.env, "TTMEM": "1"}
    story = world.adopt(
        subprocess.Popen([metal.observed], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
    assert late["phase"] == "ttnn::matmul"


def test_call_sites_are_not_our_own(world, metal):
    """Whoever wanted the memory comes first, not how ttmem learned of it."""
    story = world.adopt(
        subprocess.Popen([metal.observed], env={**world.env, "TTMEM": "1", "TTMEM_STACKS": "auto"},
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    world.show(story.pid)
    wait_for(lambda: story.stdout.readline().startswith("end:"), "the end of the story")
    rows = world.json("buffers")["buffers"]
    (late,) = [b["stack"] for b in rows if b["type"] == "DRAM"]
    assert late[0]["function"].startswith("tt::tt_metal::Buffer::create(")
    assert (late[1]["function"], os.path.basename(late[1]["file"])) == ("main", "story.cpp")
    kernels = [b["stack"] for b in rows if b["type"] == "KERNEL"]
    assert kernels and all("programs_that_stay" in stack[0]["function"] for stack in kernels)
    sites = world.text("buffers", "--by", "site")
    assert "programs_that_stay" in sites
    assert "ttmem_metal" not in sites and "GraphTracker" not in sites


def test_kernels_are_not_leaks(ttmem, metal):
    """tt-metal does not tell their end; they hold no memory of their own."""
    done = ttmem("run", "--quiet", "--fail-on-leak", "--", metal.observed,
                 env={"STORY_OF_PROGRAMS": "1"}, stdin=subprocess.DEVNULL)
    assert tell(done.stdout) == {"programs stay": {**KERNELS, (0, "KERNEL"): (0, 2)}}
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def module(metal):
    """MODULE, for ctypes."""
    source = metal.folder / "module.cpp"
    source.write_text(MODULE)
    return metal.program("module.so", "-shared", source)


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
        """
    )
    assert (done.leaked, done.failed) == ({"test_leaks"}, set()), done.text
    assert "left 1 buffer, 4.0 KiB" in done.section("test_leaks")
    assert "KERNEL" not in done.text and "2 passed" in done.text
    assert "ttmem_metal" not in done.text
    site = r"load_weights \(module\.cpp:\d+\) → tt::tt_metal::Buffer::create \(buffer\.cpp:\d+\)"
    assert re.search(rf"1 x DRAM without a name at {site}$", done.text, re.M)
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
    done = ttmem("run", "--fail-on-leak", "--", sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr
    assert "2 processes tracked" in done.stderr
    assert "leaks: none" in done.stderr
    # Nor is there a peak of what holds nothing.
    assert re.findall(r"^peak: .*", done.stderr, re.M) == [
        "peak: device 0 DRAM 4.0 KiB (several processes: at least)"
    ]
