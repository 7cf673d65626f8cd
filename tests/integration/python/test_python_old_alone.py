# SPDX-License-Identifier: Apache-2.0
"""The old Python modules where the package cannot be loaded: buffers are messages to the server.

Each Python from 3.6 to 3.8 that is found has the real package on its path, whose extension it cannot load. The Python that
runs the tests has only copies of the two modules, as a user may have copied them beside a script.
"""

import json
import os
import shutil
import socket
import subprocess
import textwrap

import pytest

from conftest import LIMIT, ROOT
from pythons import default, older

MODULES = ("allocation_client.py", "query_stats.py")
DEVICE = 903  # that no other process of the machine has

HEAD = """
import json, os, sys
import allocation_client
from allocation_client import AllocationClient, BufferType
from query_stats import query_device_stats

assert allocation_client._messages is not None, "the package can be loaded"

"""


class Alone:
    def __init__(self, which, folder, env):
        self.which = which
        # Nothing that other tests or users have set.
        self.env = {**env, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
        for name in ("TTMEM", "TT_ALLOC_TRACKING_ENABLED"):
            self.env.pop(name, None)

    def command(self, *words, **changes):
        env = {**self.env, **{name: str(value) for name, value in changes.items()}}
        return subprocess.Popen([self.which.path, *words], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8")  # fmt: skip

    def start(self, program, **changes):
        return self.command("-c", HEAD + textwrap.dedent(program), **changes)

    def run(self, program, errors="", **changes):
        process = self.start(program, **changes)
        out, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, err
        assert err == errors
        return out


@pytest.fixture(params=[*older(), default()], ids=str)
def alone(request, build, clean_env, tmp_path):
    if request.param is not default():
        if not (build / "python" / "ttmem" / "_ttmem.abi3.so").exists():
            pytest.skip("the Python package is not built")
        return Alone(request.param, build / "python", clean_env)
    folder = tmp_path / "copies"
    folder.mkdir()
    for name in MODULES:
        shutil.copy(ROOT / "python" / name, folder)
    return Alone(request.param, folder, clean_env)


def test_the_old_example_is_seen(alone, ttmemd):
    """S2's snippet: a name, a stack, and the figures with the answer to the next question."""
    ttmemd.start()
    process = alone.start(
        f"""
        def load_weights(client):
            return client.allocate(device_id={DEVICE}, size=1024*1024, buffer_type=BufferType.L1,
                                   buffer_name="attention_weights_layer_0")

        client = AllocationClient()
        buffer_id = load_weights(client)
        second = client.allocate({DEVICE}, 7, "DRAM", "größe" * 20)
        print(json.dumps([client.query_device({DEVICE}), query_device_stats({DEVICE})]))
        print(client.get_num_devices(), client.query_device_info({DEVICE})["num_devices"], flush=True)
        sys.stdin.readline()
        client.deallocate(buffer_id)
        client.deallocate(buffer_id)
        client.deallocate(10**6)
        client.deallocate(second)
        print(client.query_device({DEVICE})["l1_allocated"], flush=True)
        sys.stdin.readline()
        """,
        TT_ALLOC_SERVER_SOCKET=ttmemd.legacy,
    )
    ttmemd.adopt(process)
    assert process.stdout.readline() == "✓ Connected to allocation server\n"
    want = {"device_id": DEVICE, "dram_allocated": 7, "l1_allocated": 1 << 20, "l1_small_allocated": 0,
            "trace_allocated": 0, "machine_wide": True}  # fmt: skip
    assert json.loads(process.stdout.readline()) == [want, want]
    assert process.stdout.readline() == f"{DEVICE + 1} {DEVICE + 1}\n"
    weights, size = sorted(ttmemd.json("buffers", "--pid", process.pid)["buffers"], key=lambda b: -b["size"])
    assert (weights["device"], weights["type"], weights["size"], weights["name"]) == (
        DEVICE, "L1", 1 << 20, "attention_weights_layer_0")  # fmt: skip
    assert size["name"] == ("größe" * 20).encode()[:63].decode(errors="ignore")
    assert [(frame["function"], frame["file"]) for frame in weights["stack"]] == [
        ("allocate", "allocation_client.py"), ("load_weights", "<string>"), ("<module>", "<string>")]  # fmt: skip
    print(file=process.stdin, flush=True)
    assert process.stdout.readline() == "0\n"
    assert ttmemd.json("buffers", "--pid", process.pid)["buffers"] == []
    incidents = ttmemd.json("incidents", "--pid", process.pid)["incidents"]
    assert sorted((i["kind"], i["device"]) for i in incidents) == [("double_free", DEVICE), ("unknown_free", 0)]
    assert process.communicate("\n", timeout=LIMIT)[1] == "" and process.returncode == 0


def test_a_child_reports_for_itself(alone, ttmemd):
    ttmemd.start()
    text = alone.run(
        f"""
        client = AllocationClient()
        first = client.allocate({DEVICE}, 5, "DRAM")
        child = os.fork()
        if not child:
            client.deallocate(first)
            assert client.query_device({DEVICE})["dram_allocated"] == 5
            client.allocate({DEVICE}, 3, "DRAM")
            assert client.query_device({DEVICE})["dram_allocated"] == 8
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(os.getpid(), child)
        """,
        TT_ALLOC_SERVER_SOCKET=ttmemd.legacy,
    )
    parent, child = map(int, text.splitlines()[-1].split())
    assert [[b["size"] for b in ttmemd.wait_for_leak(pid)["buffers"]] for pid in (parent, child)] == [[5], [3]]


def test_threads_and_handlers_do_not_mix_messages(alone, ttmemd):
    """A handler may free in the middle of a message."""
    ttmemd.start()
    alone.run(
        f"""
        import signal, threading
        client = AllocationClient()
        extra = [client.allocate({DEVICE}, 1, 0) for _ in range(300)]
        signal.signal(signal.SIGALRM, lambda *_: extra and client.deallocate(extra.pop()))
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)

        def work():
            for i in [client.allocate({DEVICE}, 1, 0) for _ in range(500)]:
                client.deallocate(i)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        while extra:
            client.deallocate(extra.pop())
        assert client.query_device({DEVICE})["dram_allocated"] == 0
        """,
        TT_ALLOC_SERVER_SOCKET=ttmemd.legacy,
    )


def test_without_a_server(alone, tmp_path):
    """As the old client: RuntimeError, which now says why; the command form fails with one line."""
    place = tmp_path / "nobody"
    text = alone.run(
        """
        for ask in (AllocationClient, query_device_stats):
            try:
                ask()
            except RuntimeError as error:
                print(error)
            else:
                sys.exit("no error")
        """,
        TT_ALLOC_SERVER_SOCKET=place,
    )
    first, second = text.splitlines()
    assert first.startswith(f"no allocation server answers at {place}; one is needed without the package ttmem (")
    assert second == f"no allocation server answers at {place}"
    for module in ("query_stats", "allocation_client"):
        process = alone.command("-m", module, TT_ALLOC_SERVER_SOCKET=place)
        out, err = process.communicate(timeout=LIMIT)
        assert (process.returncode, out) == (1, "")
        assert err.startswith(f"{module}: no allocation server answers at {place}") and err.count("\n") == 1


def test_a_server_that_goes_ends_only_the_reports(alone, world, tmp_path):
    """No signal and no exception: the program goes on, and one line says what is missing."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen(8)
    process = alone.start(
        f"""
        client = AllocationClient()
        first = client.allocate({DEVICE}, 5, "DRAM")
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(1000):
            client.deallocate(client.allocate({DEVICE}, 6, "DRAM"))
        client.deallocate(first)
        """,
        TT_ALLOC_SERVER_SOCKET=tmp_path / "s",
    )
    world.adopt(process)
    assert [process.stdout.readline() for _ in range(2)][1] == "ready\n"
    server.close()  # and with it the connections
    _, err = process.communicate("\n", timeout=LIMIT)
    assert err == "allocation_client: the allocation server is gone: buffers are no longer reported\n"
    assert process.returncode == 0


@pytest.mark.parametrize("name", ["TTMEM", "TT_ALLOC_TRACKING_ENABLED"])
def test_tracking_can_be_refused(alone, tmp_path, name):
    alone.run(
        """
        client = AllocationClient()
        client.deallocate(client.allocate(0, 1, "DRAM"))
        """,
        TT_ALLOC_SERVER_SOCKET=tmp_path / "nobody",
        **{name: "0"},
    )


def test_wrong_arguments(alone, ttmemd):
    ttmemd.start()
    alone.run(
        """
        client = AllocationClient()
        for args, word in (((0, 1, 5), "TRACE (4)"), ((0, 1, "RAM"), "TRACE (4)"),
                           ((1024, 1, 0), "0 to 1023"), ((0, -1, 0), "size must be 1"), ((0, 1 << 40, 0), "size must be 1")):
            try:
                client.allocate(*args)
            except ValueError as error:
                assert word in str(error), error
            else:
                sys.exit("%s was taken" % (args,))
        nothing = client.allocate(0, 0, BufferType.DRAM)
        client.deallocate(nothing)
        """,
        TT_ALLOC_SERVER_SOCKET=ttmemd.legacy,
    )


def test_the_text_of_a_stack(alone):
    """file:line:function, the innermost last; where there is no room the outermost are missing."""
    text = alone.run(
        """
        allocation_client._messages.open = lambda path: None
        client = AllocationClient("none")

        def inner(depth):
            return inner(depth - 1) if depth else client._get_stack_trace()

        print(inner(1))
        print(inner(200))
        """
    )
    short, long = text.splitlines()
    assert [part.split(":")[2] for part in short.split(" -> ")] == ["<module>", "inner", "inner"]
    assert all(part.startswith("<string>:") for part in short.split(" -> "))
    assert 400 < len(long) <= 511 and set(part.split(":")[2] for part in long.split(" -> ")) == {"inner"}
