# SPDX-License-Identifier: Apache-2.0
"""Which test does a buffer belong to? How the pytest plugin uses phases to find what a test left.

Each test has a phase that no other test, run or machine has: it consists of the pid, a random word
and a serial number. Children inherit it, so one list of all buffers shows what belongs to a test,
however its processes are related. Totals are never used.
"""

import os
import re
import secrets
import time
import unicodedata
from decimal import Decimal
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

import ttmem

from . import _sites
from ._offers import Offers

Row = Dict[str, Any]
Site = Tuple[str, str]  # type, and its name if there is no stack; functions and files of its stack

_LABEL_MAX = 200  # bytes; a label may have 255
_LEFT_MAX = 100_000  # buffers of exited children
_STORED_NS = 2_000_000_000  # the daemon has usually stored a report long before
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,6})?) ?(?:([KMGTPE])(?:i?B)?|B)?", re.I | re.A)
_NUMBER = re.compile(r"[0-9]+")
_HARNESS = re.compile(r"(^|/)(_pytest|pluggy)/[^/]*\.py$")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}


Place = Tuple[int, ttmem.Type]  # a device and a type of its memory


def size_of(value: Any) -> int:
    """64, "64", "64KiB", "1.5 MB", "2g": bytes. As in the command, all units are powers of 1024."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or ("." in match[1] and not match[2]):
        raise ValueError(f'{value!r} is no size; write for example 4096 or "64MiB"')
    return int(Decimal(match[1]) * (1 << _UNITS[(match[2] or "").upper()]))


def size_text(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    number, unit = float(size), ""
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        number /= 1024
        if number < 1023.95:
            break
    return f"{number:.1f} {unit}"


def key_of(row: Row) -> Tuple[Any, ...]:
    """Distinguishes a buffer from others of the same test. Its time of allocation would be more
    precise, but is converted between clocks, and no two readers agree on it to the nanosecond."""
    fields = ("pid", "device", "type", "address", "size")
    return (*(row[field] for field in fields), row.get("closed", False))


def holds_memory(row: Row) -> bool:
    """Buffers inside another one, and those of 0 bytes, are not leaks."""
    return row["size"] > 0 and "alias" not in row["flags"]


def label_of_leak(leak: Row) -> str:
    """Its type and name, for people."""
    name = leak["name"]
    if name is not None:
        return f"{leak['type']} {name}"
    return f"{leak['type']} without a name" + (f" in {leak['phase']}" if leak["phase"] else "")


def label_of_site(leaks: List[Row]) -> str:
    """Of leaks of one site: their name if it is one, else how many there are."""
    labels = {label_of_leak(leak) for leak in leaks}
    if len(labels) == 1:
        return labels.pop()
    names = len({leak["name"] for leak in leaks})
    return f"{leaks[0]['type']}, {names} names" if names > 1 else f"{leaks[0]['type']} without a name"


def _stem_of_leak(leak: Row) -> str:
    """Its type and name without numbers, which most likely one line of code gave."""
    name = leak["name"]
    return label_of_leak(dict(leak, name=None if name is None else _NUMBER.sub("#", name)))


def site_of(leak: Row) -> Site:
    """A type and calls, whatever the buffers are called: never an address, a line or a pid. Without a
    stack, and in files of versions that did not compare stacks, the second half is empty; then the
    name without its numbers, or the phase, tells sites apart."""
    calls = leak.get("calls") or ""
    return (leak["type"] if calls else _stem_of_leak(leak)), calls


class Sums:
    """The bytes of leaks by site, and by name alone."""

    def __init__(self, leaks: Iterable[Row] = ()) -> None:
        self.sites: Dict[Site, int] = {}
        self.names: Dict[str, int] = {}
        self.bare: Dict[str, int] = {}  # those without a stack
        for leak in leaks:
            site, stem = site_of(leak), _stem_of_leak(leak)
            self.sites[site] = self.sites.get(site, 0) + leak["size"]
            self.names[stem] = self.names.get(stem, 0) + leak["size"]
            if not site[1]:
                self.bare[stem] = self.bare.get(stem, 0) + leak["size"]


def known_sites(leaks: List[Row], before: Sums) -> Set[Site]:
    """Those that were in the baseline with at least as many bytes. If there is no stack, now or then,
    only the name identifies a site: then all sites with this name are compared."""
    now = Sums(leaks)
    stems: Dict[Site, Set[str]] = {}
    for leak in leaks:
        stems.setdefault(site_of(leak), set()).add(_stem_of_leak(leak))

    def is_known(site: Site, size: int) -> bool:
        if before.sites.get(site, -1) >= size and site[1]:
            return True
        then = before.bare if site[1] else before.names
        return all(then.get(stem, -1) >= now.names[stem] for stem in stems[site])

    return {site for site, size in now.sites.items() if is_known(site, size)}


class Phases:
    """The phase of this process, its main thread and its future children, switched together.

    Threads with an empty stack of phases follow the process's phase; the thread that runs the tests
    has the labels on its stack, so that phases of the test's own nest below them.
    """

    def __init__(self) -> None:
        self.outer = os.environ.get("TTMEM_PHASE")
        self.run = f"pytest-{os.getpid()}-{secrets.token_hex(4)}"
        self.label: Optional[str] = None
        self._entered: List[ttmem.phase] = []

    def switch(self, label: Optional[str]) -> None:
        """Enters this label of the run; None: restores the phase from before the run."""
        for phase in reversed(self._entered):
            phase.__exit__()
        self._entered = []
        self.label = label
        path = self.outer or ""
        if label is not None:
            # The outer phase may be longer than a label may be, so it is not pushed on the stack.
            self._entered = [ttmem.phase(part).__enter__() for part in (self.run, label)]
            path = f"{path}/{self.run}/{label}" if path else f"{self.run}/{label}"
        ttmem.process_phase(path)
        if path:
            os.environ["TTMEM_PHASE"] = path
        else:
            os.environ.pop("TTMEM_PHASE", None)

    def inside(self, phase: Optional[str], label: Optional[str] = None) -> Optional[str]:
        """The part of a phase below the label (or below the run); None: it is not inside."""
        wanted = f"/{self.run}/{label}/" if label else f"/{self.run}/"
        _, found, rest = f"/{phase or ''}/".partition(wanted)
        return rest.rstrip("/") if found else None


def label_of(serial: int, nodeid: str) -> str:
    """The number alone makes it unique: names may be long, and tests may be rerun."""
    text = f"{serial} {nodeid}".replace("\0", "?").encode("utf-8", "replace")
    return text[:_LABEL_MAX].decode("utf-8", "ignore")


class Window:
    """The time during which a test runs, without the time of setting up wider fixtures."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.start = time.time_ns()
        self.end: Optional[int] = None  # not yet
        self.holes: List[Tuple[int, int]] = []

    def has(self, born: int) -> bool:
        if born < self.start or (self.end is not None and born > self.end):
            return False
        return not any(a <= born <= b for a, b in self.holes)


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
    except OSError:
        return False


def failed_allocations(pids: Set[int]) -> List[Row]:
    """Of these processes, the newest last. They explain a failure and decide nothing: none if they cannot
    be had."""
    try:
        rows = ttmem.command("incidents", daemon=False)["incidents"]
    except ttmem.CommandError:
        return []
    found = [row for row in rows if row["kind"] == "alloc_failed" and row["pid"] in pids]
    return sorted(found, key=lambda row: int(row["last_ns"]))


class Finder:
    """Finds the buffers of a test: by its phase, otherwise by the process that they are in.

    A thread, or a program started by the test, may push phases of its own on an empty stack: those
    do not name the test, and a child that such a thread forks inherits them. In this process such
    buffers count if they were allocated while the test ran. The book of another process records the
    phase that the process had when the book was created, from its environment or its parent: its
    buffers count for the test that this names, whenever they were allocated. If it names none,
    because the process discarded its environment, they count if they were allocated while the test
    ran.

    What exited children left is read from their books, which they sent to us, and from the daemon,
    if there is one. It is kept until the test that it belongs to has been checked.
    """

    def __init__(self, phases: Phases, offers: Optional[Offers], strict_close: bool = False) -> None:
        self.phases = phases
        self.offers = offers
        self.daemon = True
        self.problem = ""  # why something may be missing
        self.untracked: Dict[int, str] = {}  # of our processes, those in which tracking gave up: why
        self.failures = 0  # allocations that failed in exited children
        self.forgotten = 0  # closings before this time are not all known, of one of our processes
        self._options = ["--strict-close"] if strict_close else []
        self._start = self._since = time.time_ns()  # our children end later
        self._left: Dict[Tuple[Any, ...], Row] = {}
        # Of living children that have closed their book: only we had it, for a moment.
        self._closed: Dict[Tuple[Any, ...], Row] = {}

    def _look(self) -> List[Row]:
        """Buffers of living processes; what our exited children left is stored."""
        rows: Optional[List[Row]] = None
        for _ in self.offers.batches() if self.offers else ():
            assert self.offers is not None
            rows = self._put_aside(self._everything())
            self.failures += sum(row["count"] for row in failed_allocations(self.offers.pids))
        if self.offers and self.offers.lost:
            self.problem = "there were too many children at once: some were not judged"
        if rows is None:
            rows = self._put_aside(self._everything())
        seen = set(map(key_of, rows))
        closed = [row for key, row in self._closed.items() if key not in seen]
        return rows + [row for row in closed if _is_running(row["pid"])]

    def _everything(self) -> List[Row]:
        found = ttmem.command("buffers", "--ended", *self._options)
        for process in filter(self._is_ours, found.get("untracked", [])):
            self.untracked[process["pid"]] = process["reason"]
        for process in filter(self._is_ours, found.get("forgotten", [])):
            self.forgotten = max(self.forgotten, process["before_ns"])
        rows: List[Row] = found["buffers"]
        return rows

    def _is_ours(self, process: Row) -> bool:
        """Only our children know our socket."""
        if process["pid"] == os.getpid():
            return True
        if self.phases.inside(process.get("process_phase")) is not None:
            return True
        offers = self.offers
        return offers is not None and (process["pid"] in offers.pids or offers.knows(process["pid"]))

    def _put_aside(self, rows: List[Row]) -> List[Row]:
        living = []
        for row in filter(holds_memory, rows):
            own = self.offers is not None and row["pid"] in self.offers.pids
            if not row.get("ended"):
                living.append(row)
                if own and len(self._closed) < _LEFT_MAX:
                    self._closed[key_of(row)] = row
                continue
            if own or self._told(row) is not None:
                if len(self._left) < _LEFT_MAX:
                    self._left.setdefault((row["phase"], *key_of(row)), row)
                else:
                    self.problem = f"ended children left more than {_LEFT_MAX} buffers"
        return living

    def _told(self, row: Row) -> Optional[str]:
        """The phase that identifies the test: the buffer's own, otherwise that of its process; None:
        neither belongs to the run."""
        phases = [row["phase"]]
        if row["pid"] != os.getpid():  # this process's phase is that of its first test
            phases.append(row.get("process_phase"))
        return next((phase for phase in phases if self.phases.inside(phase) is not None), None)

    def _mine(self, row: Row, window: Window) -> bool:
        told = self._told(row)
        if told is not None:
            return self.phases.inside(told, window.label) is not None
        if row["pid"] == os.getpid():
            return window.has(row["born_ns"])
        # Only our children know our socket.
        known = self.offers is not None and self.offers.knows(row["pid"])
        return known and window.has(row["born_ns"])

    def alive(self, window: Window) -> List[Row]:
        """What is live now, largest first."""
        found = [row for row in self._look() if self._mine(row, window)]
        return [self._leak(row, window.label) for row in found]

    def ended(self, everything: bool = False) -> List[Row]:
        """What exited children left, as far as it was stored or seen by a daemon: since it was last
        asked, or, with everything, since the run began. There may be thousands of reports."""
        rows = list(self._left.values())
        if not self.daemon:
            return rows
        asked = time.time_ns()
        try:
            processes = ttmem.leaks(since_ns=self._start if everything else self._since)
        except ttmem.CommandError:
            self.daemon = False
            return rows
        self._since = max(self._since, asked - _STORED_NS)
        told = [row for process in processes for row in process["buffers"]]
        return rows + [row for row in told if holds_memory(row) and self._told(row) is not None]

    def below(self, window: Window, rows: List[Row]) -> List[Row]:
        """Those of ended() that belong to one test, each once."""
        found: Dict[Tuple[Any, ...], Row] = {}
        for row in rows:
            told = self._told(row)
            if told is None:
                mine = window.has(row["born_ns"])
            else:
                mine = self.phases.inside(told, window.label) is not None
            if mine:
                found.setdefault(key_of(row), row)
        return [self._leak(row, window.label, ended=True) for row in found.values()]

    def forget(self, window: Window) -> None:
        """The test has been checked; drop what is stored for it."""
        self._closed.clear()
        self.forgotten = 0
        for key, row in list(self._left.items()):
            if self.below(window, [row]):
                del self._left[key]

    def is_used(self) -> bool:
        """Whether this process or a child has allocated anything."""
        return Peaks.is_used() or (self.offers is not None and self.offers.seen)

    def remaining(self) -> List[Row]:
        """What this process and its children still hold at the end of the run."""
        me = os.getpid()
        return [
            self._leak(row, None)
            for row in self._look()
            if not row.get("closed") and (row["pid"] == me or self._told(row) is not None)
        ]

    def _leak(self, row: Row, label: Optional[str], ended: bool = False) -> Row:
        inner = self.phases.inside(row["phase"], label)
        return {
            "pid": row["pid"],
            "ended": ended,
            "closed": row.get("closed", False),
            "device": row["device"],
            "type": row["type"],
            "address": row["address"],
            "size": row["size"],
            "name": row["name"],
            "phase": (row["phase"] or "") if inner is None else inner,
            "born_ns": row["born_ns"],
            "calls": row.get("calls") or "",
            "stack": row.get("stack") or [],
            "site": row.get("site"),
        }


_PEAK_GROUPS = 5  # of a peak, the largest
_PEAK_FIELDS = ("device", "type", "bytes", "time_ns", "exact", "known_bytes", "unknown_bytes")
_PEAK_GROUP_FIELDS = ("site", "name", "name_count", "bytes", "buffers")


class Peaks:
    """The peak of this process above what it held at the start, by device and type."""

    DEVICES = 1024

    def __init__(self) -> None:
        self._kept: Dict[Place, int] = {}
        self._before = self._held()
        self._reset()

    @classmethod
    def _used(cls) -> List[int]:
        return [device for device in range(cls.DEVICES) if ttmem.memory_stats(device).allocs]

    @classmethod
    def is_used(cls) -> bool:
        return bool(cls._used())

    @classmethod
    def _held(cls) -> Dict[Place, int]:
        places = [(device, kind) for device in cls._used() for kind in ttmem.Type]
        return {place: ttmem.memory_allocated(*place) for place in places}

    @classmethod
    def _reset(cls) -> None:
        for device in cls._used():
            ttmem.reset_peak(device)

    def pause(self) -> None:
        """What follows does not belong to the test."""
        self._kept = self.places()
        self._paused = self._held()

    def go_on(self) -> None:
        for place, size in self._held().items():
            more = size - self._paused.get(place, 0)
            self._before[place] = self._before.get(place, 0) + more
        self._reset()

    def places(self) -> Dict[Place, int]:
        most = dict(self._kept)
        for device in self._used():
            for kind in ttmem.Type:
                place = (device, kind)
                peak = ttmem.max_memory_allocated(*place) - self._before.get(place, 0)
                if peak > most.get(place, 0):
                    most[place] = peak
        return most

    def now(self) -> Dict[str, int]:
        return highest(self.places())

    def live(self, least: Dict[str, int]) -> List[Row]:
        """What was live at the highest peak of each type in @least that rose by more than it says."""
        found: Dict[str, Row] = {}
        for peak in ttmem.command("peak", "--pid", os.getpid())["peaks"]:
            kind = peak["type"]
            rise = peak["bytes"] - self._before.get((peak["device"], ttmem.Type[kind]), 0)
            more = found[kind]["rise"] if kind in found else least.get(kind, rise)
            if rise > more:
                found[kind] = {**{name: peak[name] for name in _PEAK_FIELDS}, "rise": rise}
                found[kind]["groups"] = [
                    {name: group[name] for name in _PEAK_GROUP_FIELDS}
                    for group in peak["groups"][:_PEAK_GROUPS]
                ]
                found[kind]["group_count"] = len(peak["groups"])
        return list(found.values())


def highest(peaks: Dict[Place, int]) -> Dict[str, int]:
    """For each type, the device with the highest peak."""
    most: Dict[str, int] = {}
    for (_, kind), peak in peaks.items():
        most[kind.name] = max(peak, most.get(kind.name, 0))
    return most


def shown(text: str) -> str:
    """Text from other processes, made safe for a terminal and put on one line, as in the command."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_shown_character, text))


def _shown_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        code = ord(character)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return character


def frame_text(frame: Row) -> str:
    place = frame["file"]
    if place and frame["line"]:
        place = f"{place}:{frame['line']}"
    words = " ".join(word for word in (frame["function"], place or frame["module"]) if word)
    return shown(words) or "?"


def frames_of(leak: Row) -> List[Row]:
    """Without the frames of pytest and its callers."""
    stack: List[Row] = leak["stack"]
    for i, frame in enumerate(stack):
        if frame["python"] and _HARNESS.search(frame["file"] or ""):
            return stack[:i]
    return stack


def table(leaks: List[Row], most: int = 50) -> str:
    """For people: one line per buffer, with its stack below it, innermost frame first."""
    head = ("TYPE", "SIZE", "DEV", "PID", "NAME", "PHASE")
    lines = [
        (
            leak["type"],
            size_text(leak["size"]),
            str(leak["device"]),
            f"{leak['pid']}{' (ended)' if leak['ended'] else ''}",
            shown(leak["name"]) if leak["name"] is not None else "-",
            shown(leak["phase"]) or "-",
        )
        for leak in leaks[:most]
    ]
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    text = []
    for line, leak in zip([head, *lines], [None, *leaks]):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        stack = _sites.folded(frames_of(leak)) if leak else []
        text += [f"    at {frame_text(frame)}" for frame in stack]
    if len(leaks) > most:
        text.append(f"... and {len(leaks) - most} more")
    return "\n".join(text)
