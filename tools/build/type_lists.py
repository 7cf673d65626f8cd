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


def listed(match):
    separator, rest, last = match.groups()
    names = NAMES if re.search(r"\bCB\b", rest + (last or "")) else WITH_BANKS
    if not last:
        return separator.join(names)
    return separator.join(names[:-1]) + last[: last.rindex(" ") + 1] + names[-1]


def with_lists(text):
    return LIST.sub(listed, text)


def python(text):
    def lines(form):
        return "".join(form.format(number=number, name=name) for number, name, *_ in ROWS)

    text = re.sub(r'(?<=__all__ = \[\n    )("[A-Z0-9_]+", )+', "".join(f'"{name}", ' for name in sorted(NAMES)), text)
    text = re.sub(r"(    [A-Z0-9_]+ = \d+\n)+", lines("    {name} = {number}\n"), text, count=1)
    return re.sub(r"^([A-Z0-9_]+ = Type\.[A-Z0-9_]+\n)+", lines("{name} = Type.{name}\n"), text, flags=re.M)


def typescript(_):
    def quoted(names):
        return "[" + ", ".join(f'"{name}"' for name in names) + "]"

    def record(pairs):
        return "".join(f"  {name}: {value},\n" for name, value in pairs)

    pools = list(dict.fromkeys(row[2] for row in ROWS))
    pools.sort(key=lambda pool: pool == "SYSTEM_MEMORY")  # the host's memory comes last
    members = {pool: [row[1] for row in ROWS if row[2] == pool] for pool in pools}
    types = [name for pool in pools for name in members[pool]]
    banks = sorted(WITH_BANKS, key=lambda name: (name == "SYSTEM_MEMORY", name not in pools, types.index(name)))
    place = {row[1]: row[3] for row in ROWS}
    title = {row[1]: row[4] for row in ROWS}
    return f"""// SPDX-License-Identifier: Apache-2.0
//
// The types of memory. tools/build/type_lists.py writes this file from include/ttmem/types.def.

/** By pool: the memory of the device that a type counts as. */
export const TYPES = {quoted(types)} as const;
export type MemoryType = (typeof TYPES)[number];

export const POOL_TYPES: Record<{" | ".join(f'"{pool}"' for pool in pools)}, MemoryType[]> = {{
{record((pool, quoted(members[pool])) for pool in pools)}}};

export const TYPE_TITLES: Record<MemoryType, string> = {{
{record((name, f'"{title[name]}"') for name in types)}}};

/** Memories with banks of their own; see src/model/memory/free-blocks.h. */
export const SPACE_TYPES = {quoted(banks)} as const;
export type SpaceType = (typeof SPACE_TYPES)[number];

/** Where its buffers lie. Kernels may also lie in L1. */
export const TYPE_PLACES: Record<MemoryType, SpaceType> = {{
{record((name, f'"{place[name]}"') for name in types)}}};
"""


def rules(text):
    """The sums of a pool, in the recording rules of Prometheus."""
    for pool in ("DRAM", "L1"):
        members = "|".join(row[1] for row in ROWS if row[2] == pool)
        text = re.sub(rf'(?<=type=~"){pool}\|[A-Z0-9_|]+(?=")', members, text)
    return text


FILES = {
    "data/fleet/ttmem.rules.yml": rules,
    "docs/schema/types.json": with_lists,
    "python/ttmem/__init__.py": python,
    "src/model/types.h": with_lists,
    "web/src/data/types.ts": typescript,
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
