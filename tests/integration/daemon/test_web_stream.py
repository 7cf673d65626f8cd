# SPDX-License-Identifier: Apache-2.0
"""The stream of changes: who receives what, and what happens to listeners that do not read."""

import http.client
import os
import socket

import pytest

from web import Listener, Server
from world import check_schema, wait_for


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
    """Proxies end what says nothing. Every 15 s; here the server was told to be quicker."""
    listener = Listener(Server(world, tmp_path, "alive=300"))
    listener.next_of("totals")
    lines = [listener.answer.readline() for _ in range(6)]
    assert lines == [b": keep-alive\n", b"\n"] * 3
    listener.close()
