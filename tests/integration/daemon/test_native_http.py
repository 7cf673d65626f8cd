# SPDX-License-Identifier: Apache-2.0
"""HTTP on the native socket: who is shown what, and commands and daemons of different versions."""

import contextlib
import errno
import json
import os
import socket
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import LIMIT, has_legacy
from nativesocket import (  # noqa: F401 (fixtures)
    AS_MEMBER,
    AS_USER,
    GROUP,
    OLD_KINDS,
    REPLY,
    ROSTER,
    STATUS,
    ask,
    connect,
    daemon,
    document,
    get,
    is_closed,
    is_well,
    names,
    packets,
    place,
    request,
    wait_until_seen,
)
from world import check_schema, used, wait_for


@pytest.mark.parametrize(
    "garbage",
    [
        b"x", b"GET / HTTP/1.1\r\n", b"GET / HTTP/2\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", bytes(192),
        get("/", "Content-Length: 1\r\n"), get("/" + 5000 * "x"), STATUS + STATUS, request(99), request(0),
        b"TTRQ", request(ROSTER) + b"x", request(ROSTER)[:-1], request(ROSTER, magic=1), bytes(5000),
        b"TTRQ" + bytes(60000),
    ],
    ids=range(16),
)  # fmt: skip
def test_garbage_costs_the_connection(daemon, garbage):
    with connect(daemon) as client, connect(daemon) as other:
        client.send(garbage)
        assert is_closed(client)
        other.send(STATUS)
        assert is_well(other)


def test_a_descriptor_with_a_question_is_refused(daemon):
    def held():
        return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))

    document(daemon, "/api/v1/status")
    before = wait_for(held)
    for _ in range(50):
        with connect(daemon) as client:
            socket.send_fds(client, [STATUS], [0, 1])
            assert is_closed(client)
    # The database opens some of its own; a hundred were sent.
    wait_for(lambda: held() <= before + 20, "its descriptors to be closed")


def test_who_half_closes_is_answered(daemon):
    with connect(daemon) as client:
        client.send(STATUS)
        client.shutdown(socket.SHUT_WR)
        assert is_well(client)
        assert is_closed(client)


def test_several_questions_on_one_connection(daemon):
    with connect(daemon) as client:
        for _ in range(20):
            client.send(STATUS)
            client.send(request(ROSTER, want=3))
            assert is_well(client)
            assert not list(packets(client))


def test_the_routes_of_tcp_answer_on_the_socket_too(daemon):
    roots = daemon.player("alloc 0 DRAM 0x1000 10 secret")
    wait_until_seen(daemon, roots.pid)
    assert used(check_schema(document(daemon, "/api/v1/smi")), roots.pid) == {(0, "DRAM"): 10}
    assert names(check_schema(document(daemon, "/api/v1/buffers"))) == {"secret"}
    (life,) = check_schema(document(daemon, "/api/v1/history?address=0x1000"))["buffers"]
    assert life["pid"] == roots.pid
    assert document(daemon, "/api/v1/history?address=0x1000&only=past")["buffers"] == []
    assert ask(daemon, "/nothing")[0] == 404 and ask(daemon, "/api/v1/leaks?pid=x")[0] == 400


ASK = """
import socket, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect(sys.argv[1])
client.send(f"GET {sys.argv[2]} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n".encode())
head, _, body = client.recv(65536).partition(b"\\r\\n\\r\\n")
length = int(head.split(b"Content-Length: ")[1].split()[0])
while len(body) < length:
    body += client.recv(65536)
print(head.split()[1].decode(), body.decode())
"""


def test_a_route_shows_what_its_asker_may_see(daemon):
    roots = daemon.player("alloc 0 DRAM 0x1000 10 secret")
    mine = daemon.player("alloc 0 DRAM 0x1000 20 mine", before=AS_USER)
    wait_until_seen(daemon, roots.pid, mine.pid)

    def as_user(target, before=AS_USER):
        command = [*before, "/usr/bin/python3", "-c", ASK, str(daemon.socket), target]
        status, _, body = subprocess.check_output(command, text=True, timeout=LIMIT).partition(" ")
        return int(status), body

    status, body = as_user("/api/v1/history?address=0x1000")
    assert status == 200 and [b["pid"] for b in json.loads(body)["buffers"]] == [mine.pid]
    status, body = as_user("/api/v1/history?address=0x1000", AS_MEMBER)
    assert {b["pid"] for b in json.loads(body)["buffers"]} == {roots.pid, mine.pid}
    # Totals are everybody's; what cannot be cut to a user's own is not.
    assert as_user("/api/v1/smi")[0] == 200
    status, body = as_user("/api/v1/buffers")
    assert status == 200 and "mine" in body and "secret" not in body
    for more in ("by=name", "sort=age"):
        status, body = as_user(f"/api/v1/buffers?{more}")
        assert status == 403 and "mine" not in body and "secret" not in body
        assert "secret" in as_user(f"/api/v1/buffers?{more}", AS_MEMBER)[1]
    status, body = as_user("/api/v1/map")
    assert status == 403 and "0x1000" not in body
    assert "secret" in as_user("/api/v1/buffers", AS_MEMBER)[1]
    assert as_user("/api/v1/map", AS_MEMBER)[0] == 200
    status, body = as_user("/api/v1/dump")
    assert status == 200 and "mine" in body and "secret" not in body


def test_documents_come_without_tcp_and_only_here(place):
    place.start("--http", "none", "--keeper", "no")
    assert place.json("status")["http"] is None
    place.stop()
    place.start("--keeper", "no", "--http", "127.0.0.1:0", "--http-details")
    address = place.json("status")["http"]
    for path in ("status", "dump"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{address}/api/v1/{path}", timeout=LIMIT)
        assert refused.value.code == 403
        assert "own socket" in json.loads(refused.value.read())["error"]


@pytest.mark.parametrize("kind", OLD_KINDS)
def test_an_older_command_is_told_to_upgrade(daemon, kind):
    """Its packets as it sent them: it prints the text of the refusal."""
    with connect(daemon) as client:
        client.send(request(kind, pid=1, limit=10, cursor=b"1a-2b"))
        packet = client.recv(65536)
        magic, version, answered, flags, status, length = REPLY.unpack(packet[: REPLY.size])
        assert (magic, version, answered, flags) == (0x50525454, 1, kind, 1)
        assert status == -errno.EOPNOTSUPP and length == len(packet) - REPLY.size
        text = packet[REPLY.size :].decode()
        assert text == "this ttmemd is newer than the ttmem that asks: upgrade ttmem"
        # Its roster still comes.
        client.send(request(ROSTER, want=3))
        assert not list(packets(client))


# A daemon before HTTP, as it was: garbage costs the connection, a roster and a status are answered.
BEFORE_HTTP = """
import socket, struct, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
def reply(client, kind, payload, end):
    client.send(struct.pack("<4IiI8x", 0x50525454, 1, kind, end, 0, len(payload)) + payload)
while True:
    client, _ = server.accept()
    while True:
        packet = client.recv(4096)
        if len(packet) != 192 or packet[:4] != b"TTRQ":
            break
        kind = packet[12]
        if kind == 6:
            reply(client, kind, b"{}", 0)
        reply(client, kind, b"", 1)
    client.close()
"""


def test_an_older_daemon_is_named(place):
    server = place.adopt(
        subprocess.Popen(
            ["/usr/bin/python3", "-c", BEFORE_HTTP, str(place.socket)], stdout=subprocess.PIPE, text=True
        )
    )
    assert server.stdout.readline() == "ready\n"
    for command in (("leaks",), *[("dump",)] * has_legacy(), ("status",)):
        result = place.run(*command)
        assert result.returncode == 1 and result.stdout == ""
        assert "is older than this ttmem" in result.stderr and "upgrade" in result.stderr
    # What does not need it goes on, and says what is missing.
    for command in (("incidents",), ("history", "0x1000")):
        notes = place.json(*command)["notes"]
        assert any("is older than this ttmem" in note for note in notes)
    assert not any("ttmemd" in note for note in place.json("smi")["notes"])
    server.stdout.close()


# A daemon whose history fails: after the first page of incidents, or at once.
FAILS_LATER = """
import json, socket, struct, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
row = dict(kind="double_free", pid=1, comm="gone", device=0, type="DRAM", address="0x1000", count=1)
page = dict(schema="ttmem.incidents/1", incidents=[row], exact=True, next="1-1", notes=[])
def serve(packet):
    if packet[:4] != b"GET ":
        return struct.pack("<4IiI8x", 0x50525454, 1, packet[12], 1, 0, 0)
    if b"/incidents?" in packet and b"cursor" not in packet:
        body = json.dumps(page).encode()
        return b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
    return b"HTTP/1.1 503 No\\r\\nContent-Length: 7\\r\\n\\r\\nnot now"
while True:
    client, _ = server.accept()
    while packet := client.recv(4096):
        client.send(serve(packet))
    client.close()
"""


@pytest.fixture
def failing(place):
    server = place.adopt(
        subprocess.Popen(
            ["/usr/bin/python3", "-c", FAILS_LATER, str(place.socket)], stdout=subprocess.PIPE, text=True
        )
    )
    assert server.stdout.readline() == "ready\n"
    yield place
    server.stdout.close()


def test_incidents_that_fail_half_way_are_told_once(failing):
    result = failing.run("incidents", "--json")
    assert result.returncode == 1 and "not now" in result.stderr
    incidents = json.loads(result.stdout)  # one document
    assert [row["comm"] for row in incidents["incidents"]] == ["gone"] and incidents["next"] == "1-1"
    result = failing.run("incidents")
    assert result.returncode == 1 and "not now" in result.stderr
    assert "(gone)" in result.stdout and "no incidents" not in result.stdout


def test_a_history_without_its_past_says_so(failing):
    history = check_schema(failing.json("history", "0x1000"))
    assert history["past"] is None and history["exact"] is False
    assert len([note for note in history["notes"] if "not now" in note]) == 1
    result = failing.run("history", "0x1000")
    assert "not now" in result.stdout + result.stderr


def test_a_history_whose_past_is_too_long_is_cut(place):
    place.start("--group", str(GROUP), "--keeper", "no")
    player = place.player("alloc 0 DRAM 0x1000 10 " + "x" * 200)
    wait_until_seen(place, player.pid)
    player.kill()
    wait_for(lambda: place.json("leaks")["processes"], "the leak")
    assert place.json("history", "0x1000")["exact"] is True
    place.stop()
    with contextlib.closing(sqlite3.connect(place.state / "history.db")) as past, past:
        past.execute(
            "WITH RECURSIVE row(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < 31000)"
            " INSERT INTO leak_chunks(leak, first, rows, bytes, data)"
            " SELECT leak, n, rows, bytes, data FROM leak_chunks, row"
        )
    place.start("--group", str(GROUP), "--keeper", "no")
    history = check_schema(place.json("history", "0x1000"))
    assert history["exact"] is False and any("too long" in note for note in history["notes"])
    (leak,) = history["past"]["leaks"]
    assert 1 <= len(leak["buffers"]) < 30000
