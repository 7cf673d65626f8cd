# SPDX-License-Identifier: Apache-2.0
"""Command lines of living processes, for whoever may see their details: /api/v1/commands, ps --json and smi --json."""

import json

import pytest

from common import AS_NOBODY
from world import check_schema, wait_for


def commands(ttmemd, query=""):
    status, text = ttmemd.fetch(f"/api/v1/commands{query}", token=True)
    assert status == 200, text
    return {row["pid"]: row for row in check_schema(json.loads(text))["processes"]}


def known(ttmemd, *players):
    pids = {player.pid for player in players}
    wait_for(lambda: pids <= set(commands(ttmemd)), "the processes")


def test_secrets_of_a_command_line_are_masked(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    words = ["serve.py", "--token", "hunter2", "--port", "80", "HF_TOKEN=hunter3", "redis://me:hunter4@host"]
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=words)
    known(ttmemd, player)
    row = commands(ttmemd, f"?pid={player.pid}")[player.pid]
    assert row["command"][1:] == ["serve.py", "--token", "***", "--port", "80", "HF_TOKEN=***", "redis://***@host"]
    assert row["comm"] == "player" and row["cut"] is False and row["container"] is None
    assert "hunter" not in ttmemd.fetch("/api/v1/commands", token=True)[1]


def test_without_the_token_nobody_sees_command_lines(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    known(ttmemd, ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=["only-for-me"]))
    status, text = ttmemd.fetch("/api/v1/commands")
    assert status == 401 and "only-for-me" not in text
    for path in ("/api/v1/smi", "/api/v1/ps", "/metrics"):
        assert "only-for-me" not in ttmemd.fetch(path)[1], path


def test_one_process_has_one_row_and_ended_ones_have_none(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    one = ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=["x" * 9000])
    other = ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=["invalid \udcff bytes", ""])
    known(ttmemd, one, other)
    rows = commands(ttmemd)
    assert rows[one.pid]["cut"] is True and len("".join(rows[one.pid]["command"])) < 4100
    assert rows[other.pid]["command"][1:] == ["invalid \ufffd bytes", ""]
    assert set(commands(ttmemd, f"?pid={other.pid}")) == {other.pid}
    one.kill()
    wait_for(lambda: one.pid not in commands(ttmemd), "its end")


def rows(ttmemd, command, **options):
    return {row["pid"]: row for row in ttmemd.json(command, **options)["processes"]}


@pytest.mark.parametrize("command", ["ps", "smi"])
def test_the_command_shows_them_with_and_without_a_daemon(ttmemd, command):
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=["serve.py", "--token", "hunter2", "x" * 9000])
    alone = rows(ttmemd, command)[player.pid]
    ttmemd.start()
    assert alone["command"][1:4] == ["serve.py", "--token", "***"] and alone["command_cut"] is True
    assert rows(ttmemd, command)[player.pid]["command"] == alone["command"]


@pytest.mark.other_user
@pytest.mark.parametrize("command", ["ps", "smi"])
def test_the_command_shows_other_users_only_their_own(ttmemd, command):
    ttmemd.start()
    roots = ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=["only-for-root"])
    own = ttmemd.player("alloc 0 DRAM 0x1000 64 a", words=["my-own"], before=AS_NOBODY)
    both = {roots.pid, own.pid}
    wait_for(lambda: both <= set(rows(ttmemd, command, before=AS_NOBODY)), "both processes")
    seen = rows(ttmemd, command, before=AS_NOBODY)
    assert seen[own.pid]["command"][1:] == ["my-own"] and seen[own.pid]["command_cut"] is False
    assert "command" not in seen[roots.pid] and "command_cut" not in seen[roots.pid]
    assert {pid: row["command"][1:] for pid, row in rows(ttmemd, command).items() if pid in both} == {
        roots.pid: ["only-for-root"], own.pid: ["my-own"],
    }  # fmt: skip
