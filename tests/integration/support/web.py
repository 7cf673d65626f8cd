# SPDX-License-Identifier: Apache-2.0
"""An HTTP server over the books of a world, and clients for it: polite, raw and rude.

The server is tests/programs/serve. Server.command() can start another one with the same routes.
"""

import contextlib
import http.client
import json
import socket
import subprocess

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


class Listener:
    """A subscriber of the stream: next() returns (event, document)."""

    def __init__(self, server, path="/api/v1/stream", token=None):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=LIMIT)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def next(self):
        event, data = None, None
        while line := self.answer.readline():
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

    def close(self):
        self.answer.close()
        self.connection.close()
