# SPDX-License-Identifier: Apache-2.0
"""The lists of memory types in all languages are those of include/ttmem/types.def."""

import re
import subprocess
import sys

from conftest import LIMIT, ROOT
from world import TYPES


def check(root):
    return subprocess.run([sys.executable, "-B", root / "tools/build/type_lists.py", "--check"],
                          capture_output=True, text=True, timeout=LIMIT)


def test_written_lists_match_the_table():
    done = check(ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_rows_have_the_numbers_of_the_public_header():
    rows = re.findall(r"^TTMEM_TYPE\((\d+), (\w+),", (ROOT / "include/ttmem/types.def").read_text(), re.M)
    header = (ROOT / "include/ttmem/ttmem.h").read_text()
    assert [int(number) for number, _ in rows] == list(range(len(rows)))
    assert f"#define TTMEM_TYPE_COUNT {len(rows)}u\n" in header
    for number, name in rows:
        assert re.search(rf"^#define TTMEM_{name} {number}u\b", header, re.M), name


def test_the_manual_has_them_in_order():
    section = (ROOT / "docs/man/ttmem.1.scd").read_text().split("\n# TYPES OF MEMORY\n")[1].split("Text tables")[0]
    assert re.findall(r"\b_([A-Z0-9_]+)_(?= |,)", section) == TYPES
