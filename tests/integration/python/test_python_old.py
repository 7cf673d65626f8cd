# SPDX-License-Identifier: Apache-2.0
"""The old Python modules: alone, and with the real daemon in the old server's place."""

import contextlib
import json
import socket
import struct
import subprocess
import threading

import pytest

from conftest import LIMIT
from pythons import every_python
from world import wait_for

OLD = """
import json, os, sys, threading
from allocation_client import AllocationClient, BufferType
import ttmem

def mine():
    return [(b["device"], b["type"], b["size"], b["name"]) for b in ttmem.buffers(pid=os.getpid())]

"""


def alone(path):
    """What a query says once where no server answers."""
    return f"allocation_client: no allocation server answers at {path}: figures are those of this process alone\n"


# Of device 0; what a book without a server says of 100 bytes of DRAM.
OWN = {
    "device_id": 0,
    "dram_allocated": 100,
    "l1_allocated": 0,
    "l1_small_allocated": 0,
    "trace_allocated": 0,
    "machine_wide": False,
}


@every_python
def test_the_old_example_runs_as_it_stands(python):
    """S2's snippet, with tracking not asked for: the old client needed no variable either."""
    python.run(
        """
        client = AllocationClient()
        buffer_id = client.allocate(
            device_id=0,
            size=1024*1024,
            buffer_type=BufferType.L1,
            buffer_name="attention_weights_layer_0"
        )
        assert mine() == [(0, "L1", 1024 * 1024, "attention_weights_layer_0")]
        client.deallocate(buffer_id)
        assert mine() == []
        """,
        head=OLD,
        TTMEM=None,
    )


SURFACE = """
import allocation_client, struct
from allocation_client import *
assert {t.name: t.value for t in MessageType} == {
    "ALLOC": 1, "FREE": 2, "QUERY": 3, "RESPONSE": 4, "DUMP_REMAINING": 5,
    "DEVICE_INFO_QUERY": 6, "DEVICE_INFO_RESPONSE": 7}
assert AllocationClient.SOCKET_PATH == "/tmp/tt_allocation_server.sock"
assert struct.calcsize(AllocationClient.MESSAGE_FORMAT) == 112
assert [format_bytes(n) for n in (0, 1023, 1536, 25 << 20, 3 << 30, 5 << 50)] == [
    "0.00 B", "1023.00 B", "1.50 KB", "25.00 MB", "3.00 GB", "5120.00 TB"]
"""


def test_every_name_of_the_old_module(python, tmp_path):
    """Without a server: what does not need one works, and sock says that there is none."""
    text = python.run(
        SURFACE
        + """
client = AllocationClient()
assert (client.sock, client.process_id, client.next_buffer_id) == (None, os.getpid(), 1)
nothing = client.allocate(0, 0, BufferType.DRAM)
assert nothing == 1 and client.next_buffer_id == 2 and mine() == []
client.deallocate(nothing)
client.deallocate(nothing)
assert [i for i in ttmem.command("incidents")["incidents"] if i["pid"] == os.getpid()] == []
demo()
assert mine() == []
""",
        head=OLD,
        errors=alone(tmp_path / "nobody"),
        TT_ALLOC_SERVER_SOCKET=tmp_path / "nobody",
    )
    assert "Connected" not in text and "this process; no server answers" in text
    assert "  Allocated buffer 3: 100.00 MB of DRAM\n" in text and "  DRAM: 100.00 MB\n" in text
    assert text.endswith("  Freed buffer 4\nDemo complete.\n")


def test_the_socket_of_a_client_carries_messages_of_its_own(python, ttmemd):
    """As a script of the time sent DUMP_REMAINING. The connection alone makes no second process."""
    ttmemd.start()
    text = python.run(
        SURFACE
        + """
client = AllocationClient()
client.allocate(3, 10, BufferType.L1)
ask = struct.pack(client.MESSAGE_FORMAT, MessageType.QUERY, 3, *[0] * 17)
client.sock.sendall(ask)
answer = b""
while len(answer) < 112:
    answer += client.sock.recv(112 - len(answer))
fields = struct.unpack(client.MESSAGE_FORMAT, answer)
assert fields[:2] == (MessageType.RESPONSE, 3)
rows = [p for p in ttmem.command("ps")["processes"] if p["pid"] == os.getpid()]
assert len(rows) == 1, rows
client.sock.sendall(struct.pack(client.MESSAGE_FORMAT, MessageType.DUMP_REMAINING, *[0] * 18))
demo()
""",
        head=OLD,
        TTMEM_SOCKET=ttmemd.socket,
        TT_ALLOC_SERVER_SOCKET=ttmemd.legacy,
    )
    assert text.startswith("✓ Connected to allocation server\n") and "(all processes):" in text
    wait_for(lambda: "REMAINING ALLOCATED BUFFERS" in ttmemd.text(), "the dump")


@pytest.mark.parametrize("name", ["TTMEM", "TT_ALLOC_TRACKING_ENABLED"])
def test_tracking_can_be_refused(python, name):
    python.run(
        """
        client = AllocationClient()
        client.deallocate(client.allocate(0, 1, "DRAM"))
        client.allocate(0, 1, "DRAM")
        assert not ttmem.enabled() and mine() == []
        """,
        head=OLD,
        **{"TTMEM": None, name: "0"},
    )


@every_python
def test_old_mistakes_are_gone(python):
    """Frees go to the right device, types have the right numbers, two clients share no id."""
    python.run(
        """
        one, two = AllocationClient(), AllocationClient()
        kinds = [BufferType.DRAM, "L1", 2, BufferType.L1_SMALL, "TRACE"]
        ids = [client.allocate(device, 10 + i, kind)
               for client in (one, two) for device in (0, 7) for i, kind in enumerate(kinds)]
        assert ids == list(range(1, 21)) and one.next_buffer_id == two.next_buffer_id == 21
        names = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE"]
        want = [(device, name, 10 + i, None) for device in (0, 7) for i, name in enumerate(names)]
        assert sorted(mine(), key=str) == sorted(want * 2, key=str)
        for i in ids[5:10] + ids[15:]:
            one.deallocate(i)
        assert ttmem.memory_allocated(7) == 0 and ttmem.memory_stats(0).buffers == 10
        """,
        head=OLD,
    )


def test_buffers_of_two_processes_differ(python):
    """Ids count from 1 in both. The addresses that stand for them differ, and from real ones too."""
    ask = """
    ids = [AllocationClient().allocate(0, 1, 0) for _ in range(100)]
    assert ids == list(range(1, 101))
    print(*[b["address"] for b in ttmem.buffers(pid=os.getpid())])
    """
    first, second = (set(python.run(ask, head=OLD).split()) for _ in range(2))
    assert len(first) == len(second) == 100 and not first & second
    assert all(2**63 <= int(address, 16) < 2**64 for address in first | second)


def test_wrong_frees(python):
    """Double and unknown frees are recorded and are no error; a child cannot free its parent's."""
    python.run(
        """
        client = AllocationClient()
        a, b = client.allocate(3, 5, "L1"), client.allocate(3, 6, "L1")
        client.deallocate(a)
        client.deallocate(a)
        client.deallocate(a + 10**6)
        client.deallocate(0x80000000000)
        own = 1 << 63 | os.getpid() << 41
        kinds = [(i["kind"], i["device"], i["address"])
                 for i in ttmem.command("incidents")["incidents"] if i["pid"] == os.getpid()]
        assert sorted(kinds) == sorted([
            ("double_free", 3, hex(own + a)), ("unknown_free", 0, hex(own + a + 10**6)),
            ("unknown_free", 0, "0x80000000000")]), kinds
        for wrong in ("x", None, 1.5):
            try:
                client.deallocate(wrong)
            except TypeError:
                pass
            else:
                sys.exit(f"{wrong} was freed")
        child = os.fork()
        if not child:
            client.deallocate(b)
            os._exit(0 if client.allocate(3, 1, 0) != b and mine() == [(3, "DRAM", 1, None)] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert mine() == [(3, "L1", 6, None)]
        """,
        head=OLD,
    )


def test_wrong_arguments(python):
    python.run(
        """
        client = AllocationClient()
        for args, word in (((0, 1, 5), "TRACE (4)"), ((0, 1, "RAM"), "TRACE (4)"),
                           ((1024, 1, 0), "0 to 1023"), ((0, -1, 0), "size must be 1")):
            try:
                client.allocate(*args)
            except ValueError as error:
                assert word in str(error), error
            else:
                sys.exit(f"{args} was taken")
        for ask, device in ((client.query_device, -1), (client.query_device_info, -2)):
            try:
                ask(device)
            except ValueError as error:
                assert "0 to 1023" in str(error)
            else:
                sys.exit(f"device {device} was taken")
        assert mine() == []
        """,
        head=OLD,
    )


def test_a_free_inside_a_call(python):
    """As a finaliser or a signal handler makes it, at any moment."""
    python.run(
        """
        client = AllocationClient()
        first = client.allocate(0, 1, 0)

        class Size:
            def __index__(self):
                client.deallocate(first)
                return 2

        client.allocate(5, Size(), 0)
        assert mine() == [(5, "DRAM", 2, None)]
        """,
        head=OLD,
    )


def test_threads_share_one_count(python):
    python.run(
        """
        sys.setswitchinterval(1e-5)
        client, ids = AllocationClient(), []

        def work():
            own = [client.allocate(0, 1, 0) for _ in range(500)]
            for i in own[::2]:
                client.deallocate(i)
            ids.extend(own)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(ids)) == 3000
        assert ttmem.memory_stats(0)[:2] == (1500, 1500)
        """,
        head=OLD,
    )


def test_without_a_server(python, tmp_path):
    """This process's own figures, and the answer says so."""
    text = python.run(
        """
        from query_stats import query_device_stats
        client = AllocationClient()
        assert client.get_num_devices() == 0
        client.allocate(0, 100, "DRAM")
        client.allocate(6, 1, "L1")
        assert client.get_num_devices() == 7
        info = client.query_device_info(0)
        assert info.pop("arch_name") == "Invalid" and info.pop("num_devices") == 7
        assert info["is_available"] is False and set(info.values()) == {0}, info
        print(json.dumps([client.query_device(0), query_device_stats(0)]))
        """,
        head=OLD,
        errors=alone(tmp_path / "nobody"),
        TT_ALLOC_SERVER_SOCKET=tmp_path / "nobody",
    )
    assert json.loads(text) == [OWN, OWN]


def test_the_daemon_answers_for_all(python, ttmemd):
    ttmemd.start()
    settings = {"TTMEM_SOCKET": ttmemd.socket, "TT_ALLOC_SERVER_SOCKET": ttmemd.legacy}
    python.start(
        """
        ttmem.device(901, arch="wormhole_b0", l1_per_core=1499136, cores=64, memory={
            "DRAM": {"capacity": 12 << 30, "banks": 12, "bank_size": 1 << 30},
            "L1": {"capacity": 64 * 1499136}})
        ttmem.alloc(901, ttmem.DRAM, 1, 1000)
        ttmem.alloc(901, ttmem.TRACE, 1, 3)
        """,
        **settings,
    )
    python.run(
        """
        import time
        from query_stats import query_device_stats
        client = AllocationClient()
        client.allocate(901, 100, "DRAM")
        client.allocate(901, 10, "L1")
        small = client.allocate(901, 1, BufferType.L1_SMALL)

        def until(want):
            deadline = time.monotonic() + 120
            while client.query_device(901) != want:
                assert time.monotonic() < deadline, client.query_device(901)
                time.sleep(0.02)

        want = {"device_id": 901, "dram_allocated": 1100, "l1_allocated": 10, "l1_small_allocated": 1,
                "trace_allocated": 3, "machine_wide": True}
        until(want)
        stats = query_device_stats(901)
        assert stats == want and f"{stats['dram_allocated'] / 1e9:.2f} GB" == "0.00 GB"
        client.deallocate(small)
        until({**want, "l1_small_allocated": 0})
        assert client.get_num_devices() == 902
        info = client.query_device_info(901)
        assert info == {
            "device_id": 901, "arch_name": "Wormhole_B0", "num_devices": 902,
            "total_dram_size": 12 << 30, "total_l1_size": 64 * 1499136, "arch_type": 2,
            "num_dram_channels": 12, "dram_size_per_channel": 1 << 30,
            "l1_size_per_core": 1499136, "is_available": True, "machine_wide": True}, info
        count = client.query_device_info(-1)
        assert (count["device_id"], count["num_devices"], count["arch_name"]) == (-1, 902, "Invalid")
        assert AllocationClient(socket_path="none").query_device(901)["dram_allocated"] == 100
        """,
        head=OLD,
        **settings,
    )


class Server:
    """Answers each question with the same bytes, in small parts, on any number of connections."""

    def __init__(self, path, answer, then_wait=False):
        self.answer = answer
        self.then_wait = then_wait
        self.asked = []
        self.held = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                self.held.append(peer)
                threading.Thread(target=self.answer_one, args=[peer], daemon=True).start()

    def answer_one(self, peer):
        with contextlib.suppress(OSError):
            question = peer.recv(4096)
            if question:
                self.asked.append(question)
            for start in range(0, len(self.answer), 7):
                peer.sendall(self.answer[start : start + 7])
            if not self.then_wait:
                peer.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        for peer in self.held:
            peer.close()


GOOD = struct.pack("<B3xi32x4Q", 4, 0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    "answer, then_wait, believed",
    [
        (GOOD, False, True),
        (GOOD[:71], False, False),
        (b"", False, False),
        (b"", True, False),
        (GOOD[:71], True, False),
        (b"\5" + GOOD[1:], False, False),
    ],
    ids=["in parts", "short", "hangs up", "silent", "short and silent", "another type"],
)
def test_servers_of_all_sorts(python, tmp_path, answer, then_wait, believed):
    server = Server(tmp_path / "s", answer, then_wait)
    try:
        text = python.run(
            """
            client = AllocationClient()
            client.allocate(0, 100, "DRAM")
            before = len(os.listdir("/proc/self/fd"))
            print(json.dumps(client.query_device(0)))
            assert len(os.listdir("/proc/self/fd")) == before
            """,
            head=OLD,
            errors="" if believed else alone(tmp_path / "s"),
            TT_ALLOC_SERVER_SOCKET=tmp_path / "s",
        )
    finally:
        server.close()
    told = dict(zip(OWN, [0, 1, 2, 3, 4, True]))
    greeting, figures = text.splitlines()
    assert greeting == "✓ Connected to allocation server"
    assert json.loads(figures) == (told if believed else OWN)
    assert server.asked == [b"\3" + bytes(71)]


def test_paths_that_cannot_be_sockets(python, tmp_path):
    text = python.run(
        """
        client = AllocationClient()
        client.allocate(0, 100, "DRAM")
        for path in ("/" + "x" * 200, sys.argv[1]):
            print(json.dumps(AllocationClient(path).query_device(0)))
        """,
        tmp_path,
        head=OLD,
        errors=alone("/" + "x" * 200) + alone(tmp_path),
    )
    assert [json.loads(line) for line in text.splitlines()] == [OWN, OWN]


def test_the_command_form_fails_without_a_server(python, tmp_path):
    """Its process holds nothing itself, so figures of its own would be a wrong 0."""
    env = python.settings({"TT_ALLOC_SERVER_SOCKET": tmp_path / "nobody"})
    command = [python.which.path, "-m", "query_stats"]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"query_stats: no allocation server answers at {tmp_path}/nobody: "
        'start ttmemd, or use "ttmem smi", which needs none\n'
    )
    result = subprocess.run([*command, "1024"], env=env, capture_output=True, text=True, timeout=LIMIT)
    assert result.returncode == 2 and "device must be 0 to 1023, not 1024" in result.stderr


def test_the_command_form_prints_what_the_server_says(python, tmp_path):
    server = Server(tmp_path / "s", GOOD)
    try:
        env = python.settings({"TT_ALLOC_SERVER_SOCKET": tmp_path / "s"})
        command = [python.which.path, "-m", "query_stats", "0"]
        result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    finally:
        server.close()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[:2] == ["dram_allocated: 1 bytes (1.00 B)", "l1_allocated: 2 bytes (2.00 B)"]
