# SPDX-License-Identifier: Apache-2.0
"""A program that keeps books for others and speaks the link with ttmemd (docs/protocol.md), as any user and in any
namespace. The book is a copy of one that a library has made for a process, so everything in it can be forged."""

import json
import subprocess
import sys
from pathlib import Path

# Run as a text: it needs nothing but Python.
PROGRAM = r'''
import fcntl, json, os, socket, struct, sys

HEAD, BOOK, OFFER, SYNC, PROCESS = "<4I", "<4I2Q", "<4I3Q2I", "<4IQ", "<4I4Q6I64s72s"
STATE, STATE_SIZE = "<4I14QiIIIII112s", 264
HELLO, OFFERS, CLOSED, SYNCS, STATES, BOOKS, ENDED, LINES, SYNCED = 1, 2, 3, 4, 5, 16, 17, 18, 19
FIELDS = {"source": (48, "<I"), "pid": (56, "<I"), "keeper": (60, "<I"), "uid": (64, "<I"), "start": (72, "<Q"),
          "namespace": (80, "<Q")}
books, pidfds = {}, {}
link = listener = None


def packet(kind, fmt, *values, more=b""):
    size = struct.calcsize(fmt) + len(more)
    return struct.pack(fmt, 0x4B4C5454, 1, kind, size, *values) + more


def listen(path):
    global listener
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    os.chmod(path, 0o666)
    listener.listen()


def take(name):
    """The book that a library offers, and the pidfd that comes with it."""
    connection = listener.accept()[0]
    message, (book, pidfd), _, _ = socket.recv_fds(connection, 100, 2)
    books[name], pidfds[name] = book, pidfd


def copy(name, seals=0x17, **patch):
    """A file of our own with the same contents."""
    fd = books[name]
    size = os.fstat(fd).st_size
    made = os.memfd_create("ttmem-book", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(made, size)
    at = 0
    while True:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        end = os.lseek(fd, at, os.SEEK_HOLE)
        while at < end:
            at += os.pwrite(made, os.pread(fd, min(end - at, 1 << 20), at), at)
    for field, value in {"source": 2, "keeper": os.getpid(), **patch}.items():
        offset, fmt = FIELDS[field]
        os.pwrite(made, struct.pack(fmt, value), offset)
    fcntl.fcntl(made, 1033, seals)
    return made


def connect(path, want=0):
    global link
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.settimeout(60)
    link.connect(path)
    link.send(packet(HELLO, HEAD + "2I", want, 0))


def offer(name, file=None, pidfd=None, again=False, user=0, **patch):
    fd = file if file is not None else books["kept-" + name] if again else copy(name, **patch)
    books["kept-" + name] = fd
    old = (0, 0)
    fds = [fd, *([pidfds[pidfd or name]] if pidfd != "none" else [])]
    socket.send_fds(link, [packet(OFFERS, OFFER, *old, 0, 0, user)], fds)


def identity(name):
    stat = os.fstat(books["kept-" + name])
    return stat.st_dev, stat.st_ino


def closed(name):
    link.send(packet(CLOSED, BOOK, *identity(name)))


def continues(name):
    """The same in a new book."""
    old = identity(name)
    books["kept-" + name] = fd = copy(name)
    socket.send_fds(link, [packet(OFFERS, OFFER, *old, 0, 0, 0)], [fd, pidfds[name]])


def state(path="", status=0, holder=0, **counts):
    names = ("connections", "clients", "memory", "accepted", "messages", "questions", "taken_over", "in_doubt", "refused",
             "refused_room", "accept_pauses", "connections_refused", "connections_slow", "log_left_out")
    link.send(packet(STATES, STATE, *(counts.get(name, 0) for name in names), status, holder, 0, 1 if holder else 0, 0, 0,
                     path.encode()))


def receive():
    bytes, fds, _, _ = socket.recv_fds(link, 65536, 2)
    for fd in fds:
        os.close(fd)
    if not bytes:
        return ("gone",)
    kind = struct.unpack_from(HEAD, bytes)[2]
    if kind == BOOKS:
        fields = struct.unpack_from(PROCESS, bytes)
        return ("book", fields[8], fields[13] & 1, len(fds), fields[5])
    if kind == ENDED:
        return ("ended", struct.unpack_from(BOOK, bytes)[5])
    if kind == LINES:
        return ("lines", bytes[struct.calcsize(BOOK):].decode())
    if kind == SYNCED:
        return ("synced", struct.unpack_from(SYNC, bytes)[4])
    return ("unknown", kind)


def sync():
    """What came before the answer; an end of the link is in there."""
    link.send(packet(SYNCS, SYNC, 1))
    told = []
    while True:
        told.append(receive())
        if told[-1][0] in ("synced", "gone"):
            return told


def is_gone():
    return receive() == ("gone",)


def hang_up():
    link.close()


for line in sys.stdin:
    name, words, options = json.loads(line)
    try:
        print(json.dumps(globals()[name](*words, **options)), flush=True)
    except BrokenPipeError:
        print(json.dumps("gone"), flush=True)
'''

WANT_BOOKS, WANT_LINES = 1, 2


class Keeper:
    """Calls the functions above: keeper("offer", "a")."""

    def __init__(self, daemon, folder, before=()):
        self.daemon = daemon
        self.socket = Path(folder) / f"offers-{id(self)}"
        self.process = daemon.adopt(subprocess.Popen(
            [*map(str, before), sys.executable, "-B", "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # fmt: skip

    def __call__(self, function, *words, **options):
        self.process.stdin.write(json.dumps([function, words, options]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def link(self, want=0):
        self("connect", str(self.daemon.socket), want)
        return self

    def learn(self, name, *lines, before=()):
        """A process whose book only this keeper has."""
        if not self.socket.exists():
            self("listen", str(self.socket))
        player = self.daemon.player(*lines, before=before, TTMEM_OFFER=str(self.socket), TTMEM_SOCKET="none",
                                    TTMEM_UNLISTED="1")  # fmt: skip
        self("take", name)
        return player

    def kill(self):
        self.process.kill()
        self.process.wait()
