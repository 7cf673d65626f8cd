#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The old debugging script: makes three buffers in L1 that the server must show, then "ttmem selftest".

The buffers are reported to the server in its own protocol, as the old script's were, so its lines can be compared
with those that are printed here. The tests that follow need no server. For Python 3.6 and later.
"""

import argparse
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

ALLOC, FREE, L1 = 1, 2, 1
BUFFERS = ((0x1A0000, 512 << 10), (0x1B0000, 2 << 20), (0x1C0000, 8 << 20))
BESIDE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ttmem")
TTMEM = BESIDE if os.path.isfile(BESIDE) else shutil.which("ttmem")
PAGE = "What replaces each old tool: share/doc/ttmem/from-the-old-tools.md"


def message(kind, address, size=0):
    """72 bytes: the first version, which every server understands."""
    now = int(time.time() * 1e9) if kind == ALLOC else 0
    head = struct.pack("<B3xiQB3xiQQ", kind, 0, size, L1, os.getpid(), address, now)
    return head.ljust(72, b"\0")


def is_seen():
    """Whether ttmem lists the three, within ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        command = [TTMEM, "buffers", "--pid", str(os.getpid()), "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rows = json.loads(done.stdout)["buffers"] if done.stdout else []
        if {(int(row["address"], 16), row["size"]) for row in rows} >= set(BUFFERS):
            return True
        time.sleep(0.05)
    return False


def try_server(path):
    """Reports the three buffers. Returns False if the server does not show them."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(path)
        except OSError as error:
            print(f"No server at {path}: {error.strerror}.")
            print("Start allocation_server_poc in another terminal to see its lines.\n")
            return True
        print("Expected server output:")
        for address, size in BUFFERS:
            server.sendall(message(ALLOC, address, size))
            print(f"✓ [PID {os.getpid()}] Allocated {size} bytes of L1 on device 0 (buffer_id={address:#x})")
        seen = is_seen()
        print("ok   ttmem lists all three, 10.5 MiB of L1" if seen else "FAIL ttmem does not list them")
        if not seen:
            print("If you don't see these, the buffer tracking is broken.")
        if sys.stdin.isatty():
            input("\nPress Enter to free them...")
        for address, _ in BUFFERS:
            server.sendall(message(FREE, address))
    print()
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=PAGE)
    parser.parse_args()
    if not TTMEM:
        print(f"{parser.prog}: cannot find the command ttmem beside this file or on PATH: install the package ttmem", file=sys.stderr)
        return 127
    seen = try_server(os.environ.get("TT_ALLOC_SERVER_SOCKET") or "/tmp/tt_allocation_server.sock")
    sys.stdout.flush()
    code = subprocess.run([TTMEM, "selftest"], check=False).returncode
    return code if seen else code or 1


if __name__ == "__main__":
    sys.exit(main())
