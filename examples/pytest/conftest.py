# SPDX-License-Identifier: Apache-2.0
"""A fixture for tests that must return all device memory, without the option --ttmem.

It compares what this process holds before and after the test. `pytest --ttmem` does more: it names the buffers,
and looks at threads and children (docs/pytest.md).
"""

import pytest

import ttmem

TYPES = (ttmem.DRAM, ttmem.L1, ttmem.L1_SMALL, ttmem.TRACE)


def held(device):
    return {kind.name: ttmem.memory_stats(device, kind).bytes for kind in TYPES}


@pytest.fixture
def no_device_leak():
    """Fails the test if it leaves memory on device 0."""
    if not ttmem.enabled():
        pytest.skip("tracking is off; run with TTMEM=1")
    before = held(0)
    yield
    after = held(0)
    left = {kind: after[kind] - before[kind] for kind in after if after[kind] > before[kind]}
    assert not left, f"device memory was left behind, in bytes: {left}"
