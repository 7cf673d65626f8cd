# SPDX-License-Identifier: Apache-2.0
"""The Python package, used by real processes and seen by the command."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import LIMIT, ROOT
from pythons import every, every_python, once_for
from world import TYPES, TYPES_TEXT, used


@every_python
def test_seen_by_the_command(python, world):
    process = python.start("""
        with ttmem.phase("load"):
            ttmem.alloc(0, ttmem.DRAM, 0x1000, 65536, "weights")
            ttmem.alloc(0, "L1", 0x1000, 512, name="größe")
        ttmem.alloc(device=1023, type=6, address=2**64 - 1, size=2**40 - 1)
        ttmem.alloc(0, ttmem.CB, 0x2000, 1)
        ttmem.free(0, 0x2000)
    """)
    world.show(process.pid)
    rows = world.json("buffers", "--pid", process.pid)["buffers"]
    assert sorted(
        (b["device"], b["type"], b["address"], b["size"], b["name"], b["phase"]) for b in rows
    ) == [
        (0, "DRAM", "0x1000", 65536, "weights", "load"),
        (0, "L1", "0x1000", 512, "größe", "load"),
        (1023, "KERNEL", "0xffffffffffffffff", 2**40 - 1, None, None),
    ]
    assert used(world.json("smi"), process.pid) == {
        (0, "DRAM"): 65536,
        (0, "L1"): 512,
        (1023, "KERNEL"): 2**40 - 1,
    }


@once_for([one for one in every() if one.version >= (3, 10)])
def test_one_file_serves_them_all(python, build):
    """What ./dev install installs was made with the headers of one version."""
    assert python.run("""
        from ttmem import _frames, _ttmem
        ttmem.alloc(0, ttmem.DRAM, 1, 100)
        assert mine() == [[0, "DRAM", "0x1", 100, None, None]]
        print(_ttmem.__file__, _frames.__file__)
    """, PYTHONPATH=build / "python").split() == [
        str(build / "python" / "ttmem" / f"{name}.abi3.so") for name in ("_ttmem", "_frames")]


@every_python
def test_own_figures(python):
    python.run("""
        class Three:
            def __index__(self):
                return 3
        ttmem.alloc(Three(), 0, 1, 100)
        ttmem.alloc(3, ttmem.DRAM, 2, 50)
        ttmem.alloc(3, ttmem.L1, 2, 7)
        assert ttmem.memory_allocated(3) == 157
        assert ttmem.memory_allocated(3, "DRAM") == 150
        ttmem.free(3, 1)
        assert ttmem.memory_allocated(device=3, type=ttmem.DRAM) == 50
        assert ttmem.max_memory_allocated(3, ttmem.DRAM) == 150
        assert ttmem.max_memory_allocated(3) == 157
        ttmem.reset_peak(3, "DRAM")
        assert ttmem.max_memory_allocated(3, ttmem.DRAM) == 50
        ttmem.free(3, 2, ttmem.L1)
        assert ttmem.max_memory_allocated(3, ttmem.L1) == 7
        ttmem.reset_peak(3)
        assert ttmem.max_memory_allocated(3, ttmem.L1) == 0
        assert ttmem.memory_stats(3) == (50, 1, 50, 3, 2)
        assert ttmem.memory_stats(3, "DRAM").allocs == 2
        assert ttmem.memory_allocated(4) == 0
        assert ttmem.enabled() is True
        assert ttmem.version().count(".") == 2
    """)


@every_python
def test_without_tracking(python):
    python.run(
        """
        assert ttmem.enabled() is False
        with ttmem.phase("p"):
            ttmem.alloc(0, ttmem.DRAM, 1, 100)
        ttmem.mark("m")
        ttmem.device(0, arch="blackhole")
        assert ttmem.memory_stats(0) == (0, 0, 0, 0, 0)
        assert mine() == []
        try:
            ttmem.alloc(0, ttmem.DRAM, 1, 0)
        except ValueError:
            pass
        else:
            sys.exit("a mistake goes unseen where tracking is off")
        """,
        TTMEM=None,
    )


MISTAKES = [
    ("alloc(1024, 0, 0, 1)", "ValueError: device must be 0 to 1023, not 1024"),
    ("alloc(-1, 0, 0, 1)", "ValueError: device must be 0 to 1023, not -1"),
    ("alloc('0', 0, 0, 1)", "TypeError: device must be an int, not str"),
    ("alloc(0.0, 0, 0, 1)", "TypeError: device must be an int, not float"),
    ("alloc(0, 99, 0, 1)", f"ValueError: type must be 0 to {len(TYPES) - 1}, not 99"),
    ("alloc(0, 'dram', 0, 1)", f"ValueError: type must be {TYPES_TEXT}, not 'dram'"),
    ("alloc(0, None, 0, 1)", "TypeError: type must be an int or a str, not NoneType"),
    ("alloc(0, 0, -1, 1)", "ValueError: address must be 0 to 18446744073709551615, not -1"),
    ("alloc(0, 0, 2**64, 1)", f"ValueError: address must be 0 to {2**64 - 1}, not {2**64}"),
    ("alloc(0, 0, 0, 0)", "ValueError: size must be 1 to 1099511627775, not 0"),
    ("alloc(0, 0, 0, 2**40)", f"ValueError: size must be 1 to 1099511627775, not {2**40}"),
    ("alloc(0, 0, 0, 1, b'x')", "TypeError: name must be a str or None, not bytes"),
    ("alloc(0, 0, 0, 1, 'a\\0b')", "ValueError: name must not contain a NUL character"),
    ("alloc(0, 0, 0, 1, '\\ud800')", "UnicodeEncodeError: 'utf-8' codec can't encode character"
     " '\\ud800' in position 0: surrogates not allowed"),
    ("alloc(0, 0, 0)", "TypeError: alloc() needs size"),
    ("alloc(0, 0, 0, 1, None, 0, 0, 0, 1)", "TypeError: alloc() takes at most 8 arguments, not 9"),
    ("alloc(0, 0, 0, 1, space=1024)", "ValueError: space must be 0 to 1023, not 1024"),
    ("free(0, 0, space=-1)", "ValueError: space must be 0 to 1023, not -1"),
    ("end_space(0, 1024)", "ValueError: space must be 0 to 1023, not 1024"),
    ("alloc(0, 0, 0, 1, device=0)", "TypeError: alloc() got two values for device"),
    ("alloc(0, 0, 0, 1, colour=0)", "TypeError: alloc() has no argument 'colour'"),
    ("free(0, 0, 3.5)", "TypeError: type must be an int, a str or None, not float"),
    ("free(0, None)", "TypeError: address must be an int, not NoneType"),
    ("memory_allocated(9999)", "ValueError: device must be 0 to 1023, not 9999"),
    ("reset_peak(0, 'X')", f"ValueError: type must be {TYPES_TEXT}, not 'X'"),
    ("alloc_failed(0, 0, 1, 2**64 - 1)", f"ValueError: largest_free must be 0 to {2**64 - 2},"
     f" not {2**64 - 1}"),
    ("device(0, cores=2**32)", "ValueError: cores must be 0 to 4294967295, not 4294967296"),
    ("device(0, arch=5)", "TypeError: arch must be a str or None, not int"),
    ("device(0, memory={'RAM': {}})", f"ValueError: memory: no type 'RAM'; there are {', '.join(TYPES)}"),
    ("device(0, memory={'DRAM': 1})", "TypeError: memory: 'DRAM' must have facts such as {'capacity': 1}, not int"),
    ("device(0, memory={0: {'size': 1}})", "ValueError: memory: no fact 'size'; there are capacity,"
     " bank_base, bank_size, banks, alignment"),
    ("device(0, memory={0: {'banks': 2**32}})", "ValueError: memory must be 0 to 4294967295, not"
     " 4294967296"),
    ("device_close(1024)", "ValueError: device must be 0 to 1023, not 1024"),
    ("mark(5)", "TypeError: name must be a str, not int"),
    ("process_phase(None)", "TypeError: name must be a str, not NoneType"),
    ("phase(len)", "TypeError: name must be a str, not builtin_function_or_method"),
    ("phase('a\\0b')", "ValueError: name must not contain a NUL character"),
    ("phase('p')(5)", "TypeError: ttmem.phase('p') decorates functions, not int"),
    ("buffers(pid='1')", "TypeError: pid must be an int, not str"),
    ("buffers(device=-1)", "ValueError: device must not be negative: -1"),
    ("buffers(type=9)", f"ValueError: no type 9; there are {', '.join(TYPES)}"),
]  # fmt: skip


@every_python
def test_mistakes_are_exceptions_and_leave_nothing(python):
    text = python.run(
        """
        for call in json.loads(sys.argv[1]):
            try:
                eval("ttmem." + call)
            except Exception as error:
                print(json.dumps(f"{type(error).__name__}: {error}"))
            else:
                print(json.dumps("no exception"))
        assert ttmem.memory_stats(0) == (0, 0, 0, 0, 0) and mine() == []
        """,
        json.dumps([call for call, _ in MISTAKES]),
    )
    said = [json.loads(line) for line in text.splitlines()]
    assert list(zip([call for call, _ in MISTAKES], said)) == MISTAKES


@every_python
def test_an_object_that_lies_about_being_a_number(python):
    python.run("""
        class Bad:
            def __index__(self):
                raise KeyError("mine")
        for call in (lambda: ttmem.alloc(Bad(), 0, 0, 1), lambda: ttmem.free(0, Bad())):
            try:
                call()
            except KeyError as error:
                assert error.args == ("mine",)
            else:
                sys.exit("its own exception was lost")
    """)


@every_python
def test_spaces_and_occupancy(python, world):
    process = python.start("""
        ttmem.alloc(0, "L1", 0x1000, 512, space=1)
        ttmem.alloc(0, "L1", 0x1000, 512, "b", 2, 128, 8)
        ttmem.alloc(0, "L1", 0x1000, 100)
        ttmem.free(0, 0x1000, space=3)
        ttmem.free(0, 0x1000)
        assert ttmem.memory_allocated(0) == 1024
        assert ttmem.end_space(device=0, space=1) == 1 and ttmem.end_space(0, 1) == 0
    """)
    world.show(process.pid)
    (row,) = world.json("buffers", "--pid", process.pid)["buffers"]
    assert (row["space"], row["size"], row["occupied"], row["name"]) == (2, 512, 1024, "b")


@every_python
def test_threads(python):
    """Each thread has its own phase, and no event is lost."""
    python.run("""
        sys.setswitchinterval(1e-5)
        start = threading.Barrier(8)

        def work(number):
            start.wait()
            with ttmem.phase(f"thread {number}"):
                for i in range(2000):
                    ttmem.alloc(number % 2, "DRAM", number << 32 | i, 10, f"name {i % 7}")
                    if i % 2:
                        ttmem.free(number % 2, number << 32 | i, "DRAM")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for device in (0, 1):
            stats = ttmem.memory_stats(device)
            assert (stats.bytes, stats.buffers, stats.allocs, stats.frees) == (
                40000, 4000, 8000, 4000), stats
        for row in mine():
            assert row[5] == f"thread {int(row[2], 16) >> 32}", row
    """)


@every_python
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_have_books_of_their_own(python, tmp_path, method):
    # Not from -c: the other methods import the main module again.
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, os, sys
import ttmem

def child(number, ready, done):
    assert ttmem.memory_allocated(0) == 0
    with ttmem.phase("child"):
        ttmem.alloc(0, ttmem.DRAM, 0x1000, number, "child")
    ready.put(os.getpid())
    done.wait()

if __name__ == "__main__":
    ttmem.alloc(0, ttmem.DRAM, 0x1000, 1000, "parent")
    context = multiprocessing.get_context(sys.argv[1])
    ready, done = context.Queue(), context.Event()
    children = [context.Process(target=child, args=(n, ready, done)) for n in (1, 2)]
    for one in children:
        one.start()
    pids = {ready.get(timeout=120) for _ in children}
    assert pids == {one.pid for one in children}
    for number, one in enumerate(children, 1):
        rows = ttmem.buffers(pid=one.pid)
        assert [(b["size"], b["name"], b["phase"]) for b in rows] == [(number, "child", "child")], rows
    (row,) = ttmem.buffers(pid=os.getpid())
    assert (row["size"], row["name"], ttmem.memory_allocated(0)) == (1000, "parent", 1000)
    done.set()
    for one in children:
        one.join()
        assert one.exitcode == 0
""")
    result = subprocess.run(
        [python.which.path, program, method],
        env=python.env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_devices_failures_and_marks(python, tmp_path):
    log = tmp_path / "log"
    python.run(
        """
        ttmem.device(5, unique_id=0x5eed0abc, arch="wormhole_b0", card="n300", remote=True, cores=64,
                     l1_per_core=1499136, memory={"DRAM": {"capacity": 12 << 30, "banks": 12},
                                                  ttmem.L1: {"capacity": 1 << 26}})
        ttmem.alloc(5, ttmem.DRAM, 1, 77)
        ttmem.alloc_failed(5, "L1", 1 << 30)
        ttmem.mark("a moment")
        (row,) = [d for d in ttmem.snapshot()["devices"] if d["uid"] == "0x5eed0abc"]
        assert (row["arch"], row["card"], row["remote"]) == ("wormhole_b0", "n300", True), row
        assert row["memory"]["DRAM"]["capacity"] == 12 << 30, row
        assert row["memory"]["L1"]["capacity"] == 1 << 26, row
        failed = [i for i in ttmem.command("incidents")["incidents"] if i["pid"] == os.getpid()]
        assert [(i["kind"], i["type"], i["size"]) for i in failed] == [
            ("alloc_failed", "L1", 1 << 30)], failed
        ttmem.device_close(5)
        """,
        TTMEM_DEBUG=log,
    )
    text = log.read_text()
    assert "mark a moment\n" in text and "device_close 5\n" in text


def test_leaks_are_told_by_the_daemon(python, ttmemd):
    ttmemd.start()
    process = python.start(
        "ttmem.alloc(3, ttmem.DRAM, 1, 4711, 'left')", TTMEM_SOCKET=ttmemd.socket
    )
    process.kill()
    process.wait()
    ttmemd.wait_for_leak(process.pid)
    python.run(
        """
        (leak,) = ttmem.leaks(pid=int(sys.argv[1]))
        assert leak["bytes"] == 4711 and leak["buffers"][0]["name"] == "left", leak
        assert leak in ttmem.leaks()
        """,
        process.pid,
        TTMEM_SOCKET=ttmemd.socket,
    )


def test_a_command_that_fails(python, tmp_path):
    python.run(
        """
        def said(call):
            try:
                call()
            except ttmem.CommandError as error:
                return str(error)
            sys.exit("no exception")

        assert "ttmemd" in said(ttmem.leaks)
        os.environ["TTMEM_COMMAND"] = sys.argv[1]
        assert "cannot be run: No such file" in said(ttmem.snapshot)
        for text, words in (("echo no", "did not print JSON"), ("echo 5", "a document"),
                            ("echo why >&2; exit 3", "failed: why"), ("exit 3", "exit code 3")):
            with open(sys.argv[1], "w") as file:
                file.write("#!/bin/sh\\n" + text)
            os.chmod(sys.argv[1], 0o755)
            assert words in said(ttmem.snapshot), text
        with open(sys.argv[1], "w") as file:
            file.write("#!/bin/sh\\nexec sleep 1000")
        assert "did not answer within 0.1 s" in said(lambda: ttmem.command("smi", timeout=0.1))
        """,
        tmp_path / "command",
    )


def test_where_the_command_is_found(python, build, tmp_path):
    """Beside the package, then on PATH; else it is said what to do."""
    package = tmp_path / "p" / "lib" / "python"
    shutil.copytree(python.package / "ttmem", package / "ttmem")
    folder = tmp_path / "path"
    for place, word in ((tmp_path / "p" / "bin", "beside"), (folder, "path")):
        place.mkdir()
        (place / "ttmem").write_text(f"#!/bin/sh\necho '{{\"word\": \"{word}\"}}'\n")
        (place / "ttmem").chmod(0o755)
    settings = {
        "PYTHONPATH": package,
        "LD_LIBRARY_PATH": build / "src" / "lib",
        "TTMEM_COMMAND": None,
        "PATH": f"{folder}:/bin:/usr/bin",
    }
    ask = "print(ttmem.snapshot()['word'])"
    assert python.run(ask, **settings) == "beside\n"
    (tmp_path / "p" / "bin" / "ttmem").unlink()
    assert python.run(ask, **settings) == "path\n"
    (folder / "ttmem").unlink()
    settings["PATH"] = str(folder)
    text = python.run(
        """
        try:
            ttmem.snapshot()
        except ttmem.CommandError as error:
            print(error)
        """,
        **settings,
    )
    if os.path.exists(os.path.join(sys.prefix, "bin", "ttmem")):
        pytest.skip("ttmem is installed beside this Python")
    assert "was not found: put it on PATH" in text


@every_python
def test_signatures_and_hints(python):
    """help() shows the arguments, and the stub names all that the extension has."""
    stub = (ROOT / "python" / "ttmem" / "_ttmem.pyi").read_text()
    text = python.run("""
        import inspect
        from ttmem import _ttmem
        assert str(inspect.signature(ttmem.alloc)) == (
            "(device, type, address, size, name=None, space=0, size_per_bank=0, banks=0)")
        assert str(inspect.signature(ttmem.free)) == "(device, address, type=None, space=None)"
        for name in ttmem.__all__:
            assert getattr(ttmem, name).__doc__, name
        print(*[n for n in dir(_ttmem) if not n.startswith("__")])
    """)
    assert set(text.split()) == {
        line.split("(")[0].split()[1] for line in stub.splitlines() if line.startswith("def ")
    }
    assert (python.package / "ttmem" / "py.typed").exists()


def test_pip_without_a_network(python, build, tmp_path):
    missing = [m for m in ("pip", "setuptools", "wheel") if not importlib.util.find_spec(m)]
    if missing:
        pytest.skip(f"no {missing[0]}")
    source = tmp_path / "source"
    shutil.copytree(ROOT / "python", source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    (tmp_path / "ttmem.pc").write_text(
        f"libdir={build / 'src' / 'lib'}\nincludedir={ROOT / 'include'}\n"
        "Name: ttmem\nDescription: test\nVersion: 0.2.0\n"
    )
    target = tmp_path / "target"
    command = [sys.executable, "-m", "pip", "install", ".", "--no-build-isolation", "--no-index"]
    result = subprocess.run(
        [*command, "--no-deps", "--no-cache-dir", "--target", target],
        cwd=source,
        env={**python.env, "PYTHONPATH": "", "PKG_CONFIG_PATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT * 2,
    )
    assert result.returncode == 0, result.stdout
    python.run(
        """
        import allocation_client, query_stats
        for module in (ttmem, allocation_client, query_stats):
            assert module.__file__.startswith(sys.argv[1]), module
        assert os.path.exists(os.path.join(os.path.dirname(ttmem.__file__), "py.typed"))
        ttmem.alloc(0, ttmem.DRAM, 1, 5)
        assert mine() == [[0, "DRAM", "0x1", 5, None, None]]
        """,
        target,
        PYTHONPATH=target,
    )


def test_the_document_says_it_right(python):
    """The example runs as printed, and every public name is described."""
    text = (ROOT / "docs" / "python.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    assert python.run(example, head="") == "65536\n"
    names = python.run("print(*ttmem.__all__)").split()
    assert [name for name in names if name not in text and name not in TYPES] == []
