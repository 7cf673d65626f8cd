# SPDX-License-Identifier: Apache-2.0
"""Asks a daemon by every door, as whoever runs it, and prints what each door said.

Run by path or as a text, in any namespace: it needs nothing but Python. See trust/test_table.py.
"""

import contextlib
import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

LIMIT = 100


def native(setup, path):
    """HTTP on the native socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(LIMIT)
        client.connect(setup["socket"])
        client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        data = client.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line.split()[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        while len(body) < length:
            body += client.recv(65536)
    return f"{int(head.split()[1])} {body.decode()}"


def with_token(setup):
    return {"Authorization": "Bearer " + setup["token"]}


def signed_in(setup):
    """The headers of a browser with a link of "ttmem open"; without one, those of any browser."""
    answer = native(setup, "/api/v1/open")
    if not answer.startswith("200 "):
        return {}
    headers = {"Authorization": "Code " + json.loads(answer[4:])["code"]}
    with contextlib.closing(http.client.HTTPConnection(setup["http"], timeout=LIMIT)) as connection:
        connection.request("POST", "/api/v1/sign-in", headers=headers)
        return {"Cookie": connection.getresponse().headers["Set-Cookie"].split(";")[0]}


def tcp(setup, path, headers=None):
    with contextlib.closing(http.client.HTTPConnection(setup["http"], timeout=LIMIT)) as connection:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return f"{answer.status} {answer.read().decode()}"


def listen(setup, headers):
    """A stream that has begun."""
    connection = http.client.HTTPConnection(setup["http"], timeout=LIMIT)
    connection.request("GET", "/api/v1/stream", headers=headers)
    stream = connection.getresponse()
    while b"event: totals" not in stream.readline():
        pass
    return stream


def next_incident(stream):
    while b"event: incident" not in stream.readline():
        pass
    return stream.readline().decode()


def old(setup, request, until=None):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(LIMIT)
        client.connect(setup["legacy"])
        client.sendall(request)
        answer = b""
        if until is None:
            client.shutdown(socket.SHUT_WR)
        while until is None or not until(answer):
            part = client.recv(65536)
            if not part:
                break
            answer += part
    return answer


def old_message(kind, device=0):
    return struct.pack("<B3xiQB3xiQQ", kind, device, 0, 0, 0, 0, 0).ljust(72, b"\0")


def old_query(setup):
    answer = old(setup, old_message(3), lambda got: len(got) >= 72)
    return f"dram {struct.unpack_from('<Q', answer, 40)[0]} " + answer.decode("latin-1")


def command(setup, *words):
    result = subprocess.run(
        [setup["ttmem"], *words], env={**os.environ, **setup["env"]}, capture_output=True, text=True, timeout=LIMIT
    )
    return result.stdout


def bundle(setup):
    path = f"{setup['scratch']}/bundle-{os.getpid()}"
    command(setup, "doctor", "--bundle", path)
    with open(path, encoding="utf-8") as file:
        return file.read()


def read(path):
    try:
        with open(path, "rb") as file:
            return "200 " + file.read().decode("latin-1")
    except OSError as error:
        return f"refused: {error.strerror}"


def history(setup):
    return "\n".join(native(setup, f"/api/v1/history?address={address}") for address in setup["addresses"])


def link(setup):
    """The names and addresses in the books that a link is told of: the books of the living."""
    head, found = struct.Struct("<4I"), []

    def packet(kind, body):
        return head.pack(0x4B4C5454, 1, kind, head.size + len(body)) + body

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(LIMIT)
        client.connect(setup["socket"])
        with contextlib.suppress(BrokenPipeError):
            client.send(packet(1, struct.pack("<2I", 3, 0)))
            client.send(packet(4, struct.pack("<Q", 1)))
        while True:
            try:
                told, fds, _, _ = socket.recv_fds(client, 65536, 2)
            except ConnectionResetError:
                return "refused"
            if not told or head.unpack_from(told)[2] == 19:
                return "\n".join(found) or "nothing"
            if head.unpack_from(told)[2] == 16:
                found += contents(setup, fds[0])
            for fd in fds:
                os.close(fd)


def contents(setup, book):
    size, at, data = os.fstat(book).st_size, 0, b""
    with contextlib.suppress(OSError):
        while at < size:
            at = os.lseek(book, at, os.SEEK_DATA)
            end = os.lseek(book, at, os.SEEK_HOLE)
            data += os.pread(book, end - at, at)
            at = end
    for address in setup["addresses"]:
        if struct.pack("<Q", int(address, 16)) in data:
            yield address
    yield from (name.decode() for name in re.findall(rb"(?:live|dead)-[a-z]+-[a-z]+|live-rootless|dead-rootless", data))


def recordings(setup):
    """As a user would: with the paths that the daemon prints."""
    return "\n".join(command(setup, "buffers", "--json", "--from", path) for path in setup["recordings"])


def main():
    setup = json.loads(sys.stdin.readline())
    doors = {}
    token, browser = with_token(setup), signed_in(setup)
    plain, full, signed = listen(setup, {}), listen(setup, token), listen(setup, browser)
    print("listening", flush=True)
    doors["tcp-stream"], doors["tcp-stream-token"] = next_incident(plain), next_incident(full)
    doors["tcp-stream-open"] = next_incident(signed)
    doors["native-list"] = command(setup, "buffers", "--json")
    doors["native-link"] = link(setup)
    doors["native-smi"] = native(setup, "/api/v1/smi")
    doors["native-buffers"] = native(setup, "/api/v1/buffers")
    doors["native-at"] = native(setup, f"/api/v1/buffers?at={time.time_ns()}")
    doors["native-moments"] = native(setup, "/api/v1/moments?limit=10000")
    doors["native-map"] = native(setup, "/api/v1/map")
    doors["native-leaks"] = native(setup, "/api/v1/leaks")
    doors["native-peak"] = native(setup, "/api/v1/peak")
    doors["native-commands"] = native(setup, "/api/v1/commands")
    doors["native-incidents"] = native(setup, "/api/v1/incidents")
    doors["native-history"] = history(setup)
    doors["native-dump"] = native(setup, "/api/v1/dump")
    if setup["legacy"]:
        doors["old-query"] = old_query(setup)
        doors["old-query-all"] = old(setup, b"QUERY_ALL\n", lambda got: b"\n\n" in got).decode()
        doors["old-dump"] = old(setup, old_message(5)).decode("latin-1")
        doors["old-dump-kernels"] = old(setup, old_message(12)).decode("latin-1")
    doors["tcp-smi"] = tcp(setup, "/api/v1/smi")
    doors["tcp-metrics"] = tcp(setup, "/metrics")
    doors["tcp-details"] = "\n".join(tcp(setup, f"/api/v1/{page}") for page in ("buffers", "leaks", "ended", "incidents", "peak", "commands"))
    doors["tcp-token"] = "\n".join(tcp(setup, f"/api/v1/{page}", token) for page in ("buffers", "leaks", "peak"))
    doors["tcp-open"] = "\n".join(tcp(setup, f"/api/v1/{page}", browser) for page in ("buffers", "leaks", "peak", "incidents", "commands"))
    doors["tcp-open-map"] = tcp(setup, "/api/v1/map", browser)
    doors["recordings"] = recordings(setup)
    doors["doctor-bundle"] = bundle(setup)
    for door in ("log", "database", "token"):
        doors[door] = read(setup["files"][door])
    json.dump(doors, sys.stdout)


main()
