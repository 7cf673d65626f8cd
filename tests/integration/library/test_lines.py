# SPDX-License-Identifier: Apache-2.0
"""A row of any list shows the line that matters: the user's own, and where rows share it, its callers."""

import json
import re
import subprocess

import pytest

from conftest import LIMIT
from terminal import Terminal
from test_sites import end, get, start_for
from test_stacks import compiled, line_of, start  # noqa: F401
from world import check_schema, wait_for

WRAPPED = """\
#include <stdio.h>
#include <ttmem/ttmem.h>

#define KEEP() __asm__ volatile("")
static unsigned long next;

__attribute__((noinline)) static void dram(unsigned long size)
{
	ttmem_alloc(0, TTMEM_DRAM, next += 1 << 20, size, NULL); /* dram */
	KEEP();
}

__attribute__((noinline)) static void scratch(void)
{
	dram(4096); /* scratch */
	KEEP();
}

__attribute__((noinline)) static void weights(void)
{
	dram(8192); /* weights */
	KEEP();
}

__attribute__((noinline)) static void cache(void)
{
	dram(16384); /* cache */
	KEEP();
}

int main(void)
{
	scratch();
	weights();
	cache();
	puts("ready");
	fflush(stdout);
	while (getchar() == '\\n') {
		scratch();
		weights();
		puts("ready");
		fflush(stdout);
	}
	return 0;
}
"""

CALLERS = ("scratch", "weights", "cache")
DRAM = f"dram (app.c:{line_of(WRAPPED, 'dram')})"
TIP = "tip: most of these were allocated through dram; TTMEM_SKIP_FRAMES=dram shows its callers instead\n"


@pytest.fixture
def program(compiled):  # noqa: F811
    return compiled(WRAPPED)


def check(text, callers=CALLERS, own=DRAM):
    """The rows name them, each once."""
    found = re.findall(r"(\w+) ← " + re.escape(own), text)
    assert sorted(found) == sorted(callers), text


@pytest.mark.parametrize("command", [["buffers", "--by", "site"], ["peak"]])
def test_rows_of_an_allocator_show_its_callers_and_one_tip(world, program, command):
    start(world, program)
    text = world.text(*command)
    check(text)
    assert text.count("tip:") == 1 and TIP in text
    # Who names the allocator has what it shows.
    world.env["TTMEM_SKIP_FRAMES"] = "dram"
    text = world.text(*command)
    assert all(f"{name} (app.c:{line_of(WRAPPED, name)})" in text for name in CALLERS)
    assert "tip:" not in text and "←" not in text


def test_documents_have_the_users_frame_and_its_callers(world, program):
    start(world, program)
    groups = world.json("buffers", "--by", "site")["groups"]
    for group, name in zip(groups, ("cache", "weights", "scratch")):
        site = group["site"]
        assert site["function"] == site["user"]["function"] == "dram" and site["via"] is None
        assert [one["function"] for one in site["callers"]] == [name, "main"]
        assert site["callers"][0]["line"] == line_of(WRAPPED, name)


def test_growth_shows_callers(world, program):
    process = start(world, program)
    growth = subprocess.Popen(
        [world.program, "growth", "--seconds", "4"], env=world.env, stdout=subprocess.PIPE, text=True
    )
    while growth.poll() is None:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        try:
            growth.wait(0.1)
        except subprocess.TimeoutExpired:
            pass
    check(growth.stdout.read(), ("scratch", "weights"))
    growth.stdout.close()


def test_top_shows_callers(world, program, tmp_path):
    start(world, program)
    terminal = Terminal([world.program, "top", "-r", 100], world.env, folder=tmp_path, columns=120)
    try:
        terminal.press("4")
        terminal.wait(lambda text: all(f"{name} ← {DRAM}" in text for name in CALLERS))
    finally:
        terminal.close()


def test_run_diff_and_annotations_show_callers(ttmem, program, tmp_path):
    base, more = tmp_path / "base.json", tmp_path / "more.json"
    words = ("run", "--fail-on-leak", "--annotate", "github", "--json")
    done = ttmem(*words, base, "--", program, stdin=subprocess.DEVNULL, env={"GITHUB_WORKSPACE": str(tmp_path)})
    assert done.returncode == 86
    check(done.stderr[: done.stderr.index("leaks: ")])
    check(done.stderr[done.stderr.index("leaks: ") : done.stderr.index("tip: ")])
    assert done.stderr.count("tip: ") == 1
    # An annotation is at the caller: the allocator is the same for all.
    notes = re.findall(r"^::error file=app.c,line=(\d+),title=ttmem::.* at (\w+) ← ", done.stderr, re.M)
    assert sorted(notes) == sorted((str(line_of(WRAPPED, name)), name) for name in CALLERS)
    done = ttmem("run", "-q", "--limit", "DRAM=1K", "--annotate", "github", "--", program, stdin=subprocess.DEVNULL)
    assert re.search(rf"^::error file=\S+/app.c,line={line_of(WRAPPED, 'cache')},title=ttmem::limit DRAM", done.stderr, re.M)
    # The rows below an exceeded limit, too; of the run itself, and of its report.
    check(done.stderr[done.stderr.index("limit DRAM") :])
    budget = tmp_path / "budget.json"
    budget.write_text(json.dumps({"schema": "ttmem.budget/1", "limits": {"DRAM": "1K"}}))
    again = ttmem("check", base, "--budget", budget, "--junit", tmp_path / "junit.xml")
    check(again.stdout + again.stderr)
    check((tmp_path / "junit.xml").read_text())
    ttmem("run", "-q", "--json", more, "--", program, input="\n")
    diff = ttmem("diff", base, more).stdout
    check(diff, ("scratch", "weights"), "dram (app.c)")
    rows = check_schema(json.loads(ttmem("diff", "--json", base, more).stdout))["rows"]
    assert {row["site"]["callers"][0]["function"] for row in rows} == {"scratch", "weights"}
    assert {row["site"]["user"]["line"] for row in rows} == {None}


def test_leaks_and_the_report_show_callers(ttmemd, program, tmp_path):
    ttmemd.start("--http", "127.0.0.1:0")
    end(start_for(ttmemd, program))
    (leaked,) = wait_for(lambda: get(ttmemd, "/api/v1/leaks")["processes"], "the report")
    assert {site["site"]["callers"][0]["function"] for site in leaked["sites"]} == set(CALLERS)
    text = ttmemd.run("leaks", "--full").stdout
    check(text)
    assert TIP in text
    recording = tmp_path / "run.ttrec"
    ttmemd.run("run", "-q", "--record", recording, "--", program, input="")
    report = ttmemd.json("report", recording)
    stacks, frames = report["stacks"], report["frames"]
    found = {frames[stack["callers"][0]]["function"] for stack in stacks if frames[stack["user"]]["function"] == "dram"}
    assert found == set(CALLERS)


TORCHLIKE = """
import ttmem

def empty(name, place):
    ttmem.alloc(0, ttmem.DRAM, place, 4096, name)

def apply(function):
    function()

def cuda(name, place):
    apply(lambda: empty(name, place))  # lambda
"""

TRAIN = """
import sys
import framework.nn.module as module
import ttmem

def make_model():
    module.cuda("a", 0x1000)  # make

def make_cache():
    module.cuda("b", 0x2000)  # cache

make_model()
make_cache()
print("ready", flush=True)
sys.stdin.readline()
"""


def at(source, mark):
    (number,) = [n for n, text in enumerate(source.splitlines(), 1) if text.endswith(f"# {mark}")]
    return number


@pytest.fixture
def train(python, tmp_path):
    """A script that allocates through an installed package, and its PYTHONPATH."""
    package = tmp_path / "venv" / "lib" / "python3" / "site-packages" / "framework" / "nn"
    package.mkdir(parents=True)
    (package / "module.py").write_text(TORCHLIKE)
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    return script, f"{python.package}:{package.parent.parent}"


CALLED = f"cuda (framework/…/module.py:{at(TORCHLIKE, 'lambda')})"


def test_rows_of_an_exceeded_limit_show_the_users_line_and_what_it_called(ttmem, python, train, tmp_path):
    script, path = train
    report, budget = tmp_path / "report.json", tmp_path / "budget.json"
    words = ("run", "--json", report, "--limit", "DRAM=1K", "--", python.which.path, script)
    done = ttmem(*words, input="", env={"PYTHONPATH": path})
    assert done.returncode == 86
    budget.write_text(json.dumps({"schema": "ttmem.budget/1", "limits": {"DRAM": "1K"}}))
    again = ttmem("check", report, "--budget", budget)
    assert again.returncode == 86
    for text in (done.stderr[done.stderr.index("limit DRAM") :], again.stdout + again.stderr):
        for name, mark in (("make_model", "make"), ("make_cache", "cache")):
            assert f"4.0 KiB  {name} (train.py:{at(TRAIN, mark)}) → {CALLED}\n" in text
    document = check_schema(json.loads(report.read_text()))
    sites = document["limits"][0]["held"]["sites"]
    assert {(site["function"], site["user"]["function"], site["via"]["function"]) for site in sites} == {
        ("empty", "make_model", "cuda"),
        ("empty", "make_cache", "cuda"),
    }


def test_the_users_line_is_shown_and_what_it_called_in_an_installed_package(world, python, train):
    script, path = train
    env = {**world.env, "PYTHONPATH": path, "TTMEM": "1"}
    process = world.adopt(
        subprocess.Popen([python.which.path, script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    text = world.text("buffers", "--by", "site")
    for name, mark in (("make_model", "make"), ("make_cache", "cache")):
        assert f"{name} (train.py:{at(TRAIN, mark)}) → {CALLED}" in text
    for group in world.json("buffers", "--by", "site")["groups"]:
        site = group["site"]
        assert (site["function"], site["via"]["function"]) == ("empty", "cuda")
        assert site["user"]["function"].startswith("make_") and site["callers"][0]["function"] == "<module>"
    # Without a line of the user's, the frame that stands for the stack.
    world.env["TTMEM_SKIP_FRAMES"] = "train.py"
    assert world.text("buffers", "--by", "site").count("empty (module.py:") == 2


SIGNATURES = """\
#include <cstdio>
#include <vector>
#include <ttmem/ttmem.h>

namespace app {
template <class T> struct Tensor {
	__attribute__((noinline)) static void make(const std::vector<T> &data, unsigned long place)
	{
		ttmem_alloc(0, TTMEM_DRAM, place, data.size() * sizeof(T), nullptr); /* make */
		__asm__ volatile("");
	}
};
}

int main(int argc, char **)
{
	app::Tensor<double>::make({1, 2}, 0x1000);
	if (argc > 1)
		app::Tensor<char>::make({1, 2}, 0x2000);
	std::puts("ready");
	std::fflush(stdout);
	return std::getchar() == EOF;
}
"""


def test_signatures_are_short_where_that_is_not_ambiguous(ttmem, compiled):  # noqa: F811
    program = compiled(SIGNATURES, compiler="g++")
    one = ttmem("run", "--", program, stdin=subprocess.DEVNULL).stderr
    assert f"DRAM at app::Tensor::make (app.cpp:{line_of(SIGNATURES, 'make')})" in one
    both = ttmem("run", "--", program, "x", stdin=subprocess.DEVNULL).stderr
    assert "DRAM at app::Tensor<double>::make(" in both and "DRAM at app::Tensor<char>::make(" in both


def test_frames_without_names_are_one_line(ttmemd, compiled):  # noqa: F811
    program = compiled(WRAPPED)
    subprocess.run(["strip", program], check=True, timeout=LIMIT)
    process = start_for(ttmemd, program)
    text = ttmemd.run("buffers", "--stacks").stdout
    assert re.search(r"^ +(at )?app \([34] frames\)$", text, re.M), text
    end(process)
