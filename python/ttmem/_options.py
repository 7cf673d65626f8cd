# SPDX-License-Identifier: Apache-2.0
"""The options of the pytest plugin, and tracking as soon as they ask for it."""

import argparse
import contextlib
import copy
import os
import shlex
from typing import Any

from . import _metal, _result

_HISTORY = 1 << 17  # events of a device, for --ttmem-strict-close: those of one test should fit


def _count(text: str) -> int:
    """A number of rows, 0 = all."""
    if text == "all":
        return 0
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor all")
    return int(text)


def _limit(text: str) -> str:
    """As it was written: xdist hands options to its workers, and takes only plain values."""
    try:
        _result.Limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
    return text


def add(parser: Any) -> None:
    group = parser.getgroup("ttmem", "device memory")
    group.addoption(
        "--ttmem", action="store_true", help="fail tests that leave device memory allocated"
    )
    group.addoption(
        "--ttmem-baseline",
        metavar="FILE",
        help="leaks in FILE (an earlier --ttmem-json) are known: no failure",
    )
    group.addoption("--ttmem-json", metavar="FILE", help="write peaks and leaks of all tests as JSON")
    group.addoption(
        "--ttmem-limit",
        metavar="[[DEVICE:]TYPE=]SIZE",
        action="append",
        type=_limit,
        help="fail tests that hold more, for example DRAM=4G or 0:L1=1M; may be given again",
    )
    group.addoption(
        "--ttmem-budget",
        metavar="FILE",
        help="limits for all tests from FILE (ttmem.budget/1): of types, not of phases or call sites",
    )
    group.addoption(
        "--ttmem-peaks",
        metavar="N",
        type=_count,
        help="show the N tests with the highest peaks; all or 0, as without it: every test that held anything",
    )
    group.addoption(
        "--ttmem-strict-close",
        action="store_true",
        default=None,
        help="fail tests that close a device while buffers on it are live",
    )
    group.addoption(
        "--ttmem-no-metal",
        action="store_true",
        default=None,  # as the others: not given
        help="do not load the preload library for tt-metal: only what programs report themselves is tracked",
    )


def track(options: Any) -> None:
    """Before anything can be allocated: the library decides once whether it tracks, and tt-metal must not
    be loaded before the preload library."""
    if options.ttmem:
        os.environ.setdefault("TTMEM", "1")
        if options.ttmem_strict_close:
            os.environ.setdefault("TTMEM_HISTORY", str(_HISTORY))
        if not options.ttmem_no_metal:
            _metal.load()


def track_early(parser: Any, config: Any) -> None:
    """Plugins are loaded before the first hook with parsed options is called, and may import ttnn. With
    xdist, a worker has its options from the controller."""
    with contextlib.suppress(ValueError):  # the ini file has not been read yet
        words = shlex.split(os.environ.get("PYTEST_ADDOPTS", "")) + config.getini("addopts")
        words += config.invocation_params.args
        with contextlib.suppress(_metal.NotTracked):  # said later
            track(parser.parse_known_args(words, namespace=copy.copy(config.option)))
