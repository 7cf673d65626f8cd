# SPDX-License-Identifier: Apache-2.0
"""ttmem smi --host: several machines in one table, each with a daemon of its own."""

import json
import re
import socket
import threading

import pytest

from ttmemd import Ttmemd
from world import check_schema, wait_for


@pytest.fixture
def hosts(ttmemd, build, clean_env, tmp_path):
    """Two daemons, each with a process that reported to it."""
    other = Ttmemd(build, clean_env, tmp_path)
    where = []
    for daemon, size in ((ttmemd, 1048576), (other, 3145728)):
        # Of its own processes only, as on machines of their own.
        blind = daemon.folder / "blind"
        blind.mkdir()
        daemon.start("--http", "127.0.0.1:0", env={"TTMEM_PROC_ROOT": str(blind)})
        found = wait_for(lambda: re.findall(r"http://([\d.:]+)/", daemon.text()), "the address")
        where.append(found[-1])
        player = daemon.player()
        (blind / str(player.pid)).symlink_to(f"/proc/{player.pid}")
        player.play("device 0 0x1 wormhole_b0 n150 0 1073741824 1048576", f"alloc 0 DRAM 0x1000 {size}")
        wait_for(lambda: daemon.json("status")["books"] == 1, "the process")
    yield ttmemd, where
    other.close()


def test_two_machines(hosts):
    daemon, where = hosts
    shown = daemon.run("smi", "--host", where[0], "--host", where[1])
    assert shown.returncode == 0 and shown.stderr == ""
    rows = [re.split(r"\s{2,}", line.strip()) for line in shown.stdout.splitlines()]
    assert rows[0][0] == "HOST"
    assert [rows[1][0], rows[2][0]] == where
    assert "1.0 MiB" in rows[1] and "3.0 MiB" in rows[2]
    assert "n150 wormhole_b0" in shown.stdout
    assert shown.stdout.endswith("4.0 MiB of DRAM and 0 B of L1 in 2 buffers, 2 processes\n")


def test_json(hosts):
    daemon, where = hosts
    shown = daemon.run("smi", "--host", where[0], "--host", "127.0.0.1:1", "--json")
    assert shown.returncode == 1
    document = check_schema(json.loads(shown.stdout))
    first, second = document["hosts"]
    check_schema(first["smi"])
    assert first["smi"]["totals"]["bytes"] == 1048576 and first["problem"] is None
    assert second == {"host": "127.0.0.1:1", "smi": None, "problem": second["problem"]}
    assert second["problem"]


def test_one_that_hangs_and_one_that_talks_nonsense(hosts):
    daemon, where = hosts
    with socket.socket() as silent, socket.socket() as odd:
        for server in (silent, odd):
            server.bind(("127.0.0.1", 0))
            server.listen()

        def answer():
            connection, _ = odd.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n{\"schema\": \"other/1\"}")

        threading.Thread(target=answer, daemon=True).start()
        names = [f"127.0.0.1:{server.getsockname()[1]}" for server in (silent, odd)]
        shown = daemon.run("smi", "--host", names[0], "--host", where[0], "--host", names[1])
    assert shown.returncode == 1
    assert "1.0 MiB" in shown.stdout
    assert re.search(rf"^{names[0]}  \(.*[Tt]ime", shown.stdout, re.M)
    assert f"{names[1]}  (its answer is no ttmem.smi)" in shown.stdout


@pytest.mark.parametrize("name", ["", "a/b", "user@host", "a b"])
def test_names_that_are_none(ttmemd, name):
    assert ttmemd.run("smi", "--host", name).returncode == 2


def test_only_once_and_not_as_csv(ttmemd):
    assert ttmemd.run("smi", "--host", "a", "--csv").returncode == 2
    assert ttmemd.run("smi", "--host", "a", "-w").returncode == 2
