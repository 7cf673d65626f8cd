# SPDX-License-Identifier: Apache-2.0
"""ttmem doctor, of the daemon and the machine: each finding with the real condition, and without it."""

import json
import os
import socket
import stat

import pytest

from test_doctor import AS_NOBODY, HEALTHY, NOBODY, found
from world import wait_for


class Asker:
    """ttmem doctor beside a real daemon, with the whole pid namespace in view."""

    def __init__(self, daemon):
        self.daemon = daemon

    def run(self, *args, **options):
        return self.daemon.run(*args, **options)


@pytest.fixture
def asker(ttmemd):
    ttmemd.env["TT_ALLOC_SERVER_SOCKET"] = str(ttmemd.legacy)
    return Asker(ttmemd)


DAEMON = {"daemon-none", "daemon-silent", "daemon-stranger", "daemon-blind", "daemon-partial",
          "daemon-forgets", "old-server", "old-socket"}  # fmt: skip


def test_a_daemon_that_is_well(ttmemd, asker):
    ttmemd.start()
    ttmemd.player(*HEALTHY)
    # Its memory of the past is opened by another thread.
    wait_for(lambda: ttmemd.json("status")["past"]["running"], "the past")
    assert not DAEMON & set(found(asker))


def test_daemon_none(ttmemd, asker):
    assert "daemon-none" in found(asker)


def test_daemon_silent(ttmemd, asker):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(ttmemd.socket))
        server.listen()
        assert "daemon-silent" in found(asker)


def test_daemon_stranger(ttmemd, asker):
    runtime = ttmemd.folder / "runtime"
    (runtime / "ttmem").mkdir(parents=True)
    for path in (runtime, runtime / "ttmem", ttmemd.folder):
        os.chown(path, NOBODY, NOBODY)
    ttmemd.socket = runtime / "ttmem" / "ttmemd.sock"
    ttmemd.start(before=AS_NOBODY)
    if os.path.exists("/run/ttmem/ttmemd.sock"):
        pytest.skip("a daemon of this machine would be asked first")
    usual = {"TTMEM_SOCKET": "", "XDG_RUNTIME_DIR": str(runtime)}
    ids = found(asker, env=usual)
    assert "daemon-stranger" in ids and "daemon-none" not in ids


def test_daemon_blind(ttmemd, asker):
    os.chown(ttmemd.folder, NOBODY, NOBODY)
    ttmemd.start(before=AS_NOBODY)
    assert "daemon-blind" in found(asker)


def test_daemon_partial(ttmemd, asker):
    ttmemd.start()
    ids = found(asker, before=AS_NOBODY)
    assert "daemon-partial" in ids and "daemon-blind" not in ids


def test_daemon_forgets(ttmemd, asker):
    # A file where the folder should be.
    ttmemd.state.write_text("")
    ttmemd.start()
    assert "daemon-forgets" in found(asker)


def test_old_server(ttmemd, asker):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(ttmemd.legacy))
        server.listen()
        assert found(asker)["old-server"] == [os.getpid()]


def test_old_socket(ttmemd, asker):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(ttmemd.legacy))
    assert "old-socket" in found(asker)
    # Which the daemon cleans up.
    ttmemd.start()
    assert "old-socket" not in found(asker)


def test_clock_slow(world, tmp_path):
    folder = tmp_path / "sys/devices/system/clocksource/clocksource0"
    folder.mkdir(parents=True)
    world.env["TTMEM_SYS_ROOT"] = str(tmp_path / "sys")
    (folder / "current_clocksource").write_text("hpet\n")
    assert "clock-slow" in found(world)
    (folder / "current_clocksource").write_text("tsc\n")
    assert "clock-slow" not in found(world)


def test_container(world):
    id_ = "3f" * 32
    inside = (
        f'mkdir "$TTMEM_PROC_ROOT/$$" && echo "0::/docker/{id_}"'
        ' > "$TTMEM_PROC_ROOT/$$/cgroup" && exec "$@"'
    )
    program = str(world.program)
    world.program = "/bin/sh"
    ids = found(Inside(world, inside, program))
    assert "container" in ids
    world.program = program
    assert "container" not in found(world)


class Inside:
    """Runs the command through a shell that makes the world look like a container's."""

    def __init__(self, world, script, program):
        self.world, self.words = world, ["-c", script, "sh", program]

    def run(self, *args, **options):
        return self.world.run(*self.words, *args, **options)


def test_bundle(world, tmp_path):
    """Nothing in it names what is others'."""
    os.chmod(tmp_path, 0o755)
    mine = world.player(*HEALTHY)
    other = world.player("alloc 0 DRAM 0x1000 4096 secret-name", before=AS_NOBODY)
    unset = world.player(TTMEM="", before=("setpriv", "--reuid=12345", "--clear-groups"))
    file = tmp_path / "bundle.json"
    result = world.run("doctor", "--bundle", file)
    assert result.returncode == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    document = json.loads(text)
    assert [p["pid"] for p in document["processes"]] == [mine.pid]
    assert document["others"] == 1 and document["others_bytes"] == 4096
    assert "secret" not in text and "weights" not in text
    pids = {f["pid"] for f in document["findings"]}
    assert mine.pid in pids and not pids & {other.pid, unset.pid}
    ids = {f["id"] for f in document["findings"]}
    assert "tracking-off" in ids


def test_bundle_that_cannot_be_written(world):
    result = world.run("doctor", "--bundle", "/nowhere/file")
    assert result.returncode == 1 and "/nowhere/file" in result.stderr
