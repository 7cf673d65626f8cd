# SPDX-License-Identifier: Apache-2.0
"""Queries about all processes, answered by running the command ttmem with --json.

The command reads books like any other process, so these calls need no daemon (leaks() does) and see
whatever the user may see.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union


class CommandError(RuntimeError):
    """The command ttmem was not found, failed, or did not answer; the text says which."""


def _program() -> str:
    """TTMEM_COMMAND, else beside the package, else in the environment of this Python, else on PATH."""
    named = os.environ.get("TTMEM_COMMAND")
    if named:
        return named
    # PREFIX/lib/python/ttmem/_command.py; links are not followed: the tree may consist of them.
    for prefix in [*Path(os.path.abspath(__file__)).parents[3:4], Path(sys.prefix)]:
        candidate = prefix / "bin" / "ttmem"
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("ttmem")
    if found:
        return found
    raise CommandError(
        "the command ttmem was not found: put it on PATH, or name it in TTMEM_COMMAND"
    )


def command(
    *args: Union[str, int],
    timeout: float = 60.0,
    daemon: bool = True,
    accept: Tuple[int, ...] = (0,),
) -> Dict[str, Any]:
    """The document that "ttmem ARGS --json" prints; docs/schema/ describes each of them.

    daemon=False: from the processes themselves, even if there is a ttmemd. accept: exit codes that are
    answers, too.
    """
    words = [_program(), *map(str, args), "--json"]
    env = os.environ if daemon else {**os.environ, "TTMEM_SOCKET": "none"}
    try:
        result = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env=env
        )
    except OSError as error:
        raise CommandError(f"{words[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{' '.join(words)} did not answer within {timeout} s") from error
    if result.returncode not in accept:
        said = result.stderr.decode(errors="replace").strip() or f"exit code {result.returncode}"
        raise CommandError(f"{' '.join(words)} failed: {said}")
    try:
        document = json.loads(result.stdout)
    except ValueError as error:
        raise CommandError(f"{' '.join(words)} did not print JSON") from error
    if not isinstance(document, dict):
        raise CommandError(f"{' '.join(words)} did not print a document")
    return document


def snapshot() -> Dict[str, Any]:
    """Devices and processes with their memory: the document of "ttmem smi"."""
    return command("smi")


def buffers(
    pid: Optional[int] = None,
    device: Optional[int] = None,
    type: Optional[Union[int, str]] = None,
) -> List[Dict[str, Any]]:
    """Every live buffer of every process, or only some: the rows of "ttmem buffers"."""
    args: List[Union[str, int]] = ["buffers"]
    if pid is not None:
        args += ["--pid", _number("pid", pid)]
    if device is not None:
        args += ["--device", _number("device", device)]
    if type is not None:
        args += ["--type", _type_name(type)]
    return list(command(*args)["buffers"])


def leaks(pid: Optional[int] = None, since_ns: int = 0) -> List[Dict[str, Any]]:
    """What exited processes left, one entry per process: the rows of "ttmem leaks". Needs ttmemd.

    since_ns: only of those that exited then or later, as in time.time_ns().
    """
    args: List[Union[str, int]] = ["leaks"]
    if pid is not None:
        args += ["--pid", _number("pid", pid)]
    if since_ns:
        args += ["--since", _number("since_ns", since_ns)]
    return list(command(*args)["processes"])


def _number(what: str, value: int) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, not {value.__class__.__name__}")
    number = value.__index__()
    if number < 0:
        raise ValueError(f"{what} must not be negative: {number}")
    return number


def _type_name(value: Union[int, str]) -> str:
    from . import Type

    try:
        return (Type[value] if isinstance(value, str) else Type(value)).name
    except (KeyError, ValueError):
        raise ValueError(f"no type {value!r}; there are {', '.join(Type.__members__)}") from None
