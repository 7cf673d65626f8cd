# SPDX-License-Identifier: Apache-2.0
"""tools/check/measures counts what it says."""

import importlib.machinery
import importlib.util
import subprocess

import pytest

from conftest import ROOT

SCRIPT = ROOT / "tools" / "check" / "measures"
SOURCE = """\
/* SPDX */

// a line \\
   that goes on
struct process { /* "not a string */
	pid_t pid;
	uint64_t start_ns;
	struct inner {
		int a;
	} inner;
};

static const char *text = "/* not a comment */ \\" //", c = '"';
a->b <<= 0x1p-3 + x++; /* end */
"""


@pytest.fixture(scope="module")
def measures():
    loader = importlib.machinery.SourceFileLoader("measures", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("measures", loader))
    loader.exec_module(module)
    return module


def test_tokens_are_those_of_a_compiler(measures):
    assert measures.TOKEN.findall("a->b <<= 0x1p-3 + x++;") == ["a", "->", "b", "<<=", "0x1p-3", "+", "x", "++", ";"]
    assert measures.count_tokens('/* x */ "a /* b" // c\n\'"\' ...') == 3
    assert measures.count_tokens(SOURCE) == 20 + 12 + 9


def test_lines_and_comments_are_told_apart(measures):
    assert measures.count_lines(SOURCE) == (14, 9, 3)
    assert "not a comment" in measures.without_comments(SOURCE) and "SPDX" not in measures.without_comments(SOURCE)


def test_tests_are_not_counted(measures):
    counted = ["src/a/b.c", "include/ttmem/x.hpp", "kernel/k.h", "src/types.def", "src/cli/selftest/selftest.c"]
    assert all(map(measures.is_counted, counted))
    others = ["src/a/b-test.c", "src/b-fuzz.c", "src/testing/b.c", "src/testing-b.h", "src/b-testing.c", "tests/x.c", "src/m.py"]
    assert not any(map(measures.is_counted, others))


def test_every_row_finds_what_it_is_for(measures):
    files = {
        "src/a.c": SOURCE,
        "src/map.c": "at = hash_u64(key) & mask; emit_open_object(json, key); json_object_get(a, b);",
        "src/types.h": "TTMEM_DRAM, TTMEM_L1, TTMEM_CB, TTMEM_TRACE, TTMEM_KERNEL",
        "web/src/x.ts": '"DRAM", "L1", "L1_SMALL", "TRACE", "CB"',
        "src/a-test.c": "struct not_counted {\n};",
        "docs/glossary.md": "**process**: what runs. **map**: a picture.",
    }
    rows = measures.measure(files, {}, None)
    assert rows["files"] == ["src/a.c", "src/map.c", "src/types.h"] and rows["headers"] == ["src/types.h"]
    assert rows["structs"] == ["src/a.c: inner", "src/a.c: process"]
    assert rows["structs-with-pid-and-start"] == ["src/a.c: process"]
    assert rows["lists-of-types"] == ["src/types.h", "web/src/x.ts"]
    assert rows["hash-tables"] == rows["writes-json"] == rows["takes-json-apart"] == ["src/map.c"]
    assert rows["words-outside-the-glossary"] == ["inner", "src", "types"]


def test_a_commit_is_read_without_the_work_tree():
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True).returncode != 0:
        pytest.skip("not in a git repository")
    text = subprocess.run([SCRIPT, "HEAD"], check=True, capture_output=True, text=True).stdout
    rows = dict(line.split(None, 1) for line in text.splitlines())
    assert int(rows["tokens"]) > 100_000 and rows["threads-of-an-idle-ttmemd"] == "-"
