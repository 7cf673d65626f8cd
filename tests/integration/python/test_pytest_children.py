# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem: what exited children left, with a daemon and without."""

import os
import re
import textwrap

import pytest

ENDED = """
import multiprocessing

LEAK = "import ttmem; ttmem.alloc(3, 'L1', 0x7000, 512, 'of a child')"

def start(*lines):
    subprocess.run([sys.executable, "-c", "; ".join(lines)], check=True)

def work():
    ttmem.alloc(3, "L1", 0x7000, 512, "of a child")

def test_program():
    start(LEAK)

def test_killed():
    subprocess.run([sys.executable, "-c", LEAK + "; import os; os.kill(os.getpid(), 9)"])

def test_own_phase():
    start("import ttmem", "ttmem.phase('own').__enter__()", LEAK)

def test_without_our_phase():
    words = [sys.executable, "-c", LEAK]
    subprocess.run(words, env={k: v for k, v in os.environ.items() if k != "TTMEM_PHASE"})

@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_process(method):
    child = multiprocessing.get_context(method).Process(target=work)
    child.start()
    child.join()

def test_clean():
    start(LEAK, "ttmem.free(3, 0x7000)")
    clean("mine")

@pytest.mark.ttmem(allow="of a child")
def test_allowed():
    start(LEAK)
"""

LEAKY = {
    "test_program", "test_killed", "test_own_phase", "test_without_our_phase",
    "test_process[fork]", "test_process[spawn]",
}  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--forked", "-n", "2"]])
def test_what_ended_children_left_fails_their_test(run_pytest, options):
    done = run_pytest(ENDED, *options)
    assert (done.failed, done.leaked) == (set(), LEAKY), done.text
    for test in LEAKY:
        assert len(re.findall(r"\(ended\) +of a child", done.section(test))) == 1
    assert "too late" not in done.text


def test_with_a_daemon_nothing_is_told_twice(run_pytest, ttmemd):
    ttmemd.start()
    last = """
    def test_the_daemon_knows_them_all():
        import time
        for _ in range(1500):
            if len(ttmem.leaks()) >= 7:
                return
            time.sleep(0.02)
        assert False, ttmem.leaks()
    """
    done = run_pytest(ENDED + textwrap.dedent(last), TTMEM_SOCKET=str(ttmemd.socket))
    assert (done.failed, done.leaked) == (set(), LEAKY), done.text
    for test in LEAKY:
        assert len(re.findall(r"\(ended\) +of a child", done.section(test))) == 1
    assert "too late" not in done.text


def test_a_living_child_that_was_told_is_not_told_again_when_it_ends(run_pytest, ttmemd):
    ttmemd.start()
    done = run_pytest(
        """
        import time
        CHILDREN = []

        def test_leaks():
            words = [sys.executable, "-c", os.environ["CHILD"]]
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert child.stdout.readline()
            CHILDREN.append(child)

        def test_ends():
            CHILDREN[0].communicate(b"\\n")
            for _ in range(1500):
                if ttmem.leaks(CHILDREN[0].pid):
                    return
                time.sleep(0.02)
            assert False, "the daemon does not know it"
        """,
        TTMEM_SOCKET=str(ttmemd.socket),
    )
    assert (done.failed, done.leaked) == (set(), {"test_leaks"}), done.text
    assert "too late" not in done.text


def test_more_children_than_can_be_held_at_once(run_pytest):
    done = run_pytest(
        """
        def test_many():
            children = []
            for n in range(100):
                pid = os.fork()
                if pid == 0:
                    ttmem.alloc(0, "L1", 0x1000, 1, "short life")
                    os._exit(0)
                children.append(pid)
            for pid in children:
                os.waitpid(pid, 0)

        def test_next():
            clean("mine")
        """
    )
    assert (done.failed, done.leaked) == (set(), {"test_many"}), done.text
    assert "left 100 buffers" in done.section("test_many")


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_a_test_in_a_process_of_its_own(run_pytest, options):
    """What pytest-forked does; a crash is a failure as it was, and no leak on top of it."""
    done = run_pytest(
        """
        def test_clean():
            clean("x")

        def test_leaks():
            leak("y")

        def test_crashes():
            leak("z")
            os._exit(3)
        """,
        "--forked", *options,
    )  # fmt: skip
    assert (done.failed, done.leaked) == ({"test_crashes"}, {"test_leaks"}), done.text
    assert re.search(r"^DRAM .* y ", done.section("test_leaks"), re.M)


def test_what_is_offered_is_not_trusted(run_pytest):
    """Anything can be sent to the socket; it costs nobody anything."""
    done = run_pytest(
        """
        import array, socket

        def test_hostile():
            path = os.environ["TTMEM_OFFER"].split(":")[0]
            fake = os.memfd_create("ttmem-book")
            offer = bytes.fromhex("54544f46010000001000000000000000")
            for data, fds in [(b"x", []), (b"", []), (offer, [fake]), (offer, [0] * 30), (offer * 9, [fake])]:
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                    peer.connect(path)
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                    peer.sendmsg([data], rights if fds else [])
            os.close(fake)
            if os.fork() == 0:  # not from ourselves, either
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                    peer.connect(path)
                    peer.sendmsg([offer], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 0]))])
                os._exit(0)
            os.wait()

        def test_leaks():
            subprocess.run([sys.executable, "-c", "import ttmem; ttmem.alloc(0, 'L1', 1, 1, 'x')"])
        """
    )
    assert (done.failed, done.leaked) == (set(), {"test_leaks"}), done.text


def test_no_trace_is_left(run_pytest, clean_env):
    done = run_pytest("def test_it():\n    assert 'ttmem-pytest-' in os.environ['TTMEM_OFFER']\n")
    assert done.code == 0, done.text
    assert os.listdir(clean_env["XDG_RUNTIME_DIR"]) == []


FORKING = """
import signal

CHILDREN = []

def forked_by_a_thread(alone, later=False):
    \"\"\"A child of a thread that has a phase of its own, and that lives on.\"\"\"
    ours, its = os.pipe(), os.pipe()

    @ttmem.phase("of the thread")
    def work():
        pid = os.fork()
        if pid:
            CHILDREN.append((pid, ours, its))
            return
        if later:
            os.read(its[0], 1)
        ttmem.alloc(3, "L1", 0x7000, 512, "of a child")
        if alone:  # as daemons do
            os.closerange(3, ours[1])
            os.closerange(ours[1] + 1, 65536)
        os.write(ours[1], b"x")
        signal.pause()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if not later:
        assert os.read(ours[0], 1) == b"x"

@pytest.mark.parametrize("alone", [False, True])
def test_forks(alone):
    forked_by_a_thread(alone)

def test_program():
    code = "import ttmem; ttmem.phase('its own').__enter__(); " + os.environ["CHILD"]
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline()
    CHILDREN.append((child.pid,))

def test_forks_one_for_later():
    forked_by_a_thread(False, later=True)

def test_in_which_it_allocates():
    pid, ours, its = CHILDREN[-1]
    os.write(its[1], b"x")
    assert os.read(ours[0], 1) == b"x"

def test_clean():
    clean("mine")

@pytest.fixture(scope="session", autouse=True)
def end():
    yield
    for child in CHILDREN:
        os.kill(child[0], signal.SIGKILL)
        os.waitpid(child[0], 0)
"""


def test_a_living_child_belongs_to_the_test_that_made_it(run_pytest):
    """Whatever phases it or the thread that forked it has, and whenever it allocates."""
    done = run_pytest(FORKING)
    leaky = {"test_forks[False]", "test_forks[True]", "test_program"}
    assert (done.failed, done.leaked) == (set(), leaky), done.text
    for test, phase in zip(sorted(leaky), ("of the thread", "of the thread", "its own")):
        assert re.search(rf"^L1 +512 B +3 +\d+ +of a child +{phase}$", done.section(test), re.M), done.text
    # The last one had not yet allocated when its test was judged.
    _, told, rest = done.text.partition("known too late to fail their test:\n")
    assert told and rest.count("of a child") == 1, done.text


LET_GO = """
LEAK = "import ttmem; ttmem.alloc(3, 'L1', 0x7000, 512, 'of a child')"

def books():
    found = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum("ttmem-book" in os.readlink(path) for path in found if os.path.lexists(path))

before = books()

@pytest.mark.ttmem(allow="of a child")
def test_children():
    for _ in range(3):
        subprocess.run([sys.executable, "-c", LEAK], check=True)

def test_after_them():
    assert books() <= before
"""


def test_books_of_children_are_let_go_once_they_are_judged(run_pytest):
    done = run_pytest(LET_GO)
    assert not done.failed and not done.leaked, done.text
