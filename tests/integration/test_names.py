# SPDX-License-Identifier: Apache-2.0
"""Names of native frames, wherever a stack is shown: which file they come from, and who looks for them."""

import re

from cxx import run
from test_stacks import C_SOURCE, compiled, expected_c, frames, start  # noqa: F401


def modules(row):
    """The modules of the frames up to main."""
    return {frame["module"] for frame in row["stack"][: len(frames(row))]}


def test_each_frame_says_its_module(world, compiled):  # noqa: F811
    start(world, compiled(C_SOURCE))
    (row,) = world.json("buffers")["buffers"]
    assert modules(row) == {"app"}
    # What called main is in the C library.
    assert row["stack"][4]["module"].startswith("libc.so")
    (incident,) = world.json("incidents")["incidents"]
    for party in ("first", "second"):
        assert modules(incident[party]) == {"app"}
    (group,) = world.json("buffers", "--by", "site")["groups"]
    assert " @ app" not in group["key"]


def test_without_names_the_module_is_said_once(world, compiled):  # noqa: F811
    program = compiled(C_SOURCE)
    run("strip", program)
    start(world, program)
    (row,) = world.json("buffers")["buffers"]
    assert {frame["module"] for frame in row["stack"][:3]} == {"app"}
    lines = [line.strip() for line in world.text("buffers", "--stacks").splitlines()]
    assert len([line for line in lines if re.fullmatch(r"app\+0x[0-9a-f]+", line)]) == 3
