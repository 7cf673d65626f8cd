# SPDX-License-Identifier: Apache-2.0
"""The units with a real systemd: starting by socket, user and capabilities, watchdog, kept books."""

import contextlib
import json
import os
import subprocess

import pytest

from common import AS_NOBODY
from conftest import LIMIT
from machine import Machine
from oldloop import OldLoop
from world import wait_for

SERVICE, OLD_SERVICE = "ttmemd.service", "ttmem-legacy.service"
SERVICES = pytest.mark.parametrize("unit", [SERVICE, OLD_SERVICE])
SOCKETS = ("ttmemd.socket", "ttmemd-legacy.socket")
NATIVE = "/run/ttmem/ttmemd.sock"
LEGACY = "/tmp/tt_allocation_server.sock"

# What a program that connects looks like from outside.
CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[1]))
s.connect(sys.argv[2])
"""

# What the daemon knows, over HTTP, with the token from its file.
ASK_HTTP = """
import json, sys, urllib.request
token = open("/var/lib/ttmem/http-token").read().strip()
def ask(path, **headers):
    request = urllib.request.Request("http://127.0.0.1:5392/" + path, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)
rows = ask("api/v1/buffers", Authorization="Bearer " + token)["buffers"]
print(json.dumps([ask("api/v1/smi")["totals"], [[row["pid"], row["size"]] for row in rows]]))
"""

CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 2, 19


@pytest.fixture(scope="module")
def booted(build_folder, tmp_path_factory):
    if not (build_folder / "src" / "daemon" / "ttmemd").exists():
        pytest.skip("the daemon ttmemd is not built")
    machine = Machine(build_folder, tmp_path_factory.mktemp("machine"))
    yield machine
    machine.close()


@pytest.fixture
def machine(booted):
    """The machine with listening sockets and no daemon."""
    booted.text("systemctl", "start", *SOCKETS)
    yield booted
    for player in booted.players:
        player.process.kill()
    booted.run("rm", "-f", "/run/hold")
    stop_all(booted)
    for unit in (SERVICE, OLD_SERVICE):
        booted.run("systemctl", "reset-failed", unit)
        for name in ("watchdog", "hold"):
            booted.settings(name, "", unit)


def stop_all(machine):
    machine.text("systemctl", "stop", *SOCKETS, SERVICE, OLD_SERVICE)


@pytest.fixture
def served(machine):
    """The machine with daemons that have said that they are ready."""
    machine.text("systemctl", "start", SERVICE, OLD_SERVICE)
    return machine


def hold_starts(machine):
    """The next daemon is not started until release() is called."""
    machine.settings("hold", "[Service]\nTimeoutStartSec=240\nExecStartPre=+/bin/sh -c "
                     "'while [ -e /run/hold ]; do sleep 0.05; done'\n")
    machine.text("touch", "/run/hold")


def release(machine):
    machine.text("rm", "/run/hold")


def wait_for_line(machine, text):
    wait_for(lambda: text in machine.journal(), f"\"{text}\" in the journal")


def wait_for_pid(machine, other_than=0, unit=SERVICE):
    def running():
        pid = machine.pid(unit)
        state = machine.show("SubState", unit)
        return pid if pid not in (0, other_than) and state == "running" else None

    return wait_for(running, "a daemon")


def ask_old_clients(machine):
    return json.loads(machine.text("ttmem", "status", "--json"))["old_clients"]


def left(pid, count):
    return f"Process {pid} exited but left {count} buffers allocated:"


def test_units_are_valid(booted):
    units = [f"/usr/local/lib/systemd/system/{name}"
             for name in (SERVICE, OLD_SERVICE, *SOCKETS)]
    result = booted.run("systemd-analyze", "verify", "--man=no", *units)
    assert (result.returncode, result.stderr) == (0, "")
    # Tenths of what systemd calls exposure: a weaker sandbox must be a decision.
    for service in units[:2]:
        booted.text("systemd-analyze", "security", "--offline=true", "--threshold=30", service)


def test_user_and_folders(booted):
    assert booted.text("getent", "passwd", "ttmem").split(":")[5] == "/var/lib/ttmem"
    for folder, mode in (("/run/ttmem", "755"), ("/var/lib/ttmem", "700")):
        assert booted.text("stat", "-c", "%U %G %a", folder) == f"ttmem ttmem {mode}\n"


@pytest.mark.parametrize("kind, path, units", [("SOCK_SEQPACKET", NATIVE, (SERVICE,)),
                                               ("SOCK_STREAM", LEGACY, (SERVICE, OLD_SERVICE))])  # fmt: skip
def test_a_connection_starts_the_daemon(machine, kind, path, units):
    for unit in units:
        assert machine.show("ActiveState", unit) == "inactive"
    # As somebody who is nobody here.
    machine.text(*AS_NOBODY, "/usr/bin/python3", "-c", CONNECT, kind, path)
    # "active" comes only after it has said READY=1.
    for unit in units:
        wait_for(lambda: machine.show("ActiveState", unit) == "active", "the daemon to be ready")


def test_a_book_starts_the_daemon(machine):
    player = machine.player("alloc 0 DRAM 0x1000 4096", user=65534)
    wait_for(lambda: machine.show("ActiveState") == "active", "the daemon to be ready")
    wait_for(lambda: machine.show("NFileDescriptorStore") == "1", "the book to be stored")
    player.kill()
    wait_for_line(machine, left(player.inner_pid, 1))


@SERVICES
def test_user_and_capabilities(served, unit):
    status = dict(
        line.split(":\t") for line in
        served.text("cat", f"/proc/{served.pid(unit)}/status").splitlines() if ":\t" in line
    )
    uid = served.text("id", "-u", "ttmem").strip()
    assert status["Uid"].split() == [uid] * 4
    both = 1 << CAP_DAC_READ_SEARCH | 1 << CAP_SYS_PTRACE
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(status[name], 16) == both, name
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_the_daemon_finds_the_books_of_all_users(machine):
    """Not handed over and made before the daemon: found under /proc, which takes both capabilities."""
    players = [machine.player("alloc 0 DRAM 0x1000 4096", "alloc 0 L1 0x1000 64", user=user,
                              TTMEM_SOCKET="none") for user in (0, 65534)]
    machine.text("systemctl", "start", "ttmemd.service")
    wait_for(lambda: machine.show("NFileDescriptorStore") == "2", "both books to be stored")
    for player in players:
        player.kill()
        wait_for_line(machine, left(player.inner_pid, 2))
    wait_for(lambda: machine.show("NFileDescriptorStore") == "0", "the books to be let go")


def test_the_journal_has_fields(served):
    player = served.player("alloc 3 DRAM 0x1000 4096", "alloc 3 DRAM 0x3000 96")
    wait_for(lambda: served.show("NFileDescriptorStore") == "1", "the book to be stored")
    player.kill()
    ask = ["journalctl", "--no-pager", "-o", "json", "TTMEM_KIND=leak",
           f"TTMEM_PID={player.inner_pid}"]
    entry = json.loads(wait_for(lambda: served.text(*ask), "the entry in the journal"))
    assert (entry["TTMEM_BYTES"], entry["TTMEM_BUFFERS"]) == ("4192", "2")
    assert entry["TTMEM_COMM"] == "player"
    # The journal itself says whose word this is.
    assert entry["_SYSTEMD_UNIT"] == "ttmemd.service"


def test_the_sandbox_allows_settings_hooks_and_logs(machine):
    """A file of settings, a command for incidents, a log of its own: all that writes or runs something."""
    machine.text("mkdir", "-p", "/etc/ttmem")
    machine.run("tee", "/etc/ttmem/ttmemd.conf",
                input="on-incident = cat >>/var/lib/ttmem/told; echo >>/var/lib/ttmem/told\n"
                      "log = /var/log/ttmem/log\n")
    try:
        machine.text("systemctl", "start", "ttmemd.service")
        player = machine.player("alloc 0 DRAM 0x1000 4096")
        wait_for(lambda: machine.show("NFileDescriptorStore") == "1", "the book to be stored")
        player.kill()
        told = wait_for(lambda: machine.run("grep", f'"pid":{player.inner_pid},',
                                            "/var/lib/ttmem/told").stdout, "the command")
        assert json.loads(told)["kind"] == "leak"
        wait_for(lambda: left(player.inner_pid, 1) in machine.text("cat", "/var/log/ttmem/log"), "the log")
        # Nobody else can read the past; of recordings their users can, by a list that counts as the group's mode.
        owners = machine.text("find", "/var/lib/ttmem", "-type", "f", "!", "-name", "*.ttrec", "(", "-perm", "/077",
                              "-o", "!", "-user", "ttmem", ")")
        assert owners == ""
        assert machine.text("find", "/var/lib/ttmem", "-name", "*.db*", "-o", "-name", "*.sqlite*")
    finally:
        machine.text("rm", "/etc/ttmem/ttmemd.conf")


def test_the_sandbox_allows_http(served):
    """HTTP, where the unit says nothing of it, and the token that only it and root can read."""
    assert served.text("stat", "-c", "%U %a", "/var/lib/ttmem/http-token") == "ttmem 600\n"
    player = served.player("alloc 0 DRAM 0x1000 4096")
    wait_for(lambda: served.show("NFileDescriptorStore") == "1", "the book to be stored")

    def totals():
        return json.loads(served.text("/usr/bin/python3", "-c", ASK_HTTP))

    expected = [{"bytes": 4096, "buffers": 1}, [[player.inner_pid, 4096]]]
    wait_for(lambda: totals() == expected, "the buffer over HTTP")


@SERVICES
def test_unit_lets_the_loop_raise_its_priority(served, unit):
    """The unit gives the right to it; in a container that has no such right itself, nothing happens."""
    limit = served.text("sh", "-c", f"grep 'nice priority' /proc/{served.pid(unit)}/limits").split()[-2]
    nice = served.text("cat", f"/proc/{served.pid(unit)}/stat").rpartition(")")[2].split()[16]
    # As the kernel counts: 20 is the usual priority, 30 ten more.
    assert (limit, nice) in (("30", "-10"), ("0", str(os.getpriority(os.PRIO_PROCESS, 0))))


def test_a_death_while_the_unit_is_down_is_reported(served):
    """A killed daemon's books are with systemd, and what ended meanwhile is still reported."""
    old = served.pid()
    player = served.player("alloc 0 DRAM 0x1000 4096 weights")
    wait_for(lambda: served.show("NFileDescriptorStore") == "1", "the book to be stored")
    hold_starts(served)
    served.text("kill", "-KILL", old)
    wait_for(lambda: served.show("SubState") == "start-pre", "the next start")
    player.kill()
    assert left(player.inner_pid, 1) not in served.journal()
    release(served)
    wait_for_line(served, left(player.inner_pid, 1))
    assert wait_for_pid(served) != old
    assert served.show("NRestarts") == "1"
    wait_for(lambda: served.show("NFileDescriptorStore") == "0", "the book to be let go")


def test_a_death_during_a_restart_is_reported(served):
    """As in an upgrade: "systemctl restart" keeps the books as well."""
    player = served.player("alloc 0 DRAM 0x1000 4096")
    wait_for(lambda: served.show("NFileDescriptorStore") == "1", "the book to be stored")
    hold_starts(served)
    served.text("systemctl", "restart", "--no-block", "ttmemd.service")
    wait_for(lambda: served.show("SubState") == "start-pre", "the next start")
    player.kill()
    release(served)
    wait_for_line(served, left(player.inner_pid, 1))


@pytest.mark.legacy
def test_old_clients_keep_their_connections_over_restarts(served):
    """ttmemd may be restarted or crash; of its own program systemd's fd store has the connections."""
    clients = [OldLoop(LEGACY, size, before=served.enter) for size in (72, 144)]
    try:
        wait_for(lambda: served.show("NFileDescriptorStore") == "2", "their books to be stored")
        # What is known of the connections, and both of them in one box.
        wait_for(lambda: served.show("NFileDescriptorStore", OLD_SERVICE) == "2", "connections to be stored")
        server = served.pid(OLD_SERVICE)
        for _ in range(4):
            served.text("systemctl", "restart", SERVICE)
            for client in clients:
                client.go_on()
        pid = served.pid()
        served.text("kill", "-KILL", pid)
        wait_for_pid(served, other_than=pid)
        for client in clients:
            client.go_on()
        assert served.pid(OLD_SERVICE) == server
        wait_for(lambda: ask_old_clients(served)["connections"] == 2, "the connections")
        for _ in range(4):
            served.text("systemctl", "restart", OLD_SERVICE)
            for client in clients:
                client.go_on()
            wait_for(lambda: ask_old_clients(served)["taken_over"] == 2, "the connections")
        server = served.pid(OLD_SERVICE)
        served.text("kill", "-KILL", server)
        wait_for_pid(served, other_than=server, unit=OLD_SERVICE)
        for client in clients:
            client.go_on()
        now = wait_for(lambda: (now := ask_old_clients(served))["connections"] == 2 and now, "the connections")
        assert now["in_doubt"] <= 2
        for client in clients:
            buffers, size, sent, asked = client.stop()
            assert sent > 4 and asked >= 4

            def known():
                rows = json.loads(served.text("ttmem", "buffers", "--pid", client.pid, "--json"))["buffers"]
                return len(rows), sum(row["size"] * row["refs"] for row in rows)

            if now["in_doubt"]:
                wait_for(lambda: abs(known()[0] - buffers) <= now["in_doubt"], f"about {buffers} buffers")
            else:
                wait_for(lambda: known() == (buffers, size), f"{buffers} buffers, {size} bytes")
        # Where nobody starts it again, nobody must wait for it.
        stop_all(served)
        for unit in (SERVICE, OLD_SERVICE):
            assert served.show("NFileDescriptorStore", unit) == "0"
    finally:
        for client in clients:
            client.kill()
            client.wait()


def test_old_clients_are_served_while_ttmemd_is_stopped(served):
    client = OldLoop(LEGACY, 72, before=served.enter)
    try:
        served.text("systemctl", "stop", "ttmemd.socket", SERVICE)
        client.go_on()
        assert served.show("ActiveState", OLD_SERVICE) == "active"
        served.text("systemctl", "start", SERVICE)
        buffers, size, _, _ = client.stop()
        wait_for(lambda: ask_old_clients(served)["connections"] == 1, "the connection")
        rows = json.loads(served.text("ttmem", "buffers", "--pid", client.pid, "--json"))["buffers"]
        assert (len(rows), sum(row["size"] for row in rows)) == (buffers, size)
    finally:
        client.kill()
        client.wait()


def test_the_lines_of_the_old_server_are_in_the_journal_of_its_unit(machine):
    machine.text("mkdir", "-p", "/etc/ttmem")
    machine.run("tee", "/etc/ttmem/ttmemd.conf", input="log-events = yes\n")
    try:
        machine.text("systemctl", "start", SERVICE, OLD_SERVICE)
        wait_for(lambda: closed(machine) == {}, "everything to be there")
        player = machine.player("alloc 0 DRAM 0x1000 4096")
        line = f"[PID {player.inner_pid}] Allocated"
        wait_for(lambda: line in machine.journal(OLD_SERVICE), "the line")
        assert line not in machine.journal()
    finally:
        machine.text("rm", "/etc/ttmem/ttmemd.conf")


@SERVICES
def test_a_hanging_daemon_is_restarted_by_the_watchdog(machine, unit):
    machine.settings("watchdog", "[Service]\nWatchdogSec=4\n", unit)
    machine.text("systemctl", "start", unit)
    first = machine.show("WatchdogTimestampMonotonic", unit)
    wait_for(lambda: machine.show("WatchdogTimestampMonotonic", unit) != first, "a sign of life")
    # Not counted: a daemon that got no processor for four seconds was ended before.
    pid = wait_for_pid(machine, unit=unit)
    machine.text("kill", "-STOP", pid)
    wait_for_pid(machine, other_than=pid, unit=unit)
    wait_for(lambda: "Watchdog timeout" in machine.journal(unit), "the line in the journal")
    assert int(machine.show("NRestarts", unit)) >= 1


@pytest.mark.parametrize("unit, kind, path", [(SERVICE, "SOCK_SEQPACKET", NATIVE), (OLD_SERVICE, "SOCK_STREAM", LEGACY)])
def test_stop_is_clean(served, unit, kind, path):
    # First, because it would connect to ttmemd, which starts that again.
    served.text("systemctl", "stop", OLD_SERVICE)
    served.text("systemctl", "stop", unit)
    assert served.show("Result", unit) == "success"
    assert (served.show("ExecMainCode", unit), served.show("ExecMainStatus", unit)) == ("1", "0")
    # The sockets are systemd's: the next client starts it again.
    for socket in (NATIVE, LEGACY):
        served.text("test", "-S", socket)
    served.text("/usr/bin/python3", "-c", CONNECT, kind, path)
    wait_for_pid(served, unit=unit)


@SERVICES
def test_reload_keeps_it_running(served, unit):
    pid = served.pid(unit)
    served.text("systemctl", "reload", unit)
    wait_for(lambda: served.show("SubState", unit) == "running", "the reload")
    assert served.pid(unit) == pid


def test_the_services_are_run_by_the_old_name(machine):
    """Enabled, started, restarted and stopped as the old documents say; both come and go with it."""
    old = "tt-allocation-server"
    both = (SERVICE, OLD_SERVICE)

    def pids():
        return [machine.pid(unit) for unit in both]

    def states(*units):
        return machine.run("systemctl", "is-active", *units).stdout.split()

    machine.text("systemctl", "stop", *SOCKETS)
    machine.text("systemctl", "enable", "--now", old)
    assert machine.text("systemctl", "is-enabled", f"{old}.service", *SOCKETS).split() == ["enabled"] * 3
    assert states(old, *both, *SOCKETS) == ["active"] * 5
    machine.text("test", "-S", LEGACY)
    first = pids()
    machine.text("systemctl", "reload", old)
    assert pids() == first
    machine.text("systemctl", "restart", old)
    assert states(*both) == ["active"] * 2 and not {0, *first} & set(pids())
    machine.text("systemctl", "stop", old)
    # No client starts it again.
    wait_for(lambda: machine.run("test", "-S", LEGACY).returncode == 1, "the end of the socket")
    wait_for(lambda: states(*both) == ["inactive"] * 2, "the end of the daemons")
    machine.text("systemctl", "start", old)
    # A daemon that dies is started again, as without the old name.
    for unit in both:
        first = machine.pid(unit)
        machine.text("kill", "-9", first)
        wait_for_pid(machine, other_than=first, unit=unit)
        # Whoever requires it is restarted with it: the old name, and so the other one.
        wait_for(lambda: states(old, *both) == ["active"] * 3, "another daemon")
    # The other way round too: whoever stops one of them sees the old name stopped, and the other with it.
    for unit in both:
        machine.text("systemctl", "reset-failed")  # it was started often
        machine.text("systemctl", "start", old)
        machine.text("systemctl", "stop", unit)
        wait_for(lambda: states(old, *both) == ["inactive"] * 3, "the end of the old name")
    machine.text("systemctl", "disable", old)


# Something that another user runs: it takes the port, and says so.
TAKE_PORT = """
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 5392))
s.listen()
print(flush=True)
input()
"""


def closed(machine):
    """{name: user} of what the daemon lacks."""
    status = json.loads(machine.text("ttmem", "status", "--json"))
    return {door["name"]: door["user_id"] for door in status["doors"] if not door["open"]}


@pytest.mark.legacy
def test_the_unit_starts_with_its_port_and_its_old_socket_taken(machine):
    machine.text("systemctl", "stop", "ttmemd-legacy.socket")
    machine.text(*AS_NOBODY, "mkdir", LEGACY)
    taker = subprocess.Popen([*machine.enter, *AS_NOBODY, "/usr/bin/python3", "-c", TAKE_PORT],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with taker.stdin, taker.stdout:
        assert taker.stdout.readline() == "\n"
        machine.text("systemctl", "start", SERVICE, OLD_SERVICE)
        wait_for(lambda: closed(machine) == {"old_clients": 65534, "http": 65534}, "what is missing")
        assert machine.show("ActiveState") == "active"
        wait_for(lambda: "something is missing" in machine.show("StatusText"), "the status line")
        wait_for_line(machine, "HTTP is not served: 127.0.0.1:5392: in use by process")
    # Both come back by themselves: the sandbox lets ttmem-legacy bind what systemd could not.
    assert taker.wait(timeout=LIMIT) in (0, 1)
    machine.text("rmdir", LEGACY)
    wait_for(lambda: closed(machine) == {}, "everything to be there")
    machine.text(*AS_NOBODY, "/usr/bin/python3", "-c", CONNECT, "SOCK_STREAM", LEGACY)


@SERVICES
def test_the_memory_of_the_unit_is_limited(served, unit):
    """Books of old clients, up to 2 GiB, and a quarter of a GiB besides fit into it; the machine is larger."""
    limit = int(served.show("MemoryMax", unit))
    assert (2 << 30) + (256 << 20) < limit <= 8 << 30
    group = "/sys/fs/cgroup" + served.show("ControlGroup", unit)
    if "memory" in served.text("cat", f"{group}/cgroup.controllers"):
        assert int(served.text("cat", f"{group}/memory.max")) == limit


@contextlib.contextmanager
def by_hand(machine):
    """A ttmemd that root runs without systemd, ready."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*machine.enter, "sh", "-c", f"echo $$; exec ttmemd --keeper no --ready-fd {writing}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=[writing])
    os.close(writing)
    try:
        pid = int(process.stdout.readline())
        assert os.read(reading, 1) == b"\n", process.stdout.read()
        yield
        machine.text("kill", "-TERM", pid)
        assert process.wait(timeout=LIMIT) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reading)


def leave(machine):
    """A process that dies with a buffer; returns its pid once that is remembered."""
    player = machine.player("alloc 0 DRAM 0x1000 4096")
    wait_for(lambda: json.loads(machine.text("ttmem", "status", "--json"))["books"] == 1, "the book")
    player.kill()
    wait_for(lambda: player.inner_pid in remembered(machine), "the report")
    return player.inner_pid


def remembered(machine):
    return {process["pid"] for process in json.loads(machine.text("ttmem", "leaks", "--json"))["processes"]}


@pytest.mark.parametrize("owner", ["as it is", "root"])
def test_the_past_and_the_token_outlive_a_daemon_of_root(machine, owner):
    """Also with the files of one that did not leave them to the unit's user."""
    machine.text("systemctl", "start", "ttmemd.service")
    first = leave(machine)
    token = machine.text("cat", "/var/lib/ttmem/http-token")
    stop_all(machine)
    with by_hand(machine):
        assert first in remembered(machine)
        second = leave(machine)
    assert machine.text("cat", "/var/lib/ttmem/http-token") == token
    if owner == "root":
        machine.text("sh", "-c", "chown root:root /var/lib/ttmem/*")
    machine.text("systemctl", "start", *SOCKETS, SERVICE, OLD_SERVICE)
    wait_for(lambda: closed(machine) == {}, "everything to be there")
    assert {first, second} <= remembered(machine)
    assert machine.text("cat", "/var/lib/ttmem/http-token") == token
    assert machine.text("find", "/var/lib/ttmem", "-type", "f", "!", "-user", "ttmem") == ""
    assert machine.text("find", "/var/lib/ttmem", "-name", "history.db.*") == ""
