# SPDX-License-Identifier: Apache-2.0
"""Scenes on a real tt-metal (scenes.cpp): random operations of one kind each, and a tt-metal that cannot be tracked."""

import collections
import json
import shutil
import subprocess

from judge import PATIENCE, Run, child_of
from regions import Regions

PLAYED = ("sub-devices", "hybrid", "regions", "refused", "close", "circular")
SLOW = ("circular",)  # programs without kernels only run in slow dispatch
NAMES = (*PLAYED, "given up")
MACHINES = [("wormhole", 1), ("wormhole", 2), ("blackhole", 1)]
ANY_SITE = 1000  # from here on what a call site asks for is another thing each time

# A function that the preload library needs and that tt-metal itself does not call.
NEEDED = b"_ZNK2tt8tt_metal6Buffer8is_traceEv"
GAVE_UP = 87


class Scene(Run):
    """Also the allocations that were refused, and what was live when it was closed."""

    options = ("--strict-close",)

    def __init__(self, ttmem, metal, program, name):
        super().__init__(ttmem, metal, program)
        self.name = name

    def command(self, *words):
        return [self.program, self.name, *words]

    def environment(self, slow):
        env = super().environment(slow)
        return dict(env, TT_METAL_ALLOCATOR_MODE_HYBRID="1") if self.name == "hybrid" else env

    def compare(self, pid, moment):
        wrong = super().compare(pid, moment)
        wrong += self.compare_failed(pid, moment)
        return wrong + self.compare_held(pid, moment) if self.name == "close" else wrong

    def compare_failed(self, pid, moment):
        """Every call that threw is one incident, or raises the count of the one at its call site."""
        rows = [row for row in self.ask("incidents", "--pid", str(pid))["incidents"] if row["kind"] == "alloc_failed"]
        ours, truth = collections.Counter(), collections.Counter(kind for _, _, _, kind, *_ in moment.failed)
        for row in rows:
            ours[row["type"]] += row["count"]
        wrong = [
            f"refused of {kind}: {ours[kind]}, tt-metal {truth[kind]}"
            for kind in sorted(set(ours) | set(truth), key=str)
            if ours[kind] != truth[kind]
        ]
        told = collections.defaultdict(list)
        for site, chip, chips, kind, size, per_bank, largest in moment.failed:
            if site < ANY_SITE:
                told[kind, size].append((chip, chips, per_bank, largest))
        for (kind, size), calls in told.items():
            found = [row for row in rows if (row["type"], row["size"]) == (kind, size)]
            if sum(row["count"] for row in found) != len(calls):
                counts = [row["count"] for row in found]
                wrong.append(f"{kind} of {size} refused: {counts} times, tt-metal {len(calls)}")
            for row in found:
                if row["device"] not in {chip + n for chip, chips, *_ in calls for n in range(chips)}:
                    wrong.append(f"{kind} of {size} refused on device {row['device']}")
                per_bank = row.get("size_per_bank")
                if per_bank not in {told for _, _, told, _ in calls}:
                    wrong.append(f"{kind} of {size} refused: {per_bank} in a bank, tt-metal {calls[0][2]}")
                if row["largest_free"] not in {None, *(largest for *_, largest in calls)}:
                    wrong.append(f"{kind} of {size} refused: largest {row['largest_free']}, tt-metal {calls[0][3]}")
        return wrong

    def compare_held(self, pid, moment):
        """By call site, while the process lives."""
        answer = subprocess.run(
            [self.ttmem, "incidents", "--strict-close", "--json", "--pid", str(pid)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if answer.returncode:
            return [f"ttmem incidents --strict-close: {answer.stderr.strip()}"]
        ours, truth = collections.Counter(), collections.Counter()
        for row in json.loads(answer.stdout)["incidents"]:
            if row["kind"] == "held_at_close":
                ours[row["device"], row["type"]] += row["count"]
        for (chip, kind, _), count in moment.held.items():
            truth[chip, kind] += count
        return [
            f"held at close {key}: {ours[key]}, tt-metal {truth[key]}"
            for key in sorted(set(ours) | set(truth))
            if ours[key] != truth[key]
        ]

    def compare_end(self):
        if self.name != "close":
            return []
        held = json.loads((self.metal.scratch / "run.json").read_text())["held_at_close"]
        told = {
            "bytes": sum(size * count for (_, _, size), count in self.last.held.items()),
            "buffers": sum(self.last.held.values()),
        }
        return [] if held == told else [f"held at close, by `ttmem run`: {held}, tt-metal {told}"]


class GivenUp:
    """A tt-metal that lacks a function: what it holds is not known, and nobody may be told that all is well."""

    def __init__(self, ttmem, metal):
        self.ttmem = ttmem
        self.metal = metal
        self.moments = 0
        self.wrong = []
        self.regions = Regions()

    def library(self):
        """A copy of it without that name: its last letters are others."""
        folder = self.metal.scratch / "lacking"
        folder.mkdir()
        for path in (self.metal.folder / "lib").glob("*.so*"):
            shutil.copy(path, folder / path.name)
        path = folder / "libtt_metal.so"
        data = path.read_bytes()
        if NEEDED not in data:
            self.wrong.append(f"{path.name} has no {NEEDED.decode()} to take away")
        path.write_bytes(data.replace(NEEDED, NEEDED[:-2] + b"Xv"))
        return folder

    def ask(self, *command):
        answer = subprocess.run([self.ttmem, *command, "--json"], capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(answer.stdout)

    def look(self, pid):
        """While it lives."""
        self.moments += 1
        for command in ("ps", "smi"):
            rows = [row for row in self.ask(command)["processes"] if row["pid"] == pid]
            if not rows or not rows[0].get("gave_up"):
                self.wrong.append(f"ttmem {command} does not say that process {pid} is not tracked")
            elif NEEDED.decode() not in rows[0]["gave_up"]:
                self.wrong.append(f"ttmem {command} says: {rows[0]['gave_up']}")
        rows = self.ask("buffers", "--pid", str(pid)).get("untracked", ())
        told = [row["reason"] for row in rows if row["pid"] == pid]
        if not any(NEEDED.decode() in reason for reason in told):
            self.wrong.append(f"ttmem buffers: untracked {told}")

    def start(self, program, *options):
        """(whether it was seen while it lived, its standard error, how it ended)"""
        process = subprocess.Popen(
            [self.ttmem, "run", "--metal", *options, "--", program, "regions", "wormhole", "1", "1", "20"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.metal.environment(False),
            cwd=self.metal.scratch,
        )
        was_seen = False
        for line in process.stdout:
            if line.startswith("."):
                if line.startswith(". allocate") and not was_seen:
                    was_seen = True
                    self.look(child_of(process.pid))
                process.stdin.write("\n")
                process.stdin.flush()
        return was_seen, process.stderr.read(), process.wait(PATIENCE)

    def play(self, *checks):
        program = self.metal.compile("scenes", self.library())
        if not self.start(program)[0]:
            self.metal.call_firmware_built()
        for options in checks:
            was_seen, said, status = self.start(program, *options)
            if not was_seen:
                self.wrong.append("it allocated nothing: " + said[-300:])
            if status != GAVE_UP:
                self.wrong.append(f"ttmem run {' '.join(options)}: ended with {status}")
            if NEEDED.decode() not in said:
                self.wrong.append(f"ttmem run {' '.join(options)}: does not name the reason: {said[-300:]}")


def play(ttmem, metal, tally, arguments):
    wanted = NAMES if arguments.scene in (None, "all") else (arguments.scene,)
    program = metal.compile("scenes")
    for name in PLAYED:
        for arch, chips in MACHINES:
            if name in wanted and arguments.only in (None, f"{arch}:{chips}"):
                run = Scene.whole(
                    lambda: Scene(ttmem, metal, program, name), arch, chips, arguments.seed, arguments.moments, name in SLOW
                )
                tally.add(f"{name:11} {arch:9} {chips} chips", run)
    if "given up" in wanted:
        run = GivenUp(ttmem, metal)
        run.play(("--fail-on-leak",), ("--require-tracking",), ("--limit", "DRAM=1GiB"))
        tally.add("given up", run)
