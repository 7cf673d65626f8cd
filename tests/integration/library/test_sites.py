# SPDX-License-Identifier: Apache-2.0
"""A call site is a type and a stack, whatever its buffers are called, in every answer; and one frame of
the application stands for it."""

import json
import re
import shutil
import subprocess

import pytest

from conftest import LIMIT
from test_stacks import compiled, line_of, start  # noqa: F401
from world import check_schema, wait_for

COUNT = 100
SOURCE = """\
#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>

#define KEEP() __asm__ volatile("")

__attribute__((noinline)) void take(unsigned long n, const char *name)
{
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, name); /* take */
	KEEP();
}

__attribute__((noinline)) void grow(unsigned long n)
{
	char name[32];

	snprintf(name, sizeof(name), "kv.%lu", n);
	take(n, name); /* grow */
	KEEP();
}

int main(int argc, char **argv)
{
	unsigned long n = 0;
	int c;

	if (argc > 1)
		ttmem_skip_frames(argv[1]);
	while (n < 100)
		grow(++n);
	puts("ready");
	fflush(stdout);
	while ((c = getchar()) == '\\n') {
		grow(++n);
		puts("ready");
		fflush(stdout);
	}
	return 0;
}
"""

GROW = line_of(SOURCE, "grow")
TAKE = line_of(SOURCE, "take")


def get(daemon, path):
    status, body = daemon.fetch(path, token=True)
    assert status == 200, body
    return json.loads(body)


def start_for(daemon, *words):
    """The program as one that the daemon sees."""
    env = {**daemon.env, "TTMEM": "1", "TTMEM_STACKS": "fp"}
    process = daemon.adopt(
        subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout.readline() == "ready\n"
    return process


def end(process):
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def stands(site):
    return site["function"], site["line"], site["file"].rsplit("/", 1)[1]


@pytest.fixture
def program(compiled):  # noqa: F811
    return compiled(SOURCE)


def test_buffers_by_site_say_one_site_with_its_names(world, program):
    start(world, program)
    (group,) = world.json("buffers", "--by", "site")["groups"]
    assert (group["buffers"], group["bytes"], group["name"]) == (COUNT, COUNT * 4096, None)
    assert group["name_count"] == COUNT and len(group["names"]) == 16
    assert stands(group["site"]) == ("take", TAKE, "app.c")
    text = world.text("buffers", "--by", "site")
    assert f"DRAM {COUNT} names at take (app.c:{TAKE})" in text and "kv.1\n" in text
    assert f"... and {COUNT - 5} more names" in text


def test_without_stacks_names_that_differ_in_numbers_are_one_site(world, program):
    start(world, program, TTMEM_STACKS="off")
    (group,) = world.json("buffers", "--by", "site")["groups"]
    assert (group["key"], group["buffers"], group["site"]) == ("DRAM kv.#", COUNT, None)


@pytest.mark.parametrize("stacks", ["fp", "off"])
def test_growth_says_one_site(world, program, stacks):
    process = start(world, program, TTMEM_STACKS=stacks)
    growth = subprocess.Popen(
        [world.program, "growth", "--json", "--seconds", "4"], env=world.env, stdout=subprocess.PIPE, text=True
    )
    while growth.poll() is None:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        try:
            growth.wait(0.1)
        except subprocess.TimeoutExpired:
            pass
    (site,) = check_schema(json.loads(growth.stdout.read()))["sites"]
    growth.stdout.close()
    assert site["name_count"] == site["buffers"] > 16 and site["grown"] > 0 and len(site["names"]) == 16
    assert {(name["bytes"], name["buffers"], name["phase"]) for name in site["names"]} == {(4096, 1, None)}
    assert all(name["name"].startswith("kv.") for name in site["names"])
    if stacks == "fp":
        assert stands(site["site"]) == ("take", TAKE, "app.c")


def test_run_says_one_site(ttmem, program, tmp_path):
    report = tmp_path / "report.json"
    done = ttmem("run", "--json", report, "--", program, stdin=subprocess.DEVNULL)
    assert f"leaks: {COUNT} buffers, 400.0 KiB, at 1 call site\n" in done.stderr
    assert f"DRAM {COUNT} names at take (app.c:{TAKE})" in done.stderr
    (leak,) = check_schema(json.loads(report.read_text()))["leaks"]
    assert leak["key"] == "DRAM: app.c:take <- app.c:grow <- app.c:main"
    assert stands(leak["site"]) == ("take", TAKE, "app.c")
    assert {name["name"] for name in leak["names"]} == {f"kv.{i + 1}" for i in range(COUNT)}
    # Other names at the same line are known.
    known = ("run", "-q", "--fail-on-leak", "--baseline", report, "--")
    assert ttmem(*known, program, stdin=subprocess.DEVNULL).returncode == 0
    assert ttmem(*known, program, input="\n").returncode == 86


def test_the_daemon_says_one_site(ttmemd, program):
    """Leaks, incidents, and what the dashboard reads."""
    ttmemd.start("--http", "127.0.0.1:0")
    process = start_for(ttmemd, program)
    rows = wait_for(lambda: get(ttmemd, "/api/v1/buffers")["buffers"], "the buffers")
    assert len(rows) == COUNT and {stands(row["site"]) for row in rows} == {("take", TAKE, "app.c")}
    (group,) = get(ttmemd, "/api/v1/buffers?by=site")["groups"]
    assert group["name_count"] == COUNT and stands(group["site"]) == ("take", TAKE, "app.c")
    end(process)
    (leaked,) = wait_for(lambda: get(ttmemd, "/api/v1/leaks")["processes"], "the report")
    (site,) = leaked["sites"]
    assert (site["buffers"], site["name"], site["name_count"]) == (COUNT, "kv.#", COUNT)
    assert site["names"][0] == {"name": "kv.1", "phase": None, "bytes": 4096, "buffers": 1}
    assert len(site["names"]) == 16 and len({name["name"] for name in site["names"]}) == 16
    assert stands(site["site"]) == ("take", TAKE, "app.c")
    (incident,) = wait_for(lambda: get(ttmemd, "/api/v1/incidents?kind=leak")["incidents"], "the incident")
    assert incident["count"] == COUNT
    text = ttmemd.run("leaks").stdout
    assert f"in {COUNT} buffers of DRAM" in text and f", at take (app.c:{TAKE})" in text
    assert "1  kv.1\n" in text and f"... and {COUNT - 5} more names\n" in text


TWICE = """\
#include <stdio.h>
#include <ttmem/ttmem.h>

__attribute__((noinline)) void drop(unsigned long n)
{
	ttmem_free(0, TTMEM_DRAM, n * 4096); /* drop */
	__asm__ volatile("");
}

int main(void)
{
	char name[32];

	for (unsigned long n = 1; n <= 100; n++) {
		snprintf(name, sizeof(name), n % 2 ? "kv.%lu" : "weights.%lu", n);
		ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, name);
		for (int i = 0; i < 2; i++)
			drop(n);
	}
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}
"""


def test_the_daemon_says_one_incident_of_one_line(ttmemd, compiled):  # noqa: F811
    """Of two processes, whatever the buffers were called."""
    ttmemd.start("--http", "127.0.0.1:0")
    program = compiled(TWICE)
    for _ in range(2):
        start_for(ttmemd, program)

    def rows():
        rows = check_schema(get(ttmemd, "/api/v1/incidents"))["incidents"]
        return sum(row["count"] for row in rows) >= 200 and rows

    (row,) = wait_for(rows, "both")
    assert (row["kind"], row["count"], row["processes"]) == ("double_free", 200, 2)
    assert stands(row["second"]["site"]) == ("drop", line_of(TWICE, "drop"), "app.c")


SERIES = re.compile(r'^ttmem_site_bytes\{site="([^"]*)",device="(\d+)",uid="",type="(\w+)"\} (\d+)$', re.M)


def series(daemon, parameters=""):
    status, text = daemon.fetch("/metrics/sites" + parameters, token=True)
    assert status == 200, text
    return {labels: int(value) for *labels, value in SERIES.findall(text) for labels in [tuple(labels)]}


def test_metrics_say_one_site(ttmemd, program):
    """Not more series than were asked for; what has none of its own is added up."""
    ttmemd.start("--http", "127.0.0.1:0")
    start_for(ttmemd, program)
    names = [f"alloc 1 L1 {hex(n << 12)} {n} name-{'x' * n}" for n in range(1, 41)]
    ttmemd.player(*names, "alloc 1 L1 0 9 other", TTMEM_STACKS="off")
    take = f"take (app.c:{TAKE})", "0", "DRAM"
    wait_for(lambda: take in series(ttmemd), "the site")
    found = series(ttmemd)
    assert found[take] == COUNT * 4096 and len(found) == 21
    assert found["other", "1", "L1"] == sum(range(1, 22)) + 9 and found["name-" + "x" * 40, "1", "L1"] == 40
    assert series(ttmemd, "?limit=1").keys() == {take, ("other", "1", "L1")}
    assert len(series(ttmemd, "?limit=1000")) == 42
    # They are details.
    assert ttmemd.fetch("/metrics/sites")[0] == 401
    assert "ttmem_site" not in ttmemd.fetch("/metrics")[1]
    if shutil.which("promtool"):
        text = ttmemd.fetch("/metrics/sites", token=True)[1]
        subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True, timeout=LIMIT)


def test_metrics_count_leaks_by_site(ttmemd, program):
    """For all processes since the start, and of what is left only: a line of code is one row, whoever ran it."""
    ttmemd.start("--http", "127.0.0.1:0")
    for _ in range(2):
        end(start_for(ttmemd, program))
    ttmemd.player("alloc 1 L1 0x1000 9 kv.1", "alloc 1 L1 0x2000 9 kv.2", "alloc 1 L1 0x3000 9 x", "free 1 L1 0x3000",
                  TTMEM_STACKS="off").kill()  # fmt: skip
    row = re.compile(r'^ttmem_leaked_(bytes|buffers)_total\{site="([^"]*)",type="(\w+)"\} (\d+)$', re.M)
    wanted = {
        ("bytes", f"take (app.c:{TAKE})", "DRAM"): 2 * COUNT * 4096, ("buffers", f"take (app.c:{TAKE})", "DRAM"): 2 * COUNT,
        ("bytes", "kv.#", "L1"): 18, ("buffers", "kv.#", "L1"): 2,
    }  # fmt: skip
    found = lambda: {tuple(key): int(value) for *key, value in row.findall(ttmemd.fetch("/metrics/sites", token=True)[1])}
    wait_for(lambda: found() == wanted, "the sums")
    assert "ttmem_leaked_" not in ttmemd.fetch("/metrics")[1]
    if shutil.which("promtool"):
        text = ttmemd.fetch("/metrics/sites", token=True)[1]
        subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True, timeout=LIMIT)


@pytest.mark.parametrize("patterns", ["take", "q,ta?e", "nothing:t*", "app.c:none"])
def test_the_reader_can_name_allocators(world, program, patterns):
    start(world, program)
    world.env["TTMEM_SKIP_FRAMES"] = patterns
    (group,) = world.json("buffers", "--by", "site")["groups"]
    # Where all frames are named, the innermost of them stands for the stack.
    expected = ("take", TAKE) if patterns.startswith("app") else ("grow", GROW)
    assert stands(group["site"])[:2] == expected


def test_a_program_can_name_its_allocators(ttmemd, program):
    ttmemd.start("--http", "127.0.0.1:0")
    process = start_for(ttmemd, program, "none,take")
    (group,) = ttmemd.json("buffers", "--by", "site")["groups"]
    assert stands(group["site"]) == ("grow", GROW, "app.c")
    assert "skipped" not in group["key"]
    row = ttmemd.json("buffers")["buffers"][0]
    assert [frame.get("skipped", False) for frame in row["stack"][:2]] == [True, False]
    assert row["stack"][0]["function"] == "take" and row["calls"].startswith("app.c:take <- ")
    end(process)
    (leaked,) = wait_for(lambda: get(ttmemd, "/api/v1/leaks")["processes"], "the report")
    assert stands(leaked["sites"][0]["site"]) == ("grow", GROW, "app.c")


def test_the_daemon_can_be_told_of_allocators(ttmemd, program):
    ttmemd.start("--http", "127.0.0.1:0", "--skip-frames", "other,take")
    start_for(ttmemd, program)
    rows = wait_for(lambda: get(ttmemd, "/api/v1/buffers")["buffers"], "the buffers")
    assert {stands(row["site"]) for row in rows} == {("grow", GROW, "app.c")}


def test_without_debug_information_a_function_stands_for_a_stack(world, compiled):  # noqa: F811
    """Where only the C library has a file, it does not."""
    program = compiled(SOURCE, "-g0")
    start(world, program)
    (group,) = world.json("buffers", "--by", "site")["groups"]
    assert (group["site"]["function"], group["site"]["module"], group["site"]["file"]) == ("take", "app", None)
    assert "take (app)" in world.text("buffers", "--by", "site")


SLOW = """\
#include <stdio.h>
#include <unistd.h>
#include <ttmem/ttmem.h>

int main(void)
{
	char name[32];

	puts("ready");
	fflush(stdout);
	for (unsigned long n = 1; n < 1000; n++) {
		snprintf(name, sizeof(name), "kv.%lu", n);
		ttmem_alloc(0, TTMEM_DRAM, n << 20, 1 << 20, name); /* slow */
		sleep(5);
	}
	return 0;
}
"""


def test_slow_growth_is_found_in_the_past(ttmemd, compiled):  # noqa: F811
    """A megabyte every five seconds, without an option; loading, rising and falling are not growth. On a
    busy machine they were once seen to look so for a moment. On an idle one this takes 45 seconds."""
    ttmemd.start("--http", "127.0.0.1:0")
    slow = start_for(ttmemd, compiled(SLOW))
    for name, card, device in (("llm", "n300", "0"), ("training", "n150", "4")):
        ttmemd.adopt(
            subprocess.Popen(
                [ttmemd.build / "src" / "cli" / "ttmem", "demo", "--play", name, card, device, name, "600000", "100"],
                env={**ttmemd.env, "TTMEM": "1", "TTMEM_STACKS": "fp"}, stdout=subprocess.DEVNULL,
            )
        )

    def found():
        sites = ttmemd.json("growth")["sites"]
        return {site["pid"] for site in sites} == {slow.pid} and sites

    (site,) = wait_for(found, "the growth")
    assert site["looked_ns"] >= 45e9 and site["confidence"] in ("medium", "high")
    assert site["name_count"] >= 9 and site["site"]["line"] == line_of(SLOW, "slow")
    # A busy machine may make it slower, but not faster.
    assert 0 < site["per_second"] < 0.25 * (1 << 20)
