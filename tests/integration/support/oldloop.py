# SPDX-License-Identifier: Apache-2.0
"""An old client that never rests, and knows what it has."""

import subprocess

from conftest import LIMIT

# As the original client: a blocking send() per message, and SIGPIPE as the system delivers it. It allocates and
# frees until it is told to stop, asks now and then, and says what must be left: the truth that does not come
# from the daemon.
CLIENT = r"""
import os, random, select, signal, socket, struct, sys
path, size = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
def message(kind, bytes=0, address=0, pid=os.getpid()):
    return struct.pack("<B3xiQB3xiQQ", kind, 0, bytes, 1, pid, address, 1 if kind == 1 else 0).ljust(size, b"\0")
s = socket.socket(socket.AF_UNIX)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 60, 0))
s.connect(path)
live, sent, asked = {}, 0, 0
chance = random.Random(size)
print(os.getpid(), flush=True)
while True:
    if select.select([sys.stdin], [], [], 0)[0]:
        if sys.stdin.readline() != "round\n":
            break
        print(asked, flush=True)
    for _ in range(200):
        if live and chance.random() < 0.5:
            address, _bytes = live.popitem()
            s.send(message(2, address=address))
        else:
            sent += 1
            live[sent << 12] = chance.randrange(1, 1 << 20)
            s.send(message(1, live[sent << 12], sent << 12))
    asked += 1
    s.send(message(3, pid=0))
    answer = b""
    while len(answer) < size:
        part = s.recv(size - len(answer))
        assert part, "the server hung up"
        answer += part
    assert answer[0] == 4, answer[:8]
print(len(live), sum(live.values()), sent, asked, flush=True)
sys.stdin.readline()
"""


class OldLoop:
    """The client above in a process of its own; @before: words that start a command where the daemon is."""

    def __init__(self, path, size, before=()):
        self.process = subprocess.Popen(
            [*map(str, before), "/usr/bin/python3", "-c", CLIENT, str(path), str(size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        self.pid = int(self.process.stdout.readline())

    def _ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client died: {self.process.wait(timeout=LIMIT)}"
        return tuple(map(int, line.split()))

    def go_on(self):
        """Returns after another question has been answered: it is served, and at work."""
        (before,) = self._ask("round")
        (after,) = self._ask("round")
        assert after > before

    def stop(self):
        """(buffers, bytes, allocations, questions): the truth."""
        return self._ask("stop")

    def kill(self):
        self.process.kill()

    def wait(self):
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
