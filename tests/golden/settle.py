# SPDX-License-Identifier: Apache-2.0
"""Makes output comparable: JSON in lines, and whatever differs from run to run as one constant.

Output of recordings and other files is compared as it is; only that of live processes has changing values.
"""

import hashlib
import json
import re
import time

WIDTH = 150
LINES_MAX = 2000  # of one output; the rest is compared by its hash

# Values of JSON that change, by the keys that lead to them. A value that is 0, null or empty stays: whether it is known is part of the answer.
CHANGING = re.compile(r"[._]ns$|\.(?:next|code)$")
LOAD = re.compile(r"\.(?:flight|past|store)\.(?:bytes|rounds|written|queued)$|\.hour\.over_ns$")  # also where it is 0

LIBC_LINE = re.compile(r"^[! ]*(?:at )?__libc_start_\w+ \(")
LIBC_FRAME = re.compile(
    r"[^\s;]*(?:__libc_start_\w+|libc[-_]start\S*)(?: \([^)]*\))?(?: @ libc\.so\.6)?(?: -> | <- |;)?")
STARTED = time.time_ns()
MADE = range(1794989990 * 10**9, 1794990020 * 10**9)  # when inputs/ was made: these times never change
NANOSECONDS = re.compile(r"\b1[6-9]\d{17}\b")  # since 1970


def now(match):
    """When a document was made, also one about a recording."""
    return "NOW" if STARTED <= int(match.group()) <= time.time_ns() else match.group()


# Text about recordings that changes: the day of a peak is shown unless it is today.
FILE_RULES = [(NANOSECONDS, now), (re.compile(r"( peak .* at )\d{4}-\d\d-\d\d (?=\d\d:)"), r"\1")]

# Text that changes.
RULES = [
    (NANOSECONDS, lambda match: match.group() if int(match.group()) in MADE else "TIME"),
    (re.compile(r"\bTIME,\d{5,}\b"), "TIME,AGE"),  # of a row of CSV
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"), "CLOCK"),
    (re.compile(r" *\b\d[\d.]* ?(?:ns|us|ms|s|min|h)\b( ago)?(?: {2,}(?=\S))?"), r" *\1 "),
    (re.compile(r" {2,}(?=(?:AGE|HOW|IN|OLDEST)\b)"), "  "),  # a title behind blanks that depend on such a time
    (re.compile(r"\b(flight/\d+/\d+)-\d+"), r"\1-START"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "CODE"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "BUILD"),  # of a program that was built for the scene
    (re.compile(r"(\.ttrec), [\d.]+ KiB"), r"\1, * KiB"),
    (re.compile(r"^(past|flight): .*"), r"\1: *"),
    # Metrics: how long something took, how often the daemon looked, and what its database and memory are like.
    (re.compile(r"^((?:ttmem\w*_(?:seconds|bucket|timestamp)|process_)\w*(?:\{.*?\})? )\S+"), r"\1*"),
    (re.compile(r"^(ttmem_push_sent\{\} )\S+"), r"\1*"),
    (re.compile(r"^(ttmem_(?:store_(?:queued|size|written)|flight|http_requests)\w*(?:\{.*?\})? )\S+"), r"\1*"),
]


def is_libc(frame):
    """The C library's frames below main() depend on the machine."""
    return isinstance(frame, dict) and str(frame.get("module")).startswith("libc.so")


def change(value, path=""):
    if isinstance(value, dict):
        return {name: change(one, f"{path}.{name}") for name, one in value.items()}
    if isinstance(value, list):
        changed = [change(one, path) for one in value if not is_libc(one)]
        # Times that were within a tick of each other are in any order.
        return sorted(changed, key=json.dumps) if path.endswith(".moments") else changed
    if isinstance(value, int) and value in MADE:
        return value
    return "*" if value and CHANGING.search(path) or LOAD.search(path) else value


def merge_equal(items):
    """Neighbours with equal objects share a line: most types of a device are empty."""
    merged = []
    for key, value in items:
        if merged and isinstance(value, dict) and merged[-1][1] == value:
            merged[-1] = (merged[-1][0] + "|" + key, value)
        else:
            merged.append((key, value))
    return merged


def lay_out(value, indent=0, before=""):
    """Lines of JSON, keys in order, as many members in a line as fit."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if indent + len(before) + len(text) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return [" " * indent + before + text]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    lines = [" " * indent + before + opened]
    if isinstance(value, dict):
        for key, one in merge_equal(sorted(value.items())):
            lines += lay_out(one, indent + 1, json.dumps(key) + ": ")
    else:
        for one in value:
            lines += lay_out(one, indent + 1)
    return [*lines, " " * indent + closed]


def json_lines(text, is_live):
    """A document, or one for each line; None: it is not JSON."""
    documents = []
    try:
        documents = [json.loads(text)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in text.splitlines()]
        except ValueError:
            return None
    if not all(isinstance(document, (dict, list)) for document in documents):
        return None
    return [line for one in documents for line in lay_out(change(one) if is_live else one)]


def cut(lines):
    if len(lines) <= LINES_MAX:
        return lines
    rest = "\n".join(lines[LINES_MAX:])
    return [*lines[:LINES_MAX], f"... {len(lines) - LINES_MAX} more: {hashlib.sha256(rest.encode()).hexdigest()[:16]}"]


def settle(data, is_live):
    """The lines of an output, of bytes."""
    if not data:
        return []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        # It has the time in it.
        return ["bytes"] if is_live else [f"{len(data)} bytes: {hashlib.sha256(data).hexdigest()[:16]}"]
    lines = json_lines(text, is_live) if text.lstrip()[:1] in ("{", "[") else None
    if lines is None:
        lines = text.splitlines()
    if is_live:
        lines = [LIBC_FRAME.sub("", line) for line in lines if not LIBC_LINE.search(line)]
    for pattern, by in RULES if is_live else FILE_RULES:
        lines = [pattern.sub(by, line) for line in lines]
    return cut([line.rstrip() for line in lines])
