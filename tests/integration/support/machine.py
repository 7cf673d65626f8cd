# SPDX-License-Identifier: Apache-2.0
"""A machine of its own with a real systemd as its first process, for the tests of our units.

It consists of namespaces over the files of this machine, see tests/systemd/boot.sh. Starting it takes
less than a second; it leaves nothing behind.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from common import become
from conftest import LIMIT, ROOT
from world import Player, wait_for

SYSTEMD = "/lib/systemd/systemd"
NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup"]
PLAYER = "/usr/local/libexec/ttmem-test/player"
BOOT_REFUSED = 77  # of boot.sh


def own_cgroup():
    """A new group below cgroup2's root, wherever that is mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            folder = Path(where) / f"ttmem-test-{secrets.token_hex(6)}"
            try:
                folder.mkdir()
            except OSError as error:
                pytest.skip(f"a systemd needs a control group of its own: {error}")
            return folder
    pytest.skip("cgroup2 is not mounted")


class InnerPlayer(Player):
    """tests/programs/player.c in the machine; inner_pid is its pid there."""

    def __init__(self, machine, user, settings):
        env = {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": "/usr/local/lib",
            "TTMEM": "1",
            **settings,
        }
        shell = ["sh", "-c", f"echo $$; exec {PLAYER}"]
        super().__init__([*machine.enter, *become(user), *shell], env)
        self.machine = machine
        self.inner_pid = int(self.process.stdout.readline())

    def kill(self):
        self.machine.run("kill", "-KILL", self.inner_pid)
        self.process.wait(timeout=LIMIT)


class Machine:
    def __init__(self, build_folder, folder):
        if os.geteuid() != 0:
            pytest.skip("a systemd can only be started by root")
        if not os.path.exists(SYSTEMD):
            pytest.skip("systemd is not installed")
        self.players = []
        self.first = None
        self.folder = folder
        self.install(build_folder)
        self.cgroup = own_cgroup()
        try:
            self.boot()
        except BaseException:
            self.close()
            raise

    def install(self, build_folder):
        self.installed = self.folder / "installed"
        subprocess.run(
            ["meson", "install", "-C", build_folder, "--no-rebuild", "--destdir", self.installed],
            check=True, capture_output=True, timeout=LIMIT,
        )
        player = self.installed / PLAYER[1:]
        player.parent.mkdir(parents=True)
        shutil.copy(build_folder / "tests" / "programs" / "player", player)
        self.leave_state_of_root()

    def leave_state_of_root(self):
        """What a ttmemd that was run by hand, as root, leaves on a machine; the unit's must not meet it."""
        state = self.installed / "var/lib/ttmem"
        state.mkdir(parents=True)
        for name in ("http-token", "history.db", "tracked"):
            (state / name).write_text("of root\n")
            (state / name).chmod(0o600)

    def boot(self):
        work = self.folder / "work"
        work.mkdir()
        self.log = open(self.folder / "boot.log", "w+", encoding="utf-8")
        # The shell enters the group before it creates the cgroup namespace, whose root the group becomes.
        enter = f"echo $$ >{self.cgroup}/cgroup.procs && exec \"$@\""
        self.process = subprocess.Popen(
            ["sh", "-c", enter, "sh", "unshare", *NAMESPACES,
             "sh", ROOT / "tests" / "systemd" / "boot.sh", work, self.installed],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        self.first = wait_for(self.find_first, "the first process")
        self.enter = ["nsenter", "-t", str(self.first), "--mount", "--pid", "--uts", "--ipc",
                      "--net", "--cgroup", "--wdns=/"]
        wait_for(lambda: self.run("systemctl", "is-active", "boot.target").stdout == "active\n",
                 "the machine to start")

    def find_first(self):
        code = self.process.poll()
        if code is not None:
            self.log.seek(0)
            said = self.log.read().strip().replace("\n", "; ")
            if code == BOOT_REFUSED or "unshare" in said:
                pytest.skip(f"no machine can be made here: {said}")
            raise AssertionError(f"the machine ended with {code}: {said}")
        with contextlib.suppress(OSError, ValueError):
            (pid,) = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children") \
                .read_text().split()
            if "systemd" in os.readlink(f"/proc/{pid}/exe"):
                return int(pid)
        return None

    def run(self, *words, **options):
        """A command in the machine."""
        return subprocess.run(
            [*self.enter, *map(str, words)], capture_output=True, text=True, timeout=LIMIT,
            **options,
        )

    def text(self, *words):
        result = self.run(*words)
        assert result.returncode == 0, (words, result.stdout, result.stderr)
        return result.stdout

    def show(self, name, unit="ttmemd.service"):
        return self.text("systemctl", "show", "--value", "-p", name, unit).strip()

    def pid(self, unit="ttmemd.service"):
        """The daemon's pid in the machine; 0 = it is not running."""
        return int(self.show("MainPID", unit))

    def journal(self, unit="ttmemd.service"):
        return self.text("journalctl", "--no-pager", "-o", "cat", "-u", unit)

    def settings(self, name, text, unit="ttmemd.service"):
        """A drop-in for the service; "" removes it."""
        folder = f"/etc/systemd/system/{unit}.d"
        self.text("mkdir", "-p", folder)
        if text:
            self.run("tee", f"{folder}/{name}.conf", input=text)
        else:
            self.text("rm", "-f", f"{folder}/{name}.conf")
        self.text("systemctl", "daemon-reload")

    def player(self, *lines, user=0, **settings):
        player = InnerPlayer(self, user, settings)
        self.players.append(player)
        player.play(*lines)
        return player

    def close(self):
        for player in self.players:
            player.process.kill()
            player.process.wait()
            player.process.stdin.close()
            player.process.stdout.close()
        if self.first:
            # When the first process ends, all others do.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.first, 9)
        self.process.kill()
        self.process.wait()
        self.log.close()
        wait_for(self.remove_cgroup, "the control group to be empty")

    def remove_cgroup(self):
        with contextlib.suppress(OSError):
            for folder, _, _ in os.walk(self.cgroup, topdown=False):
                os.rmdir(folder)
        return not self.cgroup.exists()
