# SPDX-License-Identifier: Apache-2.0
"""What the pytest plugin decides about a test, and how it reports it to people and programs.

A result is a plain dictionary, because it travels from xdist's workers to their controller, into the
JSON file and back from there as a baseline.
"""

import contextlib
import fnmatch
import json
import os
from typing import Any, Dict, Iterable, List, Optional, Tuple

import ttmem

from . import _judge, _sites
from ._judge import Row, size_text

SCHEMA = "ttmem.pytest/1"

Peaks = Dict[_judge.Place, int]
Known = Dict[str, _judge.Sums]  # for each test the bytes of each call site

_SUMMARY_SITES = 10
_SUMMARY_NAMES = 5  # of a call site
_WARMUP_MAX = 1000
_BASELINE_MAX = 256 << 20  # characters
_BASELINE_FIELDS: Dict[str, Any] = {
    "type": str,
    "name": (str, type(None)),
    "phase": str,
    "size": int,
    "calls": (str, type(None)),
}


class Limit:
    """What no test may hold more of: --ttmem-limit SIZE, TYPE=SIZE or DEVICE:TYPE=SIZE, or a budget's."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.device: Optional[int] = None
        self.type: Optional[str] = None
        where, equals, size = text.rpartition("=")
        self.bytes = _judge.size_of(size)
        if where.startswith(("phase:", "site:")) or ":phase:" in where or ":site:" in where:
            raise ValueError(f"{where!r}: phases and call sites are for ttmem run --limit")
        if not equals:
            return
        device, colon, name = where.rpartition(":")
        if name.upper() not in ttmem.Type.__members__:
            raise ValueError(f"there is no type {name!r}")
        self.type = name.upper()
        if colon:
            if not (device.isascii() and device.isdigit() and int(device) < _judge.Peaks.DEVICES):
                raise ValueError(f"there is no device {device!r}")
            self.device = int(device)

    def exceeded(self, peaks: Peaks) -> Optional[Dict[str, Any]]:
        """The highest peak that is over the limit."""
        over = [
            (size, -device, kind.name)
            for (device, kind), size in peaks.items()
            if size > self.bytes
            and self.device in (None, device)
            and self.type in (None, kind.name)
        ]
        if not over:
            return None
        size, device, name = max(over)
        return {"limit": self.text, "bytes": self.bytes, "device": -device, "type": name, "held": size}


def read_budget(path: Optional[str]) -> List[Limit]:
    """The limits of a budget (ttmem.budget/1), which must all be such that a test can exceed them."""
    if path is None:
        return []
    try:
        with open(path, encoding="utf-8") as file:
            budget = json.load(file)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is no budget: {error}") from error
    if not isinstance(budget, dict) or budget.get("schema") != "ttmem.budget/1":
        raise ValueError(f"{path} is no budget (ttmem.budget/1)")
    limits = budget.get("limits")
    if not isinstance(limits, dict):
        raise ValueError(f"{path} has no limits")
    try:
        return [Limit(f"{key}={size}") for key, size in limits.items()]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def limits_of(budget: List[Limit], given: List[Limit]) -> List[Limit]:
    """What was typed counts instead of the same limit in the budget."""
    typed = {(limit.device, limit.type) for limit in given}
    return [limit for limit in budget if (limit.device, limit.type) not in typed] + given


class Rules:
    """What a test may do: @pytest.mark.ttmem(allow=..., limit=..., warmup=...)."""

    def __init__(self, allow: Any = None, limit: Any = None, warmup: Any = 0) -> None:
        self.everything = allow is True
        self.patterns: List[str] = []
        if allow is not None and not isinstance(allow, bool):
            self.add_allowed([allow] if isinstance(allow, str) else allow)
        self.limit: Optional[int] = None if limit is None else _judge.size_of(limit)
        self.limits: List[Limit] = []  # for all tests; the marker's counts instead
        if type(warmup) is not int or not 0 <= warmup <= _WARMUP_MAX:
            raise ValueError(f"warmup is a number from 0 to {_WARMUP_MAX}, not {warmup!r}")
        self.warmup: int = warmup

    @classmethod
    def from_markers(cls, markers: Iterable[Any]) -> "Rules":
        """The closest marker decides, option by option. What they allow adds up, until one of them
        says allow=False."""
        rules, adds_up = cls(), True
        options: Dict[str, Any] = {}
        for marker in markers:
            unknown = sorted(set(marker.kwargs) - {"allow", "limit", "warmup"})
            if marker.args or unknown:
                what = unknown[0] if unknown else repr(marker.args[0])
                raise TypeError(f"takes allow=, limit= and warmup= only, not {what}")
            one = cls(**marker.kwargs)  # so that an error is reported even if the marker does not count
            if adds_up:
                rules.everything = rules.everything or one.everything
                rules.patterns += one.patterns
                adds_up = marker.kwargs.get("allow") is not False
            for name in ("limit", "warmup"):
                if name in marker.kwargs:
                    options.setdefault(name, getattr(one, name))
        vars(rules).update(options)
        return rules

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


def _known_of(nodeid: str, known: Known) -> _judge.Sums:
    """Paths are relative to a folder that pytest guesses in each run: only the end is reliable."""
    if nodeid in known:
        return known[nodeid]
    same = [
        sites
        for other, sites in known.items()
        if other.endswith(f"/{nodeid}") or nodeid.endswith(f"/{other}")
    ]
    return same[0] if len(same) == 1 else _judge.Sums()


def exceeded(peaks: Peaks, rules: Rules) -> List[Dict[str, Any]]:
    """Limits for all tests that this one has exceeded."""
    if rules.limit is not None:
        return []
    return [found for found in (limit.exceeded(peaks) for limit in rules.limits) if found]


def over(peaks: Peaks, rules: Rules) -> Dict[str, int]:
    """Peaks above a limit."""
    limit = rules.limit
    if limit is not None:
        return {kind: size for kind, size in _judge.highest(peaks).items() if size > limit}
    most: Dict[str, int] = {}
    for found in exceeded(peaks, rules):
        most[found["type"]] = max(found["held"], most.get(found["type"], 0))
    return most


def judge(
    nodeid: str,
    leaks: List[Row],
    peaks: Peaks,
    rules: Rules,
    known: Known,
) -> Dict[str, Any]:
    """Sorts leaks into new, known and allowed; only new ones fail."""
    allowed = [leak for leak in leaks if rules.allows(leak)]
    rest = [leak for leak in leaks if not rules.allows(leak)]
    before = _known_of(nodeid, known)
    old = _judge.known_sites(rest, before)
    return {
        "test": nodeid,
        "peak": _judge.highest(peaks),
        "at_peak": [],
        "leaks": [leak for leak in rest if _judge.site_of(leak) not in old],
        "known": [leak for leak in rest if _judge.site_of(leak) in old],
        "allowed": allowed,
        "limit": rules.limit,
        "over": over(peaks, rules),
        "exceeded": exceeded(peaks, rules),
        "failed_allocation": None,
    }


def all_of(result: Dict[str, Any]) -> List[Row]:
    return [*result["leaks"], *result["known"], *result["allowed"]]


def _bytes_of(leaks: List[Row]) -> int:
    return sum(int(leak["size"]) for leak in leaks)


def _live_text(result: Dict[str, Any], kind: str, device: Optional[int] = None) -> List[str]:
    """What was live at the highest peak of a type, if it was on that device."""
    return [
        f"  {line}"
        for live in result["at_peak"]
        if live["type"] == kind and device in (None, live["device"])
        for line in _live_lines(live)
    ]


def text_of(result: Dict[str, Any]) -> str:
    """Why the test fails; empty if it does not."""
    text = []
    for found in result["exceeded"]:
        held = f"{size_text(found['held'])} of {found['type']} on device {found['device']}"
        text.append(f"ttmem: held {held}, the limit is {found['limit']}")
        text += _live_text(result, found["type"], found["device"])
    for kind, size in result["over"].items() if result["limit"] is not None else ():
        limit = size_text(result["limit"])
        text.append(f"ttmem: held {size_text(size)} of {kind} on one device, the limit is {limit}")
        text += _live_text(result, kind)
    for closed, verb in ((False, "left"), (True, "closed a device with")):
        leaks = [leak for leak in result["leaks"] if leak["closed"] == closed]
        if leaks:
            total = size_text(_bytes_of(leaks))
            what = "1 buffer" if len(leaks) == 1 else f"{len(leaks)} buffers"
            text.append(f"ttmem: {verb} {what}, {total}\n{_judge.table(leaks)}")
    return "\n".join(text)


def verdict_of(result: Optional[Dict[str, Any]]) -> str:
    """What a test that fails because of its memory is called; its letter is the first."""
    if result is not None and result["leaks"]:
        return "LEAKED"
    return "OVER LIMIT" if result is not None and result["over"] else "UNCHECKED"


def properties(result: Dict[str, Any]) -> List[Tuple[str, Any]]:
    """For JUnit."""
    found = [(f"ttmem_peak_{kind}", size) for kind, size in sorted(result["peak"].items())]
    found.append(("ttmem_leaked_bytes", _bytes_of(result["leaks"])))
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
        self.is_used = False  # a process of the run has allocated device memory
        self.untracked: Dict[int, str] = {}  # processes in which tracking gave up, and why
        self.failures = 0  # allocations that failed

    @property
    def leaks(self) -> List[Row]:
        """Every new leak, each with the test that left it."""
        return [dict(leak, test=test["test"]) for test in self.tests for leak in test["leaks"]]

    def add(self, rest: Dict[str, Any]) -> None:
        """What a process knows at its end. A controller may see buffers of its workers, too."""
        self.problem = self.problem or rest.get("problem", "")
        self.is_used = self.is_used or rest.get("used", False)
        self.untracked.update((int(pid), why) for pid, why in rest.get("untracked", {}).items())
        self.failures += rest.get("failures", 0)
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
            "untracked": [{"pid": pid, "reason": why} for pid, why in self.untracked.items()],
            "failed_allocations": self.failures,
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


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _checked(leak: Row) -> Row:
    """A row of a baseline, which may contain anything."""
    for field, kinds in _BASELINE_FIELDS.items():
        value = leak.get(field) if field == "calls" else leak[field]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ValueError(f"{field} is wrong")
    if not 0 <= leak["size"] < 1 << 64:
        raise ValueError("size is out of range")
    return leak


def read_baseline(path: Optional[str]) -> Known:
    """For each test the bytes of each call site. ValueError if it is not a file of ours."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_BASELINE_MAX + 1)
        if len(text) > _BASELINE_MAX:
            raise ValueError(f"it has more than {_BASELINE_MAX >> 20} MiB")
        document = json.loads(text, parse_constant=_refuse)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        known: Known = {}
        for test in document["tests"]:
            if not isinstance(test["test"], str):
                raise ValueError("test is wrong")
            known[test["test"]] = _judge.Sums(map(_checked, test["leaks"] + test["known"]))
        return known
    except RecursionError:
        raise ValueError(f"{path} is no baseline: it is nested too deeply") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no baseline: {error}") from error


def _name_lines(leaks: List[Row]) -> List[str]:
    """What the leaks of a call site are called, if differently: the largest, and how many more."""
    sums: Dict[Optional[str], int] = {}
    for leak in leaks:
        sums[leak["name"]] = sums.get(leak["name"], 0) + leak["size"]
    if len(sums) < 2:
        return []
    names = sorted(sums.items(), key=lambda item: -item[1])
    lines = [
        f"            {size_text(size):>10}  {'without a name' if name is None else _judge.shown(name)}"
        for name, size in names[:_SUMMARY_NAMES]
    ]
    if len(names) > _SUMMARY_NAMES:
        lines.append(f"            ... and {len(names) - _SUMMARY_NAMES} more names")
    return lines


def _site_lines(report: Report) -> List[str]:
    sites: Dict[_judge.Site, List[Row]] = {}
    for leak in report.leaks:
        sites.setdefault(_judge.site_of(leak), []).append(leak)
    lines = []
    most = sorted(sites.items(), key=lambda site: _bytes_of(site[1]), reverse=True)
    shown = most[:_SUMMARY_SITES]
    for (_, leaks), text in zip(shown, _sites.texts([leaks[0].get("site") for _, leaks in shown])):
        where = f" at {_judge.shown(text)}" if text else ""
        label = _judge.shown(_judge.label_of_site(leaks))
        lines.append(f"{size_text(_bytes_of(leaks)):>10}  {len(leaks)} x {label}{where}")
        lines.extend(_name_lines(leaks))
    return lines


def _peak_lines(report: Report, most: int) -> List[str]:
    """For every test that held anything, the highest first; @most: at most so many, 0 = all."""
    tests = [test for test in report.tests if test["peak"]]
    tests.sort(key=lambda test: max(map(int, test["peak"].values())), reverse=True)
    lines = []
    for test in tests[: most or None]:
        peaks = ", ".join(f"{kind} {size_text(size)}" for kind, size in sorted(test["peak"].items()))
        lines.append(f"{peaks}  {_judge.shown(test['test'])}")
    if len(tests) > len(lines):
        lines.append(f"... and {len(tests) - len(lines)} more (--ttmem-peaks=all)")
    return lines


def _live_lines(peak: Row) -> List[str]:
    """What was live at a peak: the largest call sites, and the rest."""
    lines = []
    for group, text in zip(peak["groups"], _sites.texts([group["site"] for group in peak["groups"]])):
        name = group["name"] if group["name_count"] <= 1 else f"{group['name_count']} names"
        where = f" at {_judge.shown(text)}" if text else ""
        label = _judge.shown(name or "without a name")
        lines.append(f"{size_text(group['bytes']):>10}  {group['buffers']} x {label}{where}")
    rest = peak["known_bytes"] - sum(int(group["bytes"]) for group in peak["groups"])
    if rest:
        more = peak["group_count"] - len(peak["groups"])
        lines.append(f"{size_text(rest):>10}  {more} more call sites")
    if peak["unknown_bytes"]:
        lines.append(f"{size_text(peak['unknown_bytes']):>10}  not known: freed too long ago")
    return lines


def _highest_lines(report: Report) -> List[str]:
    """For each type, the highest peak of all tests, and what was live then."""
    most: Dict[str, Tuple[Row, str]] = {}
    for test in report.tests:
        for peak in test["at_peak"]:
            if peak["type"] not in most or peak["rise"] > most[peak["type"]][0]["rise"]:
                most[peak["type"]] = peak, test["test"]
    lines = []
    for peak, test in sorted(most.values(), key=lambda pair: -int(pair[0]["bytes"])):
        exact = ", exact" if peak["exact"] else ""
        size = size_text(peak["bytes"])
        lines.append(f"device {peak['device']} {peak['type']} {size}{exact}  {_judge.shown(test)}")
        lines.extend(f"  {line}" for line in _live_lines(peak))
    return lines


def _failure_lines(report: Report) -> List[str]:
    """Why a test that failed got no memory; what tests have caught is only counted."""
    lines = []
    shown = [test for test in report.tests if test["failed_allocation"]]
    for test in shown:
        failure = test["failed_allocation"]
        plain = f"{size_text(failure['size'])} of {failure['type']} on device {failure['device']}"
        text = failure["explanation"] or f"{plain} could not be allocated"
        lines.append(f"{_judge.shown(test['test'])}: {_judge.shown(text)}")
    caught = report.failures - len(shown)
    if caught > 0:
        what = "1 allocation" if caught == 1 else f"{caught} allocations"
        lines.append(f"{what} failed in tests that went on or passed")
    return lines


def untracked_line(report: Report) -> str:
    """Why not all could be checked; empty if it was."""
    reasons = [f"pid {pid}: {_judge.shown(why)}" for pid, why in report.untracked.items()]
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more processes)" if len(reasons) > 1 else ""
    return f"ttmem: tracking gave up, so not everything was checked: {reasons[0]}{more}"


def summarise(terminal: Any, report: Report, peaks: int) -> None:
    """At the end of the run: peaks (at most so many, 0 = all), call sites, and what is left after
    every fixture has ended."""
    parts = [
        ("peak of each test", _peak_lines(report, peaks)),
        ("live at the highest peaks", _highest_lines(report)),
        ("largest call sites of leaks", _site_lines(report)),
        ("failed allocations", _failure_lines(report)),
    ]
    if report.late:
        lines = _judge.table(report.late).splitlines()
        parts.append(("left by ended children, and known too late to fail their test", lines))
    if report.remaining:
        parts.append(("remaining allocated buffers", _judge.table(report.remaining).splitlines()))
    problems = [text for text in (report.problem, untracked_line(report)) if text]
    parts.append(("incomplete", problems))
    parts = [(title, lines) for title, lines in parts if lines]
    if report.tests and not report.is_used and not parts:
        parts.append(("note", ["no device memory was allocated, so there was nothing to check"]))
    if parts:
        terminal.section("device memory", sep="=")
    for title, lines in parts:
        terminal.line(f"{title}:")
        for line in lines:
            terminal.line(f"  {line}")
