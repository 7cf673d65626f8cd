# SPDX-License-Identifier: Apache-2.0
"""Finding books: who owns them, what is rejected and why, and what a reader never does."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import AS_NOBODY, LIMIT, NOBODY
from world import end_children, used, wait_for

SEALS = 0x1 | 0x2 | 0x4 | 0x10  # SEAL, SHRINK, GROW, FUTURE_WRITE
MIB = 1 << 20

# Creates a memory file with the name of a book: argv = size, seals, flags; stdin is its first bytes.
GARBAGE = """
import fcntl, os, sys
size, seals, flags = (int(word) for word in sys.argv[1:4])
fd = os.memfd_create("ttmem-book", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC | flags)
os.ftruncate(fd, size)
content = sys.stdin.buffer.read()
if content:  # huge pages cannot be written to
    os.pwrite(fd, content, 0)
if seals:
    fcntl.fcntl(fd, 1033, seals)
print(fd, flush=True)
import time
time.sleep(600)
"""


def garbage(world, size, seals=SEALS, flags=0, content=b"", before=()):
    process = world.adopt(
        subprocess.Popen(
            [*before, "/usr/bin/python3", "-c", GARBAGE, str(size), str(seals), str(flags)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    )
    process.stdin.write(content)
    process.stdin.close()
    process.stdin = None
    if not process.stdout.readline():
        return None
    world.show(process.pid)
    return process


def book_of(pid):
    """The path of a process's book."""
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(fd).startswith("/memfd:ttmem-book"):
            return fd
    raise AssertionError("no book")


def copy_of(pid):
    """Arguments of garbage() for a book with the same beginning; the rest is a hole anyway."""
    path = book_of(pid)
    with open(path, "rb") as book:
        return {"size": os.stat(path).st_size, "content": book.read(16 * MIB)}


def refusals(document):
    return [note for note in document["notes"] if "refused" in note]


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (dict(size=16 * MIB, seals=0), "not sealed"),
        (dict(size=16 * MIB, seals=SEALS & ~0x2), "not sealed"),
        (dict(size=16 * MIB, seals=SEALS & ~0x10), "not sealed"),
        (dict(size=4096), "too small for a book"),
        (dict(size=0), "too small for a book"),
        (dict(size=64 << 30), "larger than any book"),
        (dict(size=4 << 30), "no book, or one that is still being made"),
        (dict(size=16 * MIB, content=b"TTMEMBK1" + b"\xff" * 4088),
         "made by a later version of the library: update ttmem"),
    ],
)
def test_garbage_is_refused_with_a_reason(world, arguments, reason):
    process = garbage(world, **arguments)
    good = world.player("alloc 0 DRAM 0x1000 10")
    document = world.json("smi")
    assert refusals(document) == [f"pid {process.pid}: book refused: {reason}"]
    # And does not affect other processes.
    assert used(document, good.pid) == {(0, "DRAM"): 10}
    assert document["exact"] is True and len(document["processes"]) == 1


def test_huge_pages_are_refused(world):
    process = garbage(world, size=32 * MIB, flags=4)
    if not process:
        pytest.skip("no huge page files here")
    assert refusals(world.json("smi")) == [f"pid {process.pid}: book refused: on huge pages"]


def test_no_memory_is_eaten(world):
    for size in (64 << 30, 4 << 30, 4 << 30):
        garbage(world, size=size)
    # The header of a real book followed by a hole of 4 GiB.
    player = world.player("alloc 0 DRAM 0x1000 10")
    with open(book_of(player.pid), "rb") as book:
        content = bytearray(book.read(0xA00000))
    content[16:24] = (4 << 30).to_bytes(8, "little")
    process = garbage(world, size=4 << 30, content=bytes(content))
    # In a separate process: otherwise this one's usage would count as its children's.
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    for command in (["smi"], ["ps"], ["buffers"], ["incidents"], ["history", "0x1000"]):
        line = ["/usr/bin/python3", "-c", script, world.program, *command, "--json"]
        taken = subprocess.check_output(line, env=world.env, text=True)
        assert int(taken) <= 64 << 10, command
    # Reading did not fill the holes either.
    assert os.stat(f"/proc/{process.pid}/fd/3").st_blocks * 512 < 32 * MIB


def test_too_many_files_of_one_process(world):
    script = (
        "import os, time\n"
        "fds = [os.memfd_create('ttmem-book') for _ in range(200)]\n"
        "print(flush=True); time.sleep(600)"
    )
    process = world.adopt(
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE))
    process.stdout.readline()
    world.show(process.pid)
    good = world.player("alloc 0 DRAM 0x1000 10")
    document = world.json("smi")
    assert used(document, good.pid) == {(0, "DRAM"): 10}
    assert any("more books refused" in note for note in document["notes"])


def test_a_killed_process_is_gone(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    player.kill()
    document = world.json("smi")
    assert document["processes"] == [] and document["totals"]["bytes"] == 0


def test_a_child_holds_the_book_of_the_dead(world):
    player = world.player(
        "device 0 0xabc wormhole_b0 n150 0 1000 100",
        "alloc 0 DRAM 0x1000 10 left", "alloc 0 DRAM 0x2000 5", "free 0 DRAM 0x2000",
    )
    holder = player.play("hold")
    world.show(holder)
    # While the owner lives, the book belongs to it and is counted once.
    document = world.json("smi")
    assert [p["pid"] for p in document["processes"]] == [player.pid]
    assert document["totals"] == {"bytes": 10, "buffers": 1}

    player.kill()
    (world.root / str(player.pid)).unlink()
    document = world.json("smi")
    (process,) = document["processes"]
    assert process["pid"] == player.pid and process["alive"] is False
    assert process["comm"] == "player"
    assert used(document, player.pid) == {(0, "DRAM"): 10}
    assert document["devices"][0]["memory"]["DRAM"]["used"] == 0
    assert document["totals"] == {"bytes": 0, "buffers": 0}
    assert document["notes"] == [
        f"pid {player.pid} (player) has ended and left 1 buffer, 10 B; its book is held by "
        f"pid {holder}"
    ]
    assert "ended" not in world.text("smi").split("note:")[0]
    assert " ended " in world.text("smi", "-a").split("note:")[0]
    (leak,) = world.json("incidents")["incidents"]
    assert leak["kind"] == "leak" and leak["size"] == 10 and leak["count"] == 1
    # Not live, but shown if that very process is asked for.
    assert world.json("buffers")["buffers"] == []
    (buffer,) = world.json("buffers", "--pid", player.pid)["buffers"]
    assert buffer["name"] == "left"
    end_children(holder)


def test_a_zombie_is_dead(world):
    player = world.player("alloc 0 DRAM 0x1000 10 left")
    holder = player.play("hold")
    world.show(holder)
    os.kill(player.pid, 9)
    os.waitid(os.P_PID, player.pid, os.WEXITED | os.WNOWAIT)
    (process,) = world.json("smi")["processes"]
    assert process["alive"] is False
    end_children(holder)


def test_a_forked_child_has_its_own_book(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    child = player.play("fork")
    world.show(child)
    assert [p["pid"] for p in world.json("smi")["processes"]] == [player.pid]
    player.play("alloc 0 DRAM 0x1000 7")
    document = world.json("smi")
    assert used(document, player.pid) == {(0, "DRAM"): 10}
    assert used(document, child) == {(0, "DRAM"): 7}
    assert document["totals"] == {"bytes": 17, "buffers": 2}
    end_children(child)


def test_exec_ends_a_book(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    holder = player.play("hold")
    world.show(holder)
    player.process.stdin.write("exec\n")
    player.process.stdin.flush()
    wait_for(lambda: Path(f"/proc/{player.pid}/comm").read_text() == "sleep\n")
    (process,) = world.json("smi")["processes"]
    # The process continues, its address space does not.
    assert process["pid"] == player.pid and process["alive"] is False
    end_children(holder)
    wait_for(lambda: world.json("smi")["processes"] == [])


def test_an_owner_that_lost_its_descriptor(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    holder = player.play("hold")
    world.show(holder)
    player.play("closefds", "alloc 0 DRAM 0x2000 5")
    document = world.json("smi")
    # Its child still has the book, and it is still written to.
    assert document["processes"][0]["alive"] is True
    assert used(document, player.pid) == {(0, "DRAM"): 15}
    end_children(holder)


def skip_if_sanitized(world):
    """Such a library cannot be loaded into a plain program."""
    library = world.build / "src" / "lib" / "libttmem.so"
    if b"__asan" in library.read_bytes() or b"__tsan" in library.read_bytes():
        pytest.skip("the library is built with a sanitizer")


def test_a_thread_with_a_table_of_its_own(world, clean_env):
    skip_if_sanitized(world)
    script = (
        "import ctypes, os, sys, threading, time\n"
        "libc = ctypes.CDLL(None)\n"
        "def body():\n"
        "    assert libc.unshare(0x400) == 0\n"
        "    lib = ctypes.CDLL(sys.argv[1])\n"
        "    lib.ttmem_alloc.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64,\n"
        "                                ctypes.c_uint64, ctypes.c_char_p]\n"
        "    lib.ttmem_alloc(0, 0, 0x1000, 10, b'hidden')\n"
        "    print(flush=True); time.sleep(600)\n"
        "threading.Thread(target=body).start()\n"
    )
    process = world.adopt(
        subprocess.Popen(
            ["/usr/bin/python3", "-c", script, world.build / "src" / "lib" / "libttmem.so"],
            env={**clean_env, "TTMEM": "1"}, stdout=subprocess.PIPE,
        )
    )
    process.stdout.readline()
    world.show(process.pid)
    assert used(world.json("smi"), process.pid) == {(0, "DRAM"): 10}
    # The same through the real /proc, where the reader uses other tables.
    env = {name: value for name, value in world.env.items() if name != "TTMEM_PROC_ROOT"}
    assert used(world.json("smi", env=env), process.pid) == {(0, "DRAM"): 10}


def test_two_libraries_in_one_process_are_added(world, clean_env, tmp_path):
    skip_if_sanitized(world)
    copy = tmp_path / "copy.so"
    library = world.build / "src" / "lib" / "libttmem.so"
    shutil.copy(library.resolve(), copy)
    script = (
        "import ctypes, sys, time\n"
        "for i, name in enumerate(sys.argv[1:]):\n"
        "    lib = ctypes.CDLL(name)\n"
        "    lib.ttmem_alloc.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64,\n"
        "                                ctypes.c_uint64, ctypes.c_char_p]\n"
        "    lib.ttmem_alloc(0, 0, 0x1000, 10 + i, b'x')\n"
        "print(flush=True); time.sleep(600)\n"
    )
    process = world.adopt(
        subprocess.Popen(
            ["/usr/bin/python3", "-c", script, library, copy],
            env={**clean_env, "TTMEM": "1"}, stdout=subprocess.PIPE,
        )
    )
    process.stdout.readline()
    world.show(process.pid)
    document = world.json("smi")
    assert len(document["processes"]) == 1
    assert used(document, process.pid) == {(0, "DRAM"): 21}
    memory = document["processes"][0]["devices"][0]["memory"]["DRAM"]
    assert memory["buffers"] == 2 and memory["peak"] is None


def test_readers_do_not_keep_books(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    watches = [world.start("smi", "-w", "-r", "20", "--json") for _ in range(2)]
    for watch in watches:
        watch.stdout.readline()
        world.show(watch.pid)
    player.kill()
    for watch in watches:
        wait_for(lambda: '"processes":[]' in watch.stdout.readline())


def test_paused_is_told(world):
    world.player("alloc 0 DRAM 0x1000 10", "pause", "alloc 0 DRAM 0x2000 10", "resume")
    document = world.json("smi")
    assert document["exact"] is False and document["processes"][0]["exact"] is False
    assert any("unrecorded while paused" in note for note in document["notes"])


def run_as_nobody(world, *args):
    return subprocess.run(
        [*AS_NOBODY, world.program, *args], env=world.env, capture_output=True, text=True, timeout=LIMIT
    )


def test_other_users(public):
    mine = public.player("alloc 0 DRAM 0x1000 10")
    theirs = public.player("alloc 0 DRAM 0x1000 7", before=AS_NOBODY)
    document = public.json("smi")
    assert used(document, mine.pid) == {(0, "DRAM"): 10}
    assert used(document, theirs.pid) == {(0, "DRAM"): 7}
    (process,) = [p for p in document["processes"] if p["pid"] == theirs.pid]
    assert process["user_id"] == NOBODY and process["user"] == "nobody"

    result = run_as_nobody(public, "smi", "--json")
    document = json.loads(result.stdout)
    assert [p["pid"] for p in document["processes"]] == [theirs.pid]
    assert document["notes"] == []
    theirs.kill()
    document = json.loads(run_as_nobody(public, "smi", "--json").stdout)
    assert document["processes"] == []
    assert "1 process of other users not looked at" in document["notes"]


def test_a_process_that_may_not_be_looked_into(public):
    hidden = public.player("alloc 0 DRAM 0x1000 7", "hide", before=AS_NOBODY)
    document = json.loads(run_as_nobody(public, "smi", "--json").stdout)
    assert document["processes"] == []
    assert f"1 of your processes may not be looked into (first: pid {hidden.pid})" in document["notes"]


def test_a_forged_book_is_never_counted(public):
    victim = public.player("alloc 0 DRAM 0x1000 10")
    forger = garbage(public, **copy_of(victim.pid), before=AS_NOBODY)
    document = public.json("smi")
    assert [p["pid"] for p in document["processes"]] == [victim.pid]
    assert document["totals"] == {"bytes": 10, "buffers": 1}
    assert refusals(document) == [
        f"pid {forger.pid}: book refused: names no process, or one of another user"
    ]
    # After the victim has exited this cannot be detected; but then no process's memory or name is affected.
    victim.kill()
    (process,) = public.json("smi")["processes"]
    assert process["alive"] is False and process["user_id"] == NOBODY


def test_a_copy_by_the_same_user_is_not_counted_twice(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    garbage(world, **copy_of(player.pid))
    document = world.json("smi")
    assert document["totals"] == {"bytes": 10, "buffers": 1}
    assert sorted(p["alive"] for p in document["processes"]) == [False, True]


def test_books_are_sealed_as_we_expect(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    fd = os.open(book_of(player.pid), os.O_RDONLY)
    assert fcntl.fcntl(fd, 1034) & SEALS == SEALS
    os.close(fd)


def test_the_longest_history_leaves_room_for_every_device(world):
    """Rings are charged when a device is first used: those of the first must not take it all."""
    devices = 64
    player = world.player(
        *(f"alloc {device} DRAM 0x1000 {1000 + device}" for device in range(devices)),
        TTMEM_HISTORY="1048576",
    )
    (process,) = world.json("ps")["processes"]
    assert process["pid"] == player.pid and process["exact"] is True
    held = {device["device"]: device["memory"]["DRAM"]["used"] for device in process["devices"]}
    assert held == {device: 1000 + device for device in range(devices)}
    assert process["rejected"]["room"] == 0
