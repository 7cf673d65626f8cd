#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The old tool's name: "ttmem dump" of the ttmem that lies beside this file."""

import os
import sys

words = sys.argv[1:]
if "-h" in words or "--help" in words:
    print('An old name of "ttmem dump".')
    print("What replaces each old tool: share/doc/ttmem/from-the-old-tools.md\n", flush=True)
    words = ["--help"]
program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ttmem")
os.execv(program, [program, "dump", *words])
