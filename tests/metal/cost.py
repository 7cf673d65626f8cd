# SPDX-License-Identifier: Apache-2.0
"""What a create and a free cost on a real tt-metal with and without ttmem: ./dev metal-test FOLDER --cost.

The programs of one row (cost.cpp) take turns, so that what else the machine does meets all of them. A ratio is the
median of those of all rounds. Nothing is asserted.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from real import Metal

ROWS = [("MeshBuffer", 1), ("MeshBuffer", 8), ("Buffer", 1), ("Buffer", 8)]


class Player:
    """A cost.cpp that waits for its turns."""

    def __init__(self, name, command, env, scratch):
        self.name = name
        self.times = []
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(scratch / "log", "w"),
            text=True,
            env=env,
            cwd=scratch,
        )

    def is_ready(self):
        return self.process.stdout.readline() == "ready\n"

    def play(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def variants(arguments):
    """(name, build, TTMEM_STACKS); without ttmem first."""
    yield "without", None, None
    for name, build in (("", arguments.build), ("before, ", arguments.before)):
        if build:
            yield f"{name}off", build, "off"
            yield f"{name}auto", build, "auto"


def start(metal, program, row, arguments):
    kind, chips = row
    for name, build, stacks in variants(arguments):
        command = [program, kind, arguments.arch, str(chips), str(arguments.pairs)]
        env = {key: value for key, value in metal.environment(False).items() if not key.startswith("TTMEM")}
        if build:
            command = [build.resolve() / "src/cli/ttmem", "run", "--quiet", "--metal", "--", *command]
            env["TTMEM_STACKS"] = stacks
        yield Player(name, command, env, metal.scratch)


def measure(players, rounds):
    for player in players:
        player.play()  # learns, and touches memory for the first time
    for number in range(rounds):
        # Whoever follows whom, it is not always the same one.
        turn = number % len(players)
        for player in players[turn:] + players[:turn]:
            player.times.append(player.play())


def show(row, players):
    kind, chips = row
    base = players[0].times
    for player in players:
        ratio = statistics.median(time / other for time, other in zip(player.times, base))
        print(
            f"{kind:10} {chips} chips  {player.name:14} {statistics.median(player.times):8.0f} ns  {ratio:5.2f} x",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path, metavar="BUILD", help="another build of ttmem to measure in turn")
    parser.add_argument("--arch", default="wormhole", choices=("wormhole", "blackhole"))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="metal-cost-") as scratch:
        metal = Metal(arguments.folder.resolve(), Path(scratch))
        program = metal.compile("cost")
        print(f"{arguments.rounds} rounds of {arguments.pairs} pairs, {os.cpu_count()} cores, {arguments.arch}")
        for row in ROWS:
            players = list(start(metal, program, row, arguments))
            if not all([player.is_ready() for player in players]):
                metal.call_firmware_built()
                players = list(start(metal, program, row, arguments))
                if not all([player.is_ready() for player in players]):
                    sys.exit(f"{program.name} does not run: {metal.last_words()}")
            measure(players, arguments.rounds)
            show(row, players)
            for player in players:
                player.end()


if __name__ == "__main__":
    main()
