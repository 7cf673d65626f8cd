# SPDX-License-Identifier: Apache-2.0
"""query_device_stats() of the old examples: how much of a device is in use."""

import argparse
from typing import Dict, Optional

from allocation_client import _COUNTED, _PAGE, _no_server, _server_usage, _usage, format_bytes

__all__ = ["query_device_stats"]


def query_device_stats(device_id: int = 0, socket_path: Optional[str] = None) -> Dict[str, int]:
    """dram_allocated, l1_allocated, l1_small_allocated and trace_allocated, in bytes.

    For all processes if a server answers (machine_wide is then True), otherwise for this one.
    """
    return _usage(device_id, socket_path)


def _main() -> None:
    parser = argparse.ArgumentParser("python3 -m query_stats", description=__doc__, epilog=_PAGE)
    parser.add_argument("device", type=int, nargs="?", default=0, help="its number (0)")
    device = parser.parse_args().device
    if not 0 <= device <= 1023:
        parser.error(f"device must be 0 to 1023, not {device}")
    answer = _server_usage(device)
    if answer is None:  # figures of this process alone would be 0
        parser.exit(1, f'query_stats: {_no_server(None)}: start ttmemd, or use "ttmem smi", which needs none\n')
    for field in _COUNTED:
        print(f"{field}: {answer[field]} bytes ({format_bytes(answer[field])})")


if __name__ == "__main__":
    _main()
