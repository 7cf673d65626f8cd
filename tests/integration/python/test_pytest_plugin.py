# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem: whatever a test leaves fails that test, and no other."""

import re
import textwrap
import xml.etree.ElementTree

import pytest

def test_what_a_test_leaves_fails_it(run_pytest):
    done = run_pytest(
        """
        def test_clean():
            clean("freed")

        def test_leaks():
            with ttmem.phase("layer 3"):
                leak("weights", 1 << 20)

        def test_next():
            clean("later")
        """
    )
    assert done.code == 1
    assert done.leaked == {"test_leaks"}
    assert "left 1 buffer, 1.0 MiB" in done.section("test_leaks")
    assert re.search(r"^DRAM +1\.0 MiB +0 +\d+ +weights +layer 3$", done.text, re.M)
    assert "1 failed, 2 passed" in done.text


def test_nothing_left_is_a_success(run_pytest):
    done = run_pytest("def test_clean():\n    clean('freed')\n")
    assert (done.code, done.leaked) == (0, set())
    assert "remaining" not in done.text


def test_without_the_option_nothing_is_judged(run_pytest):
    done = run_pytest("def test_leaks():\n    leak('x')\n    assert not ttmem.enabled()\n", ttmem=None)
    assert done.code == 0, done.text


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_and_workers_do_not_mix_tests(run_pytest, workers):
    """Twelve tests, every third leaks; each is charged with its own buffers and no others."""
    done = run_pytest(
        """
        @pytest.mark.parametrize("n", range(12))
        @pytest.mark.parametrize("own", [False, True])
        def test_threads(n, own):
            def work():
                # A phase on the empty stack of a thread does not name the test.
                if own:
                    with ttmem.phase("worker"):
                        (clean if n % 3 else leak)(f"buffer {n}")
                else:
                    (clean if n % 3 else leak)(f"buffer {n}")
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        """,
        *(["-n", workers] if workers else []),
    )
    leaky = {f"test_threads[{own}-{n}]" for own in (False, True) for n in range(0, 12, 3)}
    assert done.leaked == leaky
    for test in leaky:
        names = re.findall(r"buffer \d+", done.section(test))
        assert names == [f"buffer {test[:-1].split('-')[1]}"]


def test_two_runs_at_once_do_not_see_each_other(run_pytest):
    """One run inside another, which is the closest that two can be."""
    done = run_pytest(
        """
        def test_outer(tmp_path):
            leak("around it")
            inner = tmp_path / "test_inner.py"
            inner.write_text("import ttmem\\ndef test_inner():\\n    pass\\n")
            words = [sys.executable, "-m", "pytest", "-p", "ttmem.pytest_plugin", "--ttmem", inner]
            result = subprocess.run(words, capture_output=True, text=True)
            assert result.returncode == 0, result.stdout
            assert "around it" not in result.stdout
        """
    )
    assert (done.leaked, done.failed) == ({"test_outer"}, set()), done.text


CHILDREN = """
import multiprocessing

def work(ready, end, own):
    if own:
        ttmem.phase("own").__enter__()
    ttmem.alloc(3, "L1", 0x7000, 512, "of a child")
    ready.set()
    end.wait()

@pytest.fixture(scope="session")
def children():
    # Wider than a test, so that they are alive when it is judged.
    ends = []
    yield ends
    for end in ends:
        end()

def processes(method, own, children):
    context = multiprocessing.get_context(method)
    ready, end = context.Event(), context.Event()
    child = context.Process(target=work, args=(ready, end, own))
    child.start()
    children.append(lambda: (end.set(), child.join()))
    assert ready.wait(30)

@pytest.mark.parametrize("own", [False, True])
def test_fork(children, own):
    processes("fork", own, children)

@pytest.mark.parametrize("own", [False, True])
def test_spawn(children, own):
    processes("spawn", own, children)

def test_exec(children):
    child = subprocess.Popen([sys.executable, "-c", os.environ["CHILD"]],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    children.append(lambda: child.communicate(b"\\n"))
    assert child.stdout.readline()

def test_orphan(children):
    script = f'exec 3<&0; "{sys.executable}" -c "$CHILD" <&3 &'
    reading, writing = os.pipe()
    child = subprocess.Popen(["sh", "-c", script], stdin=reading, stdout=subprocess.PIPE)
    children.append(lambda: os.write(writing, b"\\n"))
    assert child.stdout.readline()
    assert child.wait() == 0
    os.close(reading)

def test_afterwards():
    clean("mine")
"""


def test_children_inherit_the_test(run_pytest):
    done = run_pytest(CHILDREN)
    assert done.failed == set(), done.text
    assert done.leaked == {
        "test_fork[False]", "test_fork[True]", "test_spawn[False]", "test_spawn[True]",
        "test_exec", "test_orphan",
    }  # fmt: skip
    for test in done.leaked:
        assert done.section(test).count("of a child") == 1


def test_children_of_workers_are_not_mixed(run_pytest):
    """They live until their worker has ended, which closes their input."""
    done = run_pytest(
        """
        CHILDREN = []

        @pytest.mark.parametrize("n", range(8))
        def test_child(n):
            if n % 2:
                words = [sys.executable, "-c", os.environ["CHILD"].replace("child", f"child {n}")]
                child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                CHILDREN.append(child)
                assert child.stdout.readline()
        """,
        "-n", 2,
    )  # fmt: skip
    assert done.failed == set(), done.text
    assert done.leaked == {f"test_child[{n}]" for n in (1, 3, 5, 7)}
    for n in (1, 3, 5, 7):
        assert re.findall(r"of a child \d", done.section(f"test_child[{n}]")) == [f"of a child {n}"]


def test_what_ended_children_left_is_known_by_the_daemon(run_pytest, ttmemd):
    ttmemd.start()
    done = run_pytest(
        """
        import time

        def child(name):
            source = "import ttmem; ttmem.alloc(0, 'DRAM', 4096, 64, '%s')" % name
            process = subprocess.Popen([sys.executable, "-c", source])
            assert process.wait() == 0
            return process.pid

        def wait(pid):
            for _ in range(1500):
                if ttmem.leaks(pid):
                    return
                time.sleep(0.02)
            assert False, "the daemon does not know it"

        def test_waits():
            wait(child("known in time"))

        SOON = []

        def test_does_not_wait():
            SOON.append(child("perhaps too late"))

        @pytest.mark.ttmem(allow="fine")
        def test_may():
            SOON.append(child("fine"))

        def test_last():
            for pid in SOON:
                wait(pid)
        """,
        TTMEM_SOCKET=str(ttmemd.socket),
    )
    assert done.code == 1
    assert "test_waits" in done.leaked
    assert re.search(r"\(ended\) +known in time", done.section("test_waits"))
    assert not done.failed and not done.leaked - {"test_waits", "test_does_not_wait"}, done.text
    assert re.search(r"\(ended\) +perhaps too late", done.text)
    assert "fine" not in done.text.split("short test summary")[0]


def test_wider_fixtures_are_not_the_first_test_s(run_pytest):
    done = run_pytest(
        """
        @pytest.fixture(scope="module")
        def device():
            address = leak("device")
            thread = threading.Thread(target=lambda: ttmem.phase("x")(leak)("thread"))
            thread.start()
            thread.join()
            yield
            ttmem.free(0, address)

        def setup_module():
            leak("set up")

        @pytest.fixture
        def narrow():
            return leak("narrow")

        def test_first(device):
            clean("mine")

        def test_narrow(device, narrow):
            pass
        """
    )
    assert done.leaked == {"test_narrow"}
    assert "device" not in done.section("test_narrow")
    remaining = done.text.split("remaining allocated buffers")[1]
    assert "set up" in remaining and "thread" in remaining and "narrow" in remaining
    assert not re.search(r" device +", remaining)


OWNER = """
class Owner:
    def __init__(self, name):
        self.address = leak(name)
    def __del__(self):
        ttmem.free(0, self.address, "DRAM")
"""


def test_garbage_and_fixtures_values_are_no_leaks(run_pytest):
    done = run_pytest(
        OWNER
        + textwrap.dedent("""
        @pytest.fixture
        def owner():
            return Owner("of a fixture")

        def test_cycle(owner):
            one, two = Owner("one"), Owner("two")
            one.other, two.other = two, one
        """)
    )
    assert done.code == 0, done.text


def test_owners_are_told_with_who_holds_them(run_pytest):
    done = run_pytest(
        OWNER
        + textwrap.dedent("""
        KEPT = []

        def test_leaks():
            KEPT.append(Owner("kept"))
        """)
    )
    assert done.leaked == {"test_leaks"}
    text = done.section("test_leaks")
    assert re.search(r"^  test_it\.Owner at 0x", text, re.M)
    assert "held by a list of 1, the global KEPT of test_it" in text
    assert text.count("held by") == 1


def test_what_only_has_the_number_is_no_owner(run_pytest):
    """Flags of Python's own objects, and sizes, are often as round as addresses."""
    done = run_pytest(
        """
        import __future__

        class Config:
            size = 0

        KEPT = [Config(), __future__.division]

        def test_leaks():
            KEPT[0].size = address = __future__.division.compiler_flag
            ttmem.alloc(0, "DRAM", address, 4096, "kept")
        """
    )
    assert done.leaked == {"test_leaks"}
    assert "look like owners" not in done.section("test_leaks")


def test_garbage_is_collected_only_if_something_is_left(run_pytest):
    """It takes longer than all the rest."""
    done = run_pytest(
        """
        import gc

        COUNTS = []
        real = gc.collect

        def counted(*args):
            COUNTS.append(1)
            return real(*args)

        @pytest.fixture(scope="module", autouse=True)
        def counting():
            gc.collect = counted
            yield
            gc.collect = real

        def test_clean():
            clean("nothing")

        def test_cycle():
            assert not COUNTS
            cycle = type("Cycle", (), {"__del__": lambda self: ttmem.free(0, self.address, "DRAM")})()
            cycle.me, cycle.address = cycle, leak("in a cycle")

        def test_after():
            assert len(COUNTS) == 2
        """
    )
    assert done.code == 0, done.text


def test_the_daemon_is_asked_only_for_what_is_new(run_pytest):
    """Since it was last asked, with some time for storing; at the end of the run for everything."""
    done = run_pytest(
        """
        import itertools
        from ttmem import _judge

        def test_it(monkeypatch):
            asked, clock = [], itertools.count(1_000_000_000_000, 5_000_000_000)
            monkeypatch.setattr(_judge.time, "time_ns", lambda: next(clock))
            monkeypatch.setattr(ttmem, "leaks", lambda since_ns: asked.append(since_ns) or [])
            finder = _judge.Finder(_judge.Phases(), None)
            for everything in (False, False, False, True):
                finder.ended(everything)
            start = 1_000_000_000_000
            assert asked == [start, start + 3_000_000_000, start + 8_000_000_000, start]
        """
    )
    assert done.code == 0, done.text


def test_a_failed_test_tells_its_leaks_too(run_pytest):
    done = run_pytest("def test_fails():\n    leak('left over')\n    assert False\n")
    assert (done.failed, done.leaked) == ({"test_fails"}, set())
    assert "1 failed in" in done.text
    assert re.search(r"^DRAM .* left over", done.text, re.M)


AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    reports = runtestprotocol(item, nextitem=item, log=False)
    assert any(report.failed for report in reports)
    item._initrequest()
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_a_test_that_is_run_again_is_judged_again(run_pytest):
    """As plugins do that give a failed test a second chance."""
    (run_pytest.folder / "conftest.py").write_text(AGAIN)
    done = run_pytest(
        """
        RUNS = []

        def test_it():
            RUNS.append(1)
            if len(RUNS) == 2:
                leak("second")
            assert len(RUNS) == 2
        """
    )
    assert (done.leaked, done.failed) == ({"test_it"}, set())
    assert "second" in done.section("test_it")


def test_a_clean_second_run_passes(run_pytest, tmp_path):
    """pytest-rerunfailures: each run is judged by itself, children's leaks too."""
    file = tmp_path / "junit.xml"
    done = run_pytest(
        """
        RUNS = []

        @pytest.mark.flaky(reruns=1)
        @pytest.mark.parametrize("child", [False, True])
        def test_first_leaks(child):
            RUNS.append(child)
            if RUNS.count(child) == 1 and child:
                subprocess.run([sys.executable, "-c", "import ttmem; ttmem.alloc(0, 'L1', 1, 1, 'x')"])
            elif RUNS.count(child) == 1:
                leak("first")

        @pytest.mark.flaky(reruns=1)
        def test_always_leaks():
            leak("always")

        def test_not_again():
            clean("x")
        """,
        "--junitxml", file,
    )  # fmt: skip
    assert (done.failed, done.leaked) == (set(), {"test_always_leaks"}), done.text
    assert "1 failed, 3 passed, 3 rerun" in done.text
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        names = [found.get("name") for found in case.iter("property")]
        assert len(names) == len(set(names)), names


def test_what_an_expected_failure_holds_is_no_leak(run_pytest):
    """Its traceback holds the frames; a skip has one, too. What is left for good is told of a skip."""
    done = run_pytest(
        OWNER
        + textwrap.dedent("""
        @pytest.mark.xfail(raises=ValueError)
        def test_expected():
            owner = Owner("held by a frame")
            raise ValueError

        def test_skipped():
            owner = Owner("held by a frame")
            pytest.skip("later")

        @pytest.mark.xfail
        def test_expected_and_left():
            leak("left")
            assert False

        def test_skipped_and_left():
            leak("left")
            pytest.skip("later")

        @pytest.mark.xfail
        def test_unexpected():
            leak("left")
        """)
    )
    assert (done.failed, done.leaked) == (set(), {"test_skipped_and_left", "test_unexpected"})
    assert "2 failed, 1 skipped, 2 xfailed" in done.text
    rest = re.sub(r"^live at the highest peaks:\n(  .*\n)+", "", done.text, flags=re.M)
    assert "held by a frame" not in rest


@pytest.mark.parametrize("workers", [(), ("-n", 2)])
def test_a_leak_is_one_failure_of_its_test(run_pytest, tmp_path, workers):
    file = tmp_path / "junit.xml"
    done = run_pytest(
        """
        @pytest.fixture
        def ends_badly():
            yield
            assert False, "in the fixture"

        def test_leaks():
            leak("x")

        def test_passes():
            pass

        def test_fails():
            leak("y")
            assert False

        def test_ends(ends_badly):
            leak("z")
        """,
        "--junitxml", file, *workers,
    )  # fmt: skip
    assert "2 failed, 2 passed, 1 error" in done.text
    suite = next(xml.etree.ElementTree.parse(file).iter("testsuite"))
    assert (suite.get("failures"), suite.get("errors")) == ("2", "1")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert "left 1 buffer" in cases["test_leaks"].find("failure").get("message")
    assert [child.tag for child in cases["test_passes"]] == ["properties"]


def test_what_was_known_before_an_interruption_is_told(run_pytest):
    done = run_pytest(
        """
        @pytest.fixture
        def interrupts():
            yield
            raise KeyboardInterrupt

        def test_fails(interrupts):
            assert False, "before it"
        """
    )
    assert done.code == 2 and done.failed == {"test_fails"}, done.text
    assert "before it" in done.text
