# SPDX-License-Identifier: Apache-2.0
"""./dev metal-test --names TREE: whether a tt-metal still has the names that the preload library needs.

The tree is the stand-in for tt-metal (tests/programs/metal): its header with one thing changed, or a library of it.
"""

import subprocess

import pytest

from conftest import LIMIT, ROOT
from metalshapes import SOURCES, Shapes

CANNOT = "this version cannot be tracked by preloading"


def ask(tree):
    return subprocess.run(
        [ROOT / "dev", "metal-test", "--names", tree], capture_output=True, text=True, timeout=LIMIT, cwd=ROOT
    )


def header(*flags):
    """The stand-in's, as a compiler sees it."""
    command = ["g++", "-std=c++20", "-E", "-P", "-DMETAL_SHAPE=70", *flags, SOURCES / "metal.hpp"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout
    return text[text.index("namespace tt::umd") :]


def ask_changed(folder, old, new):
    text = header()
    assert old in text
    (folder / "metal.hpp").write_text(text.replace(old, new))
    return ask(folder)


def test_a_tree_that_declares_all_names_alike_passes(tmp_path):
    (tmp_path / "metal.hpp").write_text(header())
    answer = ask(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "gone or different: 0" in answer.stdout


@pytest.mark.parametrize(
    "old, new, says, reads",
    [
        ("void track_deallocate(Buffer *", "void track_end(Buffer *", "declares no track_deallocate()", CANNOT),
        ("uint32_t address() const", "uint64_t address() const", "returns unsigned long, not uint32_t", CANNOT),
        ("bool is_trace() const;", "bool is_trace() const { return false; }", "declared inline", CANNOT),
        ("void clear();", "void clear(bool all);", "declared as clear(bool)", "stays live"),
        ("get_bank_size(const BufferType &type)", "get_bank_size(BufferType type)", "declared as", "no map, no fit"),
    ],
)
def test_a_declaration_that_differs_is_named_with_what_a_user_would_read(tmp_path, old, new, says, reads):
    answer = ask_changed(tmp_path, old, new)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "gone or different: 1\n" in answer.stdout
    first, second = answer.stdout.splitlines()[:2]
    assert says in first
    assert reads in second


def test_virtual_functions_in_other_places_are_named(tmp_path):
    (tmp_path / "metal.hpp").write_text(header("-DMETAL_OTHER_SLOTS"))
    answer = ask(tmp_path)
    assert answer.returncode == 1
    assert "IDevice: virtual function 1 is something_new, not id" in answer.stdout


def test_a_name_that_a_library_does_not_export_is_named(tmp_path):
    shapes = Shapes(tmp_path)
    answer = ask(shapes(66))
    assert answer.returncode == 1
    assert "tt::tt_metal::Buffer::num_cores() const: not exported" in answer.stdout
    assert "GraphTracker" not in answer.stdout


def test_a_folder_without_a_tt_metal_is_not_a_success(tmp_path):
    answer = ask(tmp_path)
    assert answer.returncode == 1
    assert "nothing was checked" in answer.stderr
