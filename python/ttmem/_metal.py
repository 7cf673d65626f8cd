# SPDX-License-Identifier: Apache-2.0
"""Turns the operations of ttnn into phases, in a process where libttmem-metal.so tracks tt-metal.

tt-metal tells the begin and end of an operation only to a processor that is registered, and inline. In
Python every operation is an object of one of two classes of ttnn.decorators, which have had the same
names and the same attribute since 0.62: their calls are wrapped. Hooks of ttnn itself are called by one of
them only, which is not the default.
"""

import functools
import sys
import threading
from typing import Any, Callable

from . import _ttmem

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
