# SPDX-License-Identifier: Apache-2.0
"""Loads libttmem-metal.so, which tracks tt-metal, and turns the operations of ttnn into phases.

tt-metal tells the begin and end of an operation only to a processor that is registered, and inline. In
Python every operation is an object of one of two classes of ttnn.decorators, which have had the same
names and the same attribute since 0.62: their calls are wrapped. Hooks of ttnn itself are called by one of
them only, which is not the default.
"""

import ctypes
import functools
import os
import sys
import threading
from typing import Any, Callable, List

from . import _ttmem

_LIBRARY = "libttmem-metal.so"
_PLACES = ("", "ttmem", "../metal")  # seen from libttmem.so: installed, Debian's packages, a build

_MODULE = "ttnn.decorators"
_CLASSES = ("FastOperation", "Operation")


class _Current(threading.local):
    name = None  # of the innermost operation


_current = _Current()


def _phased(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def operation(self: Any, *args: Any, **named: Any) -> Any:
        name, outer = getattr(self, "python_fully_qualified_name", None), _current.name
        # The fast class may pass a call on to the other one.
        if not isinstance(name, str) or name == outer:
            return call(self, *args, **named)
        try:
            _ttmem._phase_push(name)
        except ValueError:  # not a text that can be stored
            return call(self, *args, **named)
        _current.name = name
        try:
            return call(self, *args, **named)
        finally:
            _current.name = outer
            _ttmem._phase_pop()

    return operation


def _wrap(module: Any) -> None:
    for name in _CLASSES:
        found = getattr(module, name, None)
        if isinstance(found, type) and callable(found.__dict__.get("__call__")):
            setattr(found, "__call__", _phased(found.__call__))  # noqa: B010


class _Finder:
    """Waits for one module, finds it where the others find it, and is gone."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        run = getattr(spec.loader, "exec_module", None)
        if run is not None:

            def exec_module(module: Any) -> None:
                run(module)
                _wrap(module)

            spec.loader.exec_module = exec_module  # type: ignore[union-attr]
        return spec


def start() -> None:
    """Before ttnn is imported, or after."""
    if _MODULE in sys.modules:
        _wrap(sys.modules[_MODULE])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]


class NotTracked(RuntimeError):
    """tt-metal cannot be tracked in this process; the text says why."""


class TooLate(NotTracked):
    """It was loaded before libttmem-metal.so, which must be in front of it."""


def _mapped(head: str) -> List[str]:
    """The files that this process has mapped whose names begin with @head."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        fields = [line.rstrip("\n").split(None, 5) for line in file]
    paths = {found[5] for found in fields if len(found) == 6}
    return sorted(path for path in paths if os.path.basename(path).startswith(head))


def check() -> None:
    """Raises NotTracked if this process has a tt-metal that libttmem-metal.so is not in front of."""
    metal = _mapped("libtt_metal")
    if metal and not _mapped(_LIBRARY):
        raise TooLate(f"tt-metal ({metal[0]}) was loaded before {_LIBRARY}")


def _find() -> str:
    for found in _mapped("libttmem.so"):
        for place in _PLACES:
            path = os.path.realpath(os.path.join(os.path.dirname(found), place, _LIBRARY))
            if os.path.isfile(path):
                return path
    raise NotTracked(f"{_LIBRARY} was not found")


def _put_first(variable: str, path: str) -> None:
    before = os.environ.get(variable)
    if path not in (before or "").split(":"):
        os.environ[variable] = f"{path}:{before}" if before else path


def load() -> None:
    """Tracks tt-metal here and in children, as `ttmem run --metal` does; raises NotTracked. May be called
    again."""
    check()
    path = (_mapped(_LIBRARY) or [_find()])[0]
    if set(path) & set(": \t\n"):
        raise NotTracked(f"{path} has a blank or a colon in its path: install ttmem elsewhere")
    try:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise NotTracked(str(error)) from error
    _put_first("LD_PRELOAD", path)
    _put_first("PYTHONPATH", os.path.join(os.path.dirname(os.path.abspath(__file__)), "_run"))
    start()
