# SPDX-License-Identifier: Apache-2.0
"""Sample machines made of files: what the driver and tt-metal would show for cards that are not here.

A machine is four folders, which TTMEM_PROC_ROOT, TTMEM_SYS_ROOT, TTMEM_DEV_ROOT and TTMEM_SHM_DIR name. The
functions at the end create whole machines; tests modify them as needed. Names, units and texts of the driver's files are
those of tt-kmd 2.10. One thing ordinary files cannot do: fail with ENODATA, as the driver's do during a reset.
Here such a file is empty, which small_file_read_line() reports as the same error.
"""

import os
import shutil
import struct
import time

import pytest

from common import NOBODY

READY = 0x52454459
PCI_IDS = {"wormhole_b0": "0x401e", "blackhole": "0xb140"}
# Versions of firmware, which the driver shows beside tt_fw_bundle_ver.
VERSIONS = {
    "wormhole_b0": {"m3app_fw": "5.12.0.0", "m3bl_fw": "129.2.0.0", "arc_fw": "2.37.0.0", "eth_fw": "6.15.0",
                    "ttflash": "3.4.0.0"},
    "blackhole": {"m3app_fw": "0.15.0.0"},
}
LABELS = {
    "wormhole_b0": {"temp1": "asic1_temp", "in0": "vcore1", "curr1": "current1", "power1": "power1"},
    "blackhole": {"temp1": "asic_temp", "in0": "vcore", "curr1": "current", "power1": "power", "fan1": "fan_rpm"},
}
KINDS = ["DRAM", "L1", "L1_SMALL", "TRACE", "CB", "KERNEL"]  # in the order of a region
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MAPPINGS_HEAD = """\
WARNING: This file is for diagnostic purposes only.
Its format is not stable and may change in future driver versions.
Do not write scripts that parse this file.

PID      Comm             Type           Mapping Details
----     ----             ----           ---------------
"""


class Region:
    """The bytes of a region of tt-metal; see src/source/host/region-parse.c for the layouts."""

    def __init__(self, version, chip, device):
        self.version, self.chip, self.device = version, chip, device
        wide = version == 1
        self.kinds = 6 if wide else 5
        self.chips, self.chip_size = (96, 56) if wide else (88, 48)
        self.processes, self.process_size = (992, 128) if wide else (856, 120)
        self.bytes = bytearray(9280 if wide else 8576)
        self.rows = 0
        self.totals = dict.fromkeys(KINDS, 0)
        self.put("<I", 0, version)
        self.put("<QI", 32, chip, device)
        if version > 1:
            for slot in range(16):
                self.put("<I", self.chips + slot * self.chip_size, 0xFFFFFFFF)
        if version == 4:
            self.put("<I", 8536, READY)
        self.chip_slot(0, device)

    def put(self, layout, at, *values):
        struct.pack_into(layout, self.bytes, at, *values)

    def amounts(self, at, used):
        self.put(f"<{self.kinds}Q", at, *(used.get(kind, 0) for kind in KINDS[: self.kinds]))

    def chip_slot(self, slot, number, remote=False, **used):
        at = self.chips + slot * self.chip_size
        self.put("<II", at, number, remote)
        self.amounts(at + 8, used)
        return self

    def process(self, pid, name, seconds_ago=10, **used):
        at = self.processes + self.rows * self.process_size
        self.rows += 1
        self.put("<i", at, pid)
        self.amounts(at + 8, used)
        self.put("<Q", at + 8 + 8 * self.kinds, time.monotonic_ns() - int(seconds_ago * 1e9))
        raw = name.encode()[:63]
        start = at + 16 + 8 * self.kinds
        self.bytes[start : start + len(raw)] = raw
        for kind, value in used.items():
            self.totals[kind] += value
        self.amounts(48, self.totals)
        return self


class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.proc, self.sys, self.dev, self.shm = (folder / name for name in ("proc", "sys", "dev", "shm"))
        for path in (self.proc, self.sys, self.dev, self.shm):
            path.mkdir(parents=True, exist_ok=True)

    def env(self):
        return {
            "TTMEM_PROC_ROOT": str(self.proc),
            "TTMEM_SYS_ROOT": str(self.sys),
            "TTMEM_DEV_ROOT": str(self.dev),
            "TTMEM_SHM_DIR": str(self.shm),
            "TT_ALLOC_SERVER_SOCKET": str(self.shm / "old.sock"),  # not that of this machine
        }

    def node(self, number):
        """What a process has open that uses the card."""
        path = self.dev / "tenstorrent" / str(number)
        path.parent.mkdir(exist_ok=True)
        return path

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def card(self, number, kind, arch, *, chip=None, serial=None, fan=None, bus=None, **sensors):
        """A card as the driver shows it.

        chip: tt_asic_id, which older firmware does not have; serial: of the board, shared by its chips.
        sensors: temperature (1/1000 C), power (uW), voltage (mV), current (mA), clock (MHz), the same with
        _max for the limits (those of temperature and power in the files' units too), heartbeat, trips.
        """
        card = self.class_folder(number)
        pci = self.sys / "devices" / "pci0000:00" / (bus or f"0000:{number + 1:02x}:00.0")
        self.node(number).touch()
        self.write(card / "tt_card_type", kind)
        self.write(card / "tt_aiclk", sensors.get("clock", 1000))
        self.write(card / "tt_axiclk", 900)
        self.write(card / "tt_arcclk", 540)
        self.write(card / "tt_fw_bundle_ver", "18.6.0.0")
        for name, version in VERSIONS[arch].items():
            self.write(card / f"tt_{name}_ver", version)
        if "heartbeat" in sensors:  # in a file it stands still, and a daemon takes the card for dead
            self.write(card / "tt_heartbeat", sensors["heartbeat"])
        self.write(card / "dev", f"237:{number}")
        if arch == "blackhole":
            self.write(card / "tt_therm_trip_count", sensors.get("trips", 0))
        if serial is not None:
            self.write(card / "tt_serial", f"{serial:016X}")
        if chip is not None:
            self.write(card / "tt_asic_id", f"{chip:016X}")
        self.write(pci / "vendor", "0x1e52")
        self.write(pci / "device", PCI_IDS[arch])
        self.sensors(pci / "hwmon" / f"hwmon{number + 2}", arch, fan, sensors)
        (card / "device").symlink_to(os.path.relpath(pci, card))
        return card

    def sensors(self, hwmon, arch, fan, values):
        self.write(hwmon / "name", arch.split("_")[0])
        self.write(hwmon / "temp1_input", values.get("temperature", 45375))
        self.write(hwmon / "temp1_max", values.get("temperature_max", 95000))
        self.write(hwmon / "power1_input", values.get("power", 31000000))
        self.write(hwmon / "power1_max", values.get("power_max", 300000000))
        self.write(hwmon / "in0_input", values.get("voltage", 820))
        self.write(hwmon / "in0_max", values.get("voltage_max", 1000))
        self.write(hwmon / "curr1_input", values.get("current", 38000))
        self.write(hwmon / "curr1_max", values.get("current_max", 300000))
        if arch == "blackhole":  # the driver shows no fan of a Wormhole
            self.write(hwmon / "fan1_input", 1200 if fan is None else fan)
        for name, label in LABELS[arch].items():
            self.write(hwmon / f"{name}_label", label)

    def class_folder(self, number):
        return self.sys / "class" / "tenstorrent" / f"tenstorrent!{number}"

    def hwmon(self, number):
        (folder,) = (self.class_folder(number) / "device" / "hwmon").iterdir()
        return folder

    def values(self, number):
        """The files of a card that the firmware fills."""
        hwmon = self.hwmon(number)
        values = [*self.class_folder(number).glob("tt_*")]
        return values + [path for path in hwmon.iterdir() if path.name != "name" and "label" not in path.name]

    def reset(self, number):
        """The card is in reset: its files are there and have no data. Undone by answer()."""
        saved = {path: path.read_text() for path in self.values(number)}
        for path in saved:
            path.write_text("")
        return saved

    def answer(self, saved):
        """The card is back from reset(), as it was."""
        for path, text in saved.items():
            path.write_text(text)

    def all_ones(self, number):
        """The chip has fallen off the bus: every read of it yields ones, converted as the driver does."""
        texts = {
            "tt_serial": "F" * 16, "tt_asic_id": "F" * 16, "tt_card_type": "unknown",
            **{name: "255.255.255.255" for name in
               ("tt_fw_bundle_ver", "tt_m3app_fw_ver", "tt_m3bl_fw_ver", "tt_arc_fw_ver", "tt_ttflash_ver")},
            "tt_eth_fw_ver": "255.15.4095",
            "temp1_input": 65535999, "temp1_max": 4294966296, "in0_max": 65535,
            "curr1_input": 4294966296, "curr1_max": 4294966296,
            "power1_input": 4293967296, "power1_max": 4293967296,
        }
        for path in self.values(number):
            self.write(path, texts.get(path.name, 0xFFFFFFFF))

    def remove(self, number):
        """Unbound from the driver, or removed from the bus; those who have it open still do."""
        shutil.rmtree(self.class_folder(number).resolve() / "device" / "hwmon", ignore_errors=True)
        shutil.rmtree(self.class_folder(number))
        shutil.rmtree(self.proc / "driver" / "tenstorrent" / str(number), ignore_errors=True)
        node = self.node(number)
        node.unlink()
        for link in self.proc.glob("[0-9]*/fd/*"):
            if os.readlink(link) == str(node):
                link.unlink()
                link.symlink_to(f"{node} (deleted)")

    def holds(self, pid, *numbers):
        """Open descriptors in /proc, which opened() does not make: the driver's list has openers, not holders."""
        folder = self.proc / str(pid) / "fd"
        folder.mkdir(exist_ok=True)
        first = len(list(folder.iterdir())) + 3
        for at, number in enumerate(numbers, first):
            (folder / str(at)).symlink_to(self.node(number))

    def process(self, pid, comm, user=None, age=3600, container=None):
        """Ours unless told otherwise, as the regions are."""
        user = os.getuid() if user is None else user
        hz = os.sysconf("SC_CLK_TCK")
        start = max(int((time.clock_gettime(time.CLOCK_BOOTTIME) - age) * hz), 1)
        folder = self.proc / str(pid)
        fields = " ".join(str(n) for n in range(1, 19))
        self.write(folder / "stat", f"{pid} ({comm}) S {fields} {start} 20 21")
        uids = "\t".join([str(user)] * 4)
        self.write(folder / "status", f"Name:\t{comm}\nPid:\t{pid}\nUid:\t{uids}\nNSpid:\t{pid}")
        self.write(folder / "cgroup", f"0::/docker/{container}" if container else "0::/")

    def opened(self, number, *pids):
        """A line for each open descriptor; nothing if there is none."""
        path = self.proc / "driver" / "tenstorrent" / str(number) / "pids"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{pid}\n" for pid in pids))

    def mappings(self, number, *lines):
        """The driver's file in debugfs, which only root may read; each line is (pid, comm, type, details)."""
        folder = self.sys / "kernel" / "debug"
        path = folder / "tenstorrent" / str(number) / "mappings"
        rows = [f"{pid:<8} {comm:<16} {kind:<14}{' ' if rest else ''}{rest}\n" for pid, comm, kind, rest in lines]
        path.parent.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        path.write_text(MAPPINGS_HEAD + "".join(rows))
        return path

    def region(self, region, user=0, mode=0o600, length=None):
        path = self.shm / f"tt_device_{region.chip}_memory"
        path.write_bytes(bytes(region.bytes)[:length])
        path.chmod(mode)
        if user:
            try:
                os.chown(path, user, user)
            except OSError as error:
                pytest.skip(f"files cannot be given to others here: {error}")
        return path

    def attach(self, player, chip):
        """Lets a player map the region of a chip, as every process with a row in it does."""
        path = self.shm / f"tt_device_{chip}_memory"
        path.touch(0o600)
        player.play(f"map {path}")
        return player


def n150(folder):
    """One card; a model in tt-metal, and an untracked process that has it open."""
    machine = Machine(folder)
    machine.card(0, "n150", "wormhole_b0", chip=0x1F2E3D4C5B6A7988, serial=0x0100018511732031)
    machine.process(4242, "python3", container="3f" * 32)
    machine.process(4300, "tt-smi", user=NOBODY)
    machine.opened(0, 4242, 4300)
    region = Region(4, 0x1F2E3D4C5B6A7988, 0)
    region.process(4242, "python3", DRAM=9 * GIB + 300 * MIB, L1=40 * MIB, L1_SMALL=2 * MIB, CB=6 * MIB,
                   TRACE=100 * MIB)
    region.process(999, "python3", DRAM=GIB)  # died long ago
    machine.region(region)
    machine.mappings(
        0,
        (4242, "python3", "OPEN_FD", ""),
        (4242, "python3", "PIN_PAGES", f"VA: 0x{1 << 46:016x} -> PA: 0x{1 << 32:016x} (size={GIB:#x})"),
        (4242, "python3", "DMA_BUF", f"ID: 0   -> PA: 0x{1 << 31:016x} (size={2 * MIB:#x})"),
        (4242, "python3", "TLB-alloc", "ID: 0  "),
        (4242, "python3", "TLB-alloc", "ID: 186"),
        (4242, "python3", "TLB", f"ID: 186 WC -> BAR0 + 0xba00000 (size={2 * MIB:#x})"),
        (4300, "tt-smi", "OPEN_FD", ""),
        (4300, "tt-smi", "BAR", "BAR2 UC (offset=0x0, size=0x100000)"),
    )
    return machine


def n300(folder):
    """Two cards and a remote chip, a region for each; the second card has had two numbers."""
    machine = Machine(folder)
    for number in range(2):
        machine.card(number, "n300", "wormhole_b0", chip=0xAA00 + number, serial=0x0100014511B20000 + number,
                     temperature=50000 + number * 12500, power=40000000 + number * 3600000)
    machine.process(100, "python3")
    machine.process(101, "pytest", user=NOBODY)
    machine.opened(0, 100)
    machine.opened(1, 101)
    own = Region(4, 0xAA00, 0)
    machine.region(own.process(100, "python3", DRAM=3 * GIB))
    remote = Region(4, 0xAB00, 2).chip_slot(0, 2, remote=True)
    machine.region(remote.process(100, "python3", DRAM=2 * GIB, L1=10 * MIB))
    other = Region(3, 0xAA01, 1).chip_slot(0, 1, DRAM=GIB).chip_slot(1, 0, DRAM=512 * MIB)
    machine.region(other.process(101, "pytest", DRAM=GIB + 512 * MIB), user=NOBODY)
    return machine


def p150(folder):
    """Blackhole, nearly full, in a container."""
    machine = Machine(folder)
    machine.card(0, "p150a", "blackhole", chip=0xB1ACC401E, serial=0x0000040011112222, fan=1150,
                 temperature=81250, power=212000000, clock=1350)
    machine.process(77, "vllm", container="a0" * 32)
    machine.opened(0, 77)
    machine.region(Region(4, 0xB1ACC401E, 0).process(77, "vllm", DRAM=30 * GIB, L1=180 * MIB))
    return machine


def galaxy(folder):
    """32 chips, one process that uses all of them."""
    machine = Machine(folder)
    machine.process(500, "python3")
    for number in range(32):
        chip = 0x6A1A0000 + number
        machine.card(number, "galaxy-wormhole", "wormhole_b0", chip=chip, serial=0x0100035000000000 + number,
                     temperature=40000 + number * 500)
        machine.opened(number, 500)
        machine.region(Region(4, chip, number).process(500, "python3", DRAM=GIB + number * 64 * MIB))
    return machine


def broken(folder):
    """Everything that can be wrong with files."""
    machine = Machine(folder)
    card = machine.card(0, "unknown", "wormhole_b0", chip=0xBAD)
    for name in ("tt_aiclk", "tt_axiclk"):
        (card / name).write_text("")
    (card / "tt_asic_id").write_text("no number\n")
    machine.sys.joinpath("class", "tenstorrent", "tenstorrent!7").mkdir()
    machine.process(10, "a b) c")
    machine.opened(0, 10, 11, "x", -4, 10)
    machine.region(Region(4, 1, 0).process(10, "half", DRAM=GIB), length=4000)  # being created
    machine.region(Region(9, 2, 0))  # of the future
    machine.region(Region(4, 3, 4000))  # no such device
    ghost = Region(3, 4, 0)
    ghost.totals["DRAM"] = 5 * GIB
    ghost.amounts(48, ghost.totals)  # bytes without an owner
    machine.region(ghost)
    machine.region(Region(4, 5, 3).process(10, "\x1b[31m", DRAM=2**64 - 1, L1=2**64 - 1))
    machine.mappings(0, (10, "a b) c", "OPEN_FD", ""), (10, "a b) c", "PAGES", "of the future"))
    return machine


def idle(folder):
    """Two cards that nobody has open."""
    machine = Machine(folder)
    for number in range(2):
        machine.card(number, "n150", "wormhole_b0", chip=0x1D1E0 + number, serial=0x0100018500000010 + number)
        machine.opened(number)
    return machine


def t3000(folder, asic_ids=False):
    """Four n300, eight chips: 0 to 3 have a node, the other chip of each board has none.

    tt-metal names a chip by serial << 8 | position on the board. Without asic_ids the driver publishes no
    id, as with older firmware. One process uses all eight, the remote ones as devices 4 to 7.
    """
    machine = Machine(folder)
    machine.process(700, "python3")
    machine.holds(700, *range(4))
    for number in range(4):
        serial = 0x0100014511B20000 + number
        machine.card(number, "n300", "wormhole_b0", chip=chip_id(serial, 0) if asic_ids else None, serial=serial)
        machine.opened(number, 700)
        own = Region(4, chip_id(serial, 0), number)
        machine.region(own.process(700, "python3", DRAM=(number + 1) * GIB))
        remote = Region(4, chip_id(serial, 1), number + 4).chip_slot(0, number + 4, remote=True)
        machine.region(remote.process(700, "python3", DRAM=(number + 5) * GIB))
    return machine


def chip_id(serial, position):
    """A chip's id as tt-metal derives it; the serial's first byte is lost in 64 bits."""
    return (serial << 8 | position) & (1 << 64) - 1


def p300b(folder, asic_ids=True):
    """Two boards of two chips; each chip has a node, and the chips of a board have one serial number."""
    machine = Machine(folder)
    machine.process(800, "vllm")
    machine.holds(800, 0, 1)
    for number in range(4):
        serial = 0x0000044411110000 + number // 2
        chip = 0xB1ACC30000 + number if asic_ids else None
        machine.card(number, "p300b", "blackhole", chip=chip, serial=serial, fan=1400, clock=1350)
        machine.opened(number, *([800] if number < 2 else []))
    return machine


def in_reset(folder):
    """The first of two cards is being reset under the process that has it open."""
    machine = n150_pair(folder)
    machine.reset(0)
    return machine


def removed(folder):
    """The first of two cards was removed; a process still has its node open, as one of the deleted."""
    machine = n150_pair(folder)
    machine.remove(0)
    return machine


def all_ones(folder):
    """The first of two cards has fallen off the bus."""
    machine = n150_pair(folder)
    machine.all_ones(0)
    return machine


def hot(folder):
    """Over its limits, and once it has been so hot that it switched itself off."""
    machine = Machine(folder)
    machine.card(0, "p150a", "blackhole", chip=0xB1ACC401F, serial=0x0000040011112223, fan=5400, clock=800,
                 temperature=85500, temperature_max=75000, power=312000000, trips=2)
    machine.opened(0)
    return machine


def outside(folder):
    """Seen from a pid namespace: an opener outside of it is a 0 in the driver's list."""
    machine = idle(folder)
    machine.process(12, "python3")
    machine.opened(0, 0, 0)
    machine.opened(1, 12, 0)
    return machine


def n150_pair(folder):
    """Two cards, a process in tt-metal on each."""
    machine = Machine(folder)
    for number in range(2):
        chip = 0x1F2E3D4C5B6A7900 + number
        machine.card(number, "n150", "wormhole_b0", chip=chip, serial=0x0100018511732031 + number)
        machine.process(600 + number, "python3")
        machine.holds(600 + number, number)
        machine.opened(number, 600 + number)
        machine.region(Region(4, chip, number).process(600 + number, "python3", DRAM=(number + 1) * GIB))
    return machine


# Those whose pictures are kept in tests/corpus/machines, and all.
MACHINES = {"n150": n150, "n300": n300, "p150": p150, "galaxy": galaxy, "broken": broken}
SAMPLES = {
    **MACHINES, "idle": idle, "t3000": t3000, "p300b": p300b, "in_reset": in_reset, "removed": removed,
    "all_ones": all_ones, "hot": hot, "outside": outside,
}
