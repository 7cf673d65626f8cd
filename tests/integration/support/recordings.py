# SPDX-License-Identifier: Apache-2.0
"""The chunks of a recording, as docs/recording-format.md describes them: read by plain steps from the
beginning, with zstd's own tool for the contents, so that it shares no code with our reader."""

import json
import struct
import subprocess
from collections import namedtuple

from common import LIMIT

KINDS = ["", "head", "book", "bytes", "events", "keyframe", "gap", "sites", "names", "ended", "index", "end"]
FRAME = 0x184D2A5D
HEAD = struct.Struct("<QHHIQ256sQQ")
ENTRY = struct.Struct("<Q6I7Q7Q7Q7Q")
NONE = 0xFFFFFFFF

Chunk = namedtuple("Chunk", "kind book device size count first last contents bytes high")


class Recording:
    def __init__(self, path):
        self.path = path
        self.data = path.read_bytes()
        self.chunks = []
        self.torn = 0
        at = 0
        while at < len(self.data):
            chunk, at = self.chunk(at)
            if not chunk:
                self.torn = len(self.data) - at
                break
            self.chunks.append(chunk)

    def chunk(self, at):
        if len(self.data) - at < 8 + HEAD.size:
            return None, at
        magic, length = struct.unpack_from("<II", self.data, at)
        assert (magic, length) == (FRAME, HEAD.size)
        name, major, _, _, _, entry, _, _ = HEAD.unpack_from(self.data, at + 8)
        assert name.to_bytes(8, "little") == b"TTMEMREC" and major == 1
        fields = ENTRY.unpack(entry)
        offset, kind, book, device, size, length, count, first, last = fields[:9]
        assert offset == at
        start = at + 8 + HEAD.size
        if start + length > len(self.data):
            return None, at
        chunk = Chunk(KINDS[kind], book, device, size, count, first, last, self.data[start : start + length],
                      fields[14:21], fields[21:28])  # fmt: skip
        return chunk, start + length

    def of(self, kind):
        return [chunk for chunk in self.chunks if chunk.kind == kind]

    def contents(self, chunk):
        done = subprocess.run(["zstd", "-dc"], input=chunk.contents, capture_output=True, check=True, timeout=LIMIT)
        assert len(done.stdout) == chunk.size
        return done.stdout

    def json(self, kind):
        (chunk,) = self.of(kind)
        return json.loads(self.contents(chunk))

    def events(self):
        return sum(chunk.count for chunk in self.of("events"))

    def missed(self):
        return sum(chunk.last - chunk.first + 1 for chunk in self.of("gap"))

    def pids(self):
        """Of all books, in order of their numbers."""
        return [struct.unpack_from("<I", self.contents(chunk))[0] for chunk in self.of("book")]

    def statuses(self):
        """How owners ended, by pid; None = not known."""
        pids = self.pids()
        found = {}
        for chunk in self.of("ended"):
            _, status, is_known = struct.unpack("<QiI", self.contents(chunk))
            found[pids[chunk.book]] = status if is_known else None
        return found

    def totals(self):
        """Allocations and frees of each book's devices at their last keyframe: sums over all types."""
        found = {}
        for chunk in self.of("keyframe"):
            page = self.contents(chunk)
            hot = [struct.unpack_from("<8Q", page, 128 + 128 * kind) for kind in range(7)]
            found[chunk.book, chunk.device] = (sum(h[4] for h in hot), sum(h[5] for h in hot))
        return found

    def is_valid(self):
        """What zstd's own tool says."""
        return subprocess.run(["zstd", "-tq", self.path], timeout=LIMIT).returncode == 0
