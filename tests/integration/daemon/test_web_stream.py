# SPDX-License-Identifier: Apache-2.0
"""The stream of changes: who receives what, and what happens to listeners that do not read."""

import http.client
import json
import os
import random
import re
import socket

import jsonschema
import pytest

from conftest import ROOT
from web import Listener, Server, apply_change
from world import check_schema, wait_for

CHANGES = "/api/v1/stream?changes=1"


@pytest.fixture
def server(world, tmp_path):
    return Server(world, tmp_path)


def subscribers(server):
    for line in server.ask("/metrics")[2].decode().splitlines():
        if line.startswith("ttmem_http_subscribers "):
            return int(line.split()[1])
    raise AssertionError


def dropped(server):
    for line in server.ask("/metrics")[2].decode().splitlines():
        if line.startswith("ttmem_http_subscribers_dropped_total "):
            return int(line.split()[1])
    raise AssertionError


def test_stream_sends_totals_when_they_change(world, server):
    player = world.player("alloc 0 DRAM 0x1000 10 a")
    listener = Listener(server)
    assert listener.status == 200
    assert listener.answer.headers["Content-Type"] == "text/event-stream"
    assert listener.answer.headers["Cache-Control"] == "no-store"
    event, document = listener.next()
    assert event == "totals" and check_schema(document)["totals"]["bytes"] == 10
    for size in [20, 30]:
        player.play(f"alloc 0 DRAM {size * 4096} {size} a")
        before = document["totals"]["bytes"]
        document = listener.next_of("totals")
        assert document["totals"]["bytes"] == before + size
    # A buffer that has come and gone between two looks is a change as well.
    player.play("alloc 0 DRAM 0x9000 5 a", "free 0 DRAM 0x9000")
    assert listener.next_of("totals")["totals"]["bytes"] in (60, 65)
    listener.close()


def test_stream_sends_a_change_to_every_listener(world, server):
    player = world.player("alloc 0 DRAM 0x1000 10 a")
    listeners = [Listener(server) for _ in range(5)]
    for listener in listeners:
        assert listener.next_of("totals")["totals"]["bytes"] == 10
    player.play("alloc 0 DRAM 0x2000 7 a")
    for listener in listeners:
        assert listener.next_of("totals")["totals"]["bytes"] == 17
        listener.close()
    wait_for(lambda: subscribers(server) == 0, "all to be gone")


def test_stream_gives_incident_details_only_with_the_token(server):
    plain, full = Listener(server), Listener(server, token=server.token)
    in_address = Listener(server, f"/api/v1/stream?token={server.token}")
    for listener in (plain, full, in_address):
        listener.next_of("totals")
    server.tell("incident leak 4 5")
    server.tell("incident double_free 6 7")
    assert plain.next_of("incident") == {"kind": "leak", "pid": 4, "device": 5}
    assert plain.next_of("incident") == {"kind": "double_free", "pid": 6, "device": 7}
    for listener in (full, in_address):
        assert listener.next_of("incident")["name"] == "secret"
        assert listener.next_of("incident")["kind"] == "double_free"
    for listener in (plain, full, in_address):
        listener.close()


def test_stream_refuses_a_wrong_token(server):
    assert Listener(server, token="wrong").status == 401
    assert Listener(server, "/api/v1/stream?token=wrong").status == 401


def test_stream_refuses_more_than_64_listeners(server):
    listeners = [Listener(server) for _ in range(64)]
    assert {listener.status for listener in listeners} == {200}
    late = Listener(server)
    assert (late.status, late.answer.headers["Retry-After"]) == (503, "30")
    for listener in listeners:
        listener.next_of("totals")
    for listener in listeners[:32]:
        listener.close()
    # A connection that has gone is noticed when something is sent.
    server.tell("incident leak 1 1")
    wait_for(lambda: subscribers(server) == 32, "half to be gone")
    more = Listener(server)
    assert more.status == 200
    for listener in [*listeners[32:], more]:
        listener.close()


def test_a_listener_with_the_token_replaces_the_oldest_without(server):
    """Anybody may listen, so anybody may take all places: who has shown the token gets that of who has listened
    longest without it, and nobody else loses anything."""
    known = [Listener(server, token=server.token) for _ in range(2)]
    anybody = [Listener(server) for _ in range(62)]
    for listener in [*known, *anybody]:
        listener.next_of("totals")
    assert Listener(server).status == 503
    known += [Listener(server, token=server.token) for _ in range(3)]
    assert {listener.status for listener in known} == {200}
    for listener in known[2:]:
        listener.next_of("totals")
    for listener in anybody[:3]:
        with pytest.raises((EOFError, OSError, http.client.HTTPException)):
            listener.next()
    wait_for(lambda: subscribers(server) == 64, "those to be gone")
    assert dropped(server) == 3
    server.tell("incident leak 1 1")
    for listener in [*known, *anybody[3:]]:
        assert listener.next_of("incident")["kind"] == "leak"
    assert Listener(server).status == 503
    for listener in [*known, *anybody]:
        listener.close()


def test_the_token_wins_a_stream_place_where_details_are_open(world, tmp_path):
    """Nobody needs it there to see all, but only who has it may take the place of another."""
    server = Server(world, tmp_path, "details")
    anybody = [Listener(server) for _ in range(64)]
    assert Listener(server).status == 503
    known = Listener(server, token=server.token)
    assert known.status == 200
    server.tell("incident leak 1 1")
    for listener in [known, *anybody[1:]]:
        assert listener.next_of("incident")["name"] == "secret"
    for listener in [known, *anybody]:
        listener.close()


def test_listeners_with_the_token_are_not_replaced(server):
    known = [Listener(server, token=server.token) for _ in range(64)]
    assert {listener.status for listener in known} == {200}
    assert Listener(server, token=server.token).status == 503
    server.tell("incident leak 1 1")
    for listener in known:
        assert listener.next_of("incident")["kind"] == "leak"
        listener.close()


def test_a_listener_that_does_not_read_is_dropped(server):
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    slow.connect(server.address)
    slow.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert slow.recv(100)
    quick = Listener(server)
    quick.next_of("totals")
    told = 0
    while dropped(server) == 0:
        for _ in range(500):
            server.tell("incident leak 1 1")
            told += 1
            assert quick.next_of("incident")["kind"] == "leak"
        assert told < 200000
    # The others have lost nothing.
    server.tell("incident double_free 2 2")
    assert quick.next_of("incident")["kind"] == "double_free"
    wait_for(lambda: subscribers(server) == 1, "the slow one to be gone")
    slow.close()
    quick.close()


def test_dropped_listeners_free_descriptors_and_memory(server):
    """Many that never read, told so much that each is dropped: descriptors and memory are as before, though
    none of them has gone."""

    def cost():
        folder = f"/proc/{server.process.pid}"
        with open(f"{folder}/statm", encoding="ascii") as file:
            return len(os.listdir(f"{folder}/fd")), int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def sleepers(count):
        clients = []
        for _ in range(count):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(server.address)
            client.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100)
            clients.append(client)
        return clients

    def drop_all(count):
        before, clients = dropped(server), sleepers(count)
        assert subscribers(server) == count
        while dropped(server) < before + count:
            for _ in range(500):
                server.tell("incident leak 1 1")
        wait_for(lambda: subscribers(server) == 0, "all of them to be gone")
        return clients

    fds = cost()[0]
    # Memory that the first ones took may stay with the allocator; the next ones must need no more.
    clients = drop_all(16)
    memory = cost()[1]
    for _ in range(3):
        clients += drop_all(16)
    wait_for(lambda: cost()[0] <= fds, "the descriptors to be closed")
    assert cost()[1] < memory + (8 << 20)
    # And there is room for others.
    listener = Listener(server)
    listener.next_of("totals")
    listener.close()
    for client in clients:
        client.close()


def test_a_silent_stream_is_kept_alive(world, tmp_path):
    """So that a client knows soon that a connection is lost. Every 2 s; here the server was told to be quicker."""
    server = Server(world, tmp_path, "alive=300")
    for gzip in (False, True):
        for path in ("/api/v1/stream", CHANGES):
            listener = Listener(server, path, gzip=gzip)
            listener.next_of("totals")
            lines = [listener.line() for _ in range(6)]
            assert lines == [b": keep-alive\n", b"\n"] * 3
            listener.close()


def test_by_default_a_stream_says_something_every_two_seconds(server):
    listener = Listener(server)
    listener.next_of("totals")
    listener.connection.sock.settimeout(14)  # for each line; it was 15 s when only proxies were to be satisfied
    lines = [listener.line() for _ in range(4)]
    assert lines == [b": keep-alive\n", b"\n"] * 2
    listener.close()


def comparable(document):
    """Without what may be different at each look: clocks."""
    rows = [{**row, "last_activity_ns": 0} for row in document.get("processes", [])]
    return {**document, "time_ns": 0, "processes": rows}


@pytest.mark.parametrize("gzip", [False, True])
def test_changes_add_up_to_the_document(world, server, gzip):
    """Whatever happens: random allocations, frees, new and ended processes, two listeners that began at different
    times. The sum of what the stream said is what /api/v1/smi says."""
    rng = random.Random(7)
    players = {}
    listeners = [Listener(server, CHANGES, gzip=gzip)]
    assert check_schema(listeners[0].next_totals())["processes"] == []
    for turn in range(60):
        if len(players) < 2 or (len(players) < 6 and rng.random() < 0.2):
            player = world.player(f"alloc {rng.randrange(3)} L1 0x1000 {rng.randrange(1, 9000)} first")
            players[player] = []
        player = rng.choice(list(players))
        if rng.random() < 0.1:
            player.end()
            del players[player]
        elif players[player] and rng.random() < 0.4:
            device, kind, address = players[player].pop()
            player.play(f"free {device} {kind} {address:#x}")
        else:
            buffer = (rng.randrange(3), rng.choice(["DRAM", "L1", "TRACE"]), 0x10000 * (turn + 2))
            players[player].append(buffer)
            player.play(f"alloc {buffer[0]} {buffer[1]} {buffer[2]:#x} {rng.randrange(1, 1 << 30)} b")
        wanted = comparable(server.json("/api/v1/smi"))
        for listener in listeners:
            while comparable(listener.totals or {}) != wanted:
                listener.next_totals()
        if turn == 30:
            listeners.append(Listener(server, CHANGES, gzip=gzip))
    for listener in listeners:
        check_schema(listener.totals)
        listener.close()


def check_part(name, data):
    """The data of an event conforms to its part of the schema."""
    parts = json.loads((ROOT / "docs/schema/stream.json").read_text())["$defs"]
    jsonschema.validate(data, {"$ref": f"#/$defs/{name}", "$defs": parts})


def test_only_those_who_ask_for_changes_get_them(world, server):
    """A client of an earlier version gets whole documents, and no event that it does not know."""
    player = world.player("alloc 0 DRAM 0x1000 10 a")
    old, new = Listener(server), Listener(server, CHANGES)
    for listener in (old, new):
        assert listener.next()[0] == "totals"
    player.play("alloc 0 DRAM 0x2000 7 a")
    server.tell("stored 1")
    stored = new.next_of("stored")
    check_part("stored", stored)
    assert stored == {"records": 1}
    server.tell("incident leak 4 5")
    seen = set()
    while "incident" not in seen:
        seen.add(old.next()[0])
    assert seen <= {"totals", "incident"}
    for listener in (old, new):
        listener.close()


def test_changes_are_asked_for_with_one(server):
    for value in ("0", "2", "yes", ""):
        assert "changes" in server.refused(f"/api/v1/stream?changes={value}", 400)


def test_a_change_has_what_has_changed_and_little_else(world, server):
    players = [world.player(f"alloc 0 DRAM 0x1000 {size} a") for size in range(1, 21)]
    listener = Listener(server, CHANGES)
    event, totals = listener.next()
    assert event == "totals"
    while len(totals["processes"]) < 20:
        totals = listener.next_totals()
    players[7].play("alloc 0 DRAM 0x2000 5000 a")
    data = listener.next_of("changes")
    check_part("changes", data)
    change = data["change"]
    assert len(json.dumps(totals)) > 20000 and len(json.dumps(change)) < 1000
    [before, row] = change["processes"]
    assert totals["processes"][before]["pid"] == players[7].pid
    assert row["devices"][0]["memory"]["DRAM"]["used"] == 5008
    listener.close()


def test_lists_that_were_stored_are_announced(server):
    listener = Listener(server, CHANGES)
    listener.next_of("totals")
    for records in (3, 4):
        server.tell(f"stored {records}")
        while listener.next_of("stored") != {"records": records}:
            pass
    listener.close()


def test_a_stream_is_compressed_for_those_who_accept_that(world, server):
    player = world.player("alloc 0 DRAM 0x1000 10 a")
    plain, packed = Listener(server), Listener(server, gzip=True)
    assert packed.answer.headers["Content-Encoding"] == "gzip"
    assert {one.answer.headers["Vary"] for one in (plain, packed)} == {"Accept-Encoding"}
    assert plain.answer.headers["Content-Encoding"] is None
    for size, wanted in ((20, 30), (30, 60)):
        player.play(f"alloc 0 DRAM {size * 4096} {size} a")
        for listener in (plain, packed):
            while listener.next_of("totals")["totals"]["bytes"] != wanted:
                pass
    server.tell("incident leak 4 5")
    for listener in (plain, packed):
        assert listener.next_of("incident") == {"kind": "leak", "pid": 4, "device": 5}
        listener.close()


def unsent(server, client):
    """Bytes that the kernel still has for a client."""
    ports = [f":{server.port:04X}", f":{client.getsockname()[1]:04X}"]
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file]
    return next(int(row[4].split(":")[0], 16) for row in rows if [row[1][8:], row[2][8:]] == ports)


def test_a_slow_reader_of_changes_is_sent_all_of_it_again(world, server):
    """It has missed some, so they would be of no use; and others do not wait for it."""
    player = world.player("alloc 0 DRAM 0x1000 64 a")
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    slow.connect(server.address)
    slow.sendall(f"GET {CHANGES} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    text = b""
    while b"event: totals" not in text:
        text += slow.recv(100)
    quick = Listener(server, CHANGES)
    quick.next_totals()
    # Until its socket takes no more, although all was sent to the other; so many incidents are kept for it. The kernel
    # may find room for it later: then once more.
    changes, before = 0, -1
    while before != unsent(server, slow):
        while before != unsent(server, slow):
            before = unsent(server, slow)
            for _ in range(100):
                server.tell("incident leak 1 1")
                quick.next_of("incident")
            server.ask("/healthz")
        for _ in range(20):  # more than are kept
            changes += 1
            player.play(f"alloc 0 DRAM {0x1000 + changes * 64:#x} 64 a")
            quick.next_totals()
    assert dropped(server) == 0
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    wanted = server.json("/api/v1/smi")["totals"]
    last, starts = {"totals": None}, 0
    while last["totals"] != wanted:
        text += slow.recv(1 << 20)
        *messages, text = text.split(b"\n\n")
        for kind, data in re.findall(rb"event: (totals|changes)\ndata: (.*)", b"\n".join(messages)):
            if kind == b"totals":
                last = json.loads(data)
                starts += 1
            else:
                assert json.loads(data)["after_ns"] == last["time_ns"]
                last = apply_change(last, json.loads(data)["change"])
    assert starts > 1
    slow.close()
    quick.close()
