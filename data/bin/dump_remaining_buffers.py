#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The old tool's name: "ttmem dump" of the ttmem beside this file or on PATH. For Python 3.6 and later."""

import os
import shutil
import sys

program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ttmem")
if not os.path.isfile(program):
    program = shutil.which("ttmem")
if not program:
    name = os.path.basename(__file__)
    print(f"{name}: cannot find the command ttmem beside this file or on PATH: install the package ttmem", file=sys.stderr)
    sys.exit(127)
words = sys.argv[1:]
if "-h" in words or "--help" in words:
    print('An old name of "ttmem dump".')
    print("What replaces each old tool: share/doc/ttmem/from-the-old-tools.md\n", flush=True)
    words = ["--help"]
os.execv(program, [program, "dump", *words])
