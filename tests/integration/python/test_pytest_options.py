# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem: markers, baselines, fixtures and reports."""

import json
import os
import re
import textwrap
import tomllib
import xml.etree.ElementTree

import pytest

from conftest import ROOT
from world import check_schema

@pytest.mark.parametrize(
    "options, leaks",
    [
        ("", {"test_it"}),
        ("allow=True", set()),
        ("allow='wei*'", set()),
        ("allow='DRAM'", set()),
        ("allow=['other', 'weights']", set()),
        ("allow='other'", {"test_it"}),
        ("allow='L1'", {"test_it"}),
        ("allow=False", {"test_it"}),
    ],
)
def test_allow(run_pytest, options, leaks):
    done = run_pytest(f"@pytest.mark.ttmem({options})\ndef test_it():\n    leak('weights')\n")
    assert done.leaked == leaks
    assert done.code == bool(leaks)


def test_limit(run_pytest):
    """Of the peak, above what was there before."""
    done = run_pytest(
        """
        @pytest.fixture(scope="module", autouse=True)
        def before():
            leak("before", 1 << 30)

        def body():
            clean("short", 65536)
            clean("other memory", 65000, "L1")

        FINE = ["64KiB", 65536, 65536.0, "64 kb", "64k", "0.0625MB", "1g", "1E"]
        TOO_LOW = [65535, "0.5K", "65535b", "0.0624 MiB", "63 K", 0, "0"]

        @pytest.mark.parametrize("n", [pytest.param(x, marks=pytest.mark.ttmem(limit=x)) for x in FINE])
        def test_fine(n):
            body()

        @pytest.mark.parametrize("n", [pytest.param(x, marks=pytest.mark.ttmem(limit=x)) for x in TOO_LOW])
        def test_too_low(n):
            body()
        """
    )
    assert "7 failed, 8 passed" in done.text, done.text
    assert not done.leaked | done.failed
    assert len(done.over) == 7 and all(test.startswith("test_too_low[") for test in done.over)
    assert "........OOOOOOO" in done.text
    assert done.text.count("held 64.0 KiB of DRAM on one device, the limit is") == 7


def test_leaked_is_said_of_one_that_is_over_the_limit_too(run_pytest):
    done = run_pytest("@pytest.mark.ttmem(limit=10)\ndef test_it():\n    leak('kept', 4096)\n")
    assert done.leaked == {"test_it"} and not done.over | done.failed
    assert "the limit is 10 B" in done.text and "left 1 buffer" in done.text


@pytest.mark.parametrize("options, leaks", [("", {"test_it"}), ("warmup=2", set())])
def test_warmup(run_pytest, options, leaks):
    done = run_pytest(
        f"""
        CACHE = {{}}
        RUNS = []

        @pytest.mark.ttmem({options})
        def test_it():
            RUNS.append(1)
            if len(RUNS) <= 2:
                CACHE[len(RUNS)] = leak("cached")

        def test_count():
            assert len(RUNS) == (3 if "{options}" else 1)
        """
    )
    assert (done.leaked, done.failed) == (leaks, set())


def test_unittest(run_pytest):
    """Judged as others are; only its functions cannot be called twice."""
    done = run_pytest(
        """
        import unittest

        class TestIt(unittest.TestCase):
            def test_clean(self):
                clean("x")
            def test_leaks(self):
                leak("y")
            @pytest.mark.ttmem(allow="y")
            def test_allowed(self):
                leak("y")
            @pytest.mark.ttmem(warmup=1)
            def test_warm(self):
                pass
        """
    )
    assert (done.leaked, done.failed) == ({"test_leaks"}, {"test_warm"})
    assert "has no warmup=" in done.text


def test_what_fails_to_warm_up_fails(run_pytest):
    done = run_pytest("@pytest.mark.ttmem(warmup=1)\ndef test_it():\n    assert 1 == 2, 'cold'\n")
    assert done.failed == {"test_it"} and "cold" in done.text


WRONG = [
    "permit='x'", "'x'", "limit='many'", "limit=-1", "limit=''", "limit=1.5", "limit='1.5'",
    "limit=True", "limit=float('inf')", "warmup=-1", "warmup='x'", "warmup=True", "warmup=1.0",
    "allow=7", "allow=1", "allow=0", "allow=['x', 1]", "allow={'DRAM': 1}",
]  # fmt: skip


def test_a_wrong_marker_is_said(run_pytest):
    tests = [f"@pytest.mark.ttmem({wrong})\ndef test_{n}():\n    pass\n" for n, wrong in enumerate(WRONG)]
    done = run_pytest("\n".join(tests))
    assert f"{len(WRONG)} errors in" in done.text
    assert done.text.count("\n@pytest.mark.ttmem: ") == len(WRONG)
    assert "Traceback" not in done.text


def test_markers_add_up(run_pytest):
    """The closest decides each option; what is allowed adds up."""
    done = run_pytest(
        """
        pytestmark = pytest.mark.ttmem(allow="cache*", limit=100)

        @pytest.mark.ttmem(limit="1MiB")
        def test_limit_of_the_function():
            leak("cache of the module", 4096)

        def test_limit_of_the_module():
            clean("x", 101)

        @pytest.mark.ttmem(allow="mine", limit="1MiB")
        class TestIt:
            @pytest.mark.ttmem(allow=["more"])
            def test_all(self):
                leak("cache"), leak("mine"), leak("more")

            @pytest.mark.ttmem(allow=False)
            def test_none(self):
                leak("cache")

            @pytest.mark.ttmem(warmup=2)
            def test_other(self):
                leak("other")
        """
    )
    assert done.leaked == {"test_none", "test_other"}
    assert done.over == {"test_limit_of_the_module"} and not done.failed


def test_names_are_harmless(run_pytest):
    """On one line, and nothing that a terminal would obey."""
    done = run_pytest(
        """
        def test_it():
            with ttmem.phase("p\\x1b[0m"):
                leak("\\x1b[2Jevil\\nline\\\\ \\u202eback")
        """
    )
    assert done.leaked == {"test_it"}, done.text
    assert "\x1b" not in done.text and "\u202e" not in done.text
    assert r" \x1b[2Jevil\x0aline\\ \u202eback  p\x1b[0m" in done.section("test_it")
    assert r"1 x DRAM \x1b[2Jevil\x0aline" in done.text

@pytest.mark.parametrize("workers", [(), ("-n", 2)])
def test_baseline(run_pytest, tmp_path, workers):
    tests = """
    def test_known():
        leak("known", int(os.environ["SIZE"]))

    def test_new():
        if "NEW" in os.environ:
            leak("known")
    """
    file = tmp_path / "baseline.json"
    assert run_pytest(tests, "--ttmem-json", file, *workers, SIZE="4096").leaked == {"test_known"}
    document = check_schema(json.loads(file.read_text()))
    assert len(document["remaining"]) == 1

    def again(**settings):
        return run_pytest(tests, "--ttmem-baseline", file, *workers, **settings)

    assert again(SIZE="4096").code == 0
    assert again(SIZE="100").code == 0
    assert again(SIZE="4097").leaked == {"test_known"}
    assert again(SIZE="4096", NEW="1").leaked == {"test_new"}
    # What is known stays known in the next baseline.
    second = tmp_path / "second.json"
    assert run_pytest(tests, "--ttmem-baseline", file, "--ttmem-json", second, SIZE="9").code == 0
    assert run_pytest(tests, "--ttmem-baseline", second, SIZE="9").code == 0


def row(size="1", name='"x"', calls='""'):
    """A baseline with one leak."""
    leak = f'{{"type": "DRAM", "name": {name}, "phase": "", "size": {size}, "calls": {calls}}}'
    test = f'{{"test": "test_it.py::test_it", "leaks": [{leak}], "known": []}}'
    return f'{{"schema": "ttmem.pytest/1", "tests": [{test}]}}'


def test_a_known_leak_may_move_its_line_but_not_its_function(run_pytest, tmp_path):
    tests = """
    def one(size):
        ttmem.alloc(0, "DRAM", 0x1000, size)

    def two(size):
        ttmem.alloc(0, "DRAM", 0x1000, size)

    def test_it():
        (two if "TWO" in os.environ else one)(64)
    """
    known, plain, old = (tmp_path / name for name in ("known.json", "plain.json", "old.json"))
    run_pytest(tests, "--ttmem-json", known)
    document = check_schema(json.loads(known.read_text()))
    assert document["tests"][0]["leaks"][0]["calls"] == "test_it.py:one <- test_it.py:test_it"

    def again(baseline, moved="", **settings):
        return run_pytest(moved + textwrap.dedent(tests), "--ttmem-baseline", baseline, **settings).code

    assert again(known) == again(known, moved="\n\n") == 0
    assert again(known, TWO="1") == 1
    assert again(known, TTMEM_STACKS="off", TWO="1") == 0
    run_pytest(tests, "--ttmem-json", plain, TTMEM_STACKS="off")
    assert again(plain, TWO="1") == 0
    # As files were written when stacks did not count.
    del document["tests"][0]["leaks"][0]["calls"]
    old.write_text(json.dumps(document))
    assert again(old, TWO="1") == 0
    document["tests"][0]["leaks"][0]["size"] -= 1
    old.write_text(json.dumps(document))
    assert again(old) == 1


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "[]",
        "{}",
        '{"schema": "ttmem.run/1"}',
        '{"schema": "ttmem.pytest/1", "tests": [1]}',
        "[" * 200_000,
        row(size="1e999"),
        row(size="NaN"),
        row(size="9" * 10_000),
        row(size="18446744073709551616"),
        row(size="-1"),
        row(size="true"),
        row(name="[]"),
        row(calls="7"),
    ],
    ids=lambda content: str(content)[:20],
)
def test_a_baseline_that_is_none(run_pytest, tmp_path, content):
    file = tmp_path / "baseline.json"
    if content is not None:
        file.write_text(content)
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-baseline", file)
    assert done.code == 4
    assert str(file) in done.text and "Traceback" not in done.text
    assert "INTERNALERROR" not in done.text and len(done.text) < 3000


def test_a_baseline_with_one_leak_is_one(run_pytest, tmp_path):
    """What the test above spoils."""
    file = tmp_path / "baseline.json"
    file.write_text(row())
    assert run_pytest("def test_it():\n    leak('x', 1)\n", "--ttmem-baseline", file).code == 0


def test_fixtures(run_pytest):
    done = run_pytest(
        """
        def test_first():
            leak("first", 100)

        def test_tracker(ttmem_tracker):
            assert ttmem_tracker.buffers() == []
            ttmem_tracker.check()
            address = leak("mine", 3000, "L1")
            assert [row["name"] for row in ttmem_tracker.buffers()] == ["mine"]
            assert ttmem_tracker.phase == os.environ["TTMEM_PHASE"]
            with pytest.raises(pytest.fail.Exception, match="mine"):
                ttmem_tracker.check()
            ttmem.free(0, address, "L1")
            ttmem_tracker.check()
            assert ttmem_tracker.peak() == {"L1": 3000}
            ttmem_tracker.allow("kept*")
            leak("kept back")

        def test_report(ttmem_report):
            first, tracker = ttmem_report.tests
            assert first["test"].endswith("::test_first")
            assert first["peak"] == {"DRAM": 100}
            (left,) = ttmem_report.leaks
            assert (left["name"], left["test"]) == ("first", first["test"])
            assert [row["name"] for row in tracker["allowed"]] == ["kept back"]
        """
    )
    assert (done.leaked, done.failed) == ({"test_first"}, set()), done.text


def test_fixtures_without_the_option_skip(run_pytest):
    done = run_pytest("def test_it(ttmem_tracker):\n    pass\n", "-rs", ttmem=None)
    assert done.code == 0
    assert "needs --ttmem" in done.text


@pytest.mark.parametrize("workers", [(), ("-n", 2)])
def test_junit_and_summary(run_pytest, tmp_path, workers):
    file = tmp_path / "junit.xml"
    done = run_pytest(
        """
        def test_peak():
            clean("p", 3 << 20, "L1")

        def test_leaks():
            leak("site", 1024)
            leak("site", 1024)
        """,
        "--junitxml", file, *workers,
    )  # fmt: skip
    cases = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in xml.etree.ElementTree.parse(file).iter("testcase")
    }
    assert cases == {
        "test_peak": {
            "ttmem_peak_L1": str(3 << 20), "ttmem_leaked_bytes": "0", "ttmem_leaked_buffers": "0",
        },
        "test_leaks": {
            "ttmem_peak_DRAM": "2048", "ttmem_leaked_bytes": "2048", "ttmem_leaked_buffers": "2",
        },
    }  # fmt: skip
    assert re.search(r"^  L1 3\.0 MiB  test_it\.py::test_peak$", done.text, re.M)
    assert re.search(r"^ +2\.0 KiB  2 x DRAM site at leak \(test_it\.py:\d+\)$", done.text, re.M)


def test_stacks_are_shown(run_pytest, compile_c):
    """Of Python and of C, without asking for them; pytest's own frames say nothing."""
    tests = """
    import ctypes

    def load_weights():
        leak("x")

    def test_leaks():
        load_weights()

    def test_program():
        subprocess.run([os.environ["PROGRAM"]], check=True)
    """
    program = compile_c(
        '#include <ttmem/ttmem.h>\nstatic void __attribute__((noinline)) to_device(void)'
        '{ttmem_alloc(0,0,1,1,"y");__asm__ volatile("");}\nint main(void){to_device();return 0;}',
        "leaks",
    )
    done = run_pytest(tests, PROGRAM=str(program))
    text = done.section("test_leaks")
    assert re.search(
        r"    at leak \S*/test_it.py:\d+\n    at load_weights \S*/test_it.py:\d+\n"
        r"    at test_leaks \S*/test_it.py:\d+\n(?!    at )",
        text,
    ), text
    assert "/_pytest/" not in done.text and "/pluggy/" not in done.text
    assert re.search(r"1 x DRAM x at leak \(test_it.py:\d+\)", done.text)
    assert re.search(r"    at to_device.*\n    at main", done.section("test_program"))
    off = run_pytest(tests, PROGRAM=str(program), TTMEM_STACKS="off")
    assert off.leaked == done.leaked and "    at " not in off.text


def test_program_caches_are_cleared(run_pytest):
    """ttnn stands for itself here: a module of that name with a device that keeps a program."""
    done = run_pytest(
        """
        import types

        class Device:
            def __init__(self):
                self.cache = []
            def run(self):
                self.cache.append(leak("program", 64, "KERNEL"))
            def clear_program_cache(self):
                while self.cache:
                    ttmem.free(0, self.cache.pop(), "KERNEL")

        Device.__module__ = "ttnn.device"
        sys.modules["ttnn"] = types.ModuleType("ttnn")

        @pytest.fixture(scope="module")
        def device():
            return Device()

        def test_cached(device):
            device.run()

        def test_hidden(device):
            Device().run()
        """
    )
    assert done.leaked == {"test_hidden"}


def test_what_stands_in_the_way_is_said_at_the_start(run_pytest, tmp_path):
    tests = "def test_it():\n    pass\n"
    for settings, words in [
        ({"TTMEM": "0"}, "TTMEM=0 is set"),
        ({"TTMEM_COMMAND": str(tmp_path / "none")}, "cannot be run"),
    ]:
        done = run_pytest(tests, **settings)
        assert done.code == 4
        assert words in done.text and "Traceback" not in done.text
    done = run_pytest(tests, "--ttmem-json", "x", ttmem=None)
    assert done.code == 4 and "needs --ttmem" in done.text


def test_a_command_that_fails_later_does_not_pass_tests(run_pytest, build, tmp_path):
    command = tmp_path / "ttmem"
    command.write_text(
        f'#!/bin/sh\n[ -e "{tmp_path}/broken" ] && exit 3\nexec "{build}/src/cli/ttmem" "$@"\n'
    )
    command.chmod(0o755)
    done = run_pytest(
        f"def test_it():\n    open('{tmp_path}/broken', 'w').close()\n", TTMEM_COMMAND=str(command)
    )
    assert done.code == 1
    assert "what this test left is not known" in done.section("test_it")


def test_the_caller_s_phase_is_kept(run_pytest):
    done = run_pytest(
        """
        def test_it():
            assert os.environ["TTMEM_PHASE"].startswith("job 7/pytest-")
            thread = threading.Thread(target=leak, args=["x"])
            thread.start()
            thread.join()
            (row,) = ttmem.buffers(os.getpid())
            assert row["phase"] == os.environ["TTMEM_PHASE"]
        """,
        TTMEM_PHASE="job 7",
    )
    assert (done.leaked, done.failed) == ({"test_it"}, set()), done.text


def test_a_report_that_cannot_be_written_is_said(run_pytest, tmp_path):
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-json", tmp_path / "none" / "x.json")
    assert done.code == 1
    assert "x.json could not be written: No such file or directory" in done.text
    assert "Traceback" not in done.text


@pytest.mark.parametrize("plugin", [False, True])
def test_pip_tells_pytest_of_the_plugin(run_pytest, build, tmp_path, plugin):
    """What pyproject.toml says, as pip writes it down; with -p as well it is there once."""
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site" / "ttmem-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: ttmem\nVersion: 0\n")
    lines = [f"{name} = {place}" for name, place in project["entry-points"]["pytest11"].items()]
    (folder / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    done = run_pytest(
        "def test_leaks():\n    leak('x')\n",
        plugin=plugin,
        PYTHONPATH=os.pathsep.join([str(build / "python"), str(folder.parent)]),
    )
    assert done.leaked == {"test_leaks"}, done.text


def test_a_wider_fixture_does_not_raise_the_peak(run_pytest):
    """Nor does it hide what the test has had before, or holds still."""
    done = run_pytest(
        """
        @pytest.fixture(scope="module")
        def wide():
            leak("wide", 1 << 30)

        def test_it(ttmem_tracker, request):
            address = leak("mine", 1000)
            clean("short", 5000)
            request.getfixturevalue("wide")
            assert ttmem_tracker.peak() == {"DRAM": 6000}
            clean("more", 6000)
            assert ttmem_tracker.peak() == {"DRAM": 7000}
            ttmem.free(0, address, "DRAM")
        """
    )
    assert done.code == 0, done.text
