# SPDX-License-Identifier: Apache-2.0
"""The old Python modules: alone, and with the real daemon in the old server's place."""

import contextlib
import json
import socket
import struct
import threading

import pytest

from conftest import LIMIT
from pythons import every_python

OLD = """
import json, os, sys, threading
from allocation_client import AllocationClient, BufferType
import ttmem

def mine():
    return [(b["device"], b["type"], b["size"], b["name"]) for b in ttmem.buffers(pid=os.getpid())]

"""

# Of device 0; what a book without a server says of 100 bytes of DRAM.
OWN = {
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
        assert len(set(ids)) == 20 and all(2**63 <= i < 2**64 for i in ids)
        names = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE"]
        want = [(device, name, 10 + i, None) for device in (0, 7) for i, name in enumerate(names)]
        assert sorted(mine(), key=str) == sorted(want * 2, key=str)
        for i in ids[5:10] + ids[15:]:
            one.deallocate(i)
        assert ttmem.memory_allocated(7) == 0 and ttmem.memory_stats(0).buffers == 10
        """,
        head=OLD,
    )


def test_ids_of_two_processes_differ(python):
    ask = "print(*[AllocationClient().allocate(0, 1, 0) for _ in range(100)])"
    first, second = (set(python.run(ask, head=OLD).split()) for _ in range(2))
    assert len(first) == len(second) == 100 and not first & second


def test_wrong_frees(python):
    """A double free is recorded, a free of nothing is refused; a child cannot free its parent's."""
    python.run(
        """
        client = AllocationClient()
        a, b = client.allocate(3, 5, "L1"), client.allocate(3, 6, "L1")
        client.deallocate(a)
        client.deallocate(a)
        kinds = [(i["kind"], i["device"], i["address"])
                 for i in ttmem.command("incidents")["incidents"] if i["pid"] == os.getpid()]
        assert kinds == [("double_free", 3, hex(a))], kinds
        for wrong in (1, a + 10**6, "x", None):
            try:
                client.deallocate(wrong)
            except ValueError as error:
                assert "was not allocated by this client" in str(error)
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
                           ((1024, 1, 0), "0 to 1023"), ((0, 0, 0), "size must be 1")):
            try:
                client.allocate(*args)
            except ValueError as error:
                assert word in str(error), error
            else:
                sys.exit(f"{args} was taken")
        for ask in (client.query_device, client.query_device_info):
            try:
                ask(-1)
            except ValueError as error:
                assert "0 to 1023" in str(error)
            else:
                sys.exit("device -1 was taken")
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
        assert info["is_available"] is False and set(info.values()) == {0}, info
        print(json.dumps([client.query_device(0), query_device_stats(0)]))
        """,
        head=OLD,
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

        want = {"dram_allocated": 1100, "l1_allocated": 10, "l1_small_allocated": 1,
                "trace_allocated": 3, "machine_wide": True}
        until(want)
        stats = query_device_stats(901)
        assert stats == want and f"{stats['dram_allocated'] / 1e9:.2f} GB" == "0.00 GB"
        client.deallocate(small)
        until({**want, "l1_small_allocated": 0})
        assert client.get_num_devices() == 902
        info = client.query_device_info(901)
        assert info == {
            "total_dram_size": 12 << 30, "total_l1_size": 64 * 1499136, "arch_type": 2,
            "num_dram_channels": 12, "dram_size_per_channel": 1 << 30,
            "l1_size_per_core": 1499136, "is_available": True, "machine_wide": True}, info
        assert AllocationClient(socket_path="none").query_device(901)["dram_allocated"] == 100
        """,
        head=OLD,
        **settings,
    )


class Server:
    """Takes one question after the other and answers each with the same bytes, in small parts."""

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
                peer.settimeout(LIMIT / 2)
                self.asked.append(peer.recv(4096))
                with contextlib.suppress(OSError):
                    for start in range(0, len(self.answer), 7):
                        peer.sendall(self.answer[start : start + 7])
                if self.then_wait:
                    self.held.append(peer)
                else:
                    peer.close()

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
            TT_ALLOC_SERVER_SOCKET=tmp_path / "s",
        )
    finally:
        server.close()
    told = dict(zip(OWN, [1, 2, 3, 4, True]))
    assert json.loads(text) == (told if believed else OWN)
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
    )
    assert [json.loads(line) for line in text.splitlines()] == [OWN, OWN]
