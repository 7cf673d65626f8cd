# SPDX-License-Identifier: Apache-2.0
"""One program on a real tt-metal in its mock mode, compared moment by moment with what ttmem says of it.

The program prints after each operation what the allocators hold (truth.hpp). Here this is compared with what `ttmem
buffers`, `map`, `smi`, `ps` and `incidents` say at the same moment, and with tt-metal's own regions.
"""

import collections
import json
import subprocess
from pathlib import Path

from regions import Regions

PATIENCE = 300  # seconds that a run may take before it is taken for stuck


class Moment:
    """What the allocators held after one operation."""

    def __init__(self):
        self.buffers = collections.Counter()  # (chip, type, address, size)
        self.occupied = collections.Counter()  # by (chip, type)
        self.per_bank = collections.Counter()  # by (allocator, type): ours
        self.statistics = {}  # the same: the allocator's
        self.circular = {}  # by chip
        self.reach = {}  # by chip, of circular buffers
        self.refused = {}  # by chip: (programs so far, address and size of the first clash)
        self.windows = {}  # by (chip, type): (banks, size of each, base or None)
        self.views = {}  # by (chip, type): (used, largest free) of each bank
        self.failed = []  # (site, chip, how many chips, type, size, size per bank, largest free)
        self.held = collections.Counter()  # (chip, type, size)
        self.chips = {}  # (architecture, cores)
        self.operation = ""
        self.chips_of = collections.defaultdict(set)

    @classmethod
    def read(cls, lines):
        moment = cls()
        for line in lines:
            word, *rest = line.split()
            if word == "b":
                chip, kind, address, size, per_bank, banks, allocator = rest
                moment.buffers[int(chip), kind, int(address), int(size)] += 1
                moment.occupied[int(chip), kind] += int(per_bank) * int(banks)
                moment.chips_of[allocator].add(chip)
                moment.per_bank[allocator, kind] += int(per_bank)
            elif word == "s":
                moment.statistics[rest[0], rest[1]] = int(rest[2])
            elif word == "c":
                moment.circular[int(rest[0])] = int(rest[1])
            elif word == "r":
                moment.reach[int(rest[0])] = int(rest[1])
            elif word == "k":
                moment.refused[int(rest[0])] = tuple(int(number) for number in rest[1:])
            elif word == "w":
                base = None if rest[4] == "-" else int(rest[4])
                moment.windows[int(rest[0]), rest[1]] = (int(rest[2]), int(rest[3]), base)
            elif word == "v":
                moment.views[int(rest[0]), rest[1]] = (int(rest[2]), int(rest[3]))
            elif word == "f":
                site, chip, chips, kind, *sizes = rest
                moment.failed.append((int(site), int(chip), int(chips), kind, *map(int, sizes)))
            elif word == "h":
                moment.held[int(rest[0]), rest[1], int(rest[2])] += 1
            elif word == "d":
                moment.chips[int(rest[0])] = (rest[1], int(rest[2]))
            elif word == ".":
                moment.operation = " ".join(rest)
                return moment
        return None

    def is_sound(self):
        """Whether the allocators agree with themselves: else nothing can be learned from them."""
        return all(
            self.per_bank[key] == value * max(1, len(self.chips_of[key[0]])) for key, value in self.statistics.items()
        )


class Run:
    """One program, compared moment by moment."""

    options = ()  # of `ttmem run`

    def __init__(self, ttmem, metal, program):
        self.ttmem = ttmem
        self.metal = metal
        self.program = program
        self.moments = 0
        self.wrong = []
        self.status = None  # of `ttmem run`, when it has ended
        self.last = Moment()
        self.knows_chips = False
        self.regions = Regions()

    def ask(self, *command):
        answer = subprocess.run(
            [self.ttmem, *command, "--json"], check=True, capture_output=True, text=True, timeout=PATIENCE
        )
        return json.loads(answer.stdout)

    def compare(self, pid, moment):
        answer = subprocess.run(
            [self.ttmem, "buffers", "--json", "--pid", str(pid)], capture_output=True, text=True, timeout=PATIENCE
        )
        if answer.returncode:
            return [f"ttmem buffers: {answer.stderr.strip()}"]
        rows = json.loads(answer.stdout)["buffers"]
        ours = collections.Counter(
            (row["device"], row["type"], int(row["address"], 16), row["size"])
            for row in rows
            if row["type"] not in ("CB", "KERNEL")
        )
        circular = collections.Counter()
        for row in rows:
            if row["type"] == "CB":
                circular[row["device"]] += row["size"]
        wrong = [f"missing {key} x {n}" for key, n in (moment.buffers - ours).items()]
        wrong += [f"too much {key} x {n}" for key, n in (ours - moment.buffers).items()]
        wrong += [
            f"circular buffers of chip {chip}: {circular[chip]}, tt-metal {total}"
            for chip, total in moment.circular.items()
            if circular[chip] != total
        ]
        occupied = collections.Counter()
        for row in rows:
            if row.get("occupied") is not None and row["type"] not in ("CB", "KERNEL"):
                occupied[row["device"], row["type"]] += row["occupied"]
        wrong += [
            f"occupied {key}: {occupied[key]}, tt-metal {total}"
            for key, total in moment.occupied.items()
            if occupied[key] != total
        ]
        reach = {row["device"]: row.get("size_per_bank") for row in rows if row["type"] == "CB"}
        wrong += [
            f"circular buffers of chip {chip} reach {reach.get(chip)}, tt-metal {far}"
            for chip, far in moment.reach.items()
            if reach.get(chip) != far
        ]
        for compare in (self.compare_refused, self.compare_chips, self.compare_maps, self.compare_regions):
            wrong += compare(pid, moment)
        return wrong

    def compare_refused(self, pid, moment):
        """Those at one call site are one incident, with the figures of the first."""
        if not moment.refused:
            return []
        ours = {}
        for row in self.ask("incidents", "--pid", str(pid))["incidents"]:
            if row["kind"] == "clash":
                count, *first = ours.get(row["device"], (0, int(row["address"], 16), row["size"]))
                ours[row["device"]] = (count + row["count"], *first)
        return [
            f"refused on chip {chip}: {ours.get(chip)}, tt-metal {told}"
            for chip, told in moment.refused.items()
            if ours.get(chip) != told
        ]

    def compare_maps(self, pid, moment):
        """Types without buffers so far may have none; all others must have the banks that were there at first."""
        wrong = []
        used = {(chip, kind) for chip, kind, *_ in moment.buffers}
        maps = {(row["device"], row["type"]): row for row in self.ask("map", "--pid", str(pid))["maps"]}
        for key in sorted(used - set(maps)):
            wrong.append(f"no map of {key}")
        for key, row in maps.items():
            banks, size, base = moment.windows.get(key, (None, None, None))
            if banks is not None and (row["banks"], row["bank_size"]) != (banks, size):
                wrong.append(f"banks of {key}: {row['banks']} of {row['bank_size']}, tt-metal {banks} of {size}")
            if base is not None and int(row["base"], 16) != base:
                wrong.append(f"base of {key}: {row['base']}, tt-metal {base:#x}")
            # tt-metal's allocators do not know circular buffers, which lie below the buffers of L1.
            # How far they reach is only told of the chip that a program was launched on.
            circular = moment.reach.get(key[0], 0) if key[1] == "L1" else 0
            if key[1] == "L1" and moment.circular.get(key[0]) and not circular:
                continue
            used, largest = moment.views.get(key, (None, None))
            if used is not None and row["used"] != used + circular:
                wrong.append(f"used of {key}: {row['used']}, tt-metal {used} and circular buffers {circular}")
            if largest is not None and not circular and row["largest"] != largest:
                wrong.append(f"largest of {key}: {row['largest']}, tt-metal {largest}")
        return wrong

    def compare_regions(self, pid, moment):
        processes = [row for row in self.ask("ps")["processes"] if row["pid"] == pid]
        return self.regions.compare(pid, moment, processes[0] if processes else None)

    def compare_chips(self, pid, moment):
        """Once, at the first moment with buffers: these declare their chips."""
        used = {chip for chip, *_ in moment.buffers}
        if self.knows_chips or not used:
            return []
        self.knows_chips = True
        answer = self.ask("smi")
        own = {row["device"]: row["uid"] for one in answer["processes"] if one["pid"] == pid for row in one["devices"]}
        # A program that was killed before leaves regions, of chips that may have the same numbers.
        rows = {row["device"]: row for row in answer["devices"] if own.get(row["device"], "") == row["uid"]}
        archs = {chip: row["arch"] for chip, row in rows.items()}
        # tt-metal's regions are called by the unique ids of their chips. 0 is one of them in mock mode.
        told = {f"tt_device_{int(rows[chip]['uid'] or '0', 16)}_memory" for chip in used if chip in rows}
        real = {path.name for path in Path("/dev/shm").glob("tt_device_*_memory")}
        if len(told) < len(used) or not told <= real:
            return [f"unique ids of {sorted(told)}, tt-metal {sorted(real)}"]
        # Each core has one bank of L1: cores are only declared if this is so.
        banks = {row["device"]: row["banks"] for row in self.ask("map", "--type", "L1", "--pid", str(pid))["maps"]}
        ours = {chip: (archs.get(chip), banks.get(chip)) for chip in used}
        return [
            f"chip {chip} is {ours[chip]}, tt-metal {moment.chips[chip]}"
            for chip in sorted(used)
            if ours[chip] != moment.chips[chip]
        ]

    def command(self, *words):
        """What runs, by what the program is told."""
        return [self.program, *words]

    def environment(self, slow):
        return self.metal.environment(slow)

    def start(self, arch, chips, seed, count, slow):
        command = [self.ttmem, "run", "--json", str(self.metal.scratch / "run.json"), "--metal", *self.options, "--"]
        command += self.command(arch, str(chips), str(seed), str(count))
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(self.metal.scratch / "log", "w"),
            text=True,
            env=self.environment(slow),
            cwd=self.metal.scratch,
        )

    def play(self, arch, chips, seed, count, slow=False):
        """Whether it came to its end; False where firmware had to be called built first."""
        process = self.start(arch, chips, seed, count, slow)
        lines = []
        ended = False
        for line in process.stdout:
            lines.append(line)
            if not line.startswith("."):
                continue
            moment = Moment.read(lines)
            lines = []
            pid = child_of(process.pid)
            self.last = moment
            self.moments += 1
            if not moment.is_sound():
                self.wrong.append(f"moment {self.moments}: the allocators do not agree with themselves")
            for text in self.compare(pid, moment)[:3]:
                self.wrong.append(f"moment {self.moments}, {moment.operation}: {text}")
            ended = moment.operation == "closed"
            process.stdin.write("\n")
            process.stdin.flush()
        self.status = process.wait(PATIENCE)
        return ended

    @classmethod
    def whole(cls, make, *words):
        """One that came to its end, or says why not; @make: a new one."""
        run = make()
        ended = run.play(*words)
        if not ended and not run.moments:
            run.metal.call_firmware_built()
            run = make()
            ended = run.play(*words)
        if ended:
            run.wrong += run.compare_end()
        else:
            run.wrong.append("did not come to its end: " + run.metal.last_words())
        return run

    def compare_end(self):
        """After the program has ended."""
        return []


def child_of(pid):
    """`ttmem run` starts the program; its command line tells which child it is."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0])
