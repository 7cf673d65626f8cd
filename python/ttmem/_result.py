# SPDX-License-Identifier: Apache-2.0
"""What the pytest plugin decides about a test, and what it tells people and other programs of it.

A result is a plain dictionary, because it travels from xdist's workers to their controller, into the
JSON file and back from there as a baseline.
"""

import contextlib
import fnmatch
import json
import os
from typing import Any, Dict, List, Optional, Tuple

from . import _judge
from ._judge import Row, size_text

SCHEMA = "ttmem.pytest/1"

Known = Dict[str, Dict[_judge.Site, int]]  # for each test the bytes of each call site

_SUMMARY_ROWS = 10
_WARMUP_MAX = 1000


class Rules:
    """What a test may do: @pytest.mark.ttmem(allow=..., limit=..., warmup=...)."""

    def __init__(self, allow: Any = None, limit: Any = None, warmup: int = 0) -> None:
        self.everything = allow is True
        self.patterns: List[str] = []
        if allow not in (None, True, False):
            self.add_allowed([allow] if isinstance(allow, str) else allow)
        self.limit: Optional[int] = None if limit is None else _judge.size_of(limit)
        if not isinstance(warmup, int) or not 0 <= warmup <= _WARMUP_MAX:
            raise ValueError(f"warmup is a number from 0 to {_WARMUP_MAX}, not {warmup!r}")
        self.warmup = int(warmup)

    @classmethod
    def from_marker(cls, marker: Any) -> "Rules":
        unknown = sorted(set(marker.kwargs) - {"allow", "limit", "warmup"})
        if marker.args or unknown:
            what = unknown[0] if unknown else repr(marker.args[0])
            raise TypeError(f"takes allow=, limit= and warmup= only, not {what}")
        return cls(**marker.kwargs)

    def add_allowed(self, patterns: Any) -> None:
        if not isinstance(patterns, (list, tuple, set)) or not all(
            isinstance(pattern, str) for pattern in patterns
        ):
            raise TypeError(f"allow is True, a pattern or a list of them, not {patterns!r}")
        self.patterns += patterns

    def allows(self, leak: Row) -> bool:
        """By type, or by a pattern of the name."""
        return self.everything or any(
            pattern == leak["type"] or fnmatch.fnmatchcase(leak["name"] or "", pattern)
            for pattern in self.patterns
        )


def _known_of(nodeid: str, known: Known) -> Dict[_judge.Site, int]:
    """pytest counts paths from a folder that it guesses anew in each run: only the end is sure."""
    if nodeid in known:
        return known[nodeid]
    same = [
        sites
        for other, sites in known.items()
        if other.endswith(f"/{nodeid}") or nodeid.endswith(f"/{other}")
    ]
    return same[0] if len(same) == 1 else {}


def judge(
    nodeid: str,
    leaks: List[Row],
    peak: Dict[str, int],
    rules: Rules,
    known: Known,
) -> Dict[str, Any]:
    """Sorts what was left into new, known and allowed; only what is new fails."""
    allowed = [leak for leak in leaks if rules.allows(leak)]
    rest = [leak for leak in leaks if not rules.allows(leak)]
    before = _known_of(nodeid, known)
    old = _judge.known_sites(rest, before)
    over = {}
    if rules.limit is not None:
        over = {kind: size for kind, size in peak.items() if size > rules.limit}
    return {
        "test": nodeid,
        "peak": peak,
        "leaks": [leak for leak in rest if _judge.site_of(leak) not in old],
        "known": [leak for leak in rest if _judge.site_of(leak) in old],
        "allowed": allowed,
        "limit": rules.limit,
        "over": over,
    }


def all_of(result: Dict[str, Any]) -> List[Row]:
    return result["leaks"] + result["known"] + result["allowed"]


def text_of(result: Dict[str, Any]) -> str:
    """Why the test fails; empty if it does not."""
    text = []
    for kind, size in result["over"].items():
        limit = size_text(result["limit"])
        text.append(f"ttmem: held {size_text(size)} of {kind} on one device, the limit is {limit}")
    leaks = result["leaks"]
    if leaks:
        total = size_text(sum(leak["size"] for leak in leaks))
        what = "1 buffer" if len(leaks) == 1 else f"{len(leaks)} buffers"
        text.append(f"ttmem: left {what}, {total}\n{_judge.table(leaks)}")
    return "\n".join(text)


def properties(result: Dict[str, Any]) -> List[Tuple[str, Any]]:
    """For JUnit."""
    found = [(f"ttmem_peak_{kind}", size) for kind, size in sorted(result["peak"].items())]
    found.append(("ttmem_leaked_bytes", sum(leak["size"] for leak in result["leaks"])))
    found.append(("ttmem_leaked_buffers", len(result["leaks"])))
    return found


def is_property(name: Any) -> bool:
    return str(name).startswith(("ttmem_peak_", "ttmem_leaked_"))


class Report:
    """All results so far: tests, what remains at the end, and what became known too late."""

    def __init__(self) -> None:
        self.tests: List[Dict[str, Any]] = []
        self.remaining: List[Row] = []
        self.late: List[Row] = []
        self.problem = ""  # why something is missing here

    @property
    def leaks(self) -> List[Row]:
        """Every new leak, each with the test that left it."""
        return [dict(leak, test=test["test"]) for test in self.tests for leak in test["leaks"]]

    def add(self, rest: Dict[str, Any]) -> None:
        """What a process knows at its end. A controller may see buffers of its workers, too."""
        self.problem = self.problem or rest.get("problem", "")
        for mine, more in (
            (self.remaining, rest.get("remaining", [])),
            (self.late, rest.get("late", [])),
        ):
            known = {_judge.key_of(row) for row in mine}
            mine += [row for row in more if _judge.key_of(row) not in known]

    def write(self, path: str) -> None:
        """The whole file or none: a baseline may be read by others at any time."""
        document = {
            "schema": SCHEMA,
            "tests": self.tests,
            "remaining": self.remaining,
            "late": self.late,
        }
        part = f"{path}.{os.getpid()}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.write("\n")
            os.replace(part, path)
        except OSError as error:
            self.problem = f"{path} could not be written: {error.strerror}"
            with contextlib.suppress(OSError):
                os.unlink(part)


def read_baseline(path: Optional[str]) -> Known:
    """For each test the bytes of each call site. A file that is none of ours is a ValueError."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        return {
            test["test"]: _judge.by_site(test["leaks"] + test["known"])
            for test in document["tests"]
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no baseline: {error}") from error


def _site_lines(report: Report) -> List[str]:
    sites: Dict[_judge.Site, List[Row]] = {}
    for leak in report.leaks:
        sites.setdefault(_judge.site_of(leak), []).append(leak)
    lines = []
    most = sorted(sites.items(), key=lambda site: -sum(leak["size"] for leak in site[1]))
    for (label, _), leaks in most[:_SUMMARY_ROWS]:
        frames = _judge.frames_of(leaks[0])
        where = f" at {_judge.frame_text(frames[0])}" if frames else ""
        size = size_text(sum(leak["size"] for leak in leaks))
        lines.append(f"{size:>10}  {len(leaks)} x {label}{where}")
    return lines


def _peak_lines(report: Report) -> List[str]:
    tests = [test for test in report.tests if test["peak"]]
    tests.sort(key=lambda test: -max(test["peak"].values()))
    lines = []
    for test in tests[:_SUMMARY_ROWS]:
        peaks = ", ".join(f"{kind} {size_text(size)}" for kind, size in sorted(test["peak"].items()))
        lines.append(f"{peaks}  {test['test']}")
    return lines


def summarise(terminal: Any, report: Report) -> None:
    """At the end of the run: peaks, call sites, and what is left now that every fixture has ended."""
    parts = [
        ("highest peaks", _peak_lines(report)),
        ("largest call sites of leaks", _site_lines(report)),
    ]
    if report.late:
        lines = _judge.table(report.late).splitlines()
        parts.append(("left by ended children, and known too late to fail their test", lines))
    if report.remaining:
        parts.append(("remaining allocated buffers", _judge.table(report.remaining).splitlines()))
    if report.problem:
        parts.append(("incomplete", [report.problem]))
    if not any(lines for _, lines in parts):
        return
    terminal.section("device memory", sep="=")
    for title, lines in parts:
        if lines:
            terminal.line(f"{title}:")
            for line in lines:
                terminal.line(f"  {line}")
