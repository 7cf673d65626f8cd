#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the lists of memory types that include/ttmem/types.def determines.

    tools/build/type_lists.py           writes the files that differ, and prints their names
    tools/build/type_lists.py --check   only prints them, and fails if there are any

C, C++ and the kernel module include types.def itself. A list in another file stands where its first three names
stand in order; a list without CB is that of the types with banks of their own.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^TTMEM_TYPE\((\d+), (\w+), \w+, "[\w-]+", (\w+), (\w+), "([\w ]+)"\)$', re.M)
ROWS = ROW.findall((ROOT / "include/ttmem/types.def").read_text())
NAMES = [name for _, name, *_ in ROWS]
WITH_BANKS = [name for _, name, _, place, _ in ROWS if place == name]

# "DRAM", "L1" and so on; DRAM L1; DRAM, L1 or the last one.
LIST = re.compile(r'\bDRAM((?:", "|, | ))L1\1SYSTEM_MEMORY((?:\1[A-Z0-9_]+)*)((?: or | and )[A-Z0-9_]+)?\b')
PROPERTIES = re.compile(r'^( *)"DRAM"(: .*),\n(?:\1"[A-Z0-9_]+"\2,\n)+\1"[A-Z0-9_]+"\2\n', re.M)


def listed(match):
    separator, rest, last = match.groups()
    names = NAMES if re.search(r"\bCB\b", rest + (last or "")) else WITH_BANKS
    if not last:
        return separator.join(names)
    return separator.join(names[:-1]) + last[: last.rindex(" ") + 1] + names[-1]


def with_lists(text):
    text = PROPERTIES.sub(lambda m: ",\n".join(f'{m[1]}"{name}"{m[2]}' for name in NAMES) + "\n", text)
    return LIST.sub(listed, text)


def python(text):
    def lines(form):
        return "".join(form.format(number=number, name=name) for number, name, *_ in ROWS)

    text = re.sub(r'(?<=__all__ = \[\n    )("[A-Z0-9_]+", )+', "".join(f'"{name}", ' for name in sorted(NAMES)), text)
    text = re.sub(r"(    [A-Z0-9_]+ = \d+\n)+", lines("    {name} = {number}\n"), text, count=1)
    return re.sub(r"^([A-Z0-9_]+ = Type\.[A-Z0-9_]+\n)+", lines("{name} = Type.{name}\n"), text, flags=re.M)


def rules(text):
    """The sums of a pool, in the recording rules of Prometheus."""
    for pool in ("DRAM", "L1"):
        members = "|".join(row[1] for row in ROWS if row[2] == pool)
        text = re.sub(rf'(?<=type=~"){pool}\|[A-Z0-9_|]+(?=")', members, text)
    return text


FILES = {
    "data/completion/_ttmem": with_lists,
    "data/completion/ttmem.bash": with_lists,
    "data/completion/ttmem.fish": with_lists,
    "data/fleet/ttmem.rules.yml": rules,
    "docs/ci.md": with_lists,
    "docs/http.md": with_lists,
    **{str(path.relative_to(ROOT)): with_lists for path in sorted(ROOT.glob("docs/schema/*.json"))},
    **{str(path.relative_to(ROOT)): with_lists for path in sorted(ROOT.glob("docs/man/*.scd"))},
    "python/python/python-arguments.c": with_lists,
    "python/ttmem/__init__.py": python,
    "src/model/types.h": with_lists,
}


def main():
    differ = False
    for name, write in FILES.items():
        path = ROOT / name
        before = path.read_text() if path.exists() else ""
        after = write(before)
        if after == before:
            continue
        differ = True
        print(name)
        if "--check" not in sys.argv[1:]:
            path.write_text(after)
    return 1 if differ and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
