#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The old tool's name: "ttmem dump" of the ttmem that lies beside this file."""

import os
import sys

program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ttmem")
os.execv(program, [program, "dump", *sys.argv[1:]])
