# SPDX-License-Identifier: Apache-2.0
"""The old servers by their names: seen by ps, stopped by pkill, and with the lines that each of them printed."""

import os
import re
import subprocess

import pytest

from conftest import LIMIT, ROOT
from ttmemd import OldClient
from world import wait_for

pytestmark = pytest.mark.legacy

OURS = 901  # a device that no other process of the machine has


@pytest.fixture
def server(ttmemd):
    """Starts the daemon by one of the old names, as the links beside the installed ttmemd do."""

    def start(name, *args):
        link = ttmemd.folder / name
        link.symlink_to(ttmemd.program)
        ttmemd.program = link
        return ttmemd.start(*args)

    return start


def output(*words):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=LIMIT).stdout


def test_ps_and_pkill_know_the_old_name(server):
    """S2 and S3: "ps aux | grep allocation_server_poc", "pkill allocation_ser"."""
    daemon = server("allocation_server_poc")
    pid = daemon.process.pid
    assert output("ps", "-o", "args=", "-p", pid).startswith(str(daemon.folder / "allocation_server_poc"))
    assert output("pgrep", "allocation_ser").split() == [str(pid)]
    # Tests have the processes of their own namespace only; still, no other one may be hit.
    subprocess.run(["pkill", "--ns", str(os.getpid()), "allocation_ser"], check=True, timeout=LIMIT)
    assert daemon.process.wait(timeout=LIMIT) == 0
    daemon.process = None


def test_the_long_name_of_an_old_guide_matches_nothing(server):
    """docs/from-the-old-tools.md: pkill compares with the 15 letters that the kernel keeps; these do."""
    daemon = server("allocation_server_poc")
    pid = str(daemon.process.pid)
    assert output("pgrep", "--ns", os.getpid(), "allocation_server_poc") == ""
    assert output("pgrep", "--ns", os.getpid(), "allocation_serv").split() == [pid]
    assert pid in output("pgrep", "--ns", os.getpid(), "-f", "allocation_server_poc").split()


def test_ttmemd_itself_prints_no_events(ttmemd):
    """Nor does the service, which starts it."""
    ttmemd.start()
    client = OldClient(ttmemd.legacy)
    client.alloc(OURS, 0, 0x1000, 4096)
    client.free(OURS, 0x1000)
    assert client.query(OURS)[0] == 0
    client.close()
    assert ttmemd.stop() == 0
    assert "✓" not in ttmemd.text() and "✗" not in ttmemd.text()


def test_a_server_ends_with_its_statistics(server):
    daemon = server("allocation_server_poc")
    client = OldClient(daemon.legacy)
    client.alloc(OURS, 0, 0x1000, 4096)
    client.alloc(OURS, 3, 0x2000, 100)
    assert client.query(OURS)[0] == 4096
    assert daemon.stop() == 0
    block = (
        f"  Device {OURS}:\n    Buffers: 2\n    DRAM: 4096 bytes (4 KB)\n    L1: 0 bytes (0 KB)\n"
        "    Total: 4196 bytes\n"
    )
    end = daemon.text().rpartition("📊 Current Statistics:\n")[2]
    assert block in end and "  Active allocations: " in end
    assert end.endswith("\n\n🛑 Allocation Server stopped\n")
    client.close()


def test_ttmemd_itself_says_no_farewell(ttmemd):
    ttmemd.start()
    assert ttmemd.stop() == 0
    assert "🛑" not in ttmemd.text() and "📊" not in ttmemd.text()


def test_what_is_refused_goes_to_standard_error(server, ttmemd):
    ttmemd.errors = ttmemd.folder / "errors"
    daemon = server("allocation_server_poc")
    client = OldClient(daemon.legacy)
    client.alloc(OURS, 9, 0x1000, 4096)
    client.alloc(5000, 0, 0x1000, 4096)
    client.alloc(OURS, 0, 0x1000, 0)
    client.alloc(OURS, 0, 0x1000, 7)
    assert client.query(OURS)[0] == 7
    client.close()
    lines = (
        f"⚠ [PID {os.getpid()}] Invalid buffer_type 9 for buffer 4096 on device {OURS}\n"
        "⚠️  Invalid device_id 5000 - ignoring message\n"
        "⚠️  Invalid size 0 - ignoring message\n"
    )
    wait_for(lambda: lines in daemon.errors.read_text(), "the three lines")
    assert daemon.stop() == 0
    assert "Allocated 7 bytes" in daemon.text() and "Invalid" not in daemon.text()
    assert "Allocated" not in daemon.errors.read_text()


def test_the_enhanced_server_tells_each_buffers_history(server):
    """S0: what was freed twice, what was never seen, another size at a live address; in lines and in the dump."""
    daemon = server("allocation_server_enhanced")
    pid = os.getpid()
    client = OldClient(daemon.legacy)
    client.alloc(OURS, 1, 0x18C6A00, 524288)
    for _ in range(2):
        client.free(OURS, 0x18C6A00)
    client.free(OURS, 0x666)
    client.alloc(OURS, 0, 0x1000, 1000)
    client.alloc(OURS, 0, 0x1000, 400)
    client.socket.sendall(client.message(client.DUMP, pid=0))
    assert client.query(OURS)[1] == 0
    lines = (
        f"⚠ [PID {pid}] Deallocation for ALREADY FREED buffer 0x18c6a00 on device {OURS} (allocs=1 frees=2)\n"
        "   Last 5 events for this buffer:\n"
        f"     FREE size=524288 pid={pid} ref=0\n"
        f"     FREE size=524288 pid={pid} ref=0\n"
        f"     ALLOC size=524288 pid={pid} ref=1\n"
        f"⚠ [PID {pid}] Deallocation for unknown buffer 0x666 on device {OURS}"
        " (never tracked or allocated before server started)\n"
        f"✓ [PID {pid}] Allocated 1000 bytes of DRAM on device {OURS} (buffer_id=0x1000)\n"
        f"⚠ [PID {pid}] Buffer reused with DIFFERENT size: old=1000 new=400"
        f" (buffer_id=0x1000, device={OURS})\n"
        f"✓ [PID {pid}] Allocated 400 bytes of DRAM on device {OURS} (buffer_id=0x1000)\n"
    )
    wait_for(lambda: lines in daemon.text(), "the lines")
    history = (
        "      History (allocs=2 frees=0):\n"
        f"        ALLOC size=1000 pid={pid} ref=1\n"
        f"        REUSE size=400 pid={pid} ref=1\n"
    )
    twice = (
        f"Buffer 0x18c6a00 on device {OURS}:\n  Total allocs: 1, Total frees: 2\n  History:\n"
        f"    ALLOC size=524288 pid={pid} ref=1\n"
    )
    wait_for(lambda: "📋 DUMP_REMAINING complete." in daemon.text(), "the dump")
    head = f"🚀 Enhanced Allocation Server started (with history tracking)\n   Listening on: {daemon.legacy}\n"
    assert head in daemon.text()
    for text in (daemon.text(), daemon.run("dump").stdout):
        assert history in text and "DOUBLE-FREED BUFFERS" in text and twice in text
    client.free(OURS, 0x1000)
    client.close()
    # A process with a book of its own has a history too.
    player = daemon.player(f"alloc {OURS} L1 0x3000 64", *["free 901 L1 0x3000"] * 2)
    line = f"⚠ [PID {player.pid}] Deallocation for ALREADY FREED buffer 0x3000 on device {OURS}"
    wait_for(lambda: line in daemon.text(), "the line of a native process")
    assert daemon.stop() == 0
    assert daemon.text().count("DOUBLE-FREED BUFFERS") == 2  # the dump's, and the last report


def test_perfect_cleanup_mentions_double_frees(server):
    daemon = server("allocation_server_enhanced")
    client = OldClient(daemon.legacy)
    client.alloc(OURS, 1, 0x1000, 5)
    for _ in range(2):
        client.free(OURS, 0x1000)
    client.socket.sendall(client.message(client.DUMP, pid=0))
    said = (
        "✓ No buffers remaining - perfect cleanup!\n"
        "⚠️  However, found 1 buffers that were DOUBLE-FREED during execution!\n"
    )
    wait_for(lambda: said in daemon.text(), "the dump")
    client.close()


def test_programs_that_live_for_a_millisecond_are_printed(ttmemd):
    """No round has seen them alive: their books' logs are read once they have ended, and only once."""
    ttmemd.start("--log-events")
    pids = []
    for _ in range(10):
        player = ttmemd.player()
        player.process.communicate(f"alloc {OURS} DRAM 0x1000 4096\nfree {OURS} DRAM 0x1000\n", timeout=LIMIT)
        pids.append(player.pid)
    lives = ttmemd.player(f"alloc {OURS} L1 0x1000 5")  # printed in a later round than all of them
    wait_for(lambda: f"✓ [PID {lives.pid}] Allocated 5 bytes" in ttmemd.text(), "the last line")
    wait_for(lambda: all(f"✗ [PID {pid}] Freed buffer" in ttmemd.text() for pid in pids), "their lines")
    for pid in pids:
        assert ttmemd.text().count(f"✓ [PID {pid}] Allocated 4096 bytes of DRAM on device {OURS}") == 1


# Beside the script: the real command, but its own test has tests elsewhere.
COMMAND = """#!/bin/sh
[ "$1" != selftest ] || { echo the self-test; exit $SELFTEST; }
exec %s "$@"
"""


@pytest.mark.parametrize("code", [0, 1])
def test_the_old_debugging_script(server, ttmemd, code):
    """S3: it says what the server has to print, and the server prints it; then the self-test decides."""
    daemon = server("allocation_server_poc")
    folder = daemon.folder / "bin"
    folder.mkdir()
    (folder / "debug_tracking.py").write_bytes((ROOT / "data" / "bin" / "debug_tracking.py").read_bytes())
    (folder / "ttmem").write_text(COMMAND % (daemon.build / "src" / "cli" / "ttmem"))
    (folder / "ttmem").chmod(0o755)
    env = {**daemon.env, "TT_ALLOC_SERVER_SOCKET": str(daemon.legacy), "SELFTEST": str(code)}
    command = ["/usr/bin/python3", "-B", folder / "debug_tracking.py"]

    def execute():
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == code and done.stderr == ""
        return done.stdout

    text = execute()
    expected = re.findall(r"^✓ \[PID \d+\] Allocated (\d+) bytes of L1 on device 0 \(buffer_id=0x1[abc]0000\)$", text, re.M)
    assert expected == ["524288", "2097152", "8388608"]
    assert "ok   ttmem lists all three, 10.5 MiB of L1\n" in text and text.endswith("the self-test\n")
    for line in text.splitlines()[1:4]:
        wait_for(lambda line=line: line + "\n" in daemon.text(), "the line of the server")
    if code == 0:
        daemon.stop()
        daemon.end_keeper()
        text = execute()
        assert text.startswith(f"No server at {daemon.legacy}: ") and text.endswith("the self-test\n")


def test_watch_tells_of_programs_that_it_could_not_follow(ttmemd):
    """It looks for new books a few times a second: what ended in between has lines, or a note that it has none."""
    ttmemd.start()
    lives = ttmemd.player(f"alloc {OURS} L1 0x1000 5")
    lines, notes = ttmemd.folder / "lines", ttmemd.folder / "notes"
    with open(lines, "wb") as out, open(notes, "wb") as errors:
        command = [ttmemd.build / "src" / "cli" / "ttmem", "watch", "--format", "seed"]
        ttmemd.adopt(subprocess.Popen(command, env=ttmemd.env, stdout=out, stderr=errors))

    def is_watched():
        lives.play(f"alloc {OURS} L1 0x2000 6", f"free {OURS} L1 0x2000")
        return f"✓ [PID {lives.pid}]" in lines.read_text()

    wait_for(is_watched, "the watch")
    lives.kill()
    pids = []
    for _ in range(5):
        player = ttmemd.player()
        player.process.communicate(f"alloc {OURS} DRAM 0x1000 4096\n", timeout=LIMIT)
        pids.append(player.pid)

    def is_told(pid):
        return f"✓ [PID {pid}]" in lines.read_text() or f"note: pid {pid} (player) ended before" in notes.read_text()

    wait_for(lambda: all(map(is_told, pids)), "a line or a note of each")
    assert f"pid {lives.pid} " not in notes.read_text()


def test_by_an_old_name_beside_a_ttmemd_old_clients_are_served(ttmemd):
    """It starts no second ttmemd: what its clients have is known to the one that runs."""
    ttmemd.start("--legacy-socket", "none")
    link = ttmemd.folder / "allocation_server_poc"
    link.symlink_to(ttmemd.program)
    reading, writing = os.pipe()
    command = [link, "--socket", ttmemd.socket, "--legacy-socket", ttmemd.legacy, "--config", "none",
               "--ready-fd", writing]  # fmt: skip
    with open(ttmemd.folder / "lines", "w", encoding="utf-8") as lines, open(reading, "rb") as ready:
        server = ttmemd.adopt(subprocess.Popen([*map(str, command)], env=ttmemd.env, stdin=subprocess.DEVNULL,
                                               stdout=lines, pass_fds=[writing]))  # fmt: skip
        os.close(writing)
        assert ready.read(1) == b"\n"
    assert output("pgrep", "--ns", os.getpid(), "allocation_serv").split() == [str(server.pid)]
    client = OldClient(ttmemd.legacy)
    client.alloc(OURS, 0, 0x1000, 4096)
    assert client.query(OURS)[0] == 4096
    (process,) = ttmemd.json("ps")["processes"]
    assert process["pid"] == os.getpid() and process["source"] == "socket"
    client.close()
    server.terminate()
    assert server.wait(timeout=LIMIT) == 0
    assert not ttmemd.legacy.exists()
    text = (ttmemd.folder / "lines").read_text(encoding="utf-8")
    assert text.startswith("🚀 Allocation Server started\n") and "(buffer_id=0x1000)" in text
    assert text.endswith("🛑 Allocation Server stopped\n")
