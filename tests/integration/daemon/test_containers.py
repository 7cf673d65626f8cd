# SPDX-License-Identifier: Apache-2.0
"""What docs/containers.md promises, with the namespaces that containers are made of.

That a process in a pid namespace of its own is right is in test_daemon.py.
"""

import os
import signal
from pathlib import Path

import pytest

from common import AS_NOBODY, NOBODY
from machine import own_cgroup
from world import used, wait_for

# A user namespace in which nobody is root, and processes of its own: a rootless container.
ROOTLESS = (*AS_NOBODY, "unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others")


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    # Everybody may reach the programs and the socket.
    for folder in ttmemd.folder.parents:
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    return ttmemd


def processes(daemon, **options):
    found = daemon.json("ps", env=daemon.blind, **options)["processes"]
    return {process["pid"]: process for process in found}


def inner(player):
    """The process behind "unshare --fork"."""
    def children():
        path = Path(f"/proc/{player.pid}/task/{player.pid}/children")
        return path.read_text().split()

    (pid,) = wait_for(children, "the process in the namespace")
    return int(pid)


def wait_until_seen(daemon, pid):
    return wait_for(lambda: processes(daemon).get(pid), f"pid {pid}")


def wait_for_leak(daemon, pid):
    line = f"Process {pid} exited but left 1 buffers allocated:"
    wait_for(lambda: line in daemon.text(), f"the leak report of {pid}")


def test_a_folder_mounted_read_only_is_enough(daemon):
    # No second look at /proc within this test: it can only have been handed over.
    daemon.start("--scan-interval", "1d")
    mount = f"mount --bind {daemon.folder} {daemon.folder} && " \
            f"mount -o remount,bind,ro {daemon.folder} && ! touch {daemon.folder}/x && exec \"$@\""
    player = daemon.player("alloc 0 DRAM 0x1000 64",
                           before=("unshare", "--mount", "sh", "-c", mount, "sh"))
    wait_until_seen(daemon, player.pid)
    player.kill()
    wait_for_leak(daemon, player.pid)


@pytest.mark.other_user
@pytest.mark.parametrize("mounted", [True, False])
def test_a_user_namespace(daemon, mounted):
    """The host's numbers count, whatever the process is called inside."""
    daemon.start("--scan-interval", "1d" if mounted else "1")
    player = daemon.player("alloc 0 DRAM 0x1000 64 weights", before=ROOTLESS,
                           TTMEM_SOCKET=str(daemon.socket) if mounted else "none")
    pid = inner(player)
    process = wait_until_seen(daemon, pid)
    assert (process["user_id"], process["book_user_id"], process["ns_pid"]) == (NOBODY, NOBODY, 1)
    assert used(daemon.json("smi", env=daemon.blind), pid) == {(0, "DRAM"): 64}
    os.kill(pid, signal.SIGKILL)
    wait_for_leak(daemon, pid)


@pytest.mark.other_user
def test_root_inside_is_nobody_outside(daemon):
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 64 secret")
    wait_until_seen(daemon, player.pid)
    own = daemon.player("alloc 0 DRAM 0x2000 32 mine", before=AS_NOBODY)
    wait_until_seen(daemon, own.pid)

    # The totals are everybody's, what is in them is not.
    shown = daemon.json("smi", before=ROOTLESS, env=daemon.blind)
    assert used(shown, player.pid) == {(0, "DRAM"): 64}
    result = daemon.run("buffers", "--json", before=ROOTLESS, env=daemon.blind)
    # Not even what the same user has outside: another namespace is another user.
    assert result.returncode == 0 and "mine" not in result.stdout and "secret" not in result.stdout
    inside = daemon.player("alloc 0 DRAM 0x3000 16 inside", before=ROOTLESS)
    wait_until_seen(daemon, inner(inside))
    outside = daemon.run("buffers", "--json", before=AS_NOBODY, env=daemon.blind)
    assert "mine" in outside.stdout and "inside" not in outside.stdout


def test_the_id_of_the_container(daemon):
    group = own_cgroup()
    scope = group / f"docker-{'0123456789abcdef' * 4}.scope"
    scope.mkdir()
    try:
        daemon.start()
        enter = f'echo $$ >{scope}/cgroup.procs && exec "$@"'
        player = daemon.player("alloc 0 DRAM 0x1000 64", before=("sh", "-c", enter, "sh"))
        process = wait_until_seen(daemon, player.pid)
        assert process["container"] and process["container"] in scope.name
        player.kill()
    finally:
        def removed():
            try:
                scope.rmdir()
                group.rmdir()
            except OSError:
                pass
            return not group.exists()

        wait_for(removed, "the control group to be empty")
