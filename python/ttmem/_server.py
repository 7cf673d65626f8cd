# SPDX-License-Identifier: Apache-2.0
"""Queries in the old server's protocol, which ttmemd answers on the old socket.

The old modules use this for what only a server knows: the figures of all processes. No query waits
longer than a second, and without a server the answer is None.
"""

import os
import socket
import struct
import time
from typing import Dict, Optional

DEFAULT_PATH = "/tmp/tt_allocation_server.sock"

FACTS = (
    "total_dram_size",
    "total_l1_size",
    "arch_type",
    "num_dram_channels",
    "dram_size_per_channel",
    "l1_size_per_core",
    "is_available",
    "num_devices",
)

_PATIENCE = 0.9  # seconds

_QUERY, _RESPONSE = 3, 4
_INFO_QUERY, _INFO_RESPONSE = 6, 7

# docs/old-clients.md: the header, four counters; the longer message adds the device's properties.
_HEAD = struct.Struct("<B3xiQB3xiQQ")
_COUNTERS = struct.Struct("<4Q")
_FACTS = struct.Struct("<2Q6I")
_SHORT = _HEAD.size + _COUNTERS.size
_LONG = _SHORT + _FACTS.size
assert (_SHORT, _LONG) == (72, 112)


def _path(path: Optional[str]) -> Optional[str]:
    chosen = path or os.environ.get("TT_ALLOC_SERVER_SOCKET") or DEFAULT_PATH
    return None if chosen == "none" else chosen


def _receive(peer: socket.socket, size: int) -> Optional[bytes]:
    deadline = time.monotonic() + _PATIENCE
    answer = b""
    while len(answer) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        peer.settimeout(left)
        part = peer.recv(size - len(answer))
        if not part:
            return None
        answer += part
    return answer


def connect(path: Optional[str] = None) -> Optional[socket.socket]:
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
    connected = connect(path)
    if connected is None:
        return None
    try:
        with connected as peer:
            peer.sendall(_HEAD.pack(kind, device, 0, 0, 0, 0, 0).ljust(size, b"\0"))
            answer = _receive(peer, size)
    except OSError:
        return None
    return answer if answer and answer[0] == expected else None


def usage(device: int, path: Optional[str] = None) -> Optional[Dict[str, int]]:
    """Bytes per type on a device, of all processes."""
    answer = _ask(path, _QUERY, _RESPONSE, device, _SHORT)
    if answer is None:
        return None
    names = ("dram_allocated", "l1_allocated", "l1_small_allocated", "trace_allocated")
    return dict(zip(names, _COUNTERS.unpack_from(answer, _HEAD.size)))


def info(device: int, path: Optional[str] = None) -> Optional[Dict[str, int]]:
    """The properties of a device; for device -1, the number of devices."""
    answer = _ask(path, _INFO_QUERY, _INFO_RESPONSE, device, _LONG)
    if answer is None:
        return None
    return dict(zip(FACTS, _FACTS.unpack_from(answer, _SHORT)))
