# SPDX-License-Identifier: Apache-2.0
"""ttmem map and ttmem fit, against what the simulated allocator has itself."""

import json
import subprocess

import pytest

from machines import Machine, Region
from world import check_schema

MEMORIES = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE"]


@pytest.fixture
def allocator(world):
    """Call as allocator(seed, card): a process with a random heap; returns it and its own lists."""

    def start(seed, card="n150"):
        process = world.adopt(
            subprocess.Popen(
                [world.build / "tests" / "programs" / "allocator", str(seed), card],
                env={**world.env, "TTMEM": "1"}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
        )
        lists = json.loads(process.stdout.readline())
        world.show(process.pid)
        return process, lists

    return start


@pytest.mark.parametrize("seed,card", [(1, "n150"), (2, "n300"), (3, "p150")])
def test_map_is_the_allocators(world, allocator, seed, card):
    process, lists = allocator(seed, card)
    document = world.json("map")
    assert [m["type"] for m in document["maps"]] == MEMORIES
    assert document["exact"] and document["notes"] == []
    for found in document["maps"]:
        own = lists[found["type"]]
        assert found["pid"] == process.pid and found["device"] == 2
        assert int(found["base"], 16) == own["base"] and found["bank_size"] == own["size"]
        assert found["banks"] == own["banks"] and found["used"] == own["used"]
        assert found["largest"] == own["largest"]
        assert [[int(h["address"], 16), h["size"]] for h in found["holes"]] == own["holes"]
        assert found["guessed"] == found["unplaced"] == 0
        assert len(own["holes"]) > 1, "the heap is to be cut up"
    text = world.text("map", "--type", "DRAM", env={**world.env, "LC_ALL": "C"})
    assert f"pid {process.pid} (allocator), device 2, DRAM" in text
    assert f"in {len(lists['DRAM']['holes'])} holes" in text
    (bar,) = [line for line in text.splitlines() if set(line.strip()) <= set(".+#")]
    assert len(bar) == 78


def fit(world, size, *args):
    result = world.run("fit", size, "--json", *args)
    (answer,) = check_schema(json.loads(result.stdout))["answers"]
    assert result.returncode == (0 if answer["fits"] else 1)
    return answer


def test_fit_says_yes_or_why_not(world, allocator):
    _, lists = allocator(4)
    for memory in ("DRAM", "L1"):
        own = lists[memory]
        largest, banks, page = own["largest"], own["banks"], 32 if memory == "DRAM" else 16
        where = [h for h in own["holes"] if h[1] == largest]
        where = where[-1] if memory == "L1" else where[0]
        yes = fit(world, largest * banks, "--type", memory, "--page", page, "-d", 2)
        assert yes["fits"] and yes["reason"] is None and yes["in_the_way"] == []
        assert int(yes["hole"]["address"], 16) == where[0] and yes["hole"]["size"] == largest
        no = fit(world, largest * banks + 1, "--type", memory, "--page", page)
        assert not no["fits"] and no["reason"] == "cut_up" and no["hole"] is None
        assert no["in_the_way"]
        free = sum(length for _, length in own["holes"])
        assert fit(world, (free + 64) * banks, "--type", memory)["reason"] == "full"
        assert fit(world, (own["size"] + 64) * banks, "--type", memory)["reason"] == "too_large"
    # One page has to lie in one piece, in every bank.
    assert fit(world, lists["DRAM"]["largest"] + 64, "--page", lists["DRAM"]["largest"] + 64)["reason"]


def test_fit_in_words(world, allocator):
    process, lists = allocator(5)
    yes = world.text("fit", "64K", "--pid", process.pid)
    assert "device 2, DRAM: yes" in yes
    size = lists["DRAM"]["largest"] * lists["DRAM"]["banks"] + 1
    result = world.run("fit", size, "--page", "32")
    assert result.returncode == 1 and "no, cut up" in result.stdout
    assert "random" in result.stdout.split("went")[1]
    assert world.run("fit", "1Q").returncode == 2
    assert world.run("fit", "64K", "--type", "CB").returncode == 2
    assert world.run("fit").returncode == 2


def test_nobody_to_ask(world):
    assert world.text("smi", "--json")
    result = world.run("fit", "1M")
    assert result.returncode == 1 and "not known" in result.stdout
    assert "nothing to draw" in world.run("map").stdout


def test_memory_that_was_never_declared(world):
    player = world.player("alloc 0 DRAM 0x1000 64")
    document = world.json("map")
    assert document["maps"] == []
    assert f"pid {player.pid}, device 0: where its DRAM lies was never declared" in document["notes"][0]


def test_shares_of_banks_that_are_not_told_are_guessed(world):
    """A card is known by its name; buffers without a shape are taken as spread over its banks."""
    world.player("device 0 0x77 wormhole_b0 n150 0 12884901888 94371840", "alloc 0 DRAM 0x1000 12288")
    (found,) = world.json("map")["maps"]
    assert found["guessed"] == 1 and found["used"] == 1024 and found["banks"] == 12
    assert "(a guess:" in world.run("fit", "1M").stdout


def test_who_keeps_no_book_is_not_guessed_at(world, tmp_path):
    """Of a region's process no addresses are known: neither "empty" nor "fits" would be true."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.card(0, "n150", "wormhole_b0", chip=7)
    player = world.player(TTMEM="0")
    machine.region(Region(4, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=1 << 30))
    assert world.json("map", "--type", "DRAM")["maps"] == []
    result = world.run("fit", "1K")
    assert result.returncode == 1 and "not known" in result.stdout
    table = world.run("ps").stdout
    assert "1.0 GiB" in table and "tt-metal" not in table.split("note:")[-1]
