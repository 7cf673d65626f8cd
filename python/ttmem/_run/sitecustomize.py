# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start if `ttmem run --metal` started it: the folder is then in PYTHONPATH.

Stacks get Python's lines and ttnn's operations become phases, in applications that do not know ttmem. What
cannot be had is left out: the application must not notice.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start():
    """The package that the interpreter has of its own, else the one beside this file."""
    known, paths = set(sys.modules), sys.path[:]
    sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
    try:
        from ttmem import _metal

        _metal.start()
    except Exception:  # another kind of interpreter, or an older package
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "ttmem":
                del sys.modules[name]
    sys.path[:] = paths


def _pass_on():
    """The sitecustomize that would have been imported without this one."""
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        # The import that is under way wants to find something under this name.
        sys.modules["sitecustomize"] = ours


_start()
if __name__ == "sitecustomize":
    sys.path[:] = [path for path in sys.path if path != _HERE]
    _pass_on()
