# SPDX-License-Identifier: Apache-2.0
"""What ttmemd knows of peaks: of processes that have ended, and of those whose books have forgotten."""

import json

from world import check_schema, wait_for

RING = 16384


def groups(peak):
    assert peak["known_bytes"] + peak["unknown_bytes"] == peak["bytes"]
    return {group["key"]: (group["bytes"], group["buffers"]) for group in peak["groups"]}


def peaks(ttmemd, *args, **options):
    result = ttmemd.run("peak", "--json", *args, **options)
    assert result.returncode == 0, result.stderr
    return check_schema(json.loads(result.stdout))["peaks"]


def of_pid(rows, pid, kind="DRAM"):
    return [row for row in rows if row["pid"] == pid and row["type"] == kind]


LIFE = (
    "alloc 0 DRAM 0x1000 1000 weights",
    "push load", "alloc 0 DRAM 0x2000 500 staging", "pop",
    "free 0 DRAM 0x2000",
)  # fmt: skip


def known(ttmemd, player):
    """Once the daemon has its book."""
    wait_for(lambda: any(p["pid"] == player.pid for p in ttmemd.json("ps")["processes"]), "the process")
    return player


def test_peaks_of_ended_processes_are_remembered(ttmemd):
    ttmemd.start()
    player = known(ttmemd, ttmemd.player(*LIFE, "free 0 DRAM 0x1000", TTMEM_STACKS="off"))
    player.kill()
    (peak,) = wait_for(lambda: of_pid(peaks(ttmemd, "--ended"), player.pid), "its peak")
    assert peak["ended"] is True and peak["exact"] is True and peak["comm"] == "player"
    assert groups(peak) == {"DRAM weights": (1000, 1), "DRAM staging": (500, 1)}
    assert peaks(ttmemd) == []  # of the living
    (same,) = peaks(ttmemd, "--pid", player.pid, "--by", "phase")
    assert groups(same) == {None: (1000, 1), "load": (500, 1)}
    assert peaks(ttmemd, "--ended", "--type", "L1") == [] == peaks(ttmemd, "--ended", "-d", 3)
    text = ttmemd.run("peak", "--ended").stdout.splitlines()
    assert text[0].endswith(f"(pid {player.pid} player, ended), exact") and text[1].endswith("  weights")


def test_a_peak_is_known_after_its_book_has_forgotten_it(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    player = known(ttmemd, ttmemd.player(*LIFE, TTMEM_STACKS="off"))

    def kept():
        status, text = ttmemd.fetch(f"/api/v1/peak?pid={player.pid}", token=True)
        assert status == 200, text
        return check_schema(json.loads(text))["peaks"]

    assert wait_for(kept, "the look of the next second")[0]["exact"] is True
    player.play(f"burst 0 {RING}")
    (alone,) = of_pid(peaks(ttmemd, env={"TTMEM_SOCKET": "none"}), player.pid)
    assert alone["unknown_bytes"] == 500 and alone["exact"] is False
    (peak,) = of_pid(peaks(ttmemd), player.pid)
    assert peak["exact"] is True and groups(peak)["DRAM staging"] == (500, 1)
    player.kill()
    (ended,) = wait_for(lambda: of_pid(peaks(ttmemd, "--ended"), player.pid), "its peak")
    assert ended["exact"] is True and groups(ended)["DRAM staging"] == (500, 1)


def test_details_of_peaks_need_the_token(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    assert ttmemd.fetch("/api/v1/peak")[0] == 401
    status, text = ttmemd.fetch("/api/v1/peak?by=thread", token=True)
    assert status == 400 and "threads are not known" in text
