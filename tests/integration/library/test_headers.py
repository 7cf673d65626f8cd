# SPDX-License-Identifier: Apache-2.0

"""The headers compile without a word in every language that they are for."""

import shutil
import subprocess

import pytest

from conftest import ROOT

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]
HEADERS = sorted(
    str(path.relative_to(ROOT / "include"))
    for pattern in ("ttmem/**/*.h", "ttmem/**/*.hpp")
    for path in (ROOT / "include").glob(pattern)
    if path.name not in ("catch2.hpp", "gtest.hpp")
)
# The listeners need their frameworks; test_test_frameworks.py compiles them.
FROM_17 = ["ttmem/test-memory.hpp", "ttmem/ttmem.hpp"]


def compile_all(compiler, language, standard, headers):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    text = "".join(f"#include <{header}>\n" for header in headers)
    subprocess.run([compiler, "-x", language, f"-std={standard}", *WARNINGS, "-I", ROOT / "include",
                    "-fsyntax-only", "-"], input=text, text=True, check=True)


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_in_cpp(compiler, standard):
    assert {"ttmem/compat/allocation_client.hpp", *FROM_17} < set(HEADERS)
    compile_all(compiler, "c++", standard,
                [header for header in HEADERS if standard != "c++11" or header not in FROM_17])


@pytest.mark.parametrize("standard", ["c99", "c11"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_in_c(compiler, standard):
    compile_all(compiler, "c", standard, [header for header in HEADERS if header.endswith(".h")])
