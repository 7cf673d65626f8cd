# SPDX-License-Identifier: Apache-2.0
"""The books of children that have ended, without a daemon.

Whoever makes a book offers it to the sockets in TTMEM_OFFER. One of ours is among them, so the book of
a child is in its queue from the child's first allocation on, and stays there when the child has ended.
Nothing is taken out before that: the end of the connection tells it. Then the books are held, a few at
a time, so that the command ttmem finds them in this process as it finds those of the living.

There is no thread: a queued book needs nobody, and a process with a second thread cannot fork safely.
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

_HELD_MAX = 32  # at a time; readers look at 64 books of one process and not at more
_CHILDREN_MAX = 512  # connections of those who are alive
_QUEUE = 4096  # what Linux allows
_SOCKETS_MAX = 4  # that a library offers its book to
_MESSAGE_MAX = 64  # bytes; an offer has 16
_FDS_MAX = 4  # with one message; an offer has 2
_PATH_MAX = 90  # of 107 bytes, and the name of the socket
_CREDENTIALS = struct.Struct("3i")


class Offers:
    """The socket, and the connections of children that are alive."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not base or len(os.fsencode(base)) > _PATH_MAX - 30 or not os.access(base, os.W_OK):
            base = "/tmp"
        # Ours alone: nobody else can hand us anything.
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
        self.pids: Set[int] = set()  # of those whose books are held now
        self.lost = False  # there were more children than could be kept count of

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
        """That process is a child of ours, or of a child; it has offered its book and is alive."""
        return pid in map(_peer_of, self._connections.values())

    def batches(self) -> Iterator[None]:
        """Comes by as often as there are books of ended children to be looked at, and holds them
        meanwhile; those in hand are not there any more when the next come."""
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
        # The kernel limits how many descriptors may be on their way, two for each book.
        limit = min(_QUEUE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self.lost = self.lost or (taken >= limit and os.geteuid() != 0) or taken >= _QUEUE

    def _be_alone(self) -> None:
        """A process that a test runs in, forked from ours, leaves our connections to us."""
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
            except OSError:  # no descriptors: who waits in the queue waits on
                break
            connection.setblocking(False)
            if _peer_of(connection) == self._pid:
                connection.close()  # we offered our own book
            else:
                self._connections[connection.fileno()] = connection
        waiting = select.poll()
        waiting.register(self._listening, select.POLLIN)
        # Nobody makes room for those who wait.
        self.lost = self.lost or (bool(waiting.poll(0)) and not self._over())

    def _over(self) -> List[int]:
        """Connections whose other end is closed, by exit or exec."""
        poll = select.poll()
        for number in self._connections:
            poll.register(number, 0)  # the end is told in any case; that a book waits is not asked
        return [number for number, _ in poll.poll(0)][:_HELD_MAX]

    def _receive(self, connection: socket.socket) -> List[int]:
        """What came with the offer. Whatever it is: only what a reader finds genuine is read."""
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
