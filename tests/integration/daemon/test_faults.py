# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed repeatedly, and nothing is lost; each time it is compared with a model."""

import random
import socket
import subprocess
import threading

import pytest

from conftest import LIMIT
from crowd import Native, Old, rows
from world import used, wait_for

KILLS = 50


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


def living(daemon):
    """{pid: rows} of all processes with buffers, as the daemon alone knows them."""
    document = daemon.json("buffers", env=daemon.blind)
    assert document["exact"] and document["next"] is None
    result = {}
    for buffer in document["buffers"]:
        result.setdefault(buffer["pid"], []).append(buffer)
    return {pid: rows(buffers) for pid, buffers in result.items()}


def totals(daemon):
    """{pid: (bytes, buffers)} of all living processes."""
    return {
        p["pid"]: tuple(
            sum(memory[what] for d in p["devices"] for memory in d["memory"].values())
            for what in ("used", "buffers")
        )
        for p in daemon.json("smi", env=daemon.blind)["processes"]
        if p["alive"]
    }


class Crowd:
    """Clients that start, work and die, whatever happens to the daemon."""

    def __init__(self, daemon, seed):
        self.daemon = daemon
        self.rng = random.Random(seed)
        self.living = []
        self.dead = []

    def start_daemon(self):
        """Old clients' messages that the last one was killed in are in doubt; it is not known whose."""
        self.daemon.start()
        doubts = self.daemon.json("status")["old_clients"]["in_doubt"]
        for member in self.living + self.dead:
            if member.source == "socket":
                member.doubts += doubts

    def join(self):
        device = self.rng.randrange(4)
        kinds = (Native, Native, Old)
        kind = self.rng.choice(kinds)
        more = {"size": self.rng.choice((72, 144, 648))} if kind is Old else {}
        self.living.append(kind(self.rng, device, self.daemon, **more))

    def work(self, turns):
        for _ in range(turns):
            self.rng.choice(self.living).work(self.rng.randrange(1, 12))

    def end_one(self):
        """A client that no daemon has ever seen may die unseen; it is then unobserved."""
        known = [m for m in self.living if m.is_known]
        if known:
            member = self.rng.choice(known)
            self.living.remove(member)
            self.dead.append(member)
            member.kill()

    def compare(self):
        """With the daemon up: all living processes, exactly."""
        wait_for(
            lambda: not {m.pid for m in self.dead} & totals(self.daemon).keys(), "the ends"
        )
        for member in self.living:
            if member.source == "socket":
                member.hear(LIMIT / 2)
        seen, sums = living(self.daemon), totals(self.daemon)
        for member in self.living:
            if member.source == "socket" and not member.is_known and member.pid not in sums:
                member.settle(frozenset())
                continue
            member.settle(seen.pop(member.pid, frozenset()))
            (state,) = member.possible
            assert sums.get(member.pid, (0, 0)) == (sum(r[3] for r in state), len(state))
            # The daemon holds the books of all processes in the list from now on.
            member.is_known = member.is_known or member.pid in sums
        assert not seen


def check_reports(daemon, dead):
    """A process that died with buffers left has one report with exactly these, others have none."""

    def reports():
        found = {}
        for process in daemon.json("leaks")["processes"]:
            found.setdefault(process["pid"], []).append(process)
        return found

    must = {m.pid for m in dead if not m.accepts(frozenset())}
    found = wait_for(lambda: must <= reports().keys() and reports(), f"reports of {must}")
    lists = 0
    for member in dead:
        mine = found.pop(member.pid, [])
        if not mine:
            assert member.accepts(frozenset())
            continue
        assert len(mine) == 1, (member.pid, member.source)
        assert mine[0]["source"] == member.source
        state = rows(mine[0]["buffers"])
        possible = member.possible
        if mine[0]["buffers"]:
            assert member.accepts(state), (member.pid, member.source)
            possible = [state]
        # Of one call site only the newest reports keep their lists: all old clients without names.
        sums = mine[0]["bytes"], mine[0]["buffer_count"]
        assert member.doubts or sums in [(sum(row[3] for row in s), len(s)) for s in possible]
        lists += bool(state)
    assert not found
    assert lists >= min(len(must), 20)


def test_totals_and_leaks_are_exact_after_random_kills(daemon):
    crowd = Crowd(daemon, seed=20240607)
    for _ in range(8):
        crowd.join()
    for turn in range(KILLS):
        crowd.start_daemon()
        if turn % 5 == 0:
            crowd.compare()
        else:
            # Ready means that it knows all living processes.
            pids = totals(daemon)
            for member in crowd.living:
                member.is_known = member.is_known or member.pid in pids
        killer = threading.Timer(crowd.rng.random() * 0.06, daemon.process.kill)
        killer.start()
        while True:
            crowd.work(3)
            if crowd.rng.random() < 0.2:
                crowd.end_one()
                crowd.join()
            if not killer.is_alive():
                break
        killer.join()
        daemon.kill()
        crowd.work(4)
        if crowd.rng.random() < 0.6:
            crowd.end_one()
            crowd.join()
    crowd.start_daemon()
    crowd.compare()
    check_reports(daemon, crowd.dead)
    assert len(crowd.dead) > KILLS / 4  # how many depends on how fast all of this is
    assert daemon.json("status")["unobserved_exits"] == 0
    assert "ended while nobody held their books" not in daemon.text()
    # The next daemon knows only the reports of exited processes.
    while crowd.living:
        member = crowd.living.pop()
        crowd.dead.append(member)
        member.kill()
    wait_for(lambda: not totals(daemon), "the last end")
    check_reports(daemon, crowd.dead)
    assert daemon.stop() == 0
    daemon.start()
    check_reports(daemon, crowd.dead)
    assert daemon.json("status")["unobserved_exits"] == 0


@pytest.mark.legacy
def test_a_daemon_short_of_memory_serves_what_it_can(ttmemd):
    """The server for old clients, too, has little then."""
    ttmemd.start("--http", "127.0.0.1:0", before=["prlimit", f"--as={400 << 20}:"])
    player = ttmemd.player("alloc 0 DRAM 0x1000 10")
    wait_for(lambda: used(ttmemd.json("smi"), player.pid) == {(0, "DRAM"): 10}, "the process")
    wait_for(lambda: all(door["open"] for door in ttmemd.json("status")["doors"]), "old clients to be served")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(ttmemd.legacy))
