# SPDX-License-Identifier: Apache-2.0
"""What processes declare about devices: their word counts for their own rows, and for no more."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from common import AS_NOBODY, NOBODY, become
from machines import Machine
from world import wait_for

MALLORY = 54321
ALICE = 54322
DEVICES = 1024
PROCESSES = 100
ANSWERS = 10
LOOKS = 2048  # WIDE_BOOKS_LOOKS_MAX

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others"),
]


@pytest.fixture
def machine(ttmemd):
    machine = Machine(ttmemd.folder / "machine")
    for name in ("TTMEM_SHM_DIR", "TTMEM_SYS_ROOT", "TTMEM_DEV_ROOT"):
        ttmemd.env[name] = machine.env()[name]
    return machine


@pytest.fixture
def daemon(ttmemd, machine):
    for parent in (*ttmemd.folder.parents, ttmemd.folder):
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    ttmemd.start("--http", "127.0.0.1:0")
    return ttmemd


def get(daemon, path="/api/v1/smi"):
    status, body = daemon.fetch(path, token=True)
    assert status == 200, body
    return body


def smi(daemon):
    return json.loads(get(daemon))


def gauge(daemon, name):
    (line,) = [line for line in get(daemon, "/metrics").splitlines() if line.startswith(f"ttmem_{name} ")]
    return int(line.split()[1])


def flood(daemon, seeds, mode="devices"):
    """Processes of one user with made-up devices; returns when the daemon has all of them."""
    command = [*become(MALLORY), daemon.build / "tests" / "programs" / "hostile", mode, DEVICES]
    processes = [
        daemon.adopt(
            subprocess.Popen([str(word) for word in (*command, seed)], env={**daemon.env, "TTMEM": "1"},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        )
        for seed in seeds
    ]
    for process in processes:
        assert process.stdout.readline()
        process.stdout.close()
    wait_for(lambda: daemon.json("status")["books"] > len(processes), "all of them")
    return processes


def cost(daemon, path):
    """Bytes of an answer, and the daemon's processor time for one."""

    def spent():
        fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    get(daemon, path)
    before = spent()
    length = max(len(get(daemon, path)) for _ in range(ANSWERS))
    return length, (spent() - before) / ANSWERS


def end(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def test_a_user_with_many_made_up_devices_costs_no_more_than_with_one_process(daemon, record_property):
    victim = daemon.player("alloc 7 DRAM 0x1000 77", before=become(ALICE))
    wait_for(lambda: daemon.json("status")["books"] == 1, "the process")
    paths = ("/api/v1/smi", "/metrics")
    first = flood(daemon, [PROCESSES])
    alone = {path: cost(daemon, path) for path in paths}
    one = smi(daemon)["totals"]["bytes"] - 77
    end(first)
    wait_for(lambda: daemon.json("status")["books"] == 1, "the end of the first")
    processes = flood(daemon, range(PROCESSES))
    # Each book is read once to be summed up. Then it is only compared: its header, and what was used.
    wait_for(lambda: 0 < gauge(daemon, "devices_looks") <= PROCESSES * (1 + DEVICES // 64), "the sums")
    crowded = {path: cost(daemon, path) for path in paths}
    record_property("cost", {"alone": alone, "crowded": crowded})
    print(alone, crowded)
    for path in paths:
        assert crowded[path][0] <= 2 * alone[path][0], (alone, crowded)

    document = smi(daemon)
    rows = [d for d in document["devices"] if d["declared_by"] and d["declared_by"]["user_id"] == MALLORY]
    (summed,) = [d for d in rows if "summed" in d]
    assert len(rows) <= DEVICES + 1
    parts = [part for p in document["processes"] if p["user_id"] == MALLORY for part in p["devices"]]
    assert len(parts) == DEVICES + PROCESSES
    assert summed["summed"] == (PROCESSES - 1) * DEVICES == document["not_taken"]["devices"]
    assert one > 0 and document["totals"]["bytes"] == PROCESSES * one + 77
    assert sum(part["memory"]["DRAM"]["used"] for part in parts) == PROCESSES * one
    mine = next(p for p in document["processes"] if p["pid"] == victim.pid)
    assert mine["devices"][0]["memory"]["DRAM"]["used"] == 77
    findings = json.loads(daemon.run("doctor", "--json").stdout)["findings"]
    assert {"devices-many", "capacity-refused"} <= {finding["id"] for finding in findings}
    metrics = get(daemon, "/metrics")
    assert f"ttmem_devices_summed {(PROCESSES - 1) * DEVICES}\n" in metrics
    assert f"ttmem_capacities_refused {PROCESSES * DEVICES}\n" in metrics
    assert 'ttmem_device_bytes{device="7",uid="",type="DRAM"} 77\n' in metrics
    assert "ttmem_devices_old 0\n" in metrics
    end(processes)


def test_devices_that_change_all_the_time_are_read_in_turn(daemon):
    victim = daemon.player("alloc 7 DRAM 0x1000 77", before=become(ALICE))
    processes = flood(daemon, range(12), "busy-devices")
    for _ in range(2):  # a book is read whole when it is first seen, and when it is first summed up
        get(daemon)
    wait_for(lambda: gauge(daemon, "devices_old") > 0, "more changes than may be read")
    for i in range(5):
        victim.play(f"alloc 7 DRAM {0x2000 + 0x1000 * i:#x} 100")
        document = smi(daemon)
        mine = next(p for p in document["processes"] if p["pid"] == victim.pid)
        assert mine["exact"] and mine["devices"][0]["memory"]["DRAM"]["used"] == 77 + 100 * (i + 1)
        assert gauge(daemon, "devices_looks") < LOOKS + DEVICES + 2 * DEVICES // 64 + 2
    old = wait_for(lambda: [note for note in smi(daemon)["notes"] if "had no turn" in note],
                   "a note")
    assert len(old) == 1 and f"user {MALLORY}: " in old[0]

    for process in processes:
        process.send_signal(signal.SIGSTOP)
    wait_for(lambda: gauge(daemon, "devices_old") == 0, "their turns")
    document = smi(daemon)
    assert not [note for note in document["notes"] if "had no turn" in note]
    assert document["totals"]["bytes"] == daemon.json("smi")["totals"]["bytes"] > 77
    end(processes)


def test_a_card_that_appears_is_never_in_a_sum(daemon, machine):
    daemon.player("alloc 7 DRAM 0x1000 77", before=become(ALICE))
    flood(daemon, [1, 2, 3])
    wait_for(lambda: gauge(daemon, "devices_looks") and gauge(daemon, "devices_summed") == 2 * DEVICES, "the sums")
    machine.card(0, "n150", "wormhole_b0", chip=3 << 32 | 961, serial=7)
    for _ in range(3):  # the first answer is as right as later ones
        document = smi(daemon)
        (card,) = [device for device in document["devices"] if device["present"]]
        assert card["memory"]["DRAM"]["used"] == 16 and card["joined"] == "uid"
        assert document["not_taken"]["devices"] == 2 * DEVICES - 1


def test_a_card_that_one_user_declares_is_that_users_word(daemon):
    player = daemon.player("device 0 0x77 evil evilcard 0 4096 0", "alloc 0 DRAM 0x1000 77", before=become(MALLORY))
    wait_for(lambda: any(p["pid"] == player.pid for p in smi(daemon)["processes"]), "the process")
    (device,) = smi(daemon)["devices"]
    assert device["card"] == "evilcard" and device["declared_by"] == {"user": str(MALLORY), "user_id": MALLORY}
    for reader in ((), AS_NOBODY):
        text = daemon.run("smi", before=reader).stdout
        assert "0u |" in text and "u: all that is shown of it is the word of one user" in text
    text = daemon.run("smi", before=become(MALLORY)).stdout
    assert "0 |" in text and "word of one user" not in text


@pytest.mark.parametrize("first", [MALLORY, ALICE])
def test_no_user_says_for_others_what_a_card_is(daemon, first):
    words = {MALLORY: "device 0 0x77 evil evilcard 0 4096 0", ALICE: "device 0 0x77 wormhole_b0 n150 0 1024 0"}
    for user in (first, MALLORY + ALICE - first):
        player = daemon.player(words[user], "alloc 0 DRAM 0x1000 77", before=become(user))
        wait_for(lambda pid=player.pid: any(p["pid"] == pid for p in smi(daemon)["processes"]), "the process")
        time.sleep(0.02)  # start times have ticks
    (device,) = smi(daemon)["devices"]
    assert device["card"] is None and device["arch"] is None and device["declared_by"] is None
    assert device["memory"]["DRAM"]["capacity"] is None and device["memory"]["DRAM"]["used"] == 154


def test_sizes_that_no_card_has_are_refused(daemon):
    player = daemon.player(f"device 0 0x77 evil evilcard 0 {1 << 63} {1 << 62}", "alloc 0 DRAM 0x1000 77",
                           before=become(NOBODY))
    wait_for(lambda: any(p["pid"] == player.pid for p in smi(daemon)["processes"]), "the process")
    document = smi(daemon)
    assert document["devices"][0]["memory"]["DRAM"]["capacity"] is None
    assert document["not_taken"] == {"capacities": 2, "devices": 0, "regions": 0}
    assert "ttmem_capacities_refused 2\n" in get(daemon, "/metrics")
    findings = json.loads(daemon.run("doctor", "--json").stdout)["findings"]
    (found,) = [f for f in findings if f["id"] == "capacity-refused"]
    assert found["pid"] == player.pid and "2 capacities that no card has" in found["what"]
    assert "EiB" not in daemon.run("smi").stdout
