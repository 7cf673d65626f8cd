# SPDX-License-Identifier: Apache-2.0
"""Stands for another machine, and answers whatever a test wants."""

import contextlib
import json
import socket
import threading

import pytest


class Pretender:
    """Answers whatever it is told to, at one address of many: all of 127.0.0.0/8 is this machine."""

    def __init__(self, answer, where="127.0.0.1"):
        self.answer = answer
        self.asked = []
        self.server = socket.create_server((where, 0))
        self.name = f"{where}:{self.server.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection, contextlib.suppress(OSError):
            self.asked.append(connection.recv(65536).decode())
            for part in [self.answer] if isinstance(self.answer, bytes) else self.answer():
                connection.sendall(part)

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@pytest.fixture
def pretend():
    made = []

    def make(body, status="200 OK", **where):
        """@body: bytes, a document, or a function that yields the parts of a whole answer."""
        if not callable(body):
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            body = b"HTTP/1.0 %s\r\n\r\n" % status.encode() + body
        made.append(Pretender(body, **where))
        return made[-1]

    yield make
    for one in made:
        one.close()
