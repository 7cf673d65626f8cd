# SPDX-License-Identifier: Apache-2.0
"""The command ttmem of a wheel: becomes the program that lies in the package.

Not in the package itself: importing that loads libttmem, and with TTMEM=1 this short life would be tracked.
"""

import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ttmem", "_bin", "ttmem")
    os.execv(program, [program, *sys.argv[1:]])
