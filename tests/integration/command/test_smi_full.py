# SPDX-License-Identifier: Apache-2.0
"""ttmem smi where memory is full: bars count processes that are not tracked, and full regions are shown."""

from machines import Machine, Region

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
CARD = f"wormhole_b0 n150 0 {12 * GIB} {96 * MIB} 12"


def line_of(text, word):
    (line,) = [line for line in text.splitlines() if word in line]
    return line


def test_a_bar_counts_processes_that_are_not_tracked(world, tmp_path):
    """11 GiB of the one that only a region reports, beside 12 MiB whose share of the banks is known."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.card(0, "n150", "wormhole_b0", chip=7)
    untracked = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(4, 7, 0).process(untracked.pid, "player", seconds_ago=0, DRAM=11 * GIB))
    world.player(f"device 0 0x7 {CARD}", f"place 0 DRAM 0x0 {12 * MIB} 0 {MIB} 12")
    text = world.text("smi")
    assert "91.8%" in line_of(text, "| DRAM ")
    (device,) = world.json("smi")["devices"]
    assert device["memory"]["DRAM"]["used"] == 11 * GIB + 12 * MIB
    assert device["memory"]["DRAM"]["occupied"] is None


def test_a_full_region_has_a_line_of_its_own(world):
    player = world.player(f"device 0 0x7 {CARD}", f"window 0 TRACE 0x3ff00000 {72 * KIB} 12",
                          f"window 0 L1_SMALL 0x160000 {16 * KIB} 64",
                          f"place 0 L1_SMALL 0x160000 {4 * KIB} 0 {4 * KIB} 1",
                          f"place 0 TRACE 0x3ff00000 {12 * 36 * KIB} 0 {36 * KIB} 12")
    assert "region" not in world.text("smi")  # half full, and nearly empty
    player.play(f"place 0 TRACE 0x3ff09000 {12 * 36 * KIB} 0 {36 * KIB} 12")
    for columns in (80, 120):
        text = world.run("smi", env={**world.env, "COLUMNS": str(columns)}).stdout
        line = line_of(text, "region TRACE:")
        assert "864.0 KiB /  864.0 KiB" in line and "100% |" in line
        assert len({len(line) for line in text.splitlines() if line.startswith(("|", "+"))}) == 1
        assert "region L1_SMALL:" not in text
    player.play(f"place 0 L1_SMALL 0x161000 {64 * 12 * KIB} 0 {12 * KIB} 64")
    assert " 75" not in line_of(world.text("smi"), "region TRACE:")
    player.play(f"free 0 L1_SMALL 0x160000", f"place 0 L1_SMALL 0x164000 {64 * 4 * KIB} 0 {4 * KIB} 64")
    assert "100% |" in line_of(world.text("smi"), "region L1_SMALL:")
