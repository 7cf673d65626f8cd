# SPDX-License-Identifier: Apache-2.0
"""An HTTP server over the books of a world, and clients for it: polite, raw and rude.

The server is tests/programs/serve. Server.command() can start another one with the same routes.
"""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import zlib

from conftest import LIMIT
from world import check_schema


class Server:
    def __init__(self, world, folder, *options):
        self.token_file = folder / "token"
        self.process = world.adopt(
            subprocess.Popen(
                self.command(world, *options),
                env=world.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        words = self.process.stdout.readline().split()
        assert words[:1] == ["listening"], words
        self.host, _, port = words[1].rpartition(":")
        self.port = int(port)
        self.address = (self.host, self.port)

    def command(self, world, *options):
        program = world.build / "tests" / "programs" / "serve"
        return [str(program), "127.0.0.1:0", str(self.token_file), *options]

    @property
    def token(self):
        return self.token_file.read_text().strip()

    def tell(self, line):
        """Sends a line to the server's standard input."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=LIMIT) == 0

    def ask(self, path, method="GET", token=None, headers=None, body=None):
        """(status, headers, body as bytes)"""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers, body=body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def json(self, path, **options):
        """A document, checked against its schema."""
        status, headers, body = self.ask(path, **options)
        assert status == 200, body
        assert headers["Content-Type"] == "application/json"
        return check_schema(json.loads(body))

    def details(self, path):
        return self.json(path, token=self.token)

    def refused(self, path, status, **options):
        """The text of an error."""
        got, headers, body = self.ask(path, **options)
        document = json.loads(body)
        assert (got, document["status"]) == (status, status), body
        assert headers["Content-Type"] == "application/json"
        assert set(document) == {"error", "status"}
        return document["error"]

    def connect(self):
        return socket.create_connection(self.address, timeout=LIMIT)

    def raw(self, data):
        """The whole response to some bytes."""
        with self.connect() as client:
            with contextlib.suppress(OSError):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            return read_all(client)


def read_all(client):
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            parts.append(part)
    return b"".join(parts)


def apply_change(was, change):
    """A document after a change, as docs/http.md tells it."""
    if isinstance(change, list):
        return apply_steps(was, change)
    if not isinstance(change, dict):
        return change
    if "=" in change:
        return change["="]
    assert set(change) <= set(was)
    return {key: apply_change(value, change[key]) if key in change else value for key, value in was.items()}


def apply_steps(was, steps):
    now, at = [], 0
    for step in steps:
        if isinstance(step, int):
            now += was[at : at + max(step, 0)]
            at += abs(step)
        elif "+" in step:
            now.append(step["+"])
        else:
            now.append(apply_change(was[at], step))
            at += 1
    assert at <= len(was)
    return now + was[at:]


class Listener:
    """A subscriber of the stream: next() returns (event, document)."""

    def __init__(self, server, path="/api/v1/stream", token=None, *, gzip=False):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=LIMIT)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if gzip:
            headers["Accept-Encoding"] = "gzip"
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status
        self.unpacking = zlib.decompressobj(wbits=31) if gzip else None
        self.text = b""
        self.totals = None

    def line(self):
        """The next line, b"" at the end."""
        while b"\n" not in self.text:
            piece = self.answer.read1(65536)
            if not piece:
                return b""
            # Nothing is kept back until more has come.
            self.text += self.unpacking.decompress(piece) if self.unpacking else piece
        line, _, self.text = self.text.partition(b"\n")
        return line + b"\n"

    def next(self):
        event, data = None, None
        while line := self.line():
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                event = text[7:]
            elif text.startswith("data: "):
                data = json.loads(text[6:])
            elif not text and event:
                return event, data
        raise EOFError

    def next_of(self, wanted):
        while True:
            event, data = self.next()
            if event == wanted:
                return data

    def next_totals(self):
        """The totals after the next change; with ?changes=1."""
        while True:
            event, data = self.next()
            if event == "totals":
                self.totals = data
                return data
            if event == "changes":
                assert set(data) == {"after_ns", "change"}
                assert data["after_ns"] == self.totals["time_ns"]
                self.totals = apply_change(self.totals, data["change"])
                return self.totals

    def close(self):
        self.answer.close()
        self.connection.close()


# One request, as whoever runs it: a browser, as far as the daemon can tell.
BROWSER = """
import http.client, json, sys
where, method, path, headers = json.loads(sys.argv[1])
client = http.client.HTTPConnection(where, timeout=100)
client.request(method, path, headers=headers)
answer = client.getresponse()
print(json.dumps([answer.status, answer.headers.items(), answer.read().decode()]))
"""


def request_as(who, address, method, path, **headers):
    """(status, headers, body) of a request by another process; who: the words that come before its command."""
    headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
    words = [*who, sys.executable, "-c", BROWSER, json.dumps([address, method, path, headers])]
    status, got, body = json.loads(subprocess.check_output(words, text=True, timeout=LIMIT))
    return status, dict(got), body
