# SPDX-License-Identifier: Apache-2.0
"""Make files part of a program: embed.py OUTPUT HEADER NAME=FILE... writes a C file with their bytes."""

import sys
from pathlib import Path


def embed(name, data):
    lines = [f"const unsigned char {name}[] = {{"]
    for at in range(0, len(data), 16):
        lines.append("\t" + "".join(f"0x{byte:02x}, " for byte in data[at : at + 16]).rstrip())
    return [*lines, "};", f"const size_t {name}_size = sizeof({name});", ""]


def main():
    output, header, *pairs = sys.argv[1:]
    lines = [f'#include "{header}"', ""]
    for pair in pairs:
        name, path = pair.split("=", 1)
        lines += embed(name, Path(path).read_bytes())
    Path(output).write_text("\n".join(lines), encoding="ascii")


main()
