# SPDX-License-Identifier: Apache-2.0
"""tt-metal's own regions in /dev/shm, beside ttmem's book and the allocators' lists.

tt-metal counts there what the thread that opened its devices allocates and frees. What other threads allocate, and
what a submesh held when it was closed, is missing or stays: from then on a region is only compared with what ttmem
shows of it, until all devices are closed. Circular buffers are left out: tt-metal writes them ten times a second.
"""

import collections
import struct
from pathlib import Path

VERSION = 3
TYPES = ("DRAM", "L1", "L1_SMALL", "TRACE")  # in the order of a row
CHIP = 40  # where the number of the chip is
ROWS = range(856, 856 + 64 * 120, 120)


def read(pid):
    """By (chip, type), without ttmem; None if there are no regions that can be read."""
    told = {}
    found = False
    for path in Path("/dev/shm").glob("tt_device_*_memory"):
        data = path.read_bytes()
        if struct.unpack_from("<I", data)[0] != VERSION:
            continue
        found = True
        (chip,) = struct.unpack_from("<I", data, CHIP)
        for row in ROWS:
            owner, *used = struct.unpack_from("<i4x4Q", data, row)
            if owner == pid:
                told.update({(chip, kind): size for kind, size in zip(TYPES, used)})
    return told if found else None


class Regions:
    """Of one program, from moment to moment."""

    def __init__(self):
        self.compared = 0  # moments at which region, book and allocators were the same
        self.apart = 0  # at which a region cannot be what the allocators hold
        self.missing = 0  # at which there was none
        self.is_whole = True
        self.held = 0

    def note(self, moment):
        """What this operation means for what a region can know."""
        held = sum(moment.buffers.values())
        if moment.operation in ("close all", "closed"):
            self.is_whole = True
        elif moment.operation == "threads" or (moment.operation == "close a submesh" and held != self.held):
            self.is_whole = False
        self.held = held

    def compare(self, pid, moment, process):
        """@process: its row in `ttmem ps`, None if there is none."""
        self.note(moment)
        told = read(pid)
        if told is None:
            self.missing += 1
            return []
        truth = collections.Counter()
        for (chip, kind, _, size), count in moment.buffers.items():
            truth[chip, kind] += size * count
        wrong = self.compare_ttmem(told, truth, process["devices"] if process else [])
        if not self.is_whole:
            self.apart += 1
            return wrong
        self.compared += 1
        return wrong + [
            f"region of chip {chip}, {kind}: {told.get((chip, kind), 0)}, tt-metal's allocators {truth[chip, kind]}"
            for chip, kind in sorted(set(told) | set(truth))
            if told.get((chip, kind), 0) != truth[chip, kind]
        ]

    @staticmethod
    def compare_ttmem(told, truth, devices):
        wrong = []
        shown = {}
        for row in devices:
            region = row["region"]
            if region is None:
                continue
            chip = row["device"]
            shown.update({(chip, kind): region[kind] for kind in TYPES})
            differs = any(region[kind] != truth[chip, kind] for kind in TYPES)
            if differs != row["differs"] and region["CB"] == row["memory"]["CB"]["used"]:
                wrong.append(f"chip {chip}: differs is {row['differs']}, region {region}")
        if shown != told:
            wrong.append(f"regions as ttmem shows them: {shown}, as they are: {told}")
        return wrong
