# SPDX-License-Identifier: Apache-2.0
"""Operations that allocate."""

import ctypes

import ttnn
from ttnn.decorators import register


@register("ttnn.zeros")
def zeros(device, size):
    if size < 0:
        raise ValueError("size")
    found = ttnn._ttnn.bind_zeros(device, ctypes.c_ulong(size))
    if not found:
        raise RuntimeError("Out of Memory")
    return ctypes.c_void_p(found)


@register("ttnn.linear")
def linear(device, size):
    """An operation made of another one."""
    return zeros(device, size)
