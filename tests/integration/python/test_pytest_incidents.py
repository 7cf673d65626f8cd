# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem: devices that are closed with live buffers, and allocations that fail."""

import json
import re

import pytest

from world import check_schema


STRICT = """
@pytest.fixture
def device():
    yield 0
    ttmem.end_space(0, 0)

def test_holds(device):
    leak("kept", 1 << 20)
    leak("small", 64, "L1")

def test_frees(device):
    clean("freed")

@pytest.mark.ttmem(allow="kept")
def test_is_allowed(device):
    leak("kept", 64)

def test_holds_and_leaks(device):
    leak("kept", 32)
    ttmem.alloc(1, "DRAM", 0x1000, 16, "left")
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"], ["--forked"]])
def test_a_device_that_is_closed_with_live_buffers(run_pytest, options, tmp_path):
    done = run_pytest(STRICT, *options)
    assert (done.code, done.leaked, done.failed) == (1, {"test_holds_and_leaks"}, set()), done.text
    path = tmp_path / "result.json"
    done = run_pytest(STRICT, "--ttmem-strict-close", "--ttmem-json", path, *options)
    assert (done.leaked, done.failed) == ({"test_holds", "test_holds_and_leaks"}, set()), done.text
    held = done.section("test_holds")
    assert "ttmem: closed a device with 2 buffers, 1.0 MiB\n" in held and "ttmem: left" not in held
    assert re.search(r"^DRAM +1\.0 MiB +0 +\d+ +kept +-\n    at leak .*\n    at test_holds ", held, re.M), held
    both = done.section("test_holds_and_leaks")
    assert "ttmem: left 1 buffer, 16 B" in both and "ttmem: closed a device with 1 buffer, 32 B" in both
    document = check_schema(json.loads(path.read_text()))
    tests = {test["test"].partition("::")[2]: test for test in document["tests"]}
    assert [leak["closed"] for leak in tests["test_holds"]["leaks"]] == [True, True]
    assert [leak["closed"] for leak in tests["test_is_allowed"]["allowed"]] == [True]


def test_a_child_that_closes_its_device(run_pytest):
    done = run_pytest("""
        CHILD = "import ttmem; ttmem.alloc(3, 'L1', 0x7000, 512, 'kept'); ttmem.end_space(3, 0)"

        def test_starts_it():
            subprocess.run([sys.executable, "-c", CHILD], check=True)
    """, "--ttmem-strict-close")
    assert (done.leaked, done.failed) == ({"test_starts_it"}, set()), done.text
    assert "closed a device with 1 buffer, 512 B" in done.section("test_starts_it")


def test_more_events_than_the_history_has_are_not_checked(run_pytest):
    """The closing is the first of them, so it is not known any more."""
    done = run_pytest("""
        def test_closes():
            leak("kept")
            ttmem.end_space(0, 0)
            for _ in range(20000):
                clean("busy")

        def test_next():
            clean("busy")
    """, "--ttmem-strict-close", TTMEM_HISTORY="16384")
    assert done.code == 1 and "UNCHECKED" in done.text and "1 failed, 1 passed" in done.text, done.text
    assert "more events than the history keeps (TTMEM_HISTORY)" in done.section("test_closes")


FAILURES = """
BANKS = {"capacity": 4 << 20, "bank_base": 4096, "bank_size": 1 << 20, "banks": 4, "alignment": 64}

def load():
    return leak("weights", 2 << 20)

def allocate(size):
    ttmem.alloc_failed(0, "DRAM", size)
    raise MemoryError("no room")

def test_fails():
    ttmem.device(0, memory={"DRAM": BANKS})
    load()
    allocate(3 << 20)

def test_catches():
    for _ in range(3):
        with pytest.raises(MemoryError):
            allocate(1 << 20)

def test_fails_later():
    clean("x")
    assert False
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"], ["--forked"]])
def test_an_allocation_that_failed_is_explained_at_the_end(run_pytest, options, tmp_path):
    path = tmp_path / "result.json"
    done = run_pytest(FAILURES, "--ttmem-json", path, *options)
    assert (done.code, done.failed) == (1, {"test_fails", "test_fails_later"}), done.text
    _, found, end = done.text.partition("\nfailed allocations:\n")
    paragraph, caught, *_ = end.splitlines()
    assert found and paragraph.startswith("  test_it.py::test_fails: ") and "3.0 MiB of DRAM" in paragraph, done.text
    assert "were asked for by allocate (test_it.py:" in paragraph and ") in test_it.py::test_fails, pid " in paragraph
    assert "512.0 KiB were free of 1.0 MiB in each of 4 banks, in blocks of at most 448.0 KiB" in paragraph, paragraph
    assert "It was held by: 2.0 MiB in 1 buffer, leak" in paragraph, paragraph
    assert "without this buffer, 512.0 KiB in each bank: weights at 0x" in paragraph, paragraph
    assert caught == "  3 allocations failed in tests that went on or passed"
    document = check_schema(json.loads(path.read_text()))
    tests = {test["test"].partition("::")[2]: test["failed_allocation"] for test in document["tests"]}
    assert tests["test_fails"]["size"] == 3 << 20 and tests["test_catches"] is tests["test_fails_later"] is None
    assert document["failed_allocations"] == 4


def test_what_is_not_known_of_a_failed_allocation_is_called_so(run_pytest):
    done = run_pytest("""
        def test_fails():
            ttmem.alloc_failed(1, "L1", 4096)
            raise MemoryError
    """)
    _, _, end = done.text.partition("\nfailed allocations:\n")
    assert end.startswith("  test_it.py::test_fails: 4.0 KiB of L1 on device 1 were asked for by test_fails"), done.text
    assert "How much was free is not known. The largest free block is not known. This process held nothing of it." in end
    assert "What would have to go is not known." in end
