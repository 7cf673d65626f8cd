# SPDX-License-Identifier: Apache-2.0
"""Phases: labels recorded with each allocation, as a context manager and a decorator.

The library has one stack of phases per thread. Coroutines and generators share their thread with
others, so around them a phase is entered for each step and left at each suspension: it does not
label what other tasks allocate meanwhile.
"""

import functools
import inspect
import threading
import types
from typing import Any, Callable, List, TypeVar, cast

from . import _ttmem

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Entered(threading.local):
    """Our phases on the library's stack of this thread, outermost first."""

    def __init__(self) -> None:
        self.phases: List["phase"] = []


_entered = _Entered()


class phase:
    """with phase("load weights"): ...   or   @phase("load weights")

    Phases nest, and may be reused, also by several threads at once. As a decorator it also takes
    generator functions, coroutine functions and asynchronous generator functions, and may be above or
    below @staticmethod and @classmethod. Classes raise TypeError: decorate their methods. A with
    statement around an await stays active while other tasks of the thread run: decorate the function
    instead.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        if "\0" in name:
            raise ValueError("name must not contain a NUL character")
        name.encode()  # raises here, not at the first use, if it cannot be stored
        self.name = name

    def __repr__(self) -> str:
        return f"ttmem.phase({self.name!r})"

    def __enter__(self) -> "phase":
        _ttmem._phase_push(self.name)
        _entered.phases.append(self)
        return self

    def __exit__(self, *unused: object) -> None:
        phases = _entered.phases
        if phases and phases[-1] is self:  # nearly always
            phases.pop()
            _ttmem._phase_pop()
            return
        # Another task of this thread has entered one meanwhile: remove ours from below it.
        above: List["phase"] = []
        while phases and phases[-1] is not self:
            above.append(phases.pop())
            _ttmem._phase_pop()
        found = bool(phases)
        if found:
            phases.pop()
            _ttmem._phase_pop()
        for other in reversed(above):
            _ttmem._phase_push(other.name)
            phases.append(other)
        if not found:
            raise RuntimeError(f"{self!r} was not entered by this thread, or has already ended")

    def __call__(self, function: _Function) -> _Function:
        if isinstance(function, (staticmethod, classmethod)):  # the decorator is above them
            return cast(_Function, type(function)(_wrap(self, function.__func__)))
        if isinstance(function, type):
            raise TypeError(
                f"{self!r} decorates functions, not classes: decorate the methods of {function.__name__}"
            )
        if not callable(function):
            raise TypeError(f"{self!r} decorates functions, not {type(function).__name__}")
        return _wrap(self, function)  # type: ignore[return-value]


def _wrap(label: phase, function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **named: Any) -> Any:
            return await _awaited(label, function(*args, **named))

        return coroutine
    if inspect.isasyncgenfunction(function):

        # Not a loop with yield: values sent and exceptions thrown in must arrive.
        @functools.wraps(function)
        def asynchronous(*args: Any, **named: Any) -> Any:
            return _iterated(label, function(*args, **named))

        return asynchronous
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **named: Any) -> Any:
            return (yield from _steps(label, function(*args, **named)))

        return generator

    @functools.wraps(function)
    def plain(*args: Any, **named: Any) -> Any:
        with label:
            return function(*args, **named)

    return plain


def _steps(label: phase, inner: Any) -> Any:
    """Runs a generator or coroutine, with the phase entered only while it runs."""
    value, error = None, None
    while True:
        try:
            with label:
                out = inner.send(value) if error is None else inner.throw(error)
        except StopIteration as stop:
            return stop.value
        value, error = None, None
        try:
            value = yield out
        except GeneratorExit:
            with label:
                inner.close()
            raise
        except BaseException as thrown:  # goes to the inner generator
            error = thrown


_awaited: Callable[..., Any] = types.coroutine(_steps)


async def _iterated(label: phase, inner: Any) -> Any:
    """The same for an asynchronous generator: each of its items is a separate coroutine."""
    value, error = None, None
    try:
        while True:
            step = inner.asend(value) if error is None else inner.athrow(error)
            try:
                out = await _awaited(label, step)
            except StopAsyncIteration:
                return
            value, error = None, None
            try:
                value = yield out
            except GeneratorExit:
                raise
            except BaseException as thrown:
                error = thrown
    finally:
        await _awaited(label, inner.aclose())
