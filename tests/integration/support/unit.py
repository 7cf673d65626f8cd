# SPDX-License-Identifier: Apache-2.0
"""systemd's part for a service: sockets that are bound before it, and a store for descriptors that outlives it."""

import ctypes
import fcntl
import os
import platform
import socket
import threading

# The descriptors of a service are those from 3 on.
START = """
number=3
for fd in $1; do eval "exec $number<&$fd-"; number=$((number + 1)); done
shift
LISTEN_PID=$$ exec "$@"
"""


def out_of_the_way(fd):
    """A copy with a number that a service's descriptors do not need."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)


def is_same(one, other):
    """Whether they are copies of each other: systemd does not store such a one twice."""
    kcmp = {"x86_64": 312, "aarch64": 272}[platform.machine()]
    return ctypes.CDLL(None).syscall(kcmp, os.getpid(), os.getpid(), 0, one, other) == 0


def listen(kind, path):
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(str(path))
        os.chmod(path, 0o666)
        server.listen(1024)
        return out_of_the_way(server.fileno())


class Unit:
    def __init__(self, folder, native="socket", legacy="old"):
        """@native, @legacy: the names of the sockets; None: it has no such socket."""
        kinds = {"native": (socket.SOCK_SEQPACKET, native), "legacy": (socket.SOCK_STREAM, legacy)}
        self.address = str(folder / "notify")
        self.store = [(name, listen(kind, folder / path)) for name, (kind, path) in kinds.items() if path]
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(self.address)
        self.is_read = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while (received := socket.recv_fds(self.notices, 4096, 8))[0]:
            data, fds = received[:2]
            words = dict(line.partition("=")[::2] for line in data.decode().splitlines())
            name = words.get("FDNAME")
            for fd in fds:
                if "FDSTORE" in words and not any(is_same(fd, stored) for _, stored in self.store):
                    self.store.append((name, out_of_the_way(fd)))
                os.close(fd)
            if "FDSTOREREMOVE" in words:
                for one in [one for one in self.store if one[0] == name]:
                    self.store.remove(one)
                    os.close(one[1])
            if "IS_READ" in words:
                self.is_read.set()

    def close(self):
        self.notices.shutdown(socket.SHUT_RDWR)
        self.reader.join()
        for _, fd in self.store:
            os.close(fd)
        self.notices.close()

    def names(self):
        """Of all descriptors, as soon as what was said until now has been read."""
        self.is_read.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"IS_READ=1", self.address)
        self.is_read.wait()
        return [name for name, _ in self.store]

    def start(self, command, env):
        """(what to run instead, its environment, its descriptors)"""
        names = self.names()
        fds = [fd for _, fd in self.store]
        env = {**env, "NOTIFY_SOCKET": self.address, "FDSTORE": "4096", "LISTEN_FDS": str(len(fds)),
               "LISTEN_FDNAMES": ":".join(names)}  # fmt: skip
        return ["bash", "-c", START, "systemd", " ".join(map(str, fds)), *command], env, fds
