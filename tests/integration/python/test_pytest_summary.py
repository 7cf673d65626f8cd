# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem: what is said at the end of a run."""

import json
import re

import jsonschema
import pytest

from world import read_schema

# Thirteen tests hold something, more each time; one holds nothing.
TESTS = """
@pytest.mark.parametrize("n", range(1, 14))
def test_held(n):
    clean("x", n << 20)

def test_nothing():
    pass

@pytest.mark.parametrize("n", range(12))
def test_leaks(n):
    leak(f"leak {n}", 1000 + n)
"""
HELD, LEAKING = 13, 12


def peaks_of(done):
    """The tests in the list, as it is ordered, and what is said of the rest."""
    found = re.search(r"^peak of each test:\n((?:  .*\n)+)", done.text, re.M)
    assert found, done.text
    lines = found[1].splitlines()
    rest = [line.strip() for line in lines if line.startswith("  ...")]
    return [line.split("::")[1] for line in lines if "::" in line], rest


@pytest.mark.parametrize("options", [[], ["--ttmem-peaks=all"], ["--ttmem-peaks=0", "-n", "2"]])
def test_every_test_that_held_anything_has_its_peak(run_pytest, options):
    done = run_pytest(TESTS, *options)
    names, rest = peaks_of(done)
    assert names == [f"test_held[{n}]" for n in range(13, 0, -1)] + [
        f"test_leaks[{n}]" for n in range(11, -1, -1)]
    assert rest == []
    assert re.search(r"^  DRAM 13\.0 MiB  test_it\.py::test_held\[13\]$", done.text, re.M)
    # One line is one call site, whatever it calls its buffers.
    sites = re.search(r"^largest call sites of leaks:\n((?:  .*\n)+)", done.text, re.M)
    first, *names = sites[1].splitlines()
    assert re.fullmatch(r" +11\.8 KiB  12 x DRAM, 12 names at leak \(test_it\.py:\d+\)", first)
    assert [line.split("  ")[-1] for line in names[:-1]] == [f"leak {n}" for n in range(11, 6, -1)]
    assert names[-1].strip() == "... and 7 more names"


def test_the_highest_only(run_pytest):
    done = run_pytest(TESTS, "--ttmem-peaks", "3")
    assert peaks_of(done) == (
        ["test_held[13]", "test_held[12]", "test_held[11]"],
        [f"... and {HELD + LEAKING - 3} more (--ttmem-peaks=all)"],
    )


@pytest.mark.parametrize("value", ["-1", "some"])
def test_what_is_no_number_is_refused(run_pytest, value):
    done = run_pytest(TESTS, f"--ttmem-peaks={value}")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert f"{value!r} is neither a number nor all" in done.text


def test_it_needs_the_plugin_to_be_on(run_pytest):
    done = run_pytest(TESTS, "--ttmem-peaks=3", ttmem=None)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--ttmem-peaks needs --ttmem" in done.text


HUNDRED = """
import ttmem

def test_kv():
    for i in range(100):
        ttmem.alloc(0, ttmem.Type.DRAM, (i + 1) << 12, 4096, f"kv.{i}")
"""


def test_a_line_that_leaks_a_hundred_names_is_one_site(run_pytest, tmp_path):
    done = run_pytest(HUNDRED)
    sites = re.search(r"^largest call sites of leaks:\n((?:  .*\n)+)", done.text, re.M)
    first, *names = sites[1].splitlines()
    assert re.fullmatch(r" +400\.0 KiB  100 x DRAM, 100 names at test_kv \(test_it\.py:\d+\)", first)
    assert len(names) == 6 and names[-1].strip() == "... and 95 more names"


LINES = """
import sys
sys.path.insert(0, "../site-packages")
from framework.nn.module import zeros

def make(n):
    leak(None, n)

def test_wrapped():
    make(3000)

def test_installed():
    zeros()
"""


def test_leaks_are_named_by_the_callers_and_the_users_own_line(run_pytest, tmp_path):
    package = tmp_path / "site-packages" / "framework" / "nn"
    package.mkdir(parents=True)
    (package / "module.py").write_text(
        "import ttmem\ndef empty():\n    ttmem.alloc(0, ttmem.DRAM, 0x777000, 64)\ndef zeros():\n    empty()\n"
    )
    done = run_pytest(LINES + HUNDRED.replace("ttmem.alloc(0, ttmem.Type.DRAM, (i + 1) << 12, 4096, ", "leak("))
    found = re.search(r"^largest call sites of leaks:\n((?:  .*\n)+)", done.text, re.M)
    assert found, done.text
    sites = found[1]
    assert re.search(r" at test_kv ← leak \(test_it\.py:\d+\)$", sites, re.M), sites
    assert re.search(r" at make ← leak \(test_it\.py:\d+\)$", sites, re.M), sites
    assert re.search(r" at test_installed \(test_it\.py:\d+\) → zeros \(framework/…/module\.py:5\)$", sites, re.M), sites


PEAKS = """
def test_small():
    clean("small", 100)

def test_high():
    first = leak("weights", 3000)
    clean("staging", 2000)
    ttmem.free(0, first, "DRAM")

def test_lower():
    clean("x", 4000)

@pytest.mark.ttmem(limit=10)
def test_over():
    clean("scratch", 20, "L1")
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_what_was_live_at_the_highest_peaks_is_shown(run_pytest, options, tmp_path):
    done = run_pytest(PEAKS, *options, "--ttmem-json", tmp_path / "out.json")
    found = re.search(r"^live at the highest peaks:\n((?:  .*\n)+)", done.text, re.M)
    assert found, done.text
    lines = [line.strip() for line in found[1].splitlines()]
    assert lines[0] == "device 0 DRAM 4.9 KiB, exact  test_it.py::test_high"
    assert re.fullmatch(r"2\.9 KiB  1 x weights at test_high ← leak \(test_it\.py:\d+\)", lines[1])
    assert re.fullmatch(r"2\.0 KiB  1 x staging at clean ← leak \(test_it\.py:\d+\)", lines[2])
    assert lines[3] == "device 0 L1 20 B, exact  test_it.py::test_over"
    assert len(lines) == 5
    assert re.search(r"\n +20 B  1 x scratch at leak", done.section("test_over"))
    document = json.loads((tmp_path / "out.json").read_text())
    jsonschema.validate(document, read_schema("pytest"))
    tests = {test["test"].split("::")[1]: test["at_peak"] for test in document["tests"]}
    (high,) = tests["test_high"]
    assert (high["bytes"], high["rise"], high["unknown_bytes"]) == (5000, 5000, 0)
    if not options:
        assert tests["test_lower"] == []  # it cost nothing
