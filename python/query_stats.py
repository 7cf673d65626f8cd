# SPDX-License-Identifier: Apache-2.0
"""query_device_stats() of the old examples: how much of a device is in use."""

from typing import Dict, Optional

from allocation_client import AllocationClient

__all__ = ["query_device_stats"]


def query_device_stats(device_id: int = 0, socket_path: Optional[str] = None) -> Dict[str, int]:
    """dram_allocated, l1_allocated, l1_small_allocated and trace_allocated, in bytes.

    For all processes if a server answers (machine_wide is then True), otherwise for this one.
    """
    return AllocationClient(socket_path).query_device(device_id)
