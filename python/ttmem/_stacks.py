# SPDX-License-Identifier: Apache-2.0
"""Turns on Python's frames in stacks, and decides how they may be found.

CPython's structures are read directly only if what they say of a few calls is the same as CPython's
public functions say of them.
"""

import atexit
import sys
import types
from typing import Any, Dict

from . import _frames

# Calls of all sorts, in a file whose name is not ASCII, with lines that go forth and back.
_PROBE = '''
def plain(check):
    return all(
        [check(),
         check()]) and (

        check())

class Klasse:
    def __init__(self, check=bool):
        self.made = check() or check is bool
    def größe(self, check):
        return check() and (lambda:
                            check())()

def 名(check):
    yield check()
    yield from (step() for step in [check] * 2)

def far(check):
''' + "\n" * 100 + '''
    return check() and all(map(lambda _: plain(check), range(2)))

async def waiting(check):
    return check()

def task(check):
    try:
        waiting(check).send(None)
    except StopIteration as stop:
        return stop.value

def outcome(check):
    return (plain(check) and Klasse().größe(check) and all(名(check)) and far(check)
            and task(check) and all(Klasse(check).made for _ in range(32))
            and all(sorted([check], key=lambda c: not c())))
'''


def _is_right() -> bool:
    """Whether the reader passes the self-check."""
    names: Dict[str, Any] = {}
    exec(compile(_PROBE, "ttmem \U0001f50d größe.py", "exec"), names)
    return bool(names["outcome"](_frames.check))


def _choose() -> str:
    if "t" in sys.abiflags:  # free-threaded
        return "off"
    if hasattr(sys, "getobjects"):  # every object is longer
        return "public"
    return "reader"


def start() -> str:
    """The way that was taken: "reader", "public" or "off"; "none" where there is nothing to ask."""
    if sys.implementation.name != "cpython":
        return "none"
    if not _frames.init(sys.hexversion, types.CodeType.__basicsize__):
        return "none"
    way = _choose()
    if way == "reader" and not _is_right():
        way = "public"
    way = _frames.start(way)
    atexit.register(_frames.stop)
    return way
