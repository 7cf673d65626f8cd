# SPDX-License-Identifier: Apache-2.0
"""Operations that allocate."""

import ctypes

import ttnn
from ttnn.decorators import register


@register("ttnn.zeros")
def zeros(device, size):
    if size < 0:
        raise ValueError("size")
    return ctypes.c_void_p(ttnn._ttnn.bind_zeros(device, ctypes.c_ulong(size)))


@register("ttnn.linear")
def linear(device, size):
    """An operation made of another one."""
    return zeros(device, size)
