# SPDX-License-Identifier: Apache-2.0
"""Tests for the plugin of pytest: they leak, hold much, fail, and free what another one left."""

import pytest
import ttmem

NEXT = [0x1000]


def hold(name, size=4096, kind="DRAM"):
    NEXT[0] += 0x100000
    ttmem.alloc(0, kind, NEXT[0], size, name)
    return NEXT[0]


@pytest.fixture
def weights():
    address = hold("weights", 1 << 20)
    yield address
    ttmem.free(0, address, "DRAM")


@pytest.fixture(scope="module")
def shared():
    address = hold("shared", 1 << 16)
    yield address
    ttmem.free(0, address, "DRAM")


def test_clean(weights):
    ttmem.free(0, hold("scratch"), "DRAM")


def test_leaks():
    hold("forgotten", 12288)
    hold("tile", 512, "L1")


@pytest.mark.ttmem(allow=["meant"])
def test_may_leak():
    hold("meant", 100)


@pytest.mark.parametrize("size", [1, 3])
def test_many(size, shared):
    held = [hold("block", size << 16) for _ in range(4)]
    with ttmem.phase("decode"):
        held.append(hold("cache", 1 << 18))
    for address in held:
        ttmem.free(0, address, "DRAM")


def test_fails(weights):
    hold("left by a failure", 2048)
    assert weights == 0


def test_frees_twice():
    address = hold("twice")
    ttmem.free(0, address, "DRAM")
    ttmem.free(0, address, "DRAM")


@pytest.mark.skip(reason="not today")
def test_skipped():
    hold("never")
