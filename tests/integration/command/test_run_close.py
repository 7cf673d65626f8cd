# SPDX-License-Identifier: Apache-2.0
"""ttmem run --strict-close: what was live when its device was closed is no leak, but some want to know."""

import json
import subprocess

import pytest

from world import check_schema

CLOSES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>

static __attribute__((noinline)) void take(uint32_t space, uint64_t address, const char *name)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args), .device = 3, .type = TTMEM_DRAM, .address = address, .size = 64,
		.name = name, .space = space,
	};

	ttmem_alloc_ex(&args);
}

/* Events that push the beginning out of the log. */
static void work(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		ttmem_alloc(3, TTMEM_L1, 0x5000, 8, 0);
		ttmem_free(3, TTMEM_L1, 0x5000);
	}
}

int main(int argc, char **argv)
{
	volatile uint64_t end = 3; /* one loop, and so one call site */

	for (uint64_t i = 1; i < end; i++)
		take(1, i * 0x1000, "kept");
	take(2, 0x1000, "freed");
	ttmem_alloc(3, TTMEM_L1, 0x9000, 8, "small");
	ttmem_free_ex(&(struct ttmem_free_args){
		.struct_size = sizeof(struct ttmem_free_args), .device = 3, .type = TTMEM_DRAM,
		.address = 0x1000, .space = 2});
	ttmem_end_space(3, 1);
	ttmem_end_space(3, 2);
	ttmem_end_space(3, 0);
	work(argc > 1 ? strtoul(argv[1], 0, 10) : 0);
	if (argc > 2)
		return puts("closed") < 0 || fflush(stdout) || getchar() == EOF;
	return 0;
}
"""


@pytest.fixture
def report(ttmem, compile_c, tmp_path):
    program = compile_c(CLOSES)

    def run(*options, arguments=(), **settings):
        path = tmp_path / "report.json"
        done = ttmem("run", "--json", path, *options, "--", program, *arguments, **settings)
        return done, check_schema(json.loads(path.read_text()))

    return run


def test_a_device_that_is_closed_ends_what_it_held(report):
    done, document = report("--fail-on-leak")
    assert done.returncode == 0 and "leaks: none" in done.stderr
    assert document["held_at_close"] is None and document["incidents"] == [] and not document["leaked"]


def test_strict_close_reports_what_was_live(report):
    done, document = report("--strict-close")
    assert done.returncode == 0 and document["leaked"] is False
    assert document["held_at_close"] == {"bytes": 136, "buffers": 3}
    assert "held when a device was closed: 3 buffers, 136 B" in done.stderr
    assert "held_at_close on device 3, DRAM, 128 bytes, kept (2 times)" in done.stderr
    dram, l1 = sorted(document["incidents"], key=lambda incident: incident["type"])
    assert (dram["kind"], dram["device"], dram["type"], dram["size"], dram["count"]) == (
        "held_at_close", 3, "DRAM", 128, 2)  # fmt: skip
    assert dram["first"]["name"] == "kept" and dram["first"]["size"] == 64
    assert dram["first"]["time_ns"] <= dram["second"]["time_ns"]
    assert (l1["type"], l1["count"], l1["address"], l1["first"]["name"]) == ("L1", 1, "0x9000", "small")
    assert "note:" not in done.stderr
    # Both calls have their stacks.
    assert [frame["function"] for frame in dram["first"]["stack"]][:2] == ["take", "main"]
    assert dram["second"]["stack"][0]["function"] == "main"


def test_strict_close_can_fail_a_run(report):
    done, _ = report("--strict-close", "--fail-on-leak")
    assert done.returncode == 86
    done, document = report("--strict-close", "--fail-on-leak", "--ignore", "DRAM", "--ignore", "L1")
    assert done.returncode == 0 and document["held_at_close"] == {"bytes": 0, "buffers": 0}


def test_a_history_that_is_not_complete_says_so(report):
    done, document = report("--strict-close", arguments=("20000",))
    assert document["held_at_close"] == {"bytes": 0, "buffers": 0}
    assert any("device 3: its history is not complete" in note for note in document["notes"])
    assert "its history is not complete" in done.stderr


@pytest.mark.parametrize("events, forgotten", [("0", False), ("20000", True)])
def test_buffers_of_a_living_process_that_closing_ended(world, compile_c, events, forgotten):
    program = compile_c(CLOSES)
    process = world.adopt(subprocess.Popen([program, events, "wait"], env={**world.env, "TTMEM": "1"},
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    assert process.stdout.readline() == "closed\n"
    world.show(process.pid)
    assert world.json("buffers")["buffers"] == []
    document = check_schema(world.json("buffers", "--strict-close"))
    rows = {(row["type"], row["address"], row["name"], row["closed"]) for row in document["buffers"]}
    assert rows == (set() if forgotten else {
        ("DRAM", "0x1000", "kept", True), ("DRAM", "0x2000", "kept", True), ("L1", "0x9000", "small", True)})
    assert [entry["pid"] for entry in document.get("forgotten", [])] == ([process.pid] if forgotten else [])
    assert all(entry["before_ns"] < document["time_ns"] for entry in document.get("forgotten", []))
    dram = world.json("buffers", "--strict-close", "--type", "DRAM")["buffers"]
    assert len(dram) == (0 if forgotten else 2)
    process.communicate("\n")


@pytest.mark.parametrize("options", [[], ["--csv"], ["--json", "--by", "site"], ["--json", "--from", "x"]])
def test_buffers_of_the_past_are_for_programs(ttmem, options):
    done = ttmem("buffers", "--strict-close", *options)
    assert done.returncode == 2 and "--strict-close needs --json" in done.stderr


def test_incidents_of_a_living_process(world, compile_c):
    process = world.adopt(subprocess.Popen([compile_c(CLOSES), "0", "wait"], env={**world.env, "TTMEM": "1"},
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    assert process.stdout.readline() == "closed\n"
    world.show(process.pid)
    assert world.json("incidents")["incidents"] == []
    document = check_schema(world.json("incidents", "--strict-close"))
    assert {(i["kind"], i["type"], i["size"], i["count"]) for i in document["incidents"]} == {
        ("held_at_close", "DRAM", 128, 2), ("held_at_close", "L1", 8, 1)}
    process.communicate("\n")
