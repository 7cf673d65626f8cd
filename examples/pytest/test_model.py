# SPDX-License-Identifier: Apache-2.0
"""Two tests with the fixture: one returns its memory, one does not."""

import ttmem


def test_decode(no_device_leak):
    ttmem.alloc(0, ttmem.DRAM, 0x1000, 1 << 20, "activations")
    ttmem.free(0, 0x1000, ttmem.DRAM)


def test_cache(no_device_leak):
    ttmem.alloc(0, ttmem.DRAM, 0x2000, 1 << 16, "kv_cache")
