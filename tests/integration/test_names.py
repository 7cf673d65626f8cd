# SPDX-License-Identifier: Apache-2.0
"""Names of native frames, wherever a stack is shown: which file they come from, and who looks for them."""

import json
import re
import subprocess

import pytest

from cxx import run
from test_daemon_http import get
from test_stacks import C_SOURCE, compiled, expected_c, frames, line_of, start  # noqa: F401
from world import check_schema, wait_for


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


def start_for(daemon, program, *before, **settings):
    """The program as one that the daemon sees."""
    env = {**daemon.env, "TTMEM": "1", "TTMEM_STACKS": "fp", **settings}
    process = daemon.adopt(
        subprocess.Popen(
            [*before, program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    assert process.stdout.readline() == "ready\n"
    return process


def end(process):
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def dropped(line):
    """The stack of one of the frees."""
    return [("drop", line_of(C_SOURCE, "drop")), ("main", line_of(C_SOURCE, "again") + line)]


def test_answers_over_http_have_names(ttmemd, compiled):  # noqa: F811
    ttmemd.start("--http", "127.0.0.1:0")
    process = start_for(ttmemd, compiled(C_SOURCE))

    def buffers():
        page = check_schema(get(ttmemd, "/api/v1/buffers?limit=1"))
        return page["buffers"]

    (row,) = wait_for(buffers, "the buffer")
    assert row["pid"] == process.pid
    assert frames(row) == expected_c() and modules(row) == {"app"}
    (group,) = get(ttmemd, "/api/v1/buffers?by=site")["groups"]
    assert group["key"].endswith(":take")
    (life,) = check_schema(get(ttmemd, "/api/v1/history?address=0x2000"))["buffers"]
    assert [event["op"] for event in life["events"]] == ["alloc", "free", "double_free"]
    assert [frames(event) for event in life["events"][1:]] == [dropped(-1), dropped(0)]
    (incident,) = wait_for(
        lambda: check_schema(get(ttmemd, "/api/v1/incidents"))["incidents"], "the incident"
    )
    assert frames(incident["first"]) == dropped(-1)
    assert frames(incident["second"]) == dropped(0)


def test_history_has_the_stack_of_each_event(world, compiled):  # noqa: F811
    program = compiled(C_SOURCE)
    start(world, program)
    (life,) = world.json("history", "0x2000")["buffers"]
    taken = [("take", line_of(C_SOURCE, "take")), ("main", line_of(C_SOURCE, "twice"))]
    assert [frames(event) for event in life["events"]] == [taken, dropped(-1), dropped(0)]
    lines = world.text("history", "0x2000", "--stacks").splitlines()
    at = [i for i, line in enumerate(lines) if "DOUBLE FREE" in line][0]
    assert lines[at + 1].strip() == f"drop ({program}.c:{line_of(C_SOURCE, 'drop')})"
    assert "app.c" not in world.text("history", "0x2000")


@pytest.mark.parametrize("form", ["json", "text"])
def test_watch_shows_stacks(world, compiled, form):  # noqa: F811
    program = compiled(C_SOURCE)
    watch = world.watch("--stacks", "--format", form)
    process = start(world, program)
    name, number = dropped(0)[0]
    if form == "text":
        while "double_free" not in watch.stdout.readline():
            pass
        assert watch.stdout.readline().strip() == f"{name} ({program}.c:{number})"
        assert watch.stdout.readline().strip() == f"main ({program}.c:{dropped(0)[1][1]})"
    else:
        events = []
        while not events or events[-1]["op"] != "double_free":
            events.append(check_schema(json.loads(watch.stdout.readline())))
        assert frames(events[-1]) == dropped(0)
        assert frames([e for e in events if e["op"] == "alloc"][0]) == expected_c()
    assert process.poll() is None
