# SPDX-License-Identifier: Apache-2.0
"""The old Python client on top of ttmem: code written for it runs unchanged.

Buffers go into the process's book instead of a socket, so nothing is lost and no server is needed.
The server (ttmemd) answers queries for all processes; without one, the answer is this process's own
figures. "machine_wide" in the answer says which.

The old client needed no setting. So importing this turns tracking on, for this process and the
children it starts, unless TTMEM or TT_ALLOC_TRACKING_ENABLED is already set.
"""

import itertools
import os
import threading
from collections import OrderedDict
from enum import IntEnum
from operator import index
from typing import Dict, Optional, Tuple, Union

if "TTMEM" not in os.environ and "TT_ALLOC_TRACKING_ENABLED" not in os.environ:
    os.environ["TT_ALLOC_TRACKING_ENABLED"] = "1"

import ttmem
from ttmem import _server

__all__ = ["AllocationClient", "BufferType"]


class BufferType(IntEnum):
    """tt-metal's numbers. The old client had 2 for L1_SMALL and 3 for TRACE, unlike any server."""

    DRAM = 0
    L1 = 1
    SYSTEM_MEMORY = 2
    L1_SMALL = 3
    TRACE = 4


# Ids take the place of addresses. The highest bit separates them from real ones, the pid separates
# those of two processes, and 41 bits of count last for 25 days of continuous allocation.
_COUNT_BITS = 41
_FREED_MAX = 4096  # as many freed buffers as a book remembers

# Finalisers and signal handlers may also free a buffer in the middle of a call of their own thread.
_lock = threading.RLock()
_counter = itertools.count(1)
_live: Dict[int, Tuple[int, int]] = {}
_freed: "OrderedDict[int, Tuple[int, int]]" = OrderedDict()


def _after_fork() -> None:
    """Another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def _buffer_type(value: Union[int, str]) -> BufferType:
    try:
        return BufferType[value] if isinstance(value, str) else BufferType(value)
    except (KeyError, ValueError):
        names = ", ".join(f"{t.name} ({t.value})" for t in BufferType)
        raise ValueError(f"buffer_type must be one of {names}, not {value!r}") from None


class AllocationClient:
    """All clients of a process share one set of ids."""

    def __init__(self, socket_path: Optional[str] = None) -> None:
        """socket_path: the server's socket; otherwise TT_ALLOC_SERVER_SOCKET or the old default."""
        self.socket_path = socket_path

    def allocate(
        self,
        device_id: int,
        size: int,
        buffer_type: Union[int, str],
        buffer_name: Optional[str] = None,
    ) -> int:
        """Report a buffer; returns the id to free it by."""
        kind = _buffer_type(buffer_type)
        with _lock:
            buffer_id = 1 << 63 | os.getpid() << _COUNT_BITS | next(_counter)
            ttmem.alloc(device_id, kind, buffer_id, size, buffer_name)
            _live[buffer_id] = (index(device_id), kind)
        return buffer_id

    def deallocate(self, buffer_id: int) -> None:
        """Report that a buffer is free, on the device where it was allocated.

        A second call is recorded as a double free. ValueError if there was no such buffer.
        """
        with _lock:
            place = _live.pop(buffer_id, None) or _freed.get(buffer_id)
            if place is None:
                raise ValueError(f"buffer_id {buffer_id!r} was not allocated by this client")
            _freed[buffer_id] = place
            while len(_freed) > _FREED_MAX:
                _freed.popitem(last=False)
            ttmem.free(place[0], buffer_id, place[1])

    def query_device(self, device_id: int) -> Dict[str, int]:
        """Bytes in use: dram_allocated, l1_allocated, l1_small_allocated, trace_allocated."""
        own = {
            "dram_allocated": ttmem.memory_allocated(device_id, ttmem.DRAM),
            "l1_allocated": ttmem.memory_allocated(device_id, ttmem.L1),
            "l1_small_allocated": ttmem.memory_allocated(device_id, ttmem.L1_SMALL),
            "trace_allocated": ttmem.memory_allocated(device_id, ttmem.TRACE),
        }
        answer = _server.usage(device_id, self.socket_path)
        return {**(own if answer is None else answer), "machine_wide": answer is not None}

    def query_device_info(self, device_id: int) -> Dict[str, int]:
        """The properties of a device, all 0 if unknown.

        total_dram_size, total_l1_size, arch_type (1 Grayskull, 2 Wormhole, 3 Blackhole, 4 Quasar),
        num_dram_channels, dram_size_per_channel, l1_size_per_core, is_available.
        """
        ttmem.memory_allocated(device_id)  # raises if the number is wrong
        answer = _server.info(device_id, self.socket_path)
        known = answer or dict.fromkeys(_server.FACTS, 0)
        facts = {name: known[name] for name in _server.FACTS if name != "num_devices"}
        return {
            **facts,
            "is_available": bool(facts["is_available"]),
            "machine_wide": answer is not None,
        }

    def get_num_devices(self) -> int:
        """The number of devices; without a server, up to the highest one used by this process."""
        answer = _server.info(-1, self.socket_path)
        if answer is not None:
            return answer["num_devices"]
        used = [number for number in range(1024) if ttmem.memory_stats(number).allocs]
        return max(used) + 1 if used else 0
