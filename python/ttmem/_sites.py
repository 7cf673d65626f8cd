# SPDX-License-Identifier: Apache-2.0
"""The line of code of a call site in a list, as the command shows it (src/model/sites/site-rows.h).

The command has decided which frame is the user's own: "user", "via" and "callers" of a site."""

import re
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Set

Row = Dict[str, Any]

_INSTALLED = (
    re.compile(r"(?:^|/)(?:site-packages|dist-packages|node_modules)/(.+)$"),
    re.compile(r"(?:^|/)((?:torch|ttnn)/.+)$"),
)
_ANONYMOUS = "(anonymous namespace)"


def short_name(name: str) -> str:
    """A function without parameters, template arguments and return type, if a demangler gave it."""
    if not re.search(r"[^.]\(|^\(", name) or " [0x" in name or "operator" in name:
        return name
    short, depth, i = "", 0, 0
    while i < len(name):
        if depth == 0 and name.startswith(_ANONYMOUS, i):
            short += _ANONYMOUS
            i += len(_ANONYMOUS)
            continue
        character = name[i]
        if depth == 0 and character == "(":
            break
        if character in "<{[(":
            depth += 1
        elif character in ">}])":
            depth = max(depth - 1, 0)
        elif depth == 0:
            short = "" if character == " " else short + character
        i += 1
    return short or name


def _file(path: str, installed: bool) -> str:
    """torch/…/module.py of what is installed, without folders of anything else."""
    base = path.rsplit("/", 1)[-1]
    for pattern in _INSTALLED if installed else ():
        found = pattern.search(path)
        if found:
            parts = found[1].split("/")
            return parts[0] if len(parts) == 1 else f"{parts[0]}{'/…' * (len(parts) > 2)}/{base}"
    return base


def _name(frame: Row, whole: bool) -> str:
    name = frame["function"] or "?"
    return name if whole else short_name(name)


def _frame(frame: Row, whole: bool, installed: bool = False) -> str:
    place = frame["file"] or ""
    if place:
        place = place if whole else _file(place, installed)
        place += f":{frame['line']}" if frame["line"] else ""
    elif frame["module"] and not (frame["function"] or "").startswith(f"{frame['module']}+0x"):
        place = frame["module"]
    return _name(frame, whole) + (f" ({place})" if place else "")


def _key(frame: Optional[Row]) -> Any:
    return frame and (frame["function"], frame["file"], frame["line"], frame["module"])


class _Line:
    def __init__(self, site: Row) -> None:
        self.site = site
        self.user: Optional[Row] = site.get("user")
        self.via: Optional[Row] = site.get("via") if self.user else None
        self.callers: List[Row] = site.get("callers") or []
        self.whole = self.with_site = False
        self.named: Set[int] = set()  # callers
        self.placed: Set[int] = set()  # those with their lines

    def caller(self, level: int) -> Any:
        return _key(self.callers[level]) if level < len(self.callers) else None

    def show(self, level: int, shown: str) -> None:
        if level < len(self.callers):
            getattr(self, shown).add(level)

    def text(self) -> str:
        before: List[str] = []
        for level in range(max(self.named, default=-1) + 1):
            caller = self.callers[level]
            if level in self.named:
                before.insert(0, _frame(caller, False) if level in self.placed else _name(caller, False))
            elif not before or before[0] != "…":
                before.insert(0, "…")
        after = [_frame(self.via, self.whole, True)] if self.via else []
        if self.with_site:
            after += ["…"] * bool(after) + [_frame(self.site, self.whole, True)]
        own = _frame(self.user or self.site, self.whole)
        return " → ".join([" ← ".join([*before, own]), *after])


def _refine(lines: List[_Line], differs: Callable[[_Line], Any], more: Callable[[_Line], None]) -> None:
    """Lines that look the same and differ in this show more."""
    same: Dict[str, List[_Line]] = {}
    for line in lines:
        same.setdefault(line.text(), []).append(line)
    for rows in same.values():
        if len({differs(line) for line in rows}) > 1:
            for line in rows:
                more(line)


def _refine_all(lines: List[_Line]) -> None:
    _refine(
        lines,
        lambda line: (_key(line.user or line.site), _key(line.via)),
        lambda line: setattr(line, "whole", True),
    )
    for level in range(max((len(line.callers) for line in lines), default=0)):
        for shown in ("named", "placed"):
            _refine(lines, partial(_Line.caller, level=level), partial(_Line.show, level=level, shown=shown))
    _refine(lines, lambda line: _key(line.site), lambda line: setattr(line, "with_site", True))


def texts(sites: List[Optional[Row]]) -> List[str]:
    """The lines of the rows of a list; "" for those without a site."""
    lines = [site and _Line(site) for site in sites]
    _refine_all([line for line in lines if line])
    return [line.text() if line else "" for line in lines]


def folded(stack: List[Row]) -> List[Row]:
    """Frames of one module without names become one."""
    shown: List[Row] = []
    counts: List[int] = []
    for frame in stack:
        if shown and _nameless(frame) and _nameless(frame) == _nameless(shown[-1]):
            counts[-1] += 1
        else:
            shown.append(frame)
            counts.append(1)
    return [
        {**frame, "function": f"{frame['module']} ({count} frames)", "module": None} if count > 1 else frame
        for frame, count in zip(shown, counts)
    ]


def _nameless(frame: Row) -> Optional[str]:
    module: Optional[str] = frame["module"]
    name = frame["function"]
    is_named = frame["file"] or not module or (name and not name.startswith(f"{module}+0x"))
    return None if is_named else module
