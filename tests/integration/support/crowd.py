# SPDX-License-Identifier: Apache-2.0
"""Many clients, native and old, together with a model of what each of them holds.

The daemon is compared with the model, buffer by buffer. The model of a native client is simple: every
call has happened, whether a daemon runs or not. An old client's messages count once the server has
answered a query sent after them. While no server runs, the client waits for the next one: until its answer
is there, every prefix of its messages is possible.
"""

import select
import subprocess

PATIENCE = 0.1  # for an answer of a server that may not run; longer only costs time

# Commands on stdin: lines of "kind address size", then "go": connect if necessary, send all, query.
# The answer: "yes" if the server has answered, "no" if it is unknown what has arrived.
OLD = """
import os, socket, struct, sys
head = struct.Struct("<B3xiQB3xiQQ")
size, path, device = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
link, batch = None, []

def message(kind, amount=0, address=0, pid=os.getpid()):
    name = b"old%d" % os.getpid() if size == 648 else b""
    return (head.pack(kind, device, amount, 0, pid, address, 0).ljust(72, b"\\0") + name).ljust(size, b"\\0")

def send():
    global link
    if link is None:
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(120)
        link.connect(path)
    link.sendall(b"".join(batch) + message(3, pid=0))
    answer = b""
    while len(answer) < size:
        part = link.recv(size - len(answer))
        if not part:
            raise OSError
        answer += part

for line in sys.stdin:
    words = line.split()
    if words[0] != "go":
        batch.append(message(int(words[0]), int(words[2]), int(words[1])))
        continue
    try:
        send()
        print("yes", flush=True)
    except OSError:
        link = None
        print("no", flush=True)
    batch = []
"""


def rows(buffers):
    """What identifies a buffer, and its size."""
    return frozenset((b["device"], b["type"], int(b["address"], 0), b["size"]) for b in buffers)


class Member:
    """One client: @possible is the list of states it may be in, each a set of rows."""

    def __init__(self, rng, device):
        self.rng = rng
        self.device = device
        self.possible = [frozenset()]
        self.next = 0x1000
        self.is_known = False  # known to a daemon: then its end must be reported
        self.doubts = 0  # messages that a killed daemon may have left unapplied, as the next one said

    def invent(self, count):
        """Some calls: [(True, row) to allocate, (False, row) to free]."""
        state, calls = set(self.possible[-1]), []
        for _ in range(count):
            # A report lists a hundred buffers of one call site.
            if state and self.rng.random() < (0.4 if len(state) < 60 else 0.9):
                row = self.rng.choice(sorted(state))
                state.remove(row)
                calls.append((False, row))
            else:
                row = (self.device, "DRAM", self.next, self.rng.randrange(1, 1 << 20))
                self.next += 0x1000
                state.add(row)
                calls.append((True, row))
        return calls

    def apply(self, calls):
        """The states after none, one, two... of the calls."""
        state, states = self.possible[-1], [self.possible[-1]]
        for is_alloc, row in calls:
            state = state | {row} if is_alloc else state - {row}
            states.append(state)
        return states

    def settle(self, seen):
        """The daemon's answer must be one of the states, which is the state from now on."""
        assert self.accepts(seen), (self.pid, self.doubts, seen ^ self.possible[-1])
        self.possible = [seen]
        self.doubts = 0

    def accepts(self, seen):
        """One of the states, but for messages in doubt, which are not applied again."""
        return any(len(seen ^ state) <= self.doubts for state in self.possible)


class Native(Member):
    source = "book"

    def __init__(self, rng, device, daemon):
        super().__init__(rng, device)
        self.player = daemon.player()
        self.pid = self.player.pid

    def work(self, count):
        calls = self.invent(count)
        for is_alloc, (device, kind, address, size) in calls:
            if is_alloc:
                self.player.play(f"alloc {device} {kind} {address} {size} native{self.pid}")
            else:
                self.player.play(f"free {device} {kind} {address}")
        self.possible = self.apply(calls)[-1:]

    def kill(self):
        self.player.kill()


class Old(Member):
    source = "socket"

    def __init__(self, rng, device, daemon, size=72):
        super().__init__(rng, device)
        self.process = daemon.adopt(
            subprocess.Popen(
                ["/usr/bin/python3", "-I", "-S", "-c", OLD, str(size), str(daemon.legacy), str(device)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        self.pid = self.process.pid
        self.is_waiting = False  # for an answer
        self.is_served = False  # has had one
        self.is_cut = False  # its connection ended: it is not known what has arrived
        self.is_unanswered = False  # its answer was in doubt, and is not sent again

    def hear(self, seconds):
        """The answer, if it comes in time."""
        if self.is_waiting and select.select([self.process.stdout], [], [], seconds)[0]:
            self.is_waiting = False
            if self.process.stdout.readline() == "yes\n":
                self.possible = self.possible[-1:]
                self.is_known = self.is_served = True
            else:
                # A connection outlives every daemon but one that is killed while it accepts it, or sends an answer.
                assert not self.is_served or self.doubts or self.is_unanswered
                self.is_cut = True

    def settle(self, seen):
        assert not self.is_waiting or self.doubts or self.is_unanswered
        self.is_unanswered = self.is_waiting
        super().settle(seen)
        self.is_cut = False

    def work(self, count):
        self.hear(0)
        if self.is_waiting or self.is_cut:
            return
        calls = self.invent(count)
        for is_alloc, (_, _, address, size) in calls:
            self.process.stdin.write(f"{1 if is_alloc else 2} {address} {size if is_alloc else 0}\n")
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.possible = self.apply(calls)
        self.is_waiting = True
        self.hear(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
