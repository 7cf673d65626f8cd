# SPDX-License-Identifier: Apache-2.0
"""ttmem map and ttmem fit, compared with the simulated allocator's own lists."""

import json
import subprocess

import pytest

from machines import Machine, Region
from web import Server
from world import check_schema

MEMORIES = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE"]  # that a simulated card declares


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
def test_map_matches_the_allocator(world, allocator, seed, card):
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
    assert f"in {len(lists['DRAM']['holes'])} free blocks" in text
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


def test_fit_answers_in_words(world, allocator):
    process, lists = allocator(5)
    yes = world.text("fit", "64K", "--pid", process.pid)
    assert "device 2, DRAM: yes" in yes
    size = lists["DRAM"]["largest"] * lists["DRAM"]["banks"] + 1
    result = world.run("fit", size, "--page", "32")
    assert result.returncode == 1 and "no, fragmented" in result.stdout
    assert "random" in result.stdout.split("were freed")[1]
    assert world.run("fit", "1Q").returncode == 2
    assert world.run("fit", "64K", "--type", "CB").returncode == 2
    assert world.run("fit").returncode == 2


def test_fit_without_processes_is_not_known(world):
    assert world.text("smi", "--json")
    result = world.run("fit", "1M")
    assert result.returncode == 3 and "not known" in result.stdout
    assert "nothing to draw" in world.run("map").stdout


def test_map_notes_undeclared_memory(world):
    player = world.player("alloc 0 DRAM 0x1000 64")
    document = world.json("map")
    assert document["maps"] == []
    assert f"pid {player.pid}, device 0: where its DRAM lies was never declared" in document["notes"][0]


def test_undeclared_bank_shares_are_guessed_by_the_card(world):
    """A card is known by its name; buffers without a shape are taken as spread over its banks."""
    world.player("device 0 0x77 wormhole_b0 n150 0 12884901888 94371840", "alloc 0 DRAM 0x1000 12288")
    (found,) = world.json("map")["maps"]
    assert found["guessed"] == 1 and found["used"] == 1024 and found["banks"] == 12
    assert "(a guess:" in world.run("fit", "1M").stdout


def test_no_map_is_guessed_for_processes_without_a_book(world, tmp_path):
    """Of a region's process no addresses are known: neither "empty" nor "fits" would be true."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.card(0, "n150", "wormhole_b0", chip=7)
    player = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(4, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=1 << 30))
    assert world.json("map", "--type", "DRAM")["maps"] == []
    result = world.run("fit", "1K")
    assert result.returncode == 3 and "not known" in result.stdout
    table = world.run("ps").stdout
    assert "1.0 GiB" in table and "tt-metal" not in table.split("note:")[-1]


def without_time(document):
    return {key: value for key, value in document.items() if key != "time_ns"}


def test_map_and_fit_are_the_same_over_http(world, allocator, tmp_path):
    """Nothing but the time differs from what the command says, for maps and for answers."""
    _, lists = allocator(5)
    second, _ = allocator(6, "n300")
    server = Server(world, tmp_path)
    uid = world.json("map", "--pid", second.pid)["maps"][0]["uid"]
    for words, query in [
        ([], ""), (["--type", "L1"], "type=l1"), (["--pid", second.pid], f"pid={second.pid}"),
        (["-d", 2, "--type", "TRACE"], "device=2&type=TRACE"), (["-d", uid or 2], f"device={uid or 2}"),
        (["-d", 7], "device=7"), (["-d", "0xdead"], "device=0xdead"),
    ]:
        # Of a device that is not there, the command says so on stderr.
        wanted, got = json.loads(world.run("map", "--json", *words).stdout), server.details(f"/api/v1/map?{query}")
        assert without_time(wanted) == without_time(got), query
        assert bool(got["maps"]) == (query not in ("device=7", "device=0xdead"))
    largest, banks = lists["L1"]["largest"], lists["L1"]["banks"]
    for size in (1, largest * banks, largest * banks + 1, 1 << 40):
        for page in (None, 2048):
            words = [size, "--type", "L1", *(["--page", page] if page else [])]
            query = f"size={size}&type=L1" + (f"&page={page}" if page else "")
            result = world.run("fit", *words, "--json")
            assert without_time(json.loads(result.stdout)) == without_time(
                server.details(f"/api/v1/fit?{query}"))
    (answer, _) = server.details("/api/v1/fit?size=1.5GiB")["answers"]
    assert answer["type"] == "DRAM"


def test_map_over_http_has_a_limit(world, tmp_path):
    """So many buffers that a map would be too much: that is said, and none is drawn that would be wrong."""
    card = "wormhole_b0 n150 0 1073741824 1048576 1"
    player = world.player(f"device 0 0xa1 {card}", "many 0 DRAM 0 32 262145", f"device 1 0xa2 {card}",
                          "alloc 1 DRAM 0 4096 a")
    server = Server(world, tmp_path)
    document = server.details("/api/v1/map")
    assert document["maps"] == [] and not document["exact"]
    assert "262146 buffers are too many" in document["notes"][0]
    document = server.details(f"/api/v1/fit?size=1&device=0&pid={player.pid}")
    assert document["answers"] == [] and "too many" in document["notes"][0]
    # One that is not too large is not held up by its neighbour.
    (found,) = server.details("/api/v1/map?device=1")["maps"]
    assert found["uid"] == "0xa2" and found["blocks"] == 1
    player.play("free 0 DRAM 0", "free 0 DRAM 32")
    (found, _) = server.details("/api/v1/map?device=0&device=1&type=DRAM")["maps"]
    assert found["blocks"] == 262143


def test_map_over_http_refuses_mistakes(world, tmp_path):
    server = Server(world, tmp_path)
    for path in ("map", "fit?size=1"):
        assert "token" in server.refused(f"/api/v1/{path}", 401)
    for query, word in [
        ("map?type=CB", "SYSTEM_MEMORY"), ("map?type=x", "type"), ("map?device=1024", "device"),
        ("map?device=-1", "device"), ("map?size=1", "size"), ("map?limit=1", "limit"), ("fit", "size"),
        ("fit?size=0", "size"), ("fit?size=1e9", "size"), ("fit?size=%3Cscript%3E", "size"),
        ("fit?size=99999999999999999999", "size"), ("fit?size=1&page=0", "page"), ("fit?size=1&size=2", "twice"),
        ("fit?size=1&type=KERNEL", "SYSTEM_MEMORY"), ("map?pid=0", "pid"),
    ]:
        assert word in server.refused(f"/api/v1/{query}", 400, token=server.token), query
    assert server.details("/api/v1/map")["maps"] == []
    assert server.details("/api/v1/fit?size=1")["answers"] == []
