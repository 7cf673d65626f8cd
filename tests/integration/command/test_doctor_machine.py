# SPDX-License-Identifier: Apache-2.0
"""ttmem doctor, of the daemon and the machine: each finding with the real condition, and without it."""

import json
import os
import socket
import stat
import subprocess
import sys

import pytest

from common import AS_NOBODY, LIMIT, NOBODY, become
import machines
from machines import Machine, Region
from test_doctor import HEALTHY, adopt, examine, found
from world import wait_for


SILENT = """
#include <stdio.h>
#include <ttmem/ttmem.h>

int main(void)
{
	printf("%d\\n", ttmem_enabled());
	fflush(stdout);
	return getchar() == 'x';
}
"""


class Asker:
    """ttmem doctor beside a real daemon, with the whole pid namespace in view."""

    def __init__(self, daemon):
        self.daemon = daemon

    def run(self, *args, **options):
        return self.daemon.run(*args, **options)


@pytest.fixture
def asker(ttmemd):
    ttmemd.env["TT_ALLOC_SERVER_SOCKET"] = str(ttmemd.old_socket)
    return Asker(ttmemd)


DAEMON = {"daemon-none", "daemon-silent", "daemon-stranger", "daemon-blind", "daemon-partial",
          "daemon-forgets", "daemon-door", "old-server", "old-socket"}  # fmt: skip


@pytest.mark.needs_root
def test_a_healthy_daemon_has_no_findings(ttmemd, asker):
    ttmemd.start()
    ttmemd.player(*HEALTHY)
    # Its memory of the past is opened by another thread.
    wait_for(lambda: ttmemd.json("status")["past"]["running"], "the past")
    assert not DAEMON & set(found(asker))


OLD_CLIENT = """
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(struct.pack("<B3xiQB3xiQQ32x", 1, 0, 1 << 25, 1, os.getpid(), 0x1000, 5))
print("sent", flush=True)
sys.stdin.read()
"""


def test_stacks_unsent(ttmemd, asker):
    """A variable of the library is no advice for who does not use it."""
    ttmemd.start()
    command = ["/usr/bin/python3", "-c", OLD_CLIENT, ttmemd.legacy]
    client = ttmemd.adopt(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    assert client.stdout.readline() == b"sent\n"
    wait_for(lambda: client.pid in {p["pid"] for p in ttmemd.json("ps")["processes"]}, "the client")
    ids = found(asker)
    assert client.pid in ids["stacks-unsent"] and client.pid not in ids.get("stacks-off", [])


def test_daemon_none(ttmemd, asker):
    assert "daemon-none" in found(asker)


def test_daemon_silent(ttmemd, asker):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(ttmemd.socket))
        server.listen()
        assert "daemon-silent" in found(asker)


@pytest.mark.needs_root
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


@pytest.mark.needs_root
def test_daemon_blind(ttmemd, asker):
    os.chown(ttmemd.folder, NOBODY, NOBODY)
    ttmemd.start(before=AS_NOBODY)
    assert "daemon-blind" in found(asker)


@pytest.mark.other_user
def test_daemon_partial(ttmemd, asker):
    ttmemd.start()
    ids = found(asker, before=AS_NOBODY)
    assert "daemon-partial" in ids and "daemon-blind" not in ids


def test_daemon_forgets(ttmemd, asker):
    # A file where the folder should be.
    ttmemd.state.write_text("")
    ttmemd.start()
    assert "daemon-forgets" in found(asker)


def test_daemon_door(ttmemd, asker):
    ttmemd.legacy.mkdir()
    ttmemd.start()
    assert "daemon-door" in found(asker)


def test_old_server(ttmemd, asker):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(ttmemd.legacy))
        server.listen()
        assert found(asker)["old-server"] == [os.getpid()]


INSIDE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")  # sees the sockets, not who serves them


@pytest.mark.needs_root
def test_ttmemd_is_known_from_inside_a_pid_namespace(ttmemd, asker):
    """Root there sees its own container, and is told that this is not all."""
    ttmemd.start()
    assert not DAEMON - {"daemon-forgets", "daemon-partial"} & set(found(asker, before=INSIDE))


@pytest.mark.needs_root
def test_another_server_outside_the_pid_namespace(ttmemd, asker):
    """Nobody answers, and its pid says nothing inside."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(ttmemd.legacy))
        server.listen()
        assert found(asker, before=INSIDE)["old-server"] == [None]


LISTEN = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).listen()"
# As systemd starts a service that has one socket.
SERVE = """
import os, sys
listening, name, *command = sys.argv[1:]
os.dup2(int(listening), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES=name)
os.execv(command[0], command)
"""


def test_who_serves_a_socket_that_another_process_has_opened(ttmemd, asker):
    """systemd opens it, or whoever did has ended: the kernel still names that process."""
    program = ttmemd.build / "src" / "legacy" / "program" / "ttmem-legacy"
    reading, writing = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server, open(reading, "rb") as ready:
        server.bind(str(ttmemd.legacy))
        subprocess.run([sys.executable, "-c", LISTEN, str(server.fileno())], check=True, pass_fds=[server.fileno()])
        assert found(asker)["old-server"] == [None]
        server.settimeout(LIMIT)
        server.accept()[0].close()  # doctor's
        command = [program, "--config", "none", "--socket", ttmemd.socket, "--legacy-socket", ttmemd.legacy]
        serving = ttmemd.adopt(subprocess.Popen(
            [sys.executable, "-c", SERVE, str(server.fileno()), "legacy", *map(str, command), "--ready-fd", str(writing)],
            pass_fds=[server.fileno(), writing]))  # fmt: skip
        os.close(writing)
        assert ready.read(1) == b"\n"
        assert "old-server" not in found(asker)
        serving.terminate()
        assert serving.wait(timeout=LIMIT) == 0


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


@pytest.mark.other_user
def test_bundle(world, tmp_path):
    """Nothing in it names what is others'."""
    os.chmod(tmp_path, 0o755)
    mine = world.player(*HEALTHY, TTMEM_STACKS="off")
    other = world.player("alloc 0 DRAM 0x1000 4096 secret-name", before=AS_NOBODY)
    unset = world.player("free 0 DRAM 0x1000", TTMEM="", before=become(12345))  # runs by now
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


SOURCES = {"driver-none", "device-untracked", "region-stale", "region-differs", "region-unreadable",
           "region-broken", "device-unmatched", "over-limit", "thermal-trip", "card-unavailable",
           "stale-after-reset"}  # fmt: skip


def move(world, machine):
    world.env.update(TTMEM_SHM_DIR=str(machine.shm), TTMEM_SYS_ROOT=str(machine.sys), TTMEM_DEV_ROOT=str(machine.dev))


def on_machine(world, machine):
    move(world, machine)
    return SOURCES & set(found(world))


def test_healthy_sources_have_no_findings(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0", chip=0x4D)
    player = world.player("device 0 0x4d wormhole_b0 n150 0 12884901888 94371840", "alloc 0 DRAM 0x1000 4096")
    machine.attach(player, 0x4D)
    machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=4096))
    opened(world, player)
    assert on_machine(world, machine) == set()


def test_driver_none(world, tmp_path):
    assert on_machine(world, Machine(tmp_path / "machine")) == {"driver-none"}


def test_device_untracked(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0", chip=0x4D)
    opened(world, world.player(TTMEM="0", opened=[machine.node(0)]))
    assert on_machine(world, machine) == {"device-untracked"}


def opened(world, *processes):
    """The driver lists them as openers of the first card."""
    path = world.root / "driver/tenstorrent/0/pids"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{process.pid}\n" for process in processes))


def test_nothing_reported(world, tmp_path, compile_c):
    """Why KB instead of MB: it asked whether tracking is on, and reported nothing."""
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0")
    move(world, machine)
    silent = [
        adopt(world, [compile_c(SILENT)], env={**world.env, "TTMEM": "1"}, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [process.stdout.readline() for process in silent] == [b"1\n"] * 2
    # A buffer, whether it is still there or not, shows that the program reports; so does one of a dry run.
    others = [
        world.player("alloc 0 DRAM 0x1000 4096", "free 0 DRAM 0x1000"),
        world.player("hooked 0 DRAM 4096"),
        world.player("free 0 DRAM 0x1000"),
        world.player("device 0 0 wormhole_b0 n150 0 1024 1024"),  # which has total-small
    ]
    opened(world, silent[0], *others)  # the other one has no device, so there is nothing to report
    ids = found(world)
    assert ids["nothing-reported"] == [silent[0].pid] and ids["total-small"] == [others[3].pid]
    what, = [f["what"] for f in examine(world)["findings"] if f["id"] == "nothing-reported"]
    assert what.endswith("has a device open and a book, and never reported a buffer")
    assert found(world, "--pid", silent[0].pid)["nothing-reported"] == [silent[0].pid]
    assert "nothing-reported" not in found(world, "--pid", silent[1].pid)
    # Where tt-metal's own region says how much it is, its figures count.
    player = world.player("mark start")
    opened(world, player)
    assert found(world)["nothing-reported"] == [player.pid]
    machine.attach(player, 0x4D)
    machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=64 << 20))
    assert "nothing-reported" not in found(world)


def test_nothing_tracked_whatever_is_left_or_only_open(world, tmp_path):
    """Neither a row of an exited process in a region of tt-metal nor a process that only opens a device counts."""
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0", chip=0x4D)
    move(world, machine)
    machine.region(Region(4, 0x4D, 0).process(999999, "python", DRAM=65536))
    assert {"nothing-tracked", "region-stale"} <= set(found(world))
    opened(world, world.player(TTMEM="0"))
    assert {"nothing-tracked", "device-untracked"} <= set(found(world))
    world.player("alloc 0 DRAM 0x1000 4096")
    assert "nothing-tracked" not in found(world)


def test_device_unmatched(world, tmp_path):
    """A row without a card though there are cards, and why."""
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0", chip=0x4D, serial=1)
    machine.card(1, "n150", "wormhole_b0", chip=0x4E, serial=2)
    why = {
        "has no node": world.player("alloc 0 DRAM 0x1000 4096"),
        "has 1 node": world.player("alloc 1 DRAM 0x1000 4096", opened=[machine.node(0)]),
        "no card has its id 0x99": world.player("device 0 0x99 wormhole_b0 n150 0 1024 1024", opened=[machine.node(0)]),
        "no card has that number": world.player("alloc 7 DRAM 0x1000 4096", opened=[machine.node(0)]),
    }
    assert on_machine(world, machine) == {"device-unmatched"}
    findings = json.loads(world.run("doctor", "--json").stdout)["findings"]
    told = {f["pid"]: f["what"] for f in findings if f["id"] == "device-unmatched"}
    for text, player in why.items():
        assert text in told[player.pid], told


def test_a_card_that_is_another_chip_already_is_said(world, tmp_path):
    """The driver tells no ids, so the card is the chip of the first process that knows one."""
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0")
    for chip in (0x51, 0x52):
        world.player(f"device 0 {chip:#x} wormhole_b0 n150 0 1024 1024", opened=[machine.node(0)])
    assert on_machine(world, machine) == {"device-unmatched"}
    assert about(world, machine, "device-unmatched", TTMEM_PROC_ROOT=str(world.root)) == [
        "its device 0 has no card: the card of that number is another chip"]


def about(world, machine, kind, **settings):
    """What was seen, of one kind."""
    findings = json.loads(world.run("doctor", "--json", env={**machine.env(), **settings}).stdout)["findings"]
    return [f["what"] for f in findings if f["id"] == kind]


def test_over_limit(world, tmp_path):
    machine = machines.hot(tmp_path / "machine")
    assert on_machine(world, machine) == {"over-limit", "thermal-trip"}
    assert about(world, machine, "over-limit") == [
        "device 0: its temperature is 85.5 degrees Celsius, the limit 75",
        "device 0: its power is 312 W, the limit 300",
    ]
    machine.write(machine.hwmon(0) / "temp1_input", 75000)
    machine.write(machine.hwmon(0) / "power1_max", 312000000)
    assert on_machine(world, machine) == {"thermal-trip"}


def test_thermal_trip(world, tmp_path):
    machine = machines.hot(tmp_path / "machine")
    assert about(world, machine, "thermal-trip") == ["device 0 switched itself off 2 times"]
    machine.write(machine.class_folder(0) / "tt_therm_trip_count", 0)
    assert "thermal-trip" not in on_machine(world, machine)


def test_card_unavailable(world, tmp_path):
    machine = machines.idle(tmp_path / "machine")
    assert on_machine(world, machine) == set()
    before = machine.reset(0)
    assert about(world, machine, "card-unavailable") == ["device 0 is in reset"]
    machine.answer(before)
    machine.all_ones(1)
    assert about(world, machine, "card-unavailable") == ["device 1 is not answering"]


@pytest.mark.needs_root
def test_stale_after_reset(world, tmp_path):
    """Its descriptor is of a node that was removed."""
    machine = machines.n150_pair(tmp_path / "machine")
    assert about(world, machine, "stale-after-reset") == []
    machine.remove(0)
    seen = ["device 0 was reset or removed while it held 1.0 GiB of it"]
    assert about(world, machine, "stale-after-reset") == seen
    assert about(world, machine, "card-unavailable") == ["device 0 is gone"]


def test_an_opener_outside_the_pid_namespace_is_told(world, tmp_path):
    machine = machines.outside(tmp_path / "machine")
    outside = [f"device {n} is opened by a process outside this pid namespace" for n in range(2)]
    assert about(world, machine, "device-untracked") == [*outside, "(python3) has device 1 open"]


def test_region_stale(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    player = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(4, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=4096))
    assert "region-stale" not in on_machine(world, machine)
    player.kill()
    assert "region-stale" in on_machine(world, machine)


@pytest.mark.parametrize("version", [3, 4])
def test_advice_for_stale_rows_follows_the_version_of_the_region(world, tmp_path, version):
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.region(Region(version, 7, 0).process(1 << 22, "gone", DRAM=4096))
    (stale,) = [f for f in examine(world)["findings"] if f["id"] == "region-stale"]
    assert f"tt_device_7_memory, version {version}," in stale["what"]
    if version == 3:  # the next program leaves it there
        assert "remove the file" in stale["fix"] and "next program" not in stale["fix"]
    else:
        assert stale["fix"] == "the next program that opens the device clears it"


def test_region_differs(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    player = world.player("device 0 0x4d wormhole_b0 n150 0 12884901888 94371840", "alloc 0 DRAM 0x1000 4096")
    machine.attach(player, 0x4D)
    machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=1))
    assert "region-differs" in on_machine(world, machine)
    (finding,) = (f for f in examine(world)["findings"] if f["id"] == "region-differs")
    assert "other threads" in finding["why"]
    # With a second thread the region may have less: what that allocates is not in it.
    player.play("leak 5 64 3600000")
    assert "region-differs" not in on_machine(world, machine)
    machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=8192))
    assert "region-differs" in on_machine(world, machine)


def test_little_that_the_region_confirms_is_right(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    device = "device 0 0x4d wormhole_b0 n150 0 12884901888 94371840"
    player = world.player(device, "alloc 0 DRAM 0x1000 131072")
    machine.attach(player, 0x4D)
    on_machine(world, machine)
    assert "total-small" in found(world)
    machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=131072))
    assert "total-small" not in found(world)


def test_region_broken(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    machine.region(Region(4, 7, 0), length=100)
    assert "region-broken" in on_machine(world, machine)


def test_region_unreadable(public):
    machine = Machine(public.root.parent / "machine")
    machine.region(Region(4, 7, 0))
    assert "region-unreadable" not in on_machine(public, machine)
    result = subprocess.run(
        [*AS_NOBODY, public.program, "doctor", "--json"], env=public.env, capture_output=True,
        text=True, timeout=LIMIT,
    )
    assert "region-unreadable" in {f["id"] for f in json.loads(result.stdout)["findings"]}
