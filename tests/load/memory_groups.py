# SPDX-License-Identifier: Apache-2.0
"""Memory cgroups with a small limit and a few processes in each, like containers.

The pages of a book count for the group of the process that made it, even after that process has exited. A group gets
more processes one after another than its limit has room for books, and is then left to end.
"""

import contextlib
import re
import time
from pathlib import Path

LIMIT = 16 << 20  # in bytes
MEMBERS = 4  # at a time
TURNS = 48  # processes during the life of a group
ROOTS = (  # of v1 and v2: where groups are made, and the files of the limit, of the count of kills and of the highest use
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.oom_control", "memory.max_usage_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.events", "memory.peak"),
)


class Group:
    def __init__(self, folder, kills, highest):
        self.folder, self.kills, self.highest = folder, kills, highest
        self.taken = 0
        self.left = 0  # bytes of shared memory at its end
        self.members = []

    def enter(self, member, command):
        """A command line that joins the group before it becomes @command."""
        self.taken += 1
        self.members.append(member)
        return ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', self.folder / "cgroup.procs", *command]

    def shmem(self):
        return int(re.search(r"^shmem (\d+)$", (self.folder / "memory.stat").read_text(), re.M)[1])

    def killed(self):
        """How many of its processes the limit has killed."""
        return int(re.search(r"^oom_kill (\d+)$", (self.folder / self.kills).read_text(), re.M)[1])

    def peak(self):
        """The most memory that it had, in bytes; 0 if this kernel does not say."""
        with contextlib.suppress(OSError):
            return int((self.folder / self.highest).read_text())
        return 0

    def remove(self):
        with contextlib.suppress(OSError):
            self.folder.rmdir()


class Groups:
    def __init__(self, name):
        self.name = name
        self.made = 0
        self.all = []
        self.current = None
        self.root = next((root for root in ROOTS if self.make(*root)), None)
        if not self.root:
            print("no memory cgroup can be made here: no process has a limit", flush=True)

    def make(self, root, limit, kills, highest):
        folder = root / f"{self.name}-{self.made}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(LIMIT))
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            return False
        self.made += 1
        self.current = Group(folder, kills, highest)
        self.all.append(self.current)
        return True

    def next(self, group=None):
        """The group of the next process: @group, in which one has ended, while it has turns left, or another one.

        None if no group can be made.
        """
        if group and group.taken < TURNS:
            return group
        if self.root and (self.current.taken == TURNS or len(self.current.members) == MEMBERS):
            self.make(*self.root)
        return self.current

    def ended(self, *, whole=True):
        """Groups without a process. @whole: only those that have no turns left."""
        return [g for g in self.all if not g.members and (g.taken == TURNS or not whole)]

    def end(self, group, patience):
        """Seconds until it had no memory of books, or None, and how many of its processes the limit has killed."""
        since = time.monotonic()
        while group.shmem() and time.monotonic() - since < patience:
            time.sleep(0.05)
        took = time.monotonic() - since
        group.left = group.shmem()
        killed = group.killed()
        group.remove()
        self.all.remove(group)
        return None if group.left else took, killed

    def close(self):
        """When all their processes have ended."""
        for group in self.all:
            group.remove()
