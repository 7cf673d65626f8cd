# SPDX-License-Identifier: Apache-2.0
"""What all users share, and one of them who takes as much of it as there is."""

import subprocess

import pytest
from common import become
from world import wait_for

ATTACKER, VICTIM = 64901, 64902

pytestmark = pytest.mark.other_user


def hostile(daemon, *words):
    """tests/programs/hostile.c of the attacker; returns when it has begun."""
    program = daemon.build / "tests" / "programs" / "hostile"
    process = daemon.adopt(
        subprocess.Popen(
            [*become(ATTACKER), *(str(word) for word in (program, *words))],
            env={**daemon.env, "TTMEM": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert int(process.stdout.readline()) == process.pid
    process.stdout.close()
    return process


def test_failing_allocations_of_one_user_cost_another_no_leak_report(ttmemd):
    ttmemd.start()
    players = [
        ttmemd.player("alloc 0 DRAM 0x1000 7 weights", before=become(VICTIM)) for _ in range(60)
    ]
    wait_for(lambda: ttmemd.json("status")["books"] == 60, "the books")
    for _ in range(4):
        hostile(ttmemd, "failed")
    for player in players:
        player.kill()
    wait_for(lambda: ttmemd.json("status")["ended"] == 60, "the ends")
    wait_for(lambda: ttmemd.json("status")["past"]["queued"] == 0, "the queue")
    left = {p["pid"] for p in ttmemd.json("leaks")["processes"]}
    assert left == {player.pid for player in players}
