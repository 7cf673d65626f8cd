# SPDX-License-Identifier: Apache-2.0
"""ttmem check of recordings: peaks of phases and call sites are exact, wherever they were."""

import json

import pytest

from recordings import Recording
from world import check_schema

MIB = 1 << 20

# Holds most of everything at different moments; for each argument a child does the same first.
PROGRAM = r"""
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#define MIB(n) ((uint64_t)(n) << 20)

void step_a(uint64_t at, int n)
{
	ttmem_alloc(0, TTMEM_DRAM, at, MIB(n), "a"); /* step_a */
}

void step_b(uint64_t at, int n)
{
	ttmem_alloc(0, TTMEM_DRAM, at, MIB(n), "b");
}

void load(void)
{
	ttmem_phase_push("load");
	ttmem_alloc(0, TTMEM_DRAM, MIB(100), MIB(10), "weights");
	ttmem_phase_pop();
}

static void decode(void)
{
	ttmem_phase_push("decode");
	step_a(MIB(1), 3);
	ttmem_free(0, TTMEM_DRAM, MIB(1));
	ttmem_phase_push("inner");
	step_a(MIB(1), 2);
	ttmem_phase_pop();
	step_b(MIB(10), 2);
	ttmem_free(0, TTMEM_DRAM, MIB(1));
	ttmem_free(0, TTMEM_DRAM, MIB(10));
	step_b(MIB(10), 1);
	ttmem_phase_pop();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (fork() == 0)
			break;
		wait(NULL);
	}
	decode();
	load();
	ttmem_free(0, TTMEM_DRAM, MIB(100));
	ttmem_free(0, TTMEM_DRAM, MIB(10));
	return 0;
}
"""

LINE = 1 + PROGRAM.split("/* step_a */")[0].count("\n")


@pytest.fixture
def program(compile_c):
    return compile_c(PROGRAM, "program")


@pytest.fixture
def recording(ttmem, program, tmp_path):
    path = tmp_path / "run.ttrec"
    done = ttmem("run", "-q", "--record", path, "--json", tmp_path / "run.json", "--", program)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def check(ttmem):
    """Call as check(FILE, "DRAM=1", ...): the completed process and its document."""

    def run(path, *limits):
        words = [word for limit in limits for word in ("--limit", limit)]
        done = ttmem("check", path, *words, "--json")
        assert done.stdout, done.stderr
        return done, check_schema(json.loads(done.stdout))

    return run


EXACT = {
    "DRAM": 11,
    "0:DRAM": 11,
    "phase:load": 10,
    "phase:decode": 4,
    "phase:decode/inner": 2,
    "site:step_a": 3,
    "site:step_b": 2,
    "site:step_*": 4,
    "DRAM:site:program.c": 11,
}


def test_peaks_of_phases_and_sites_are_exact(check, recording):
    done, document = check(recording, *(f"{key}={size}M" for key, size in EXACT.items()))
    assert done.returncode == 0 and document["tracked"] is True
    held = {row["limit"]: (row["held"]["bytes"], row["held"]["exact"]) for row in document["limits"]}
    assert held == {key: (size * MIB, True) for key, size in EXACT.items()}


@pytest.mark.parametrize("key", EXACT)
def test_one_byte_less_is_exceeded(check, recording, key):
    done, document = check(recording, f"{key}={EXACT[key] * MIB - 1}")
    assert done.returncode == 86 and document["over"] is True


def test_a_report_of_the_same_run_only_knows_what_was_live_at_the_peak(check, recording):
    _, document = check(recording.with_suffix(".json"), "phase:decode=4M", "site:step_a=1")
    decode, step = document["limits"]
    assert (decode["held"]["bytes"], decode["held"]["exact"]) == (MIB, False)
    assert step["held"] is None


def test_what_was_live_at_the_moment_is_told(ttmem, check, recording):
    _, document = check(recording, "site:step_*=1M")
    (row,) = document["limits"]
    assert row["held"]["sites_at"] == "peak" and row["held"]["pid"] > 0
    assert sorted((site["function"], site["phase"], site["bytes"]) for site in row["held"]["sites"]) == [
        ("step_a", "decode/inner", 2 * MIB),
        ("step_b", "decode", 2 * MIB),
    ]
    done = ttmem("check", recording, "--limit", "site:step_a=1M", "--annotate", "github")
    assert "(program) held 3.0 MiB of DRAM on device 0" in done.stdout
    assert f"3.0 MiB  step_a (program.c:{LINE}), in decode" in done.stdout
    assert f"program.c,line={LINE},title=ttmem::limit site:step_a" in done.stderr


def test_what_was_never_there_and_other_devices_and_types(check, recording):
    limits = ("phase:nothing=0", "1:phase:decode=0", "L1:site:step_a=0", "1:DRAM=0")
    done, document = check(recording, *limits)
    assert done.returncode == 86
    assert [row["held"] for row in document["limits"]] == [None] * 4
    assert [row["matched"] for row in document["limits"]] == [False, True, True, True]
    assert check(recording, *limits[1:])[0].returncode == 0


def test_any_frame_of_a_stack_counts_with_its_own_peak(check, recording):
    """decode() only calls step_a() and step_b(), and is not at its highest when the process is."""
    done, document = check(recording, "DRAM:site:decode=3M")
    assert (done.returncode, document["limits"][0]["held"]["bytes"]) == (86, 4 * MIB)


def test_another_device_that_held_more_does_not_hide_this_one(ttmem, check, build, tmp_path):
    """Of device 1, the phase's own highest moment is not that of the device."""
    lines = ["push load", "alloc 0 DRAM 0x1000 900 a", "alloc 1 DRAM 0x1000 300 b", "pop", "free 0 DRAM 0x1000",
             "free 1 DRAM 0x1000", "alloc 1 DRAM 0x2000 500 later"]  # fmt: skip
    path = tmp_path / "devices.ttrec"
    player = build / "tests" / "programs" / "player"
    ttmem("run", "-q", "--record", path, "--", player, input="\n".join(lines) + "\n")
    done, document = check(path, "1:phase:load=299", "0:phase:load=900")
    assert done.returncode == 86
    held = [(row["held"]["device"], row["held"]["bytes"]) for row in document["limits"]]
    assert held == [(1, 300), (0, 900)]


def test_processes_are_judged_alone(ttmem, check, program, tmp_path):
    path = tmp_path / "several.ttrec"
    assert ttmem("run", "-q", "--record", path, "--", program, "child", "child").returncode == 0
    done, document = check(path, "DRAM=11M", "phase:decode=4M", "site:step_*=4M")
    assert done.returncode == 0
    assert [row["held"]["bytes"] for row in document["limits"]] == [11 * MIB, 4 * MIB, 4 * MIB]


def test_a_budget_from_a_recording(ttmem, recording, tmp_path):
    budget = tmp_path / "budget.json"
    assert ttmem("check", recording, "--budget", budget, "--update").returncode == 0
    assert json.loads(budget.read_text())["limits"] == {"DRAM": 11 * MIB}
    budget.write_text('{"schema": "ttmem.budget/1", "limits": {"phase:decode": 1, "site:step_*": 1}}')
    assert ttmem("check", recording, "--budget", budget).returncode == 86
    assert ttmem("check", recording, "--budget", budget, "--update").returncode == 0
    assert json.loads(budget.read_text())["limits"] == {"phase:decode": 4 * MIB, "site:step_*": 4 * MIB}
    assert ttmem("check", recording, "--budget", budget).returncode == 0


def test_a_recording_without_its_end_is_no_proof(ttmem, check, recording):
    whole = recording.read_bytes()
    recording.write_bytes(whole[:-10])
    done, _ = check(recording, "DRAM=11M")
    assert done.returncode == 86 and "the end of the recording is missing" in done.stderr
    assert check(recording, "DRAM=1M")[1]["over"] is True


def test_a_recording_of_nothing_is_no_proof(ttmem, check, tmp_path):
    path = tmp_path / "nothing.ttrec"
    ttmem("run", "-q", "--record", path, "--", "true")
    assert Recording(path).of("book") == []
    assert check(path, "DRAM=1")[0].returncode == 87


def test_a_late_recording_says_at_least(world, check, tmp_path):
    """What phases held before it nobody knows, unless the ring still has it."""
    path = tmp_path / "late.ttrec"
    player = world.player(
        "push early", "alloc 0 DRAM 0x1000 1000 early", "free 0 DRAM 0x1000", "pop",
        "burst 0 20000", "push late", "alloc 0 DRAM 0x2000 50 late", "pop", TTMEM_HISTORY="16384",
    )  # fmt: skip
    assert world.run("record", player.pid, "-o", path, "--seconds", "1").returncode == 0
    _, document = check(path, "phase:late=1K", "phase:early=1K", "DRAM=1M")
    late, early, dram = document["limits"]
    assert early["held"] is None
    assert (late["held"]["bytes"], late["held"]["exact"]) == (50, False)
    assert (dram["held"]["bytes"], dram["held"]["exact"]) == (1000, True)


def test_run_records_and_limits_at_once(ttmem, check, program, tmp_path):
    path, report = tmp_path / "both.ttrec", tmp_path / "both.json"
    done = ttmem("run", "--record", path, "--limit", "DRAM=4M", "--json", report, "--", program)
    assert done.returncode == 86 and "limit DRAM 4.0 MiB: exceeded" in done.stderr
    assert Recording(path).json("end") and Recording(path).is_valid()
    (told,) = json.loads(report.read_text())["limits"]
    (row,) = check(path, "DRAM=4M")[1]["limits"]
    assert row == told
