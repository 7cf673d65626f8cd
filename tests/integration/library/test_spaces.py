# SPDX-License-Identifier: Apache-2.0
"""Allocators that hand out the same addresses, and what buffers occupy, as the commands show them."""

from world import used


def memory(document, kind="L1"):
    (device,) = document["devices"]
    return device["memory"][kind]


def test_buffers_of_two_spaces_are_both_there(world):
    player = world.player("place 0 L1 0x169000 655360 1 0 0", "place 0 L1 0x169000 655360 2 0 0")
    assert used(world.json("smi"), player.pid) == {(0, "L1"): 1310720}
    rows = world.json("buffers")["buffers"]
    assert sorted((row["address"], row["space"], row["size"]) for row in rows) == [
        ("0x169000", 1, 655360), ("0x169000", 2, 655360)]
    lives = world.json("history", "0x169000")["buffers"]
    assert sorted((life["space"], life["live"], life["allocs"]) for life in lives) == [
        (1, True, 1), (2, True, 1)]
    player.play("take 0 L1 0x169000 1")
    assert used(world.json("smi"), player.pid) == {(0, "L1"): 655360}
    (row,) = world.json("buffers")["buffers"]
    assert row["space"] == 2
    player.play("take 0 L1 0x169000 1")
    (incident,) = world.json("incidents")["incidents"]
    assert (incident["kind"], incident["space"]) == ("double_free", 1)


def test_free_that_could_mean_several_ends_none(world):
    player = world.player("place 0 L1 0x100 10 1 0 0", "place 0 L1 0x100 20 2 0 0", "free 0 L1 0x100")
    (process,) = world.json("ps")["processes"]
    (part,) = process["devices"]
    assert part["memory"]["L1"]["unplaced_frees"] == 1
    assert (part["memory"]["L1"]["used"], part["memory"]["L1"]["bound"]) == (30, "at_most")
    player.play("take 0 L1 0x100 1", "free 0 L1 0x100")
    assert world.json("buffers")["buffers"] == []


def test_end_of_a_space_is_no_leak(world):
    player = world.player("place 0 L1 0x100 10 1 0 0", "place 0 DRAM 0x100 20 1 0 0", "alloc 0 L1 0x100 5", "end 0 1")
    (row,) = world.json("buffers")["buffers"]
    assert (row["size"], "space" in row) == (5, False)
    assert used(world.json("smi"), player.pid) == {(0, "L1"): 5}


def test_gate_sees_what_the_second_space_holds(ttmem, tmp_path, build):
    def code(*lines):
        script = tmp_path / "lines"
        script.write_text("".join(f"{line}\n" for line in lines))
        with script.open() as source:
            return ttmem("run", "--fail-on-leak", "--", build / "tests" / "programs" / "player", stdin=source).returncode

    two = ("place 0 L1 0x169000 655360 1 0 0", "place 0 L1 0x169000 655360 2 0 0")
    assert code(*two, "take 0 L1 0x169000 1") == 86
    assert code(*two, "take 0 L1 0x169000 1", "take 0 L1 0x169000 2") == 0
    assert code(*two, "end 0 1", "end 0 2") == 0


def test_occupied_is_more_than_the_size(world):
    player = world.player("device 0 0xabc wormhole_b0 n150 0 12000 1200000 12", "place 0 L1 0x40 2048 0 2048 12")
    document = world.json("smi")
    assert (memory(document)["used"], memory(document)["occupied"]) == (2048, 24576)
    assert memory(document, "DRAM")["occupied"] == 0
    (process,) = document["processes"]
    assert process["devices"][0]["memory"]["L1"]["occupied"] == 24576
    (row,) = world.json("buffers")["buffers"]
    assert (row["size"], row["occupied"], row["size_per_bank"], row["banks"]) == (2048, 24576, 2048, 12)
    assert "takes 24.0 KiB: 2.0 KiB in each of 12 banks" in " ".join(world.text("buffers", "--stacks").split())
    assert world.text("buffers", "--csv").splitlines()[1].endswith(",0,24576")
    # The share of the memory goes by it: 24576 of 1200000.
    assert " 2.0%" in world.text("smi")
    player.play("alloc 0 L1 0x10000 1")
    assert memory(world.json("smi"))["occupied"] is None
    player.play("free 0 L1 0x10000")
    assert memory(world.json("smi"))["occupied"] == 24576
    player.play("free 0 L1 0x40")
    assert memory(world.json("smi"))["occupied"] == 0



def test_map_and_fit_tell_what_their_blocks_occupy(world):
    player = world.player("device 0 0xabc wormhole_b0 n150 0 12000 1200000 12", "place 0 L1 0x40 2048 0 2048 12",
                          "place 0 L1 0x1000 64 0 64 1")
    (found,) = world.json("map", "--type", "L1")["maps"]
    (answer,) = world.json("fit", "64", "--type", "L1")["answers"]
    # The second lies in one bank only.
    assert found["used"] == answer["used"] == 2112
    assert found["occupied"] == answer["occupied"] == 24576 + 64
    assert "over all banks its blocks take 24.1 KiB" in world.text("map", "--type", "L1")
    refused = world.run("fit", "1GiB", "--type", "L1")
    assert refused.returncode == 1 and "over all banks its blocks take 24.1 KiB" in refused.stdout
    player.play("alloc 0 L1 0x2000 1")
    (found,) = world.json("map", "--type", "L1")["maps"]
    assert found["occupied"] is None and found["guessed"] == 1
    assert "over all banks its blocks" not in world.text("map", "--type", "L1")
