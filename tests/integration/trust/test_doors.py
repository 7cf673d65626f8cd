# SPDX-License-Identifier: Apache-2.0
"""Other users hold what ttmemd wants: paths, a lock, its port. And disks, folders, another user's past.

It serves what it can, says once what is missing and who has it, and has it back once it is free.
"""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys

import pytest

from common import AS_NOBODY, LIMIT, NOBODY, become
from ttmemd import OldClient
from world import wait_for

# All of them become others; those marked other_user as well stand for the rest in a closed home.
pytestmark = pytest.mark.needs_root

ATTACKER = 54321

# Each does its harm at argv[1], says so and waits.
HARM = {
    "folder": "os.mkdir(path)",
    "link": "os.symlink('/etc/passwd', path)",
    "file": "open(path, 'w').close()",
    "live": "s = socket.socket(socket.AF_UNIX); s.bind(path); os.chmod(path, 0o666); s.listen()",
    "closed": "s = socket.socket(socket.AF_UNIX); s.bind(path); os.chmod(path, 0o600); s.listen()",
    "other type": "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind(path); os.chmod(path, 0o666)\n"
                  "s.listen()",
    "impostor": "open('/proc/self/comm', 'w').write('ttmemd')\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind(path); os.chmod(path, 0o666)\n"
                "s.listen()",
    "full": "s = socket.socket(socket.AF_UNIX); s.bind(path); os.chmod(path, 0o666); s.listen(0)\n"
            "c = [socket.socket(socket.AF_UNIX) for _ in range(2)]\n"
            "[x.setblocking(False) or x.connect_ex(path) for x in c]",
    "dead": "s = socket.socket(socket.AF_UNIX); s.bind(path); os.chmod(path, 0o666); s.close()",
    "dead and closed": "s = socket.socket(socket.AF_UNIX); s.bind(path); os.chmod(path, 0o600); s.close()",
    "lock": "f = open(path + '.lock', 'w'); os.chmod(path + '.lock', 0o666); fcntl.flock(f, fcntl.LOCK_EX)",
    "port": "s = socket.socket(); s.bind(('127.0.0.1', int(path))); s.listen()",
    "state": "f = os.open(path, os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_EX)",
}  # fmt: skip


class Attacker:
    """A process of another user that does one thing and keeps at it."""

    def __init__(self, what, where):
        script = f"import fcntl, os, socket, sys\npath = sys.argv[1]\n{HARM[what]}\nprint(flush=True)\ninput()"
        self.process = subprocess.Popen(
            [*become(ATTACKER), sys.executable, "-c", script, str(where)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "\n"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def attack():
    attackers = []

    def begin(what, where):
        attackers.append(Attacker(what, where))
        return attackers[-1]

    yield begin
    for attacker in attackers:
        attacker.stop()


@pytest.fixture
def daemon(ttmemd):
    """A daemon with folders of its own, and the socket of old clients where everybody may write."""
    for name, owner, mode in (("run", NOBODY, 0o755), ("state", NOBODY, 0o700), ("tmp", 0, 0o1777)):
        (ttmemd.folder / name).mkdir()
        os.chown(ttmemd.folder / name, owner, owner)
        os.chmod(ttmemd.folder / name, mode)
    ttmemd.socket = ttmemd.folder / "run" / "s"
    ttmemd.legacy = ttmemd.folder / "tmp" / "old"
    ttmemd.env["TTMEM_SOCKET"] = str(ttmemd.socket)
    return ttmemd


def doors(daemon):
    return {door["name"]: door for door in daemon.json("status")["doors"]}


def wait_until_open(daemon, name):
    return wait_for(lambda: (door := doors(daemon)[name])["open"] and door, f"{name} to be open")


def closed(daemon):
    """{name: (pid, user)} of what is missing."""
    return {name: (d["pid"], d["user_id"]) for name, d in doors(daemon).items() if not d["open"]}


def complaints(daemon):
    return [line for line in daemon.text().splitlines() if "trying again" in line]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serves_old_clients(daemon):
    client = OldClient(daemon.legacy)
    client.alloc(0, 0, 0x1000, 4096)
    total = client.query(0)
    client.close()
    return total == (4096, 0, 0, 0)


def free(path):
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


LIVE = ("live", "closed", "other type", "full")
LIKE_THE_UNIT = ("setpriv", "--ambient-caps=+sys_ptrace,+dac_read_search", "--inh-caps=+sys_ptrace,+dac_read_search",
                 *AS_NOBODY[1:])  # fmt: skip


@pytest.mark.parametrize("what", ["folder", "link", "file", "dead", "dead and closed", *LIVE])
def test_the_path_of_old_clients_is_taken(daemon, attack, what):
    attacker = attack(what, daemon.legacy)
    daemon.start(before=LIKE_THE_UNIT)
    pid = attacker.pid if what in LIVE else None
    wait_for(lambda: closed(daemon) == {"old_clients": (pid, ATTACKER)}, "who has it")
    (line,) = wait_for(lambda: complaints(daemon), "the line in the log")
    assert str(daemon.legacy) in line and f"user {ATTACKER}" in line
    assert (f"process {attacker.pid}" in line) == (pid is not None)
    shown = daemon.run("status").stdout
    assert f"missing: old_clients: {daemon.legacy}: " in shown
    findings = {f["id"]: f["what"] for f in json.loads(daemon.run("doctor", "--json").stdout)["findings"]}
    assert str(daemon.legacy) in findings["daemon-door"]
    # The rest works, and nothing of the attacker's was touched.
    assert os.path.lexists(daemon.legacy) and os.lstat(daemon.legacy).st_uid == ATTACKER
    attacker.stop()
    free(daemon.legacy)
    wait_until_open(daemon, "old_clients")
    assert serves_old_clients(daemon)
    wait_for(lambda: f"ttmemd: old clients on {daemon.legacy}\n" in daemon.text(), "the line in the log")
    assert len(complaints(daemon)) == 1


@pytest.mark.other_user
def test_a_lock_that_others_hold_is_not_asked_for(daemon, attack):
    attack("lock", daemon.legacy)
    daemon.start(before=AS_NOBODY)
    assert closed(daemon) == {} and serves_old_clients(daemon)
    assert daemon.stop() == 0


def test_root_replaces_a_dead_socket(daemon, attack):
    attack("dead", daemon.legacy)
    daemon.start()
    assert closed(daemon) == {} and serves_old_clients(daemon)


def test_a_removed_socket_comes_back(daemon):
    daemon.start(before=AS_NOBODY)
    daemon.legacy.unlink()
    wait_for(daemon.legacy.exists, "the socket")
    assert serves_old_clients(daemon)
    daemon.socket.unlink()
    wait_for(daemon.socket.exists, "the native socket")
    wait_until_open(daemon, "native")


@pytest.mark.other_user
def test_the_port_is_taken(daemon, attack):
    port = free_port()
    attacker = attack("port", port)
    daemon.start("--http", f"127.0.0.1:{port}")
    wait_for(lambda: closed(daemon) == {"http": (attacker.pid, ATTACKER)}, "who has the port")
    (line,) = wait_for(lambda: complaints(daemon), "the line in the log")
    assert f"in use by process {attacker.pid} of user {ATTACKER}" in line
    assert daemon.json("status")["http"] is None
    assert serves_old_clients(daemon)
    attacker.stop()
    wait_until_open(daemon, "http")
    assert daemon.address() == f"127.0.0.1:{port}" == daemon.json("status")["http"]
    assert daemon.fetch("/api/v1/buffers", token=True)[0] == 200
    assert len(complaints(daemon)) == 1


def unwritable(daemon, how):
    """Makes the state folder unwritable, and returns what makes it writable again."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size=256k,mode=700,uid={NOBODY}", "none", daemon.state]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    if how == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", daemon.state], check=True)
        return lambda: subprocess.run(["mount", "-o", "remount,rw,size=16m", daemon.state], check=True)
    filler = daemon.state / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return lambda: subprocess.run(["mount", "-o", "remount,size=16m", daemon.state], check=True)


@pytest.fixture
def unmount(daemon):
    yield
    daemon.close()
    subprocess.run(["umount", "--lazy", daemon.state], check=False, capture_output=True)


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_the_first_start_is_on_a_disk_that_cannot_be_written(daemon, unmount, how):
    repair = unwritable(daemon, how)
    daemon.start("--http", "127.0.0.1:0", before=AS_NOBODY)
    wait_for(lambda: set(closed(daemon)) == {"token", "history"}, "what is missing")
    status, body = daemon.fetch("/healthz")
    health = json.loads(body)
    assert (status, health["status"], health["details"]) == (200, "degraded", "none")
    assert "closed: token; see ttmem status" in health["notes"]
    assert daemon.fetch("/api/v1/smi")[0] == 200
    assert daemon.fetch("/api/v1/buffers")[0] in (401, 403)
    metrics = daemon.fetch("/metrics")[1]
    assert 'ttmem_door_open{door="token"} 0\n' in metrics and 'ttmem_door_open{door="http"} 1\n' in metrics
    (line,) = wait_for(lambda: complaints(daemon), "the line in the log")
    assert "HTTP shows no details" in line
    repair()
    wait_until_open(daemon, "token")
    wait_until_open(daemon, "history")
    assert daemon.fetch("/api/v1/buffers", token=True)[0] == 200


def test_everything_at_once(daemon, attack, unmount):
    port = free_port()
    attackers = [attack("live", daemon.legacy), attack("port", port), attack("lock", daemon.legacy)]
    repair = unwritable(daemon, "full")
    log = os.open(daemon.log, os.O_CREAT | os.O_WRONLY, 0o644)
    stat = os.fstat(log)
    os.close(log)
    # No journal in there, though standard output is said to go to it.
    alone = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh"]
    daemon.start("--http", f"127.0.0.1:{port}", before=[*alone, *AS_NOBODY],
                 env={"JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"})
    wait_for(lambda: set(closed(daemon)) == {"old_clients", "http", "journal", "history"}, "what is missing")
    player = daemon.player("alloc 0 DRAM 0x1000 5")
    wait_for(lambda: daemon.json("status")["books"] == 1, "a book")
    repair()  # first: with the port, but no space for a token, there would be one more to complain about
    for attacker in attackers:
        attacker.stop()
    free(daemon.legacy)
    journal = "import os, socket, sys\nos.makedirs('/run/systemd/journal')\n" \
              "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n" \
              "s.bind('/run/systemd/journal/socket'); os.chmod('/run/systemd/journal/socket', 0o666)\n" \
              "print(flush=True); input()"
    server = daemon.adopt(subprocess.Popen(
        ["nsenter", "-t", str(daemon.process.pid), "--mount", sys.executable, "-c", journal],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # fmt: skip
    with server.stdout, server.stdin:
        assert server.stdout.readline() == "\n"
        wait_for(lambda: closed(daemon) == {}, "everything to be open")
    said = complaints(daemon)
    assert len(said) == len(set(said)) <= 4
    player.kill()
    daemon.wait_for_leak(player.pid)


@pytest.mark.parametrize("what", ["folder", "live", "impostor"])
def test_without_the_native_socket_the_rest_is_served(daemon, attack, what):
    """Nobody becomes a daemon by its name."""
    daemon.socket = daemon.folder / "tmp" / "s"
    daemon.env["TTMEM_SOCKET"] = str(daemon.socket)
    attacker = attack(what, daemon.socket)
    daemon.start("--http", "127.0.0.1:0", before=AS_NOBODY)
    assert serves_old_clients(daemon)
    notes = json.loads(daemon.fetch("/healthz")[1])["notes"]
    assert [note for note in notes if "closed" in note] == ["closed: native; see ttmem status"]
    attacker.stop()
    free(daemon.socket)
    wait_for(daemon.socket.exists, "the native socket")
    wait_until_open(daemon, "native")
    assert closed(daemon) == {}


def run_to_the_end(daemon, *args, before=()):
    return subprocess.run(
        [*map(str, before), *map(str, daemon.command(*args))], env=daemon.env, capture_output=True, text=True,
        timeout=LIMIT, check=False,
    )  # fmt: skip


def test_nothing_to_serve_is_an_error(daemon, attack):
    daemon.socket = daemon.folder / "tmp" / "s"
    attack("live", daemon.socket)
    result = run_to_the_end(daemon, before=AS_NOBODY)
    assert result.returncode == 1
    assert "nothing can be served" in result.stderr
    assert str(daemon.socket) in result.stderr


@pytest.mark.parametrize("dead", [False, True])
def test_one_of_many_daemons_started_at_once_serves(daemon, dead):
    if dead:
        daemon.start("--keeper", "no", before=AS_NOBODY)
        daemon.kill()
    reading, writing = os.pipe()
    crowd = [
        daemon.adopt(subprocess.Popen(
            [*AS_NOBODY, *map(str, daemon.command("--ready-fd", writing, "--keeper", "no"))], env=daemon.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[writing]))
        for _ in range(10)
    ]  # fmt: skip
    os.close(writing)
    assert os.read(reading, 1) == b"\n"
    os.close(reading)
    wait_for(lambda: sum(one.poll() is None for one in crowd) == 1, "nine of ten to give up")
    (winner,) = [one for one in crowd if one.poll() is None]
    for one in crowd:
        if one is not winner:
            assert one.returncode == 1 and b"is in use" in one.stderr.read()
        one.stderr.close()
    assert daemon.json("status")["pid"] == winner.pid
    assert closed(daemon) == {} and serves_old_clients(daemon)


def test_two_daemons_do_not_share_a_state_folder(daemon):
    daemon.start(before=AS_NOBODY)
    first, daemon.socket = daemon.socket, daemon.folder / "run" / "s2"
    result = run_to_the_end(daemon, "--legacy-socket", "none", before=AS_NOBODY)
    daemon.socket = first
    assert result.returncode == 1
    assert f"{daemon.state} is in use by process {daemon.process.pid}" in result.stderr


def test_a_stranger_cannot_lock_the_state_folder(daemon, attack):
    daemon.state.chmod(0o755)
    attack("state", daemon.state)
    daemon.start(before=AS_NOBODY)
    assert closed(daemon) == {}


def remembered(daemon):
    return {process["pid"] for process in daemon.json("leaks")["processes"]}


def token(daemon):
    return (daemon.state / "http-token").read_text()


def leave(daemon, before):
    """A process that dies with a buffer; returns its pid once that is written."""
    player = daemon.player("alloc 0 DRAM 0x1000 5", before=before)
    wait_for(lambda: daemon.json("status")["books"] == 1, "the book")
    player.kill()
    daemon.wait_for_leak(player.pid)
    return player.pid


def test_the_past_and_the_token_outlive_a_change_of_user(daemon):
    """By hand as root, then as the folder's user, and back: as with the unit."""
    pids, tokens = set(), set()
    for before in ((), AS_NOBODY, (), AS_NOBODY):
        daemon.start("--http", "127.0.0.1:0", before=before)
        wait_until_open(daemon, "history")
        assert closed(daemon) == {}
        assert remembered(daemon) == pids
        pids.add(leave(daemon, before))
        tokens.add(token(daemon))
        assert daemon.fetch("/api/v1/buffers", token=True)[0] == 200
        # Killed, so that the files beside the database stay.
        daemon.kill()
        daemon.end_keeper()
        daemon.legacy.unlink()  # as systemd does; it may be root's
        assert {path.stat().st_uid for path in daemon.state.iterdir()} == {NOBODY}
    assert len(tokens) == 1
    assert not [path for path in daemon.state.iterdir() if path.name.startswith("history.db.")]


def test_a_past_of_another_user_is_left_alone(daemon):
    """Left by an earlier version: the reason is said, and nothing is set aside."""
    daemon.start()
    pid = leave(daemon, ())
    assert daemon.stop() == 0
    for path in daemon.state.iterdir():
        os.chown(path, 0, 0)
    daemon.start("--http", "127.0.0.1:0", before=AS_NOBODY)
    wait_for(lambda: {"history", "token"} & set(closed(daemon)) == {"history"}, "what is missing")
    assert "user 0: Permission denied" in doors(daemon)["history"]["problem"]
    assert daemon.stop() == 0
    assert not [path for path in daemon.state.iterdir() if path.name.startswith("history.db.")]
    # Root puts it right.
    daemon.start()
    assert remembered(daemon) == {pid}
    assert daemon.stop() == 0
    daemon.start(before=AS_NOBODY)
    assert remembered(daemon) == {pid}


@pytest.mark.parametrize("what", ["nothing", "folder"])
def test_the_log_cannot_be_opened(daemon, what):
    log = daemon.folder / "run" / "logs" / "log"
    if what == "folder":
        log.mkdir(parents=True)
    daemon.start("--log", log)
    assert closed(daemon) == {"log": (None, None)}
    (line,) = wait_for(lambda: complaints(daemon), "the line on standard output")
    assert f"the log cannot be opened: {log}: " in line
    assert f"missing: log: {log}: " in daemon.run("status").stdout
    findings = {f["id"]: f["what"] for f in json.loads(daemon.run("doctor", "--json").stdout)["findings"]}
    assert str(log) in findings["daemon-door"]
    assert serves_old_clients(daemon)
    free(log)
    log.parent.mkdir(exist_ok=True)
    wait_until_open(daemon, "log")
    wait_for(lambda: f"ttmemd: the log is {log}\n" in log.read_text(), "the line in the log")
    assert len(complaints(daemon)) == 1


def test_the_state_folder_cannot_be_made(daemon):
    daemon.state.rmdir()
    daemon.state.write_text("in the way")
    daemon.start("--http", "127.0.0.1:0", before=AS_NOBODY)
    wait_for(lambda: set(closed(daemon)) == {"history", "token"}, "what is missing")
    with open(daemon.state, encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not taken for a folder
