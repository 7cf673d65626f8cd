# SPDX-License-Identifier: Apache-2.0
"""Daemons and keepers are killed at any time, also while they start: no killed process is forgotten.

The promise of docs/architecture.md: a process that was in the file of tracked processes when the daemon was killed is
reported, or counted as an unobserved exit. Where no keeper held its book, a daemon that was killed between the report
and the next version of the file leaves it to be counted, too.
"""

import contextlib
import os
import random
import subprocess
import time

import pytest

from world import wait_for

KILLS = int(os.environ.get("TTMEM_TEST_KILLS", "30"))


def listed(daemon):
    """The processes in the file, and the exits that are counted there."""
    with contextlib.suppress(FileNotFoundError):
        lines = (daemon.state / "tracked").read_text().splitlines()[2:-1]
        missed = [int(line.split()[1]) for line in lines if line.startswith("missed ")]
        return {int(line.split()[0]) for line in lines[len(missed) :]}, sum(missed)
    return set(), 0


def begin(daemon, *args):
    """Does not wait until it is ready."""
    with open(daemon.log, "ab") as log:
        daemon.process = subprocess.Popen(
            [str(word) for word in daemon.command(*args)],
            env=daemon.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


@pytest.mark.parametrize("keeper", ["yes", "no"])
def test_every_killed_process_is_reported_or_counted(ttmemd, keeper):
    seed = int(os.environ.get("TTMEM_SEED", "20281118"))
    rng = random.Random(seed)
    living, dead, tracked = [], set(), set()

    def kill_some():
        while living and rng.random() < 0.6:
            player = living.pop(rng.randrange(len(living)))
            dead.add(player.pid)
            player.kill()

    def reports():
        return {process["pid"] for process in ttmemd.json("leaks", "--limit", "10000")["processes"]}

    for _ in range(KILLS):
        if rng.random() < 0.5:
            ttmemd.start("--keeper", keeper)
        else:
            begin(ttmemd, "--keeper", keeper)
        for _ in range(rng.randint(1, 3)):
            living.append(ttmemd.player("alloc 0 DRAM 0x1000 77"))
        time.sleep(rng.random() * 0.3)
        kill_some()
        time.sleep(rng.random() * 0.1)
        ttmemd.kill()
        if rng.random() < 0.3:
            ttmemd.end_keeper()
        tracked |= listed(ttmemd)[0]
        kill_some()
    ttmemd.start("--keeper", keeper)
    must = tracked & dead

    def found():
        return ttmemd.json("status")["unobserved_exits"] + len(must & reports())

    # Before it has settled what the last one left, exits that count twice may make up for others.
    wait_for(lambda: not listed(ttmemd)[0] & dead, "settled")
    wait_for(lambda: found() >= len(must), f"{len(must)} ends, seed {seed}")
    unobserved = ttmemd.json("status")["unobserved_exits"]
    print(f"{len(dead)} killed, {len(must)} tracked, {len(reports())} reported, {unobserved} counted")
    assert found() >= len(must) >= unobserved
    # The next daemons know it too, however this one ends.
    wait_for(lambda: listed(ttmemd)[1] == unobserved, "the count in the file")
    ttmemd.kill()
    ttmemd.start("--keeper", keeper)
    assert ttmemd.json("status")["unobserved_exits"] == unobserved
    assert ttmemd.stop() == 0
    ttmemd.start("--keeper", keeper)
    assert ttmemd.json("status")["unobserved_exits"] == unobserved
