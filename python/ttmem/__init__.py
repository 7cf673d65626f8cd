# SPDX-License-Identifier: Apache-2.0
"""ttmem: report which device memory this process holds, and query what all processes hold.

    import ttmem

    with ttmem.phase("load weights"):
        ttmem.alloc(0, ttmem.DRAM, 0x1000, 65536, "weights")
    print(ttmem.memory_allocated(0))
    ttmem.free(0, 0x1000, ttmem.DRAM)

Calls record only if the process was started with TTMEM=1 (or TT_ALLOC_TRACKING_ENABLED=1); otherwise
they only check their arguments.
"""

from enum import IntEnum
from typing import Dict, Mapping, NamedTuple, Optional, Union

from . import _stacks, _ttmem
from ._command import CommandError, buffers, command, leaks, snapshot
from ._phase import phase
from ._ttmem import (
    alloc,
    alloc_failed,
    device_close,
    enabled,
    end_space,
    free,
    freeze,
    mark,
    max_memory_allocated,
    memory_allocated,
    process_phase,
    reset_peak,
    skip_frames,
    version,
)

__all__ = [
    "CB", "DRAM", "KERNEL", "L1", "L1_SMALL", "SYSTEM_MEMORY", "TRACE", "CommandError", "Stats",
    "Type", "alloc", "alloc_failed", "buffers", "command", "device", "device_close", "enabled",
    "end_space", "free", "freeze", "leaks", "mark", "max_memory_allocated", "memory_allocated", "memory_stats",
    "phase", "process_phase", "reset_peak", "skip_frames", "snapshot", "version",
]  # fmt: skip


class Type(IntEnum):
    """Kinds of device memory. 0 to 4 are tt-metal's BufferType."""

    DRAM = 0
    L1 = 1
    SYSTEM_MEMORY = 2
    L1_SMALL = 3
    TRACE = 4
    CB = 5
    KERNEL = 6


DRAM = Type.DRAM
L1 = Type.L1
SYSTEM_MEMORY = Type.SYSTEM_MEMORY
L1_SMALL = Type.L1_SMALL
TRACE = Type.TRACE
CB = Type.CB
KERNEL = Type.KERNEL

TypeLike = Union[int, str]

_FACTS = ("capacity", "bank_base", "bank_size", "banks", "alignment")


class Stats(NamedTuple):
    """This process's figures; the peak for all types is the sum of their peaks."""

    bytes: int
    buffers: int
    peak_bytes: int
    allocs: int
    frees: int


def memory_stats(device: int, type: Optional[TypeLike] = None) -> Stats:
    """This process's figures on a device, for one type or for all."""
    return Stats(*_ttmem._stats(device, type))


def _type_of(key: TypeLike) -> Type:
    try:
        return Type[key] if isinstance(key, str) else Type(key)
    except (KeyError, ValueError):
        names = ", ".join(Type.__members__)
        raise ValueError(f"memory: no type {key!r}; there are {names}") from None


def device(
    device: int,
    *,
    unique_id: int = 0,
    arch: Optional[str] = None,
    card: Optional[str] = None,
    remote: bool = False,
    l1_per_core: int = 0,
    cores: int = 0,
    memory: Optional[Mapping[TypeLike, Mapping[str, int]]] = None,
) -> None:
    """Declare a device, or correct what was declared.

    memory describes each type, in bytes: capacity (all banks together), bank_base, bank_size, banks
    and alignment, as far as known. For example {"DRAM": {"capacity": 12 << 30, "banks": 12}}.
    """
    facts: Dict[Type, Mapping[str, int]] = {}
    for key, known in (memory or {}).items():
        if not isinstance(known, Mapping):
            raise TypeError(f"memory: {key!r} must have facts such as {{'capacity': 1}}, not {type(known).__name__}")
        unknown = sorted(set(known) - set(_FACTS))
        if unknown:
            raise ValueError(f"memory: no fact {unknown[0]!r}; there are {', '.join(_FACTS)}")
        facts[_type_of(key)] = known
    numbers = tuple(facts.get(kind, {}).get(fact, 0) for kind in Type for fact in _FACTS)
    _ttmem._device(device, unique_id, arch, card, remote, l1_per_core, cores, numbers)


_stacks.start()
