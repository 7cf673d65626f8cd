# SPDX-License-Identifier: Apache-2.0
"""The old Python client on top of ttmem: code written for it runs unchanged.

Buffers go into the process's book instead of a socket, so nothing is lost and no server is needed.
The server (ttmemd) answers queries for all processes; without one, the answer is this process's own
figures. "machine_wide" in the answer says which.

The old client needed no setting. So importing this turns tracking on, for this process and the
children it starts, unless TTMEM or TT_ALLOC_TRACKING_ENABLED is already set.
"""

import argparse
import itertools
import os
import threading
from collections import OrderedDict
from enum import IntEnum
from operator import index
from typing import Any, Dict, Optional, Tuple, Union

if "TTMEM" not in os.environ and "TT_ALLOC_TRACKING_ENABLED" not in os.environ:
    os.environ["TT_ALLOC_TRACKING_ENABLED"] = "1"

import ttmem
from ttmem import _server

__all__ = ["AllocationClient", "BufferType", "MessageType", "demo", "format_bytes"]


class MessageType(IntEnum):
    """The first byte of a message."""

    ALLOC = 1
    FREE = 2
    QUERY = 3
    RESPONSE = 4
    DUMP_REMAINING = 5
    DEVICE_INFO_QUERY = 6
    DEVICE_INFO_RESPONSE = 7


class BufferType(IntEnum):
    """tt-metal's numbers. The old client had 2 for L1_SMALL and 3 for TRACE, unlike any server."""

    DRAM = 0
    L1 = 1
    SYSTEM_MEMORY = 2
    L1_SMALL = 3
    TRACE = 4


_PAGE = "What replaces each old tool: share/doc/ttmem/from-the-old-tools.md"
_ARCHITECTURES = ("Invalid", "Grayskull", "Wormhole_B0", "Blackhole", "Quasar")

# Ids take the place of addresses in the book. The highest bit separates them from real ones, the pid
# separates those of two processes, and 41 bits of count last for 25 days of continuous allocation.
_COUNT_BITS = 41
_FREED_MAX = 4096  # as many freed buffers as a book remembers

_Place = Optional[Tuple[int, int, int]]  # device, type, address; None = no bytes, so not in the book

# Finalisers and signal handlers may also free a buffer in the middle of a call of their own thread.
_lock = threading.RLock()
_counter = itertools.count(1)
_next = 1
_live: Dict[int, _Place] = {}
_freed: "OrderedDict[int, _Place]" = OrderedDict()


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


def _address(buffer_id: int) -> int:
    """The address that stands for an id of this process; a real address stays as it is."""
    if not 0 <= buffer_id < 1 << _COUNT_BITS:
        return buffer_id & (1 << 64) - 1
    return 1 << 63 | os.getpid() << _COUNT_BITS | buffer_id


def _usage(device_id: int, socket_path: Optional[str]) -> Dict[str, int]:
    own = {
        "dram_allocated": ttmem.memory_allocated(device_id, ttmem.DRAM),
        "l1_allocated": ttmem.memory_allocated(device_id, ttmem.L1),
        "l1_small_allocated": ttmem.memory_allocated(device_id, ttmem.L1_SMALL),
        "trace_allocated": ttmem.memory_allocated(device_id, ttmem.TRACE),
    }
    answer = _server.usage(device_id, socket_path)
    return {
        "device_id": index(device_id),
        **(own if answer is None else answer),
        "machine_wide": answer is not None,
    }


class AllocationClient:
    """All clients of a process share one set of ids, which count from 1."""

    SOCKET_PATH = _server.DEFAULT_PATH
    MESSAGE_FORMAT = "=BxxxiQBxxxiQQQQQQQQIIIIII"

    def __init__(self, socket_path: Optional[str] = None) -> None:
        """socket_path: the server's socket; otherwise TT_ALLOC_SERVER_SOCKET or SOCKET_PATH.

        With a server it says so, as it always did. It used to raise RuntimeError without one.
        """
        self.socket_path = socket_path
        self.process_id = os.getpid()
        # For messages of the caller's own, such as DUMP_REMAINING. None: there is no server.
        self.sock = _server.connect(self._path())
        if self.sock is not None:
            self.sock.setblocking(True)
            print("✓ Connected to allocation server", flush=True)

    def __del__(self) -> None:
        sock = getattr(self, "sock", None)
        if sock is not None:
            sock.close()

    def _path(self) -> Optional[str]:
        """A script may have set SOCKET_PATH to another place."""
        moved = self.SOCKET_PATH if self.SOCKET_PATH != _server.DEFAULT_PATH else None
        return self.socket_path or moved

    @property
    def next_buffer_id(self) -> int:
        """The id of the next buffer."""
        return _next

    def allocate(
        self,
        device_id: int,
        size: int,
        buffer_type: Union[int, str],
        buffer_name: Optional[str] = None,
    ) -> int:
        """Report a buffer; returns the id to free it by. One of no bytes is not recorded."""
        global _next
        kind = _buffer_type(buffer_type)
        length = index(size)
        with _lock:
            buffer_id = next(_counter)
            _next = buffer_id + 1
            place: _Place = None
            if length != 0:
                place = (index(device_id), kind, _address(buffer_id))
                ttmem.alloc(place[0], kind, place[2], length, buffer_name)
            _live[buffer_id] = place
        return buffer_id

    def deallocate(self, buffer_id: int) -> None:
        """Report that a buffer is free, on the device where it was allocated.

        A second call is recorded as a double free, an id that was never given out as an unknown free
        on device 0.
        """
        number = index(buffer_id)
        with _lock:
            if number in _live:
                _freed[number] = _live.pop(number)
            elif number not in _freed:
                ttmem.free(0, _address(number))
                return
            place = _freed[number]
            while len(_freed) > _FREED_MAX:
                _freed.popitem(last=False)
            if place is not None:
                ttmem.free(place[0], place[2], place[1])

    def query_device(self, device_id: int) -> Dict[str, int]:
        """Bytes in use: dram_allocated, l1_allocated, l1_small_allocated, trace_allocated."""
        return _usage(device_id, self._path())

    def query_device_info(self, device_id: int) -> Dict[str, Any]:
        """The properties of a device, all 0 if unknown; of device -1 only num_devices.

        total_dram_size, total_l1_size, arch_type and arch_name (0 Invalid, 1 Grayskull, 2 Wormhole_B0,
        3 Blackhole, 4 Quasar), num_dram_channels, dram_size_per_channel, l1_size_per_core,
        is_available, num_devices.
        """
        if index(device_id) != -1:
            ttmem.memory_allocated(device_id)  # raises if the number is wrong
        answer = _server.info(device_id, self._path())
        facts = answer or dict.fromkeys(_server.FACTS, 0)
        arch = facts["arch_type"]
        return {
            "device_id": index(device_id),
            **facts,
            "is_available": bool(facts["is_available"]),
            "arch_name": _ARCHITECTURES[arch] if arch < len(_ARCHITECTURES) else "Unknown",
            "num_devices": self.get_num_devices(),
            "machine_wide": answer is not None,
        }

    def get_num_devices(self) -> int:
        """The number of devices; without a server, up to the highest one used by this process."""
        answer = _server.info(-1, self._path())
        if answer is not None:
            return answer["num_devices"]
        used = [number for number in range(1024) if ttmem.memory_stats(number).allocs]
        return max(used) + 1 if used else 0


def format_bytes(count: float) -> str:
    """In the largest unit that leaves at least 1: 1536 is "1.50 KB"."""
    units = ("B", "KB", "MB", "GB", "TB")
    unit = 0
    while unit < len(units) - 1 and abs(count) >= 1024:
        count /= 1024
        unit += 1
    return f"{count:.2f} {units[unit]}"


def demo() -> None:
    """Allocates on device 0, shows what the server counts, and frees."""
    client = AllocationClient()
    print(f"Allocation client demo [PID: {client.process_id}]")
    sizes = [(4 << 20, BufferType.L1), (100 << 20, BufferType.DRAM), (8 << 20, BufferType.L1)]
    ids = []
    for size, kind in sizes:
        ids.append(client.allocate(0, size, kind, f"demo_{kind.name}"))
        print(f"  Allocated buffer {ids[-1]}: {format_bytes(size)} of {kind.name}")
    stats = client.query_device(0)
    whose = "all processes" if stats["machine_wide"] else "this process; no server answers"
    print(f"Device 0 ({whose}):")
    for name in ("dram", "l1", "l1_small", "trace"):
        print(f"  {name.upper()}: {format_bytes(stats[name + '_allocated'])}")
    for buffer_id in ids:
        client.deallocate(buffer_id)
        print(f"  Freed buffer {buffer_id}")
    print("Demo complete.")


if __name__ == "__main__":
    argparse.ArgumentParser("python3 -m allocation_client", description=demo.__doc__, epilog=_PAGE).parse_args()
    demo()
