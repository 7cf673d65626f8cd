# SPDX-License-Identifier: Apache-2.0
"""Corrupt books of many kinds, and the daemon that has to read them every second."""

import contextlib
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from common import AS_NOBODY
from world import used, wait_for

MIB = 1 << 20
SEALS = 0x1 | 0x2 | 0x4 | 0x10  # SEAL, SHRINK, GROW, FUTURE_WRITE

# argv: socket, size, seals, seed, whether to call itself the owner; stdin: the first bytes. The seed
# decides what is wrong: 0 nothing. The book is offered, and stays open to be found.
LIAR = """
import array, fcntl, mmap, os, random, socket, struct, sys, time
path, size, seals, seed, owns = sys.argv[1], *map(int, sys.argv[2:6])
content = bytearray(sys.stdin.buffer.read())
if owns:
    ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
    struct.pack_into("<I", content, 56, os.getpid())
    struct.pack_into("<Q", content, 72, ticks)
rng = random.Random(seed)
shards = 0x200000
if seed:
    for _ in range(seed * 10):
        area, length = rng.choice([(2048, 2048), (0x1000, 4096), (0x10000, 4096), (0x110000, 1024),
                                   (shards, 8192), (shards, 8192), (0xa00000, len(content) - 0xa00000)])
        at = area + rng.randrange(max(length - 8, 1)) // 8 * 8
        value = rng.choice([0, 1, 2**64 - 1, 2**63, rng.getrandbits(64), rng.getrandbits(16)])
        struct.pack_into("<Q", content, at, value)
fd = os.memfd_create("ttmem-book", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
os.ftruncate(fd, size)
# As a library would: a book that is not mapped is one of a program that is no more.
mapped = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
for at in range(0, len(content), 4096):  # holes stay holes
    page = content[at:at + 4096]
    if any(page):
        os.pwrite(fd, page, at)
if seals:
    fcntl.fcntl(fd, 1033, seals)
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect(path)
reader = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
link.sendmsg([struct.pack("<4I", 0x464f5454, 1, 16, 0)],
             [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [reader, os.pidfd_open(os.getpid())]))])
print("ok", flush=True)
time.sleep(600)
"""


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


def liar(daemon, content=b"", size=16 * MIB, seals=SEALS, seed=0, owns=True, before=()):
    process = daemon.adopt(
        subprocess.Popen(
            [*before, "/usr/bin/python3", "-I", "-S", "-c", LIAR, str(daemon.socket),
             *map(str, (size, seals, seed, int(owns)))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    process.stdin.write(content.ljust(80, b"\0"))
    process.stdin.close()
    process.stdin = None
    return process


def book_of(pid):
    """Size and first bytes of a real book."""
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(fd).startswith("/memfd:ttmem-book"):
            with open(fd, "rb") as book:
                end = 0
                with contextlib.suppress(OSError):  # no data behind that
                    while True:
                        begin = os.lseek(book.fileno(), end, os.SEEK_DATA)
                        end = os.lseek(book.fileno(), begin, os.SEEK_HOLE)
                book.seek(0)
                return {"size": os.stat(fd).st_size, "content": book.read(end)}
    raise AssertionError("no book")


def processes(daemon):
    return {p["pid"]: p for p in daemon.json("smi", env=daemon.blind)["processes"]}


def memory_kib(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))


@pytest.mark.needs_root
def test_forged_books_are_refused(daemon):
    daemon.start("--scan-interval", "1")
    lines = [f"alloc {i % 3} DRAM {0x1000 + 0x1000 * i} {i + 1} name{i}" for i in range(40)]
    honest = daemon.player(*lines, TTMEM_HISTORY="1024")
    real = book_of(honest.pid)
    # An exact copy in the process's own file is merely its own memory: the checks below are valid.
    copy = liar(daemon, **real)
    huge = bytearray(real["content"])
    struct.pack_into("<Q", huge, 16, 4 << 30)
    liars = [liar(daemon, **real, seed=seed) for seed in range(1, 13)]
    refused = [
        liar(daemon, size=size, seals=seals, content=content, owns=owns)
        for size, seals, content, owns in (
            (16 * MIB, 0, b"", False),
            (16 * MIB, SEALS & ~0x10, real["content"], True),
            (4096, SEALS, b"TTMEMBK1", False),
            (64 << 30, SEALS, real["content"][:4096], True),
            (16 * MIB, SEALS, b"TTMEMBK1" + b"\xff" * 4088, False),
            (16 * MIB, SEALS, os.urandom(1 * MIB), False),
        )
    ]
    # In the name of another user's process.
    refused.append(liar(daemon, **real, owns=False, before=AS_NOBODY))
    sparse = liar(daemon, size=4 << 30, content=bytes(huge))
    for process in (copy, sparse, *liars, *refused):
        assert process.stdout.readline() == b"ok\n"
    want = {(i, "DRAM"): sum(k + 1 for k in range(40) if k % 3 == i) for i in range(3)}
    wait_for(lambda: {honest.pid, copy.pid, sparse.pid} <= processes(daemon).keys(), "the honest")

    def check():
        document = daemon.json("smi", env=daemon.blind)
        assert used(document, honest.pid) == want and used(document, copy.pid) == want
        assert not {p.pid for p in refused} & {p["pid"] for p in document["processes"]}
        rows = daemon.json("buffers", "--pid", honest.pid, env=daemon.blind)["buffers"]
        assert sorted((b["name"], b["size"]) for b in rows) == sorted(
            (f"name{i}", i + 1) for i in range(40)
        )

    check()
    for command in (["buffers"], ["ps"], ["incidents"], ["history", "0x1000"], ["leaks"]):
        daemon.run(*command, "--json", env=daemon.blind)
    # Some looks of the daemon's own, and of every command, at all of them.
    scans = daemon.json("status")["past"]["written"]
    wait_for(lambda: daemon.json("status")["past"]["written"] > scans + 1, "two samples")
    check()
    wait_for(lambda: daemon.json("status")["books_refused"] >= len(refused), "all of them refused")
    # They die and are reported by what they wrote last.
    for process in (*liars, *refused, sparse):
        process.kill()
        process.wait()
    wait_for(lambda: processes(daemon).keys() == {honest.pid, copy.pid}, "their ends")
    check()
    copy.kill()
    leak = daemon.wait_for_leak(copy.pid)
    assert leak["buffer_count"] == 40 and leak["bytes"] == sum(want.values())
    assert daemon.leaks(honest.pid) == []
    assert memory_kib(daemon) < 96 << 10
    assert daemon.stop() == 0
