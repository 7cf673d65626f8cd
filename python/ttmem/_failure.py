# SPDX-License-Identifier: Apache-2.0
"""Why an allocation failed, in one paragraph: the request, what was free, and who held the rest.

The command explains it where it can ("explanation"). Otherwise it is put together from what the process
holds right after the failure, while the exception still keeps the test's objects alive.
"""

import os
from typing import Any, Dict, List, Optional, Union

import ttmem

from . import _judge, _sites
from ._judge import Row, size_text

_HOLDERS = 5  # the largest
_FIELDS = ("time_ns", "device", "type", "size", "largest_free")


def describe(row: Row) -> Dict[str, Any]:
    """An incident alloc_failed, as the result of a test has it."""
    try:
        text = row.get("explanation") or _explain(row)
    except (ttmem.CommandError, KeyError, TypeError):  # it decides nothing
        text = None
    return {**{name: row.get(name) for name in _FIELDS}, "explanation": text}


def _explain(row: Row) -> str:
    place: List[Union[str, int]] = ["--pid", os.getpid()]
    place += ["--device", row["device"], "--type", row["type"]]
    groups = ttmem.command("buffers", *place, "--by", "site", daemon=False)["groups"]
    answer = _fit(row["size"], place)
    asked = _sites.texts([(row["second"] or {}).get("site")])[0]
    sentences = [
        f"{size_text(row['size'])} of {row['type']} on device {row['device']} could not be allocated"
        + (f" at {asked}" if asked else ""),
        _free(row["largest_free"], answer),
        _holders(groups),
        _in_the_way(answer),
    ]
    return _judge.shown(". ".join(filter(None, sentences)) + ".")


def _fit(size: int, place: List[Union[str, int]]) -> Optional[Row]:
    """None if the banks of the device are not known."""
    try:  # 1: it does not fit
        answers = ttmem.command("fit", size, *place, daemon=False, accept=(0, 1))["answers"]
    except ttmem.CommandError:
        return None
    return answers[0] if len(answers) == 1 else None


def _free(largest: Optional[int], answer: Optional[Row]) -> str:
    if answer is None or answer.get("free") is None:
        block = "not known" if largest is None else size_text(largest)
        return f"The free memory is not known, the largest free block is {block}"
    banks = answer["banks"]
    free = f"{size_text(answer['free'] * banks)} is free, {size_text(answer['free'])} in each of {banks} banks"
    said = f" (the allocator said {size_text(largest)})" if largest is not None else ""
    return f"Right after, {free}; the largest free block of a bank is {size_text(answer['largest'])}{said}"


def _holders(groups: List[Row]) -> str:
    if not groups:
        return "This process holds none of it"
    texts = _sites.texts([group["site"] for group in groups[:_HOLDERS]])
    parts = []
    for group, text in zip(groups, texts):
        name = group["name"] if group["name_count"] == 1 else None
        parts.append(f"{size_text(group['bytes'])} {text or name or 'without a stack'}")
    rest = groups[_HOLDERS:]
    if rest:
        parts.append(f"{size_text(sum(group['bytes'] for group in rest))} {len(rest)} more call sites")
    return f"Held by: {', '.join(parts)}"


def _in_the_way(answer: Optional[Row]) -> str:
    if answer is None:
        return ""
    if answer["fits"] is True:
        return "It would fit now: something was freed since"
    found = answer["in_the_way"]
    if not found:
        return "It does not fit, whatever is freed" if answer["reason"] == "too_large" else ""
    parts = [f"{row['name'] or row['address']} ({size_text(row['size'])})" for row in found[:_HOLDERS]]
    more = f" and {len(found) - _HOLDERS} more" if len(found) > _HOLDERS else ""
    return f"To make room, free {', '.join(parts)}{more}"
