# SPDX-License-Identifier: Apache-2.0
"""Regions of tt-metal that users put into /dev/shm: what they say of others is not believed."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from common import AS_NOBODY, NOBODY, become
from machines import GIB, Region
from world import wait_for

MALLORY = 54321
CHIP = 0x77

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others"),
]


@pytest.fixture
def shm(ttmemd):
    """A /dev/shm of the test's own; ttmemd and commands look there."""
    folder = ttmemd.folder / "shm"
    folder.mkdir()
    folder.chmod(0o1777)
    ttmemd.env["TTMEM_SHM_DIR"] = str(folder)
    for parent in (*ttmemd.folder.parents, ttmemd.folder):
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    return folder


def put(shm, region, user, mode):
    """As that user."""
    path = shm / f"tt_device_{region.chip}_memory"
    subprocess.run([*become(user), "sh", "-c", f"umask 0; cat > {path}; chmod {mode:o} {path}"],
                   input=bytes(region.bytes), check=True)
    return path


def row(document, pid):
    return next((p for p in document["processes"] if p["pid"] == pid), None)


def total(document):
    return sum(device["memory"]["DRAM"]["used"] for device in document["devices"])


@pytest.mark.parametrize("reader", [(), AS_NOBODY], ids=["root", "nobody"])
@pytest.mark.parametrize("mode", [0o666, 0o644])
def test_nobody_says_what_another_users_process_holds(ttmemd, shm, reader, mode):
    victim = ttmemd.player(TTMEM="0")
    put(shm, Region(4, CHIP, 0).process(victim.pid, "victim", seconds_ago=0, DRAM=11 * GIB), MALLORY, mode)
    document = ttmemd.json("smi", before=reader)
    claim = row(document, victim.pid)
    assert claim["claim"] and claim["stale"] and not claim["alive"] and claim["user_id"] == MALLORY
    assert total(document) == 0
    assert " claim " in ttmemd.run("smi", before=reader).stdout
    findings = json.loads(ttmemd.run("doctor", "--json", before=reader).stdout)["findings"]
    (found,) = [f for f in findings if f["id"] == "region-claim"]
    assert found["pid"] == victim.pid and "11.0 GiB" in found["what"] and str(MALLORY) in found["what"]


def test_the_daemon_tells_claims_as_claims(ttmemd, shm):
    victim = ttmemd.player(TTMEM="0")
    put(shm, Region(4, CHIP, 0).process(victim.pid, "victim", seconds_ago=0, DRAM=11 * GIB), MALLORY, 0o600)
    ttmemd.start("--http", "127.0.0.1:0")
    document = ttmemd.json("smi", before=AS_NOBODY)  # cannot read it
    assert row(document, victim.pid)["claim"] and total(document) == 0
    status, body = ttmemd.fetch("/api/v1/smi", token=True)
    assert status == 200 and row(json.loads(body), victim.pid)["claim"] and total(json.loads(body)) == 0


HIDE = "import ctypes, sys; assert ctypes.CDLL(None).prctl(4, 0) == 0; print(flush=True); sys.stdin.read()"


@pytest.mark.parametrize("mode,counted", [(0o600, GIB), (0o660, 0), (0o606, 0)])
def test_a_hidden_process_counts_in_a_private_region_of_its_user_only(ttmemd, shm, mode, counted):
    """It is not dumpable: its own user may not look into it, but root may."""
    hidden = ttmemd.adopt(
        subprocess.Popen([*AS_NOBODY, "/usr/bin/python3", "-c", HIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    assert hidden.stdout.readline()
    put(shm, Region(4, CHIP, 0).process(hidden.pid, "hidden", seconds_ago=0, DRAM=GIB), NOBODY, mode)
    blind = ttmemd.json("smi", before=AS_NOBODY)
    assert total(blind) == counted and row(blind, hidden.pid)["claim"] == (counted == 0)
    seen = ttmemd.json("smi")
    assert total(seen) == 0 and row(seen, hidden.pid)["claim"]
    hidden.stdout.close()


def test_files_of_one_user_hide_no_region_of_another(ttmemd, shm):
    player = ttmemd.player(before=AS_NOBODY, TTMEM="0")
    path = put(shm, Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, DRAM=GIB), NOBODY, 0o600)
    player.play(f"map {path}")
    subprocess.run(
        [*become(MALLORY), "sh", "-c", f'for i in $(seq 1000 1399); do echo >"{shm}/tt_device_${{i}}_memory"; done'],
        check=True,
    )
    ttmemd.start("--http", "127.0.0.1:0")
    document = ttmemd.json("smi")
    assert total(document) == GIB and row(document, player.pid)["alive"]
    assert any("272 of tt-metal's regions are left out" in note for note in document["notes"])
    assert "ttmem_regions_left_out 272\n" in ttmemd.fetch("/metrics")[1]
    findings = json.loads(ttmemd.run("doctor", "--json").stdout)["findings"]
    assert [f["what"] for f in findings if f["id"] == "region-many"] == [
        f"272 of tt-metal's regions in {shm} are left out"
    ]


def test_a_row_is_the_process_of_its_namespace_and_not_who_has_that_pid_here(ttmemd, shm):
    innocent = ttmemd.player(TTMEM="0")
    outer = ttmemd.player(before=("unshare", "--pid", "--fork", "--kill-child"), TTMEM="0")
    (inner,) = wait_for(
        lambda: Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split(), "the process inside"
    )
    path = put(shm, Region(4, CHIP, 0).process(1, "player", seconds_ago=0, DRAM=GIB)
               .process(innocent.pid, "player", seconds_ago=0, DRAM=7), 0, 0o666)
    outer.play(f"map {path}")
    document = ttmemd.json("smi")
    assert total(document) == GIB
    assert row(document, int(inner))["alive"] and row(document, int(inner))["ns_pid"] == 1
    assert row(document, innocent.pid)["claim"] and not row(document, 1)
