# SPDX-License-Identifier: Apache-2.0
"""Clients that die in the middle of a message, hang, are too many, or send too much.

Each test has bystanders; whatever happens, the daemon's figures for them stay exact.
"""

import os
import random
import re
import signal
import subprocess
import time

import pytest

from conftest import LIMIT
from world import descriptors, used, wait_for

HELPER = """
import os, resource, socket, struct, sys, time
head = struct.Struct("<B3xiQB3xiQQ")

def message(size, kind, address, amount, pid=None, name=b""):
    pid = os.getpid() if pid is None else pid
    first = head.pack(kind, 0, amount, 0, pid, address, 0).ljust(72, b"\\0")
    return (first + (name if size == 648 else b"")).ljust(size, b"\\0")

def connect(path, kind=socket.SOCK_STREAM):
    link = socket.socket(socket.AF_UNIX, kind)
    link.connect(path)
    return link

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
native, old = sys.argv[1:3]
"""


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


@pytest.fixture
def bystanders(daemon):
    """Starts some; returns a function that checks them."""
    players, client = [], []

    def check():
        document = daemon.json("smi", env=daemon.blind)
        for i, player in enumerate(players):
            assert used(document, player.pid) == {(0, "DRAM"): 1000 + i, (i, "L1"): 5}
        assert used(document, os.getpid()) == {(7, "DRAM"): 77}
        assert client[0].query(7)[0] == 77

    def start():
        for i in range(3):
            lines = f"alloc 0 DRAM 0x1000 {1000 + i} still", f"alloc {i} L1 0x2000 5"
            players.append(daemon.player(*lines))
        client.append(daemon.old_client())
        client[0].alloc(7, 0, 0x7000, 77)
        assert client[0].query(7)[0] == 77
        for player in players:
            wait_until_seen(daemon, player.pid)
        check()
        return check

    yield start
    for link in client:
        link.close()


def pids(daemon):
    return {p["pid"] for p in daemon.json("ps", env=daemon.blind)["processes"] if p["alive"]}


def wait_until_seen(daemon, pid):
    wait_for(lambda: pid in pids(daemon), f"pid {pid}")


def helper(daemon, script, *args, before=()):
    """A Python program with the words above; talks through its pipes."""
    command = [*before, "/usr/bin/python3", "-I", "-S", "-c", HELPER + script]
    return daemon.adopt(
        subprocess.Popen(
            [*command, str(daemon.socket), str(daemon.legacy), *map(str, args)],
            env=daemon.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )


def memory_kib(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


MID_MESSAGE = """
for size in (72, 144, 648):
    for cut in range(size):
        pid = os.fork()
        if pid == 0:
            link = connect(old)
            first = message(size, 1, 0x1000, 100000 + cut, name=b"first")
            link.sendall(first + message(size, 1, 0x2000, 1, name=b"second")[:cut])
            os.kill(os.getpid(), 9)
        print(pid, 100000 + cut, flush=True)
        os.waitpid(pid, 0)
"""


def test_clients_that_die_in_mid_message_harm_no_one(daemon, bystanders):
    daemon.start()
    check = bystanders()
    process = helper(daemon, MID_MESSAGE)
    want = {int(pid): int(size) for pid, size in (line.split() for line in process.stdout)}
    assert process.wait() == 0 and len(want) == 72 + 144 + 648

    def reports():
        return {p["pid"]: p["bytes"] for p in daemon.json("leaks")["processes"]}

    wait_for(lambda: len(reports()) >= len(want), "all reports")
    # The whole message counts, the part of the second never does.
    assert reports() == want
    check()


MID_OFFER = """
import array
def offer(fds, length=16, magic=0x464f5454, version=1):
    link = connect(native, socket.SOCK_SEQPACKET)
    words = struct.pack("<4I", magic, version, 16, 0)[:length]
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    link.sendmsg([words], rights)

mine = os.memfd_create("ttmem-book")
for length in range(1, 17):
    for fds in ([], [mine], [mine, 0], [mine] * 20, [0, mine]):
        pid = os.fork()
        if pid == 0:
            offer(fds, length)
            os.kill(os.getpid(), 9)
        os.waitpid(pid, 0)
for _ in range(50):
    pid = os.fork()
    if pid == 0:
        connect(native, socket.SOCK_SEQPACKET)
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
"""


def held(daemon):
    """How many books, pidfds and sockets it has open."""
    words = descriptors(daemon.process.pid).split()
    return sum(word.startswith(("/memfd:", "anon_inode:", "socket:")) for word in words)


def test_clients_that_die_in_mid_offer_are_still_reported(daemon, bystanders):
    # The flight recorder would keep books of the ended for its time.
    daemon.start("--scan-interval", "3600", "--flight", "off")
    check = bystanders()
    before = held(daemon)
    assert helper(daemon, MID_OFFER).wait(timeout=LIMIT) == 0
    check()
    # A real book whose sender is dead before the daemon reads it.
    daemon.process.send_signal(signal.SIGSTOP)
    dead = [daemon.player(f"alloc 0 DRAM 0x1000 {50 + i}") for i in range(5)]
    for player in dead:
        player.kill()
    daemon.process.send_signal(signal.SIGCONT)
    for i, player in enumerate(dead):
        assert daemon.wait_for_leak(player.pid)["bytes"] == 50 + i
    check()
    # None of that is held for ever.
    wait_for(lambda: held(daemon) <= before, "closed descriptors")


def test_a_process_stopped_inside_an_update_is_read_exactly(daemon, bystanders):
    daemon.start()
    check = bystanders()
    rng = random.Random(5)
    busy = daemon.player("alloc 0 DRAM 0x9000 4096 fixed", "burst 0 100")
    wait_until_seen(daemon, busy.pid)
    busy.process.stdin.write("burst 0 2000000000\n")
    busy.process.stdin.flush()
    seen = set()
    rounds = 0
    # Both states are met sooner or later.
    while rounds < 15 or len(seen) < 2:
        rounds += 1
        os.kill(busy.pid, signal.SIGSTOP)
        document = daemon.json("smi", env=daemon.blind)
        (process,) = [p for p in document["processes"] if p["pid"] == busy.pid]
        memory = process["devices"][0]["memory"]
        assert memory["DRAM"]["used"] == 4096 and memory["DRAM"]["buffers"] == 1
        state = memory["L1"]["used"], memory["L1"]["buffers"]
        assert process["exact"] and state in ((0, 0), (64, 1))
        rows = daemon.json("buffers", "--pid", busy.pid, env=daemon.blind)
        sizes = sorted(b["size"] for b in rows["buffers"])
        # It stands still: what is listed is what was counted.
        assert rows["exact"] and sizes == ([4096] if state == (0, 0) else [64, 4096])
        seen.add(state)
        check()
        os.kill(busy.pid, signal.SIGCONT)
        time.sleep(rng.random() * 0.003)
    os.kill(busy.pid, signal.SIGSTOP)
    busy.process.kill()
    assert daemon.wait_for_leak(busy.pid)["bytes"] in (4096, 4160)
    check()


def test_a_daemon_without_descriptors_loses_no_report(daemon):
    limit = 80  # the daemon itself takes about 30
    daemon.start("--scan-interval", "1", before=("prlimit", f"--nofile={limit}:{limit}"))
    players = [daemon.player(f"alloc 0 DRAM 0x1000 {100 + i}") for i in range(100)]
    of = {player.pid: 100 + i for i, player in enumerate(players)}

    def told():
        """The command must be let in even now. What could not be read in time is marked, not wrong."""
        document = daemon.json("smi", env=daemon.blind)
        exact = [p["pid"] for p in document["processes"] if p["alive"] and p["exact"]]
        seen = {pid: used(document, pid)[0, "DRAM"] for pid in exact}
        assert all(of[pid] == size for pid, size in seen.items())
        return seen

    wait_for(lambda: len(told()) >= 5, "some of them")
    # Those that fit are known; as they exit, the others are picked up, until all were.
    known = set()
    while len(known) < len(players):
        seen = wait_for(lambda: told().keys() - known, "others")
        for pid in seen:
            (player,) = [p for p in players if p.pid == pid]
            player.kill()
            known.add(pid)

    def reports():
        return {p["pid"]: p["bytes"] for p in daemon.json("leaks")["processes"]}

    wait_for(lambda: reports() == of, "a report of each")
    assert daemon.stop() == 0


FLOOD = """
import array, select
which, uid = sys.argv[3:5]
os.setuid(int(uid))
links = []
if which == "connections":
    for path, kind in ((native, socket.SOCK_SEQPACKET), (old, socket.SOCK_STREAM)):
        for _ in range(1000):
            link = socket.socket(socket.AF_UNIX, kind)
            link.settimeout(5)
            try:
                link.connect(path)
                links.append(link)
            except OSError:
                pass
print("go", flush=True)
end = time.monotonic() + 1
packet = {"garbage": os.urandom(100), "zeros": bytes(16), "huge": os.urandom(100000)}.get(which)
question = struct.pack("<I", 0x51545454) + os.urandom(60)
while packet and time.monotonic() < end:
    try:
        link = connect(native, socket.SOCK_SEQPACKET)
        for _ in range(20):
            link.send(packet)
            link.send(question)
    except OSError:
        pass
    try:
        link = connect(old)
        for _ in range(20):
            link.send(packet)
    except OSError:
        pass
sys.stdin.readline()
"""


@pytest.mark.needs_root
@pytest.mark.parametrize("which", ["connections", "garbage", "zeros", "huge"])
def test_a_flood_of_connections_does_not_harm_others(daemon, bystanders, which):
    daemon.start()
    check = bystanders()
    process = helper(daemon, FLOOD, which, 65534)
    assert process.stdout.readline() == "go\n"
    for i in range(5):
        player = daemon.player(f"alloc 1 DRAM 0x1000 {7 + i}")
        wait_until_seen(daemon, player.pid)
        player.kill()
        assert daemon.wait_for_leak(player.pid)["bytes"] == 7 + i
        check()
    assert memory_kib(daemon) < 64 << 10
    process.stdin.close()
    process.wait(timeout=LIMIT)
    check()


NEWS = """
import ctypes, array
lib = ctypes.CDLL(sys.argv[3])
lib.ttmem_alloc.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p]
lib.ttmem_alloc(0, 0, 0x1000, 33, b"loud")
links = []
for fd in os.listdir("/proc/self/fd"):
    try:
        link = socket.socket(fileno=os.dup(int(fd)))
        link.getpeername()
        links.append(link)
    except OSError:
        pass
news = struct.pack("<4I", 0x574e5454, 1, 16, 1)
print(len(links), flush=True)
end = time.monotonic() + 100
while links and time.monotonic() < end:
    for link in links:
        try:
            link.send(news, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except OSError:
            links.remove(link)
print(len(links), flush=True)
sys.stdin.readline()
"""


def test_a_flood_of_incidents_does_not_harm_others(daemon, bystanders):
    daemon.start()
    check = bystanders()
    library = daemon.build / "src" / "lib" / "libttmem.so"
    if b"__asan" in library.read_bytes() or b"__tsan" in library.read_bytes():
        pytest.skip("the library is built with a sanitizer")
    daemon.env["TTMEM"] = "1"
    process = helper(daemon, NEWS, library)
    assert process.stdout.readline() == "1\n"
    check()
    # It is not listened to any longer, and nothing else happens to it.
    assert process.stdout.readline() == "0\n"
    wait_until_seen(daemon, process.pid)
    assert used(daemon.json("smi", env=daemon.blind), process.pid) == {(0, "DRAM"): 33}
    check()
    process.kill()
    assert daemon.wait_for_leak(process.pid)["bytes"] == 33
    check()


