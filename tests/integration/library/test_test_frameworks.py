# SPDX-License-Identifier: Apache-2.0
"""examples/cpp-tests: GoogleTest and Catch2 with ttmem's listeners fail the tests that leak, and only those."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest

from conftest import LIMIT, ROOT
from cxx import installed_tree

EXAMPLES = ROOT / "examples" / "cpp-tests"


@pytest.fixture(scope="module")
def installed(build_folder, tmp_path_factory):
    return installed_tree(build_folder, tmp_path_factory)


@pytest.fixture(scope="module")
def gtest_program(installed, tmp_path_factory):
    if not os.path.exists("/usr/include/gtest/gtest.h"):
        pytest.skip("no GoogleTest")
    return installed.compile(EXAMPLES / "gtest.cpp", tmp_path_factory.mktemp("gtest") / "tests", "-std=c++17",
                             "-O0", "-lgtest_main", "-lgtest")  # fmt: skip


@pytest.fixture
def run(installed, clean_env):
    """What the program says, on both streams, and whether it failed."""

    def run(program, *args, **env):
        ttmem = installed.prefix / "bin" / "ttmem"
        done = subprocess.run([program, *args], env={**clean_env, "TTMEM_COMMAND": str(ttmem), **env},
                              capture_output=True, text=True, timeout=LIMIT)  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        return done

    return run


LEAK = """\
ttmem: holds 64.0 KiB of DRAM more on device 0 than before the test, in 1 more buffer
allocated in the test and still live:
  64.0 KiB of DRAM, kv_cache
"""


def test_gtest_fails_the_test_that_leaks(gtest_program, run, tmp_path):
    done = run(gtest_program, f"--gtest_output=xml:{tmp_path / 'tests.xml'}", TTMEM="1")
    assert done.returncode == 1
    assert re.findall(r"^\[  FAILED  \] (\S+) \(", done.stdout, re.M) == ["Model.ForgetsItsCache"]
    assert LEAK in done.stdout and re.search(r"^    at TestBody \(.*gtest\.cpp:\d+\)$", done.stdout, re.M)
    assert "testing::" not in done.stdout
    assert done.stderr == (
        "ttmem: peaks of device memory, highest first\n"
        "  Model.Decodes: DRAM 2.0 MiB\n"
        "  Model.ForgetsItsCache: DRAM 68.0 KiB\n"
        "  Model.KeepsItsProgramCache: DRAM 8.0 KiB\n"
    )
    cases = {case.get("name"): case for case in xml.parse(tmp_path / "tests.xml").iter("testcase")}
    peaks = {name: case.find("properties/property") for name, case in cases.items()}
    assert peaks["Decodes"].attrib == {"name": "ttmem_peak_DRAM", "value": str((2 << 20) + 4096)}
    assert [name for name, case in cases.items() if case.find("failure") is not None] == ["ForgetsItsCache"]


def test_gtest_filter_and_repeat(gtest_program, run):
    assert run(gtest_program, "--gtest_filter=-*Forgets*", TTMEM="1").returncode == 0
    twice = run(gtest_program, "--gtest_filter=*Decodes", "--gtest_repeat=2", TTMEM="1")
    assert twice.returncode == 0 and "Model.Decodes: DRAM 2.0 MiB" in twice.stderr


def test_gtest_without_the_command_or_tracking(gtest_program, run):
    bare = run(gtest_program, TTMEM="1", TTMEM_COMMAND="/nowhere/ttmem")
    assert bare.returncode == 1 and LEAK.splitlines()[0] in bare.stdout and "still live" not in bare.stdout
    off = run(gtest_program)
    assert off.returncode == 0 and "leaks of device memory were not looked for" in off.stderr


HIDDEN = """\
#include <ttmem/gtest.hpp>
TEST(A, Takes) { ttmem_alloc(0, TTMEM_DRAM, 0x1000, 4096, "old"); ttmem::allow_leaks(); }
TEST(B, HidesALeak)
{
	ttmem_free(0, TTMEM_DRAM, 0x1000);
	ttmem_alloc(0, TTMEM_DRAM, 0x2000, 4096, "new");
}
"""


def test_gtest_sees_a_leak_that_the_totals_do_not_show(gtest_program, installed, run, tmp_path):
    (tmp_path / "hidden.cpp").write_text(HIDDEN)
    program = installed.compile(tmp_path / "hidden.cpp", tmp_path / "hidden", "-std=c++17", "-O0", "-lgtest_main",
                                "-lgtest")  # fmt: skip
    done = run(program, TTMEM="1")
    assert done.returncode == 1 and "  4.0 KiB of DRAM, new\n" in done.stdout and "more on device" not in done.stdout


PHASES = """\
#include <thread>
#include <ttmem/gtest.hpp>
static void take(std::uint64_t address)
{
	std::thread([=] { ttmem_alloc(0, TTMEM_DRAM, address, 64, "thread"); }).join();
}
TEST(A, Keeps) { take(0x1000); ttmem::allow_leaks(); }
TEST(B, Sets)
{
	if (std::getenv("SETS"))
		ttmem_phase_process("of the test");
}
TEST(C, Sees) { take(0x2000); ttmem::allow_leaks(); }
struct Around : testing::Environment {
	void SetUp() override
	{
		if (std::getenv("OWN"))
			ttmem_phase_process("of the program");
	}
	void TearDown() override
	{
		take(0x3000);
		EXPECT_EQ(std::system("\\"$TTMEM_COMMAND\\" buffers --json --pid $PPID >phases.json"), 0);
	}
};
static const auto *around = testing::AddGlobalTestEnvironment(new Around);
"""


def test_gtest_keeps_a_phase_that_the_program_has_set(gtest_program, installed, run, tmp_path, monkeypatch):
    (tmp_path / "phases.cpp").write_text(PHASES)
    program = installed.compile(tmp_path / "phases.cpp", tmp_path / "phases", "-std=c++17", "-O0", "-lgtest_main",
                                "-lgtest")  # fmt: skip
    monkeypatch.chdir(tmp_path)

    def phases(**env):
        """Of the buffers of A, of C and of after the tests."""
        assert run(program, TTMEM="1", **env).returncode == 0
        rows = json.loads((tmp_path / "phases.json").read_text())["buffers"]
        return [row.get("phase") for row in sorted(rows, key=lambda row: row["address"])]

    first, last, after = phases()
    assert first.startswith("A.Keeps #") and last.startswith("C.Sees #") and after is None
    first, last, after = phases(TTMEM_PHASE="of the environment")
    assert first.startswith("A.Keeps #") and last.startswith("C.Sees #") and after == "of the environment"
    assert phases(OWN="1") == ["of the program"] * 3
    assert phases(SETS="1")[1:] == ["of the test"] * 2


def test_catch2_fails_the_section_that_leaks(installed, run, tmp_path):
    if not os.path.exists("/usr/include/catch2/catch.hpp"):
        pytest.skip("no Catch2 of version 2")
    program = installed.compile(EXAMPLES / "catch2.cpp", tmp_path / "tests", "-std=c++17", "-O0")
    done = run(program, TTMEM="1")
    assert done.returncode == 1
    assert "test cases: 2 | 1 passed | 1 failed\nassertions: 1 | 1 failed\n" in done.stdout
    assert "64.0 KiB of DRAM, kv_cache" in done.stdout and "programs" not in done.stdout
    assert "  decode: DRAM 1.0 MiB, L1 4.0 KiB\n" in done.stderr
    assert run(program, "[cache]", TTMEM="1").returncode == 0
