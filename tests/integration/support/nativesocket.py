# SPDX-License-Identifier: Apache-2.0
"""The native socket as clients in Python use it, and a daemon that several users can ask."""

import json
import os
import re
import socket
import struct

import pytest

from common import become
from conftest import LIMIT
from world import wait_for

USER, OTHER, GROUP = 12345, 12346, 54321
AS_USER, AS_OTHER, AS_MEMBER = become(USER), become(OTHER), become(USER, groups=(7, GROUP))


@pytest.fixture
def place(ttmemd):
    """A daemon, not started yet, for tests that become others."""
    if os.getuid() != 0:
        pytest.skip("only root can become others")
    return ttmemd


@pytest.fixture
def daemon(place):
    """A daemon of root's."""
    return place.start("--group", str(GROUP), "--keeper", "no")


def pids_of(document):
    return {p["pid"] for p in document["processes"]}


def names(document):
    return {b["name"] for b in document["buffers"]}


def wait_until_seen(daemon, *pids):
    wait_for(lambda: set(pids) <= pids_of(daemon.json("ps")), pids)


# What is below speaks the protocol itself.

ROSTER = 1
# Of commands before documents went over HTTP: leaks, incidents, series, dump, status.
OLD_KINDS = (2, 3, 4, 5, 6)
REQUEST = struct.Struct("<10I4Q24s64s32x")
REPLY = struct.Struct("<4IiI8x")
PROCESS = struct.Struct("<6Q8I8Q64s72s")
MAY_SEE, HAS_BOOK = 4, 8


def request(kind, want=0, pid=0, limit=0, cursor=b"", magic=0x51525454):
    return REQUEST.pack(
        magic, 1, REQUEST.size, kind, want, pid, limit, 2**32 - 1, 2**32 - 1, 0, 0, 0, 0, 0, b"", cursor
    )


def connect(daemon):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(LIMIT / 2)
    client.connect(str(daemon.socket))
    return client


def packets(client):
    """(payload, descriptors) of each packet of one answer."""
    while True:
        packet, fds, flags, _ = socket.recv_fds(client, 65536, 4)
        assert packet and not flags & socket.MSG_TRUNC
        magic, version, _, flags, status, length = REPLY.unpack(packet[: REPLY.size])
        assert (magic, version, status) == (0x50525454, 1, 0)
        assert length == len(packet) - REPLY.size
        if flags & 1:
            return
        yield packet[REPLY.size :], fds


def get(target, headers=""):
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()


STATUS = get("/api/v1/status")


def response(client):
    """(status, body) of one HTTP response."""
    data = client.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"\r\nContent-Length: (\d+)", head)[1])
    while len(body) < length:
        body += client.recv(65536)
    assert len(body) == length
    return int(head.split()[1]), body


def ask(daemon, target):
    with connect(daemon) as client:
        client.send(get(target))
        return response(client)


def document(daemon, target):
    status, body = ask(daemon, target)
    assert status == 200, body
    return json.loads(body)


def is_well(client):
    status, body = response(client)
    return status == 200 and json.loads(body)["running"]


def is_closed(client):
    try:
        return client.recv(65536) == b""
    except ConnectionResetError:
        return True
