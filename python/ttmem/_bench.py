# SPDX-License-Identifier: Apache-2.0
"""Run by `ttmem bench --python`: prints the nanoseconds per event, without those of the loop."""

import random
import sys
import time
import types
from typing import Iterator, List, Optional, Tuple

import ttmem

Pair = Tuple[int, int]

LIVE = 1000  # as in the rows of `ttmem bench`
WARM = 2000
PAIRS = 6000
FRAMES = 8  # Python frames, including the one that allocates


def draw(count: int) -> Iterator[Pair]:
    """Pairs of a freed address and the one allocated in its place; lifetimes are random."""
    live = [address * 4096 for address in range(LIVE)]
    fresh = LIVE * 4096
    for _ in range(count):
        place = random.randrange(LIVE)
        fresh += 4096
        yield live[place], fresh
        live[place] = fresh


def measure(script: List[Pair]) -> float:
    alloc, free, dram, clock = ttmem.alloc, ttmem.free, ttmem.DRAM, time.thread_time_ns
    for freed, allocated in script[:WARM]:
        free(0, freed, dram)
        alloc(0, dram, allocated, 4096)
    pairs = script[WARM:]
    start = clock()
    for freed, allocated in pairs:
        pass
    middle = clock()
    for freed, allocated in pairs:
        free(0, freed, dram)
        alloc(0, dram, allocated, 4096)
    end = clock()
    return ((end - middle) - (middle - start)) / (2 * len(pairs))


def depth() -> int:
    frame: Optional[types.FrameType] = sys._getframe(1)
    count = 0
    while frame:
        frame, count = frame.f_back, count + 1
    return count


def below(script: List[Pair]) -> float:
    return below(script) if depth() < FRAMES - 1 else measure(script)


if __name__ == "__main__":
    for address in range(LIVE):
        ttmem.alloc(0, ttmem.DRAM, address * 4096, 4096)
    print(f"{below(list(draw(WARM + PAIRS))):.3f}")
