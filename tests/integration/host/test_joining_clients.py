# SPDX-License-Identifier: Apache-2.0
"""Which card the memory of clients is on that can say nothing but a number: the old client's headers for
C++ and C, its Python module, and the package ttmem without a declared device."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from cxx import run
from machines import GIB, MIB, Machine

N150 = 12 * GIB

# Each reports DRAM as its arguments say, "device=bytes", then prints a line and waits for its end.
CXX = """
#include <allocation_client.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        tt::tt_metal::AllocationClient::report_allocation(
            std::atoi(argv[i]), std::strtoull(std::strchr(argv[i], '=') + 1, nullptr, 10), 0, 0x1000);
    std::puts("ready");
    std::fflush(stdout);
    return std::getchar() == EOF ? 0 : 1;
}
"""
C = """
#include <ttmem/compat/tt_track.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (tt_track_allocation((uint32_t)atoi(argv[i]), 0x1000, strtoull(strchr(argv[i], '=') + 1, NULL, 10), 0))
            return 1;
    puts("ready");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
"""
PYTHON = """
import sys
import ttmem
for device, size in (word.split("=") for word in sys.argv[1:]):
    ttmem.alloc(int(device), ttmem.DRAM, 0x1000, int(size), "tensor")
print("ready", flush=True)
sys.stdin.read()
"""
OLD_PYTHON = """
import sys
from allocation_client import AllocationClient, BufferType
client = AllocationClient()
for device, size in (word.split("=") for word in sys.argv[1:]):
    client.allocate(device_id=int(device), size=int(size), buffer_type=BufferType.DRAM, buffer_name="tensor")
print("ready", flush=True)
sys.stdin.read()
"""
CLIENTS = ["header", "track_header", "python", "old_python"]


@pytest.fixture(scope="module")
def compiled(build, tmp_path_factory):
    """The programs in C++ and C."""
    if not shutil.which("g++"):
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("clients")
    library = build / "src" / "lib"
    flags = [f"-I{ROOT}/include", f"-I{ROOT}/include/ttmem/compat", f"-L{library}", "-lttmem", f"-Wl,-rpath,{library}"]
    for name, compiler, text in (("header.cpp", "g++", CXX), ("track_header.c", "gcc", C)):
        (folder / name).write_text(text)
        run(compiler, "-Wall", "-Werror", folder / name, "-o", (folder / name).with_suffix(""), *flags)
    return folder


@pytest.fixture(params=CLIENTS)
def client(request, compiled, build, world):
    """client({device: bytes}, nodes): a process of that kind which has these nodes open."""
    if "python" in request.param and not list((build / "python" / "ttmem").glob("_ttmem.*.so")):
        pytest.skip("the Python package is not built")
    programs = {"python": PYTHON, "old_python": OLD_PYTHON}

    def start(held, nodes, **settings):
        command = [compiled / request.param]
        if request.param in programs:
            command = [sys.executable, "-c", programs[request.param]]
        files = [os.open(node, os.O_RDONLY) for node in nodes]
        process = world.adopt(subprocess.Popen(
            [*command, *(f"{device}={size}" for device, size in held.items())],
            env={**world.env, "TTMEM": "1", "PYTHONPATH": str(build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                 "TT_ALLOC_SERVER_SOCKET": "none", **settings},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=files))
        for file in files:
            os.close(file)
        assert process.stdout.readline() == "ready\n"
        world.show(process.pid)
        return process

    return start


@pytest.fixture(params=["asic_ids", "serials"])
def machine(request, world, tmp_path):
    """Four cards with an ASIC id, or of a driver that publishes none."""
    machine = Machine(tmp_path / "machine")
    machine.proc = world.root
    world.env.update({**machine.env(), "TTMEM_PROC_ROOT": str(world.root)})
    for number in range(4):
        chip = 0x40 + number if request.param == "asic_ids" else None
        machine.card(number, "n150", "wormhole_b0", chip=chip, serial=0x0100014511732031 + number)
    return machine


def rows(world):
    """[(used, capacity, joined)] of the four cards; there is no other row."""
    document = world.json("smi")
    assert [(row["device"], row["number"], row["card"]) for row in document["devices"]] == [
        (n, n, "n150") for n in range(4)]
    assert document["notes"] == []
    return [(row["memory"]["DRAM"]["used"], row["memory"]["DRAM"]["capacity"], row["joined"])
            for row in document["devices"]]


def test_memory_is_on_the_card_that_the_client_has_open(world, machine, client):
    process = client({0: 3 * GIB}, [machine.node(0)])
    machine.opened(0, process.pid)
    assert rows(world) == [(3 * GIB, N150, "open")] + 3 * [(0, N150, None)]
    text = world.text("smi")
    assert "unknown card" not in text and re.search(r"3\.0 GiB\s*/\s*12\.0 GiB", text), text
    assert world.json("ps")["processes"][0]["devices"][0]["node"] == 0


def test_hidden_cards_shift_the_clients_numbers_only(world, machine, client):
    for number in (1, 3):
        client({0: (7 + number) * GIB}, [machine.node(number)], TT_VISIBLE_DEVICES=str(number))
    assert rows(world) == [(0, N150, None), (8 * GIB, N150, "open"), (0, N150, None), (10 * GIB, N150, "open")]


def test_clients_that_number_differently_share_a_card(world, machine, client):
    """One sees all cards, the other two of them; the order in which they are named means nothing."""
    client({n: (n + 1) * MIB for n in range(4)}, [machine.node(n) for n in range(4)])
    client({0: GIB, 1: 2 * GIB}, [machine.node(1), machine.node(2)], TT_VISIBLE_DEVICES="2,1")
    assert rows(world) == [(MIB, N150, "open"), (GIB + 2 * MIB, N150, "open"), (2 * GIB + 3 * MIB, N150, "open"),
                           (4 * MIB, N150, "open")]
    assert len(world.json("ps")["processes"]) == 2


def test_a_device_is_selected_by_the_card_and_not_by_the_clients_number(world, machine, client):
    client({0: 11 * GIB}, [machine.node(2)], TT_VISIBLE_DEVICES="2")
    assert world.json("smi", "-d", "2")["devices"][0]["memory"]["DRAM"]["used"] == 11 * GIB
    assert world.json("smi", "-d", "0")["devices"][0]["memory"]["DRAM"]["used"] == 0


def test_whether_memory_fits_is_known_by_the_card(world, machine, client, request):
    """Only the old client in Python reports ids in place of addresses; that says nothing of free blocks."""
    client({0: 11 * GIB}, [machine.node(2)], TT_VISIBLE_DEVICES="2")
    answers = [world.run("fit", size, "-d", 2) for size in ("512MiB", "2GiB")]
    if "old_python" in request.node.name:
        assert [answer.returncode for answer in answers] == [3, 3]
        assert "where its DRAM lies was never declared" in answers[0].stderr
    else:
        assert [answer.returncode for answer in answers] == [0, 1], answers
        assert "(a guess:" in answers[0].stdout and "no, full" in answers[1].stdout
        (found,) = world.json("map", "-d", 2)["maps"]
        assert found["banks"] == 12 and found["bank_size"] == GIB and found["unplaced"] == 0
