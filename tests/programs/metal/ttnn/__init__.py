# SPDX-License-Identifier: Apache-2.0
"""A stand-in for ttnn's Python part: operations are objects, and call C++ that is found beside them."""

import ctypes
import os

_ttnn = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "_ttnn.so"))
for _name in ("bind_open", "bind_zeros"):
    getattr(_ttnn, _name).restype = ctypes.c_void_p


def open_device(number):
    return ctypes.c_void_p(_ttnn.bind_open(number))


def close_device(device):
    _ttnn.bind_close(device)


def drop(tensor):
    _ttnn.bind_drop(tensor)


from ttnn.operations.creation import linear, zeros  # noqa: E402
