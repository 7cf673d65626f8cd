# SPDX-License-Identifier: Apache-2.0
"""Turns on Python frames in stacks, and decides how to find them.

CPython's structures are read directly only if, for a few calls, they give the same result as
CPython's public functions.
"""

import atexit
import sys
import types
from typing import Any, Dict

from . import _frames

# Calls of all kinds, in a file whose name is not ASCII, with line numbers that rise and fall.
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
    """The method in use: "reader", "public" or "off"; "none" if frames are not supported."""
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
