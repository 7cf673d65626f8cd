# SPDX-License-Identifier: Apache-2.0
"""The books of exited children, without a daemon.

A process that creates a book sends it to the sockets in TTMEM_OFFER. Ours is among them, so the book
of a child is in its queue from the child's first allocation on, and stays there after the child has
exited, which shows as the end of the connection. Only then is it taken out. Books are held a few at a
time, so that the command ttmem finds them in this process as it finds those of living processes.

There is no thread: a queued book needs no service, and a process with a second thread cannot fork
safely.
"""

import array
import contextlib
import os
import resource
import select
import shutil
import socket
import struct
import tempfile
from typing import Dict, Iterator, List, Set

_HELD_MAX = 32  # at a time; readers read at most 64 books of one process
_CHILDREN_MAX = 512  # connections of living children
_QUEUE = 4096  # what Linux allows
_SOCKETS_MAX = 4  # to which the library sends its book
_MESSAGE_MAX = 64  # bytes; an offer has 16
_FDS_MAX = 4  # with one message; an offer has 2
_PATH_MAX = 90  # of 107 bytes, and the name of the socket
_CREDENTIALS = struct.Struct("3i")


class Offers:
    """The socket, and the connections of living children."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not base or len(os.fsencode(base)) > _PATH_MAX - 30 or not os.access(base, os.W_OK):
            base = "/tmp"
        # A private folder: no other user can send us anything.
        self._folder = tempfile.mkdtemp(prefix="ttmem-pytest-", dir=base)
        self._outer = os.environ.get("TTMEM_OFFER")
        self._pid = self._owner = os.getpid()
        self._connections: Dict[int, socket.socket] = {}
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.path.join(self._folder, "offer")
        self._listening.bind(path)
        self._listening.listen(_QUEUE)
        self._listening.setblocking(False)
        others = self._outer.split(":") if self._outer else []
        os.environ["TTMEM_OFFER"] = ":".join([path, *others][:_SOCKETS_MAX])
        self.pids: Set[int] = set()  # of the processes whose books are held now
        self.seen = False  # a child has sent its book, which has an allocation in it
        self.lost = False  # there were more children than could be tracked

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._listening.close()
        if os.getpid() != self._owner:
            return
        if self._outer is None:
            os.environ.pop("TTMEM_OFFER", None)
        else:
            os.environ["TTMEM_OFFER"] = self._outer
        shutil.rmtree(self._folder, ignore_errors=True)

    def knows(self, pid: int) -> bool:
        """Whether the process is a living descendant of ours that has sent its book."""
        return pid in map(_peer_of, self._connections.values())

    def batches(self) -> Iterator[None]:
        """Yields once for each batch of books of exited children, and holds them meanwhile; they are
        closed before the next batch."""
        self._be_alone()
        taken = 0
        while True:
            self._accept()
            over = self._over()
            if not over:
                break
            held: List[int] = []
            try:
                for number in over:
                    held += self._receive(self._connections.pop(number))
                taken += len(over)
                if held:
                    yield
            finally:
                self.pids.clear()
                for book in held:
                    os.close(book)
        # The kernel limits the number of descriptors in flight, two for each book.
        limit = min(_QUEUE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self.lost = self.lost or (taken >= limit and os.geteuid() != 0) or taken >= _QUEUE

    def _be_alone(self) -> None:
        """If a test runs in a process forked from ours, drops the inherited connections."""
        if self._pid != os.getpid():
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()
            self._pid = os.getpid()

    def _accept(self) -> None:
        while len(self._connections) < _CHILDREN_MAX:
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:
                return
            except OSError:  # no free descriptors: those in the queue keep waiting
                break
            connection.setblocking(False)
            if _peer_of(connection) == self._pid:
                connection.close()  # our own book
            else:
                self.seen = True
                self._connections[connection.fileno()] = connection
        waiting = select.poll()
        waiting.register(self._listening, select.POLLIN)
        # No connection has ended that could make room for those waiting.
        self.lost = self.lost or (bool(waiting.poll(0)) and not self._over())

    def _over(self) -> List[int]:
        """Connections whose other end is closed, by exit or exec."""
        poll = select.poll()
        for number in self._connections:
            poll.register(number, 0)  # a hangup is always reported; a waiting book is of no interest
        return [number for number, _ in poll.poll(0)][:_HELD_MAX]

    def _receive(self, connection: socket.socket) -> List[int]:
        """The descriptors sent with the book. They may be anything: readers verify books."""
        fds = array.array("i")
        room = socket.CMSG_SPACE(_FDS_MAX * fds.itemsize)
        with connection, contextlib.suppress(OSError):
            _, control, flags, _ = connection.recvmsg(_MESSAGE_MAX, room, socket.MSG_CMSG_CLOEXEC)
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
            self.lost = self.lost or bool(flags & socket.MSG_CTRUNC)
            self.pids.add(_peer_of(connection))
        return list(fds)


def _peer_of(connection: socket.socket) -> int:
    with contextlib.suppress(OSError):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(data)[0])
    return 0
