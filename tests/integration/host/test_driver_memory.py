# SPDX-License-Identifier: Apache-2.0
"""What the driver keeps in the kernel for each process: read by root and the daemon, shown to everyone."""

import json

import pytest

from common import AS_NOBODY
from machines import GIB, MIB, Machine, n150
from world import check_schema

CHIP = 0x4D
DEVICE = f"device 0 {CHIP:#x} wormhole_b0 n150 0 12884901888 94371840"


def a_card(machine, pid, *, size=GIB):
    """A card on which a process has pinned pages, a DMA buffer and a TLB window."""
    return machine.mappings(
        0,
        (pid, "player", "OPEN_FD", ""),
        (pid, "player", "PIN_PAGES", f"VA: 0x{1 << 46:016x} -> IOVA: 0x{1 << 32:016x} (size={size:#x})"),
        (pid, "player", "DMA_BUF+IATU", f"ID: 3   -> PA: 0x{0:016x} -> NOC: 0x0 (size={MIB:#x})"),
        (pid, "player", "TLB-alloc", "ID: 7  "),
    )


def told(document):
    (process,) = document["processes"]
    (device,) = process["devices"]
    return device["driver_memory"]


def rows(text):
    return [line for line in text.splitlines() if "driver:" in line]


def test_a_table_shows_it_as_the_drivers_word(ttmem, tmp_path):
    env = n150(tmp_path / "machine").env()
    pinned, dma, tlb = rows(ttmem("smi", "--details", env=env).stdout)
    assert "driver:pinned" in pinned and "1.0 GiB" in pinned and " 4242 " in pinned
    assert "driver:dma" in dma and "2.0 MiB" in dma
    assert "driver:tlb" in tlb and "2.0 MiB" in tlb and " 2 " in tlb  # windows
    assert not rows(ttmem("smi", env=env).stdout)
    assert len(rows(ttmem("ps", env=env).stdout)) == 3


def test_it_is_in_no_total(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    machine.card(0, "n150", "wormhole_b0", chip=CHIP)
    world.env.update(TTMEM_SYS_ROOT=str(machine.sys))
    player = world.player(DEVICE, "alloc 0 DRAM 0x1000 4096")
    before = world.json("smi")
    assert told(before) is None and before["notes"] == []
    path = a_card(machine, player.pid)
    document = world.json("smi")
    check_schema(document)
    assert told(document) == {"pinned": GIB, "dma": MIB, "tlb": 0, "tlb_windows": 1}
    assert document["totals"] == {"bytes": 4096, "buffers": 1}
    assert document["devices"] == before["devices"]
    document = world.json("ps")
    check_schema(document)
    assert told(document)["pinned"] == GIB
    # Another format: not a guess, but nothing, and it is said.
    path.write_text(path.read_text().replace("(size=", "(bytes="))
    document = world.json("smi")
    assert told(document) is None
    assert [note for note in document["notes"] if "a form that is not known" in note]


@pytest.mark.other_user
def test_the_daemon_tells_who_may_not_read_it(ttmemd):
    machine = Machine(ttmemd.folder / "machine")
    machine.card(0, "n150", "wormhole_b0", chip=CHIP)
    ttmemd.env["TTMEM_SYS_ROOT"] = str(machine.sys)
    ttmemd.start("--http", "127.0.0.1:0")
    player = ttmemd.player(DEVICE, "alloc 0 DRAM 0x1000 4096")
    a_card(machine, player.pid)
    wanted = {"pinned": GIB, "dma": MIB, "tlb": 0, "tlb_windows": 1}
    for document in (
        ttmemd.json("smi"),
        ttmemd.json("smi", before=AS_NOBODY),
        ttmemd.json("ps", before=AS_NOBODY),
        json.loads(ttmemd.fetch("/api/v1/smi")[1]),
        json.loads(ttmemd.fetch("/api/v1/ps")[1]),
    ):
        assert told(document) == wanted
    assert rows(ttmemd.run("smi", "--details", before=AS_NOBODY).stdout)
    ttmemd.stop()
    player.kill()
    # Alone, another user does not know it, and is not bothered with that.
    other = ttmemd.player(DEVICE, "alloc 0 DRAM 0x1000 4096", before=AS_NOBODY)
    document = ttmemd.json("smi", before=AS_NOBODY)
    assert told(document) is None and not [n for n in document["notes"] if "driver" in n]
    other.kill()
