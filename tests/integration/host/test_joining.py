# SPDX-License-Identifier: Apache-2.0
"""Which card a process's memory is on: real processes with nodes open, cards made of files."""

import os
import stat
import subprocess

import pytest

from conftest import LIMIT
from machines import GIB, MIB, Machine, Region

N150 = 12 * GIB
SERIAL = 0x0100014511732031


@pytest.fixture
def machine(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    machine.proc = world.root  # with links to real processes
    world.env.update({**machine.env(), "TTMEM_PROC_ROOT": str(world.root)})
    return machine


def cards(machine, count, *, chip=None, serial=SERIAL, kind="n150"):
    for number in range(count):
        machine.card(number, kind, "wormhole_b0", chip=chip and chip + number, serial=serial and serial + number)


def dram(document):
    """[(device, used, capacity, joined)] of the rows."""
    return [(row["device"], row["memory"]["DRAM"]["used"], row["memory"]["DRAM"]["capacity"], row["joined"])
            for row in document["devices"]]


def test_a_client_that_says_only_a_number_is_on_the_card_it_has_open(world, machine):
    """One row: the card's, with its capacity, in text, JSON and fit."""
    cards(machine, 1, chip=0x4D)
    player = world.player(f"alloc 0 DRAM 0x1000 {3 * GIB}", opened=[machine.node(0)])
    machine.opened(0, player.pid)
    document = world.json("smi")
    assert dram(document) == [(0, 3 * GIB, N150, "open")]
    (part,) = document["processes"][0]["devices"]
    assert (part["uid"], part["joined"], part["node"]) == ("0x4d", "open", 0)
    text = world.text("smi")
    assert "unknown card" not in text and "0o" in text and "o: told by the nodes" in text
    assert world.json("buffers")["buffers"][0]["device_uid"] == "0x4d"


def test_hidden_cards_shift_numbers_but_not_memory(world, machine):
    """Two processes on cards 1 and 3, which each of them calls 0."""
    cards(machine, 4, chip=0x40)
    for number in (1, 3):
        player = world.player(f"alloc 0 DRAM 0x1000 {(7 + number) * GIB}", opened=[machine.node(number)],
                              TT_VISIBLE_DEVICES=str(number))
        machine.opened(number, player.pid)
    document = world.json("smi")
    assert dram(document) == [(0, 0, N150, None), (1, 8 * GIB, N150, "open"), (2, 0, N150, None),
                              (3, 10 * GIB, N150, "open")]


def test_the_environment_only_hides_cards(world, machine):
    """Its order means nothing: UMD takes it for a set."""
    cards(machine, 4, chip=0x40)
    world.player(f"alloc 0 DRAM 0x1000 {GIB}", f"alloc 1 DRAM 0x1000 {2 * GIB}",
                 opened=[machine.node(1), machine.node(3)], TT_VISIBLE_DEVICES="3,1")
    document = world.json("smi")
    assert [row[1] for row in dram(document)] == [0, GIB, 0, 2 * GIB]
    assert document["notes"] == []


def reverse(machine, count):
    """Cards that were bound to the driver in the reverse order of their bus addresses."""
    for number in range(count):
        machine.card(number, "n150", "wormhole_b0", chip=0x40 + number, bus=f"0000:{count - number:02x}:00.0")


@pytest.mark.parametrize("visible, nodes, used", [
    (None, (0, 1), [2, 1]), ("1,0", (0, 1), [2, 1]), ("0", (0, 1), [0, 1]), ("1", (0,), [1, 0]),
    ("0000:01:00.0", (0, 1), [0, 1]), ("02:00", (0,), [1, 0]), ("0", (0,), [1, 0])])
def test_nodes_are_numbered_by_bus_address(world, machine, visible, nodes, used):
    """Device 0 is the first on the bus, which is node 1 here. The last case is an older UMD's: an index is a node."""
    reverse(machine, 2)
    settings = {} if visible is None else {"TT_VISIBLE_DEVICES": visible}
    lines = [f"alloc {device} DRAM 0x1000 {device + 1}" for device in range(sum(map(bool, used)))]
    world.player(*lines, opened=[machine.node(n) for n in nodes], **settings)
    document = world.json("smi")
    assert [row[1] for row in dram(document)] == used
    notes = [note for note in document["notes"] if "order of bus addresses" in note]
    assert len(notes) == (len(nodes) > 1 and len(lines) > 1)


def test_the_numbers_of_an_old_umd_are_by_asic_id(world, machine, tmp_path):
    """Its version is that of the library that the process has mapped."""
    reverse(machine, 2)
    library = tmp_path / "libtt-umd.so.0.9.1"
    library.write_bytes(b"x" * 4096)
    player = world.player("alloc 0 DRAM 0x1000 1", "alloc 1 DRAM 0x1000 2",
                          opened=[machine.node(0), machine.node(1)])
    assert [row[1] for row in dram(world.json("smi"))] == [2, 1]
    player.play(f"map {library}")
    document = world.json("smi")
    assert [row[1] for row in dram(document)] == [1, 2] and document["notes"] == []


@pytest.mark.parametrize("kind, trays", [("wormhole", "c804"), ("blackhole", "04c8")])
def test_a_galaxy_is_numbered_by_bus_address_though_its_nodes_are_by_tray(world, machine, kind, trays):
    """As tt-kmd numbers them: eight nodes for each tray, in the order of the trays."""
    arch = "wormhole_b0" if kind == "wormhole" else kind
    buses = [f"0000:{tray}{place}:00.0" for tray in trays for place in range(1, 9)]
    for number, bus in enumerate(buses):
        machine.card(number, f"galaxy-{kind}", arch, chip=0x6A00 + number, bus=bus)
    player = world.player(*(f"alloc {n} DRAM 0x1000 {n + 1}" for n in range(32)),
                          opened=[machine.node(n) for n in range(32)])
    for number in range(32):
        machine.opened(number, player.pid)
    used = {row["bus"]: row["memory"]["DRAM"]["used"] for row in world.json("smi")["devices"]}
    assert used == {bus: place + 1 for place, bus in enumerate(sorted(buses))}


def test_ids_made_of_serial_and_place_are_the_cards(world, machine):
    """Four boards of two chips each, of which the driver shows one; it publishes no ASIC ids: eight rows."""
    cards(machine, 4, kind="n300")
    lines = []
    for board in range(4):
        for place in range(2):
            device = board + 4 * place
            uid = (SERIAL + board << 8 | place) & (1 << 64) - 1
            lines.append(f"device {device} {uid:#x} wormhole_b0 n300 {place} {N150} 0")
            lines.append(f"alloc {device} DRAM 0x1000 {(device + 1) * MIB}")
    world.player(*lines, opened=[machine.node(n) for n in range(4)])
    document = world.json("smi")
    assert [row[1] for row in dram(document)] == [(n + 1) * MIB for n in range(8)]
    assert [row["present"] for row in document["devices"]] == [True] * 4 + [False] * 4
    assert [row["remote"] for row in document["devices"]] == [False] * 4 + [True] * 4


def test_two_chips_of_one_board_are_two_rows(world, machine):
    for number in range(2):
        machine.card(number, "p300b", "blackhole", serial=SERIAL)
    uids = [(SERIAL << 8 | place) & (1 << 64) - 1 for place in range(2)]
    world.player(*(f"device {n} {uids[n]:#x} blackhole p300b 0 1024 0" for n in range(2)),
                 "alloc 1 DRAM 0x1000 4096", opened=[machine.node(n) for n in range(2)])
    document = world.json("smi")
    assert [(row[0], row[1], row[3]) for row in dram(document)] == [(0, 0, "board"), (1, 4096, "board")]


def test_the_own_row_of_a_region_names_the_chip(world, machine):
    """A tracked process without an id, and a stock one: one chip, one row. There is no driver here."""
    tracked = world.player("alloc 0 DRAM 0x1000 4096")
    stock = world.player(TTMEM="0")
    region = Region(4, 0x1111, 0)
    region.process(tracked.pid, "player", seconds_ago=0, DRAM=4096)
    region.process(stock.pid, "player", seconds_ago=0, DRAM=GIB)
    path = machine.region(region)
    for player in (tracked, stock):
        player.play(f"map {path}")
    document = world.json("smi")
    assert [(row["uid"], row["joined"]) for row in document["devices"]] == [("0x1111", "region")]
    assert document["devices"][0]["memory"]["DRAM"]["used"] == GIB + 4096


def test_eight_chips_that_a_tracked_and_a_stock_process_share_are_eight_rows(world, machine):
    tracked = world.player(*(f"alloc {n} DRAM 0x1000 {n + 1}" for n in range(8)))
    stock = world.player(TTMEM="0")
    for n in range(8):
        region = Region(4, 0x2000 + n, n)
        region.process(tracked.pid, "player", seconds_ago=0, DRAM=n + 1)
        region.process(stock.pid, "player", seconds_ago=0, DRAM=MIB)
        path = machine.region(region)
        for player in (tracked, stock):
            player.play(f"map {path}")
    assert [row[1] for row in dram(world.json("smi"))] == [MIB + n + 1 for n in range(8)]


def test_the_drivers_facts_win_over_declared_ones(world, machine):
    cards(machine, 1, chip=0x4D)
    world.player(f"device 0 0x4d blackhole evilcard 1 {1 << 39} 0", "alloc 0 DRAM 0x1000 4096",
                 opened=[machine.node(0)])
    document = world.json("smi")
    (row,) = document["devices"]
    assert (row["card"], row["arch"], row["remote"]) == ("n150", "wormhole_b0", False)
    assert row["memory"]["DRAM"]["capacity"] == N150
    assert any("another card" in note for note in document["notes"])
    assert any("more DRAM" in note for note in document["notes"])


def test_a_process_without_any_node_is_on_no_card(world, machine):
    cards(machine, 1, chip=0x4D)
    world.player("alloc 0 DRAM 0x1000 4096")
    document = world.json("smi")
    assert sorted((row["present"], row["joined"], row["memory"]["DRAM"]["used"]) for row in document["devices"]) == [
        (False, "by_number", 4096), (True, None, 0)]
    assert "?: not known which card" in world.text("smi")


def test_an_inherited_node_counts_for_who_holds_it(world, machine):
    """The driver names the opener, which has ended; a child has the node. A stranger with the pid has not."""
    cards(machine, 2, chip=0x40)
    gone = subprocess.Popen(["true"])
    gone.wait(timeout=LIMIT)
    stranger = world.player(TTMEM="0")
    child = world.player("alloc 0 DRAM 0x1000 4096", opened=[machine.node(1)])
    machine.opened(1, gone.pid, stranger.pid)
    document = world.json("smi")
    assert [row[1] for row in dram(document)] == [0, 4096]
    assert [process["pid"] for process in document["processes"]] == [child.pid]
    assert [row["openers_ended"] for row in document["devices"]] == [0, 2]
    assert any("who inherited the node" in note for note in document["notes"])


def test_an_untracked_child_that_inherited_a_node_is_named(world, machine):
    """Its parent opened the node and has ended."""
    cards(machine, 1, chip=0x40)
    gone = subprocess.Popen(["true"])
    gone.wait(timeout=LIMIT)
    machine.opened(0, gone.pid)
    (row,) = world.json("smi")["devices"]
    assert row["openers_ended"] == 1  # nobody is seen to have it, but the driver says that somebody has
    child = world.player(TTMEM="0", opened=[machine.node(0)])
    document = world.json("smi")
    assert [(p["pid"], p["untracked"]) for p in document["processes"]] == [(child.pid, True)]
    assert document["devices"][0]["openers_ended"] == 1


@pytest.mark.needs_root
def test_a_node_that_was_made_elsewhere_is_known_by_its_device_number(world, machine, tmp_path):
    """As with mknod for a container. Here the card has the number of /dev/null, which can be opened."""
    cards(machine, 2, chip=0x40)
    machine.write(machine.class_folder(1) / "dev", "1:3")
    os.mknod(tmp_path / "x0", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    tracked = world.player("alloc 0 DRAM 0x1000 4096", opened=[tmp_path / "x0"])
    untracked = world.player(TTMEM="0", opened=[tmp_path / "x0"])
    machine.opened(1, tracked.pid, untracked.pid)
    world.player(TTMEM="0", opened=[machine.node(1)])  # or the driver would be believed for want of another
    document = world.json("smi")
    assert [row[1] for row in dram(document)] == [0, 4096]
    assert {p["pid"]: p["untracked"] for p in document["processes"]} == {tracked.pid: False, untracked.pid: True}
    assert [row["openers_ended"] for row in document["devices"]] == [0, 0]


@pytest.mark.needs_root
def test_a_node_with_the_name_of_another_is_the_card_of_its_device_number(world, machine):
    """A container may give a node any name."""
    cards(machine, 2, chip=0x40)
    machine.write(machine.class_folder(1) / "dev", "1:3")
    machine.node(0).unlink()
    os.mknod(machine.node(0), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    player = world.player("alloc 0 DRAM 0x1000 4096", opened=[machine.node(0)])
    machine.opened(1, player.pid)
    assert [row[1] for row in dram(world.json("smi"))] == [0, 4096]


def test_a_mapping_holds_a_card_after_its_descriptor_was_closed(world, machine):
    cards(machine, 2, chip=0x40)
    machine.node(1).write_bytes(bytes(4096))
    player = world.player(TTMEM="0")
    player.play(f"map {machine.node(1)}")
    assert str(machine.node(1)) in (world.root / str(player.pid) / "maps").read_text()
    machine.opened(1, player.pid)
    world.player(TTMEM="0", opened=[machine.node(1)])  # as above
    document = world.json("smi")
    assert [(p["pid"], p["untracked"]) for p in document["processes"]] == [(player.pid, True)]
    assert [row["openers_ended"] for row in document["devices"]] == [0, 0]


def test_an_opener_whose_files_do_not_show_the_node_is_kept_if_nobody_else_has_it(world, machine):
    """A descriptor may be on its way in a socket, for example: the driver knows."""
    cards(machine, 1, chip=0x40)
    player = world.player(TTMEM="0")
    machine.opened(0, player.pid)
    document = world.json("smi")
    assert [(p["pid"], p["untracked"]) for p in document["processes"]] == [(player.pid, True)]
    heir = world.player(TTMEM="0", opened=[machine.node(0)])  # the driver does not list it: it has inherited
    document = world.json("smi")
    assert [p["pid"] for p in document["processes"]] == [heir.pid]
    assert document["devices"][0]["openers_ended"] == 1


def test_an_opener_whose_mappings_cannot_be_read_is_kept(world, tmp_path):
    """Though another process has the card, and its own descriptors do not show it. Both exist in files only."""
    files = Machine(tmp_path / "files")
    files.card(0, "n150", "wormhole_b0", chip=0x4D)
    for pid in (4242, 4243):
        files.process(pid, "python3")
        (files.proc / str(pid) / "fd").mkdir(exist_ok=True)
    (files.proc / "4243" / "fd" / "3").symlink_to(files.node(0))
    files.opened(0, 4242)
    world.env.update(files.env())
    assert [process["pid"] for process in world.json("smi")["processes"]] == [4242]


def test_the_list_of_a_driver_is_believed_where_descriptors_cannot_be_read(world, machine, tmp_path):
    """The process is another user's: here one that exists in files only."""
    files = Machine(tmp_path / "files")
    files.card(0, "n150", "wormhole_b0", chip=0x4D)
    files.process(4242, "python3")
    files.opened(0, 4242)
    world.env.update(files.env())
    (process,) = world.json("smi")["processes"]
    assert process["untracked"] and process["devices"][0]["joined"] == "open"
    assert os.path.exists(files.node(0))


def test_filters_by_device_mean_the_card(world, machine):
    """Two processes call their card 0; -d names cards, by node or id, whatever the processes call them."""
    cards(machine, 2, chip=0x40)
    for number in range(2):
        world.player(f"alloc 0 DRAM 0x1000 {number + 1} on-{number}", opened=[machine.node(number)],
                     TT_VISIBLE_DEVICES=str(number))
    for number in range(2):
        for name in (str(number), f"{0x40 + number:#x}"):
            document = world.json("buffers", "--device", name)
            assert [(b["name"], b["device_uid"]) for b in document["buffers"]] == [
                (f"on-{number}", f"{0x40 + number:#x}")], name
    assert world.json("smi", "-d", "1")["totals"]["bytes"] == 2
    (life,) = world.json("history", "0x1000", "--device", "1")["buffers"]
    assert life["device_uid"] == "0x41" and life["events"][0]["size"] == 2
