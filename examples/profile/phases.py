# SPDX-License-Identifier: Apache-2.0
"""How much device memory each step of a program takes: phases, and the peak of each.

    TTMEM=1 python3 phases.py

What is printed comes from counters of this process, so it costs no system call. Whoever wants to know which
lines held the memory records the run: `ttmem run --record run.ttrec -- python3 phases.py`, then
`ttmem peak --from run.ttrec`.
"""

from contextlib import contextmanager

import ttmem


@contextmanager
def profiled(name, device=0, kind=ttmem.DRAM):
    """Prints what a step held at most, and what it has left."""
    before = ttmem.memory_stats(device, kind)
    ttmem.reset_peak(device, kind)
    with ttmem.phase(name):
        yield
    after = ttmem.memory_stats(device, kind)
    print(
        f"{name}: peak {(after.peak_bytes - before.bytes) / 2**20:.1f} MiB, "
        f"left {(after.bytes - before.bytes) / 2**20:.1f} MiB, {after.allocs - before.allocs} allocations"
    )


def load():
    ttmem.alloc(0, ttmem.DRAM, 0x10000000, 64 << 20, "weights")


def decode():
    for token in range(4):
        ttmem.alloc(0, ttmem.DRAM, 0x20000000, 8 << 20, f"activations {token}")
        ttmem.free(0, 0x20000000, ttmem.DRAM)


with profiled("load"):
    load()
with profiled("decode"):
    decode()
