# SPDX-License-Identifier: Apache-2.0
"""The old Python client on top of ttmem: code written for it runs unchanged.

Buffers go into the process's book instead of a socket, so nothing is lost and no server is needed.
The server (ttmemd) answers queries for all processes; without one, the answer is this process's own
figures. "machine_wide" in the answer says which.

Where the package ttmem cannot be loaded, as in Python 3.6 to 3.8, this file is enough: buffers are then
messages to the server, as they always were, and without a server RuntimeError is raised.

The old client needed no setting. So importing this turns tracking on, for this process and the
children it starts, unless TTMEM or TT_ALLOC_TRACKING_ENABLED is already set.
"""

import argparse
import itertools
import os
import socket
import struct
import sys
import threading
import time
from collections import OrderedDict, deque
from enum import IntEnum
from operator import index
from types import FrameType
from typing import Any, Deque, Dict, Optional, Set, Tuple, Union

if "TTMEM" not in os.environ and "TT_ALLOC_TRACKING_ENABLED" not in os.environ:
    os.environ["TT_ALLOC_TRACKING_ENABLED"] = "1"

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

_DEFAULT_PATH = "/tmp/tt_allocation_server.sock"

_PROPERTIES = (
    "total_dram_size",
    "total_l1_size",
    "arch_type",
    "num_dram_channels",
    "dram_size_per_channel",
    "l1_size_per_core",
    "is_available",
    "num_devices",
)

_PATIENCE = 0.9  # seconds, for an answer
_STUCK = 10.0  # seconds; a server that does not read for so long is given up

# docs/old-clients.md: the header, four counters; one of the longer messages adds the device's properties, the
# other one a name and a stack.
_HEAD = struct.Struct("<B3xiQB3xiQQ")
_COUNTERS = struct.Struct("<4Q")
_FACTS = struct.Struct("<2Q6I")
_SHORT = _HEAD.size + _COUNTERS.size
_LONG = _SHORT + _FACTS.size
_TEXTS = struct.Struct("<64s512s")
assert (_SHORT, _LONG, _SHORT + _TEXTS.size) == (72, 112, 648)

_COUNTED = ("dram_allocated", "l1_allocated", "l1_small_allocated", "trace_allocated")


def _path(path: Optional[str]) -> Optional[str]:
    chosen = path or os.environ.get("TT_ALLOC_SERVER_SOCKET") or _DEFAULT_PATH
    return None if chosen == "none" else chosen


def _answer_of(peer: socket.socket, expected: int, size: int, patience: float) -> Optional[bytes]:
    deadline = time.monotonic() + patience
    answer = b""
    try:
        while len(answer) < size:
            peer.settimeout(max(deadline - time.monotonic(), 1e-6))
            part = peer.recv(size - len(answer))
            if not part:
                return None
            answer += part
    except OSError:
        return None
    return answer if answer[0] == expected else None


def _connect(path: Optional[str] = None) -> Optional[socket.socket]:
    """A connection that does not block; None if there is no server."""
    place = _path(path)
    if place is None:
        return None
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # If the backlog is full, the server is too busy to wait for.
        peer.setblocking(False)
        peer.connect(place)
    except (OSError, ValueError):  # no server, or an invalid path
        peer.close()
        return None
    return peer


def _ask(path: Optional[str], kind: int, expected: int, device: int, size: int) -> Optional[bytes]:
    """One query on a connection of its own, so that an answer cannot belong to another query."""
    connected = _connect(path)
    if connected is None:
        return None
    with connected as peer:
        try:
            peer.sendall(_HEAD.pack(kind, device, 0, 0, 0, 0, 0).ljust(size, b"\0"))
        except OSError:
            return None
        return _answer_of(peer, expected, size, _PATIENCE)


def _server_usage(device: int, path: Optional[str] = None) -> Optional[Dict[str, int]]:
    """Bytes per type on a device, of all processes."""
    answer = _ask(path, MessageType.QUERY, MessageType.RESPONSE, device, _SHORT)
    if answer is None:
        return None
    return dict(zip(_COUNTED, _COUNTERS.unpack_from(answer, _HEAD.size)))


def _server_info(device: int, path: Optional[str] = None) -> Optional[Dict[str, int]]:
    """The properties of a device; for device -1, the number of devices."""
    answer = _ask(path, MessageType.DEVICE_INFO_QUERY, MessageType.DEVICE_INFO_RESPONSE, device, _LONG)
    if answer is None:
        return None
    return dict(zip(_PROPERTIES, _FACTS.unpack_from(answer, _SHORT)))


def _no_server(path: Optional[str]) -> str:
    place = _path(path)
    return f"no allocation server answers at {place}" if place else "TT_ALLOC_SERVER_SOCKET=none: there is no server"


def _check_device(device: int) -> None:
    if not 0 <= index(device) <= 1023:
        raise ValueError(f"device must be 0 to 1023, not {device}")


_warned: Set[str] = set()


def _warn(text: str) -> None:
    """Each text once, so that a loop of queries does not fill the screen."""
    if text not in _warned:
        _warned.add(text)
        print(f"allocation_client: {text}", file=sys.stderr, flush=True)


def _trace(frame: Optional[FrameType], room: int) -> str:
    """file:line:function, the innermost last; as many of the innermost as have room."""
    parts: Deque[str] = deque()
    while frame is not None:
        code = frame.f_code
        part = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}:{code.co_name}"
        room -= len(part.encode("utf-8", "replace")) + len(" -> ")
        if room < -len(" -> "):
            break
        parts.appendleft(part)
        frame = frame.f_back
    return " -> ".join(parts)


def _text(text: str, size: int) -> bytes:
    """A NUL is at its end, and no character is cut."""
    return text.encode("utf-8", "replace")[: size - 1].decode("utf-8", "ignore").encode()


class _Messages:
    """What is used of the package, by messages to the server. Called with _lock held."""

    def __init__(self, reason: ImportError) -> None:
        self.reason = reason
        self.path: Optional[str] = None
        self.peer: Optional[socket.socket] = None
        self.pid = 0  # whose connection it is: a forked child has one of its own
        self.queue: Deque[bytes] = deque()
        self.is_sending = False

    def open(self, path: Optional[str]) -> None:
        """The first client that finds a server chooses it for the process."""
        asked = os.environ.get("TTMEM"), os.environ.get("TT_ALLOC_TRACKING_ENABLED")
        if asked[0] == "0" or "1" not in asked or (self.peer is not None and self.pid == os.getpid()):
            return
        self.path = path
        self.reopen()
        if self.peer is None:
            raise RuntimeError(f"{_no_server(path)}; one is needed without the package ttmem ({self.reason})")

    def reopen(self) -> None:
        self.leave()
        self.queue.clear()
        self.is_sending = False
        self.pid = os.getpid()
        self.peer = _connect(self.path)
        if self.peer is not None:
            self.peer.settimeout(_STUCK)

    def leave(self) -> None:
        if self.peer is not None:
            self.peer.close()
        self.peer = None

    def lose(self) -> None:
        self.leave()
        _warn("the allocation server is gone: buffers are no longer reported")

    def send(self, kind: int, device: int, size: int, of: int, address: int, name: str = "", trace: str = "") -> None:
        if self.pid and self.pid != os.getpid():
            self.reopen()
        if self.peer is None:
            return
        now = int(time.time() * 1e9) if kind == MessageType.ALLOC else 0
        head = _HEAD.pack(kind, device, size, of, self.pid, address, now)
        self.queue.append(head + bytes(_COUNTERS.size) + _TEXTS.pack(_text(name, 64), _text(trace, 512)))
        if self.is_sending:
            return  # in a finaliser or a signal handler within the loop below
        self.is_sending = True
        try:
            while self.queue and self.peer is not None:
                self.peer.sendall(self.queue.popleft())
        except OSError:
            self.lose()
        finally:
            self.is_sending = False

    def alloc(self, device: int, kind: int, address: int, size: int, name: Optional[str] = None) -> None:
        _check_device(device)
        if not 1 <= size < 1 << 40:
            raise ValueError(f"size must be 1 to {(1 << 40) - 1}, not {size}")
        trace = _trace(sys._getframe(1), 511)
        self.send(MessageType.ALLOC, device, size, kind, address, name or "", trace)

    def free(self, device: int, address: int, kind: int = 0) -> None:
        self.send(MessageType.FREE, device, 0, kind, address)

    def usage(self, device: int) -> Optional[Dict[str, int]]:
        """Asked on the connection of the reports: so the answer has all that was reported before."""
        if self.peer is None or self.is_sending or self.pid != os.getpid():
            return None
        self.send(MessageType.QUERY, device, 0, 0, 0)
        answer = _answer_of(self.peer, MessageType.RESPONSE, _SHORT + _TEXTS.size, _STUCK)
        if answer is None:
            self.lose()
            return None
        self.peer.settimeout(_STUCK)
        return dict(zip(_COUNTED, _COUNTERS.unpack_from(answer, _HEAD.size)))


_messages: Optional[_Messages] = None
try:
    from ttmem import alloc, free, memory_allocated, memory_stats
except ImportError as _reason:
    _messages = _Messages(_reason)
    alloc, free = _messages.alloc, _messages.free  # type: ignore

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
    """Another thread of the parent may have held the lock. The connection stays the parent's."""
    global _lock
    _lock = threading.RLock()
    if _messages is not None:
        _messages.leave()


if hasattr(os, "register_at_fork"):  # since 3.7
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


def _alone(path: Optional[str]) -> None:
    """No server has answered. Without the package that is an error, as it always was."""
    if _messages is not None:
        raise RuntimeError(_no_server(path))
    if _path(path) is not None:
        _warn(f"{_no_server(path)}: figures are those of this process alone")


def _usage(device_id: int, path: Optional[str]) -> Dict[str, int]:
    _check_device(device_id)
    with _lock:
        answer = _messages.usage(device_id) if _messages is not None else None
    if answer is None:
        answer = _server_usage(device_id, path)
    is_whole = answer is not None
    if answer is None:
        _alone(path)
        kinds = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE)
        answer = dict(zip(_COUNTED, (memory_allocated(device_id, kind) for kind in kinds)))
    return {"device_id": index(device_id), **answer, "machine_wide": is_whole}


class AllocationClient:
    """All clients of a process share one set of ids, which count from 1."""

    SOCKET_PATH = _DEFAULT_PATH
    MESSAGE_FORMAT = "=BxxxiQBxxxiQQQQQQQQIIIIII"

    def __init__(self, socket_path: Optional[str] = None) -> None:
        """socket_path: the server's socket; otherwise TT_ALLOC_SERVER_SOCKET or SOCKET_PATH.

        With a server it says so, as it always did. RuntimeError without one is raised only where the package
        ttmem cannot be loaded.
        """
        self.socket_path = socket_path
        self.process_id = os.getpid()
        # For messages of the caller's own, such as DUMP_REMAINING. None: there is no server.
        self.sock: Optional[socket.socket] = None
        if _messages is not None:
            with _lock:
                _messages.open(self._path())
        self.sock = _connect(self._path())
        if self.sock is not None:
            self.sock.setblocking(True)
            print("✓ Connected to allocation server", flush=True)

    def __del__(self) -> None:
        sock = getattr(self, "sock", None)
        if sock is not None:
            sock.close()

    def _path(self) -> Optional[str]:
        """A script may have set SOCKET_PATH to another place."""
        moved = self.SOCKET_PATH if self.SOCKET_PATH != _DEFAULT_PATH else None
        return self.socket_path or moved

    @staticmethod
    def _get_stack_trace() -> str:
        """The caller's stack, "model.py:123:forward -> attn.py:456:compute", the innermost last."""
        return _trace(sys._getframe(1), 511)

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
                alloc(place[0], kind, place[2], length, buffer_name)
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
                free(0, _address(number))
                return
            place = _freed[number]
            while len(_freed) > _FREED_MAX:
                _freed.popitem(last=False)
            if place is not None:
                free(place[0], place[2], place[1])

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
            _check_device(device_id)
        answer = _server_info(device_id, self._path())
        if answer is None:
            _alone(self._path())
        facts = answer or dict.fromkeys(_PROPERTIES, 0)
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
        answer = _server_info(-1, self._path())
        if answer is not None:
            return answer["num_devices"]
        _alone(self._path())
        used = [number for number in range(1024) if memory_stats(number).allocs]
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
    try:
        demo()
    except RuntimeError as _error:
        sys.exit(f"allocation_client: {_error}")
