# SPDX-License-Identifier: Apache-2.0
"""Whether ttmem and a real tt-metal agree: ./dev metal-test FOLDER.

First random operations of all kinds on every machine (agree.cpp), then the scenes (scenes.py): one kind each, at its
worst. judge.py compares.
"""

import argparse
import collections
import sys
import tempfile
from pathlib import Path

import scenes
from judge import Run
from real import Metal

MACHINES = [("wormhole", n) for n in (1, 2, 8, 32)] + [("blackhole", n) for n in (1, 2, 8)]


class Tally:
    """Of all runs so far."""

    def __init__(self):
        self.moments = 0
        self.wrong = 0
        self.regions = collections.Counter()

    def add(self, name, run):
        print(
            f"{name}: {run.moments} moments, {run.regions.compared} with regions, disagreements: {len(run.wrong)}",
            flush=True,
        )
        for text in run.wrong[:5]:
            print("    " + text, flush=True)
        self.moments += run.moments
        self.wrong += len(run.wrong)
        for key in ("compared", "apart", "missing"):
            self.regions[key] += getattr(run.regions, key)

    def show(self):
        print(
            f"regions: {self.regions['compared']} moments compared, {self.regions['apart']} at which they cannot know"
            f" all, {self.regions['missing']} without"
        )
        print(f"{self.moments} moments, disagreements: {self.wrong}")


def play_machines(ttmem, metal, tally, arguments):
    program = metal.compile("agree")
    for slow in (False, True):
        for arch, chips in MACHINES:
            if arguments.only in (None, f"{arch}:{chips}"):
                name = f"{arch:9} {chips:2} chips, {'slow' if slow else 'fast'} dispatch"
                run = Run.whole(
                    lambda: Run(ttmem, metal, program), arch, chips, arguments.seed, arguments.moments, slow
                )
                tally.add(name, run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="ARCH:CHIPS", help="one machine only")
    parser.add_argument("--scene", choices=("all", *scenes.NAMES), help="scenes only: all, or one")
    arguments = parser.parse_args()
    ttmem = arguments.build / "src/cli/ttmem"
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="metal-test-") as scratch:
        metal = Metal(arguments.folder.resolve(), Path(scratch))
        if not arguments.scene:
            play_machines(ttmem, metal, tally, arguments)
        scenes.play(ttmem, metal, tally, arguments)
        tally.show()
        sys.exit(bool(tally.wrong or not tally.moments))


if __name__ == "__main__":
    main()
