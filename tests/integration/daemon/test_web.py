# SPDX-License-Identifier: Apache-2.0
"""The HTTP interface: every route, every refusal, pages, and who may see what."""

import gzip
import http.client
import json
import os
import re
import stat
import subprocess

import pytest

from conftest import LIMIT
from web import Server

GUARDED = ["buffers", "leaks", "incidents", "history?address=0x1000", "map", "fit?size=1"]


@pytest.fixture
def server(world, tmp_path):
    return Server(world, tmp_path)


@pytest.fixture
def two(world, server):
    """A server with two processes."""
    first = world.player(
        "device 0 0xabc wormhole_b0 n150 0 1000 100",
        "push test", "alloc 0 DRAM 0x1000 10 a", "alloc 0 L1 0x1000 30 b", "pop",
        TTMEM_STACKS="off",
    )
    second = world.player("alloc 0 DRAM 0x1000 20 a", "alloc 3 L1 0x2000 5", TTMEM_STACKS="off")
    return server, first, second


def test_totals_need_no_token(two):
    server, first, second = two
    document = server.json("/api/v1/smi")
    assert [p["pid"] for p in document["processes"]] == sorted([first.pid, second.pid])
    assert document["totals"] == {"bytes": 65, "buffers": 4}
    assert {d["uid"] for d in document["devices"]} == {"0xabc", None}
    assert [d["device"] for d in server.json("/api/v1/smi?device=3")["devices"]] == [3]
    chosen = server.json("/api/v1/smi?device=3&device=0xabc")
    assert sorted(d["device"] for d in chosen["devices"]) == [0, 3]
    processes = server.json("/api/v1/ps")["processes"]
    assert processes[0]["devices"][0]["memory"]["DRAM"]["allocs"] == 1


def test_routes_of_the_old_dashboard_still_answer(two):
    server, _, _ = two
    status, _, body = server.ask("/api/devices")
    assert status == 200
    devices = json.loads(body)["devices"]
    assert [d["device_id"] for d in devices] == [0, 3]
    expected = {
        "device_id": 0, "dram_allocated": 30, "l1_allocated": 30, "system_memory_allocated": 0,
        "l1_small_allocated": 0, "trace_allocated": 0, "cb_allocated": 0, "kernel_allocated": 0,
        "buffers": 3,
    }
    assert devices[0] == expected
    assert json.loads(server.ask("/api/devices/0/stats")[2]) == expected
    assert json.loads(server.ask("/api/devices/7/stats")[2])["buffers"] == 0
    server.refused("/api/devices/1024/stats", 404)


def test_healthz_tells_status_and_store(server):
    document = server.json("/healthz")
    assert document["status"] == "ok" and document["store"]["written"] == 7
    assert document["details"] == "token"


def files_of(page):
    """What a page loads, as it says so itself."""
    return re.findall(r'(?:src|href)="([^"]+)"', page)


def test_the_page_loads_nothing_from_elsewhere(server):
    """Whichever it is, the dashboard or the plain one: all of it is here, and nothing is inline."""
    status, headers, body = server.ask("/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    text = body.decode()
    assert "http:" not in text and "https:" not in text and " onclick" not in text
    assert not re.search(r"<script[^>]*>[^<]|<style| style=", text)
    kinds = set()
    for path in files_of(text):
        assert path.startswith("/") and not path.startswith("//")
        status, headers, body = server.ask(path)
        assert status == 200 and body
        kinds.add(headers["Content-Type"].split(";")[0])
    assert {"text/javascript", "text/css"} <= kinds


def test_files_are_compressed_and_cached(server):
    page = server.ask("/")[2].decode()
    for path in ["/", *files_of(page)]:
        _, plain, body = server.ask(path)
        _, packed, less = server.ask(path, headers={"Accept-Encoding": "br, gzip"})
        assert plain["Content-Encoding"] is None and packed["Content-Encoding"] == "gzip"
        assert gzip.decompress(less) == body
        assert plain["ETag"] == packed["ETag"] and packed["Vary"] == "Accept-Encoding"
        status, again, nothing = server.ask(path, headers={"If-None-Match": plain["ETag"]})
        assert status == 304 and nothing == b"" and again["ETag"] == plain["ETag"]
        assert again["Content-Encoding"] is None
        status, _, body = server.ask(path, headers={"If-None-Match": 'W/"another"'})
        assert status == 200 and body
        # Only what is named by its content may be kept without asking.
        lasting = "immutable" in plain["Cache-Control"]
        assert lasting == path.startswith("/assets/") and "no-store" not in plain["Cache-Control"]
    server.refused("/?x=1", 400)
    server.refused("/assets/", 404)
    server.refused("/index.html", 404)


def test_every_answer_has_security_headers(server):
    for path in ["/", "/healthz", "/api/v1/smi", "/api/v1/buffers", "/nothing", "/metrics"]:
        _, headers, _ = server.ask(path)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == ("no-cache" if path == "/" else "no-store")
        assert headers["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Access-Control-Allow-Origin"] is None


def test_details_need_the_token(two):
    server, first, _ = two
    assert stat.S_IMODE(os.stat(server.token_file).st_mode) == 0o600
    for route in GUARDED:
        assert "token" in server.refused(f"/api/v1/{route}", 401)
        assert "token" in server.refused(f"/api/v1/{route}", 401, token="0" * 64)
        status, headers, _ = server.ask(f"/api/v1/{route}")
        assert headers["WWW-Authenticate"].startswith("Bearer")
    # A token in an address ends up in logs: only the stream takes it there.
    server.refused(f"/api/v1/buffers?token={server.token}", 401)
    server.refused(f"/api/v1/smi?token={server.token}", 400)
    assert len(server.details("/api/v1/buffers")["buffers"]) == 4
    server.refused("/api/v1/smi", 401, token="wrong")
    assert server.json("/api/v1/smi", token=server.token)["totals"]["buffers"] == 4


def test_details_can_be_opened_to_everybody(world, tmp_path):
    world.player("alloc 0 DRAM 0x1000 10 a")
    server = Server(world, tmp_path, "details")
    assert server.json("/healthz")["details"] == "open"
    assert len(server.json("/api/v1/buffers")["buffers"]) == 1


def test_a_token_file_readable_by_others_is_refused(world, tmp_path):
    server = tmp_path / "token"
    server.write_text("0123456789abcdef\n")
    server.chmod(0o644)
    program = world.build / "tests" / "programs" / "serve"
    result = subprocess.run(
        [program, "127.0.0.1:0", server], capture_output=True, text=True, timeout=LIMIT
    )
    assert result.returncode == 1 and "chmod 600" in result.stderr


def sizes(server, query):
    return [b["size"] for b in server.details(f"/api/v1/buffers?{query}")["buffers"]]


def test_buffers_can_be_filtered_and_sorted(two):
    server, first, second = two
    assert sorted(sizes(server, "")) == [5, 10, 20, 30]
    assert sizes(server, "sort=size") == [30, 20, 10, 5]
    assert sizes(server, "sort=size&limit=2") == [30, 20]
    assert sizes(server, "sort=age") == [10, 30, 20, 5]
    assert sorted(sizes(server, f"pid={first.pid}")) == [10, 30]
    assert sizes(server, f"pid={second.pid}&type=dram") == [20]
    assert sizes(server, "device=3") == [5]
    assert sizes(server, "device=0xabc&type=L1") == [30]
    assert server.details("/api/v1/buffers?sort=size&limit=2")["next"] is None


def test_buffers_can_be_grouped(two):
    server, first, _ = two
    document = server.details("/api/v1/buffers?by=name")
    assert sorted((g["key"] or "", g["bytes"], g["buffers"]) for g in document["groups"]) == [
        ("", 5, 1), ("a", 30, 2), ("b", 30, 1),
    ]
    document = server.details(f"/api/v1/buffers?by=thread&pid={first.pid}")
    assert [g["key"] for g in document["groups"]] == [f"{first.pid}/{first.pid}"]
    document = server.details("/api/v1/buffers?by=site&limit=1")
    assert len(document["groups"]) == 1 and "largest 1 of 3" in document["notes"][0]
    assert document["groups"][0]["bytes"] == 30


def test_groups_cover_more_than_one_page(world, server):
    world.player("many 0 DRAM 0x1000 8 70000", "alloc 1 L1 0x10 100 one")
    world.player("many 2 L1 0x1000 8 70000")
    document = server.details("/api/v1/buffers?by=name")
    assert [(g["key"], g["bytes"], g["buffers"]) for g in document["groups"]] == [
        ("many", 8 * 140000, 140000), ("one", 100, 1),
    ]


def walk(server, query):
    keys, cursor, pages = [], "", 0
    while cursor is not None:
        page = server.details(f"/api/v1/buffers?{query}{cursor and '&cursor=' + cursor}")
        keys += [(b["pid"], b["device"], b["type"], b["address"]) for b in page["buffers"]]
        cursor = page["next"]
        pages += 1
    return keys, pages


def test_all_pages_give_each_buffer_once(world, server):
    first = world.player("many 0 DRAM 0x1000 8 1500", "many 0 L1 0x1000 8 700", "many 9 L1 0 8 3")
    second = world.player("many 0 DRAM 0x1000 8 801")
    everything = {
        *((first.pid, 0, "DRAM", hex(0x1000 + 8 * i)) for i in range(1500)),
        *((first.pid, 0, "L1", hex(0x1000 + 8 * i)) for i in range(700)),
        *((first.pid, 9, "L1", hex(8 * i)) for i in range(3)),
        *((second.pid, 0, "DRAM", hex(0x1000 + 8 * i)) for i in range(801)),
    }
    for limit, expected in [(100, 31), (1502, 2), (3003, 2), (3004, 1), (10000, 1)]:
        keys, pages = walk(server, f"limit={limit}")
        assert len(keys) == len(set(keys)) and set(keys) == everything
        assert pages == expected
    assert len(server.details("/api/v1/buffers")["buffers"]) == 1000
    keys, _ = walk(server, "limit=50&type=L1")
    assert len(keys) == 703


def test_incidents_and_history_are_served(two):
    server, first, _ = two
    first.play("free 0 DRAM 0x1000", "free 0 DRAM 0x1000")
    document = server.details("/api/v1/incidents?limit=10&since=1")
    assert [i["kind"] for i in document["incidents"]] == ["double_free"]
    document = server.details(f"/api/v1/history?address=0x1000&pid={first.pid}&type=DRAM")
    assert [e["op"] for e in document["buffers"][0]["events"]] == ["alloc", "free", "double_free"]
    status, _, body = server.ask("/api/v1/leaks", token=server.token)
    assert status == 200 and json.loads(body)["next"] == "second"
    status, _, body = server.ask("/api/v1/leaks?cursor=second", token=server.token)
    assert json.loads(body)["next"] is None
    # What the provider says is passed on.
    server.refused("/api/v1/leaks?cursor=third", 400, token=server.token)
    assert "at present" in server.refused("/api/v1/series", 503)


@pytest.mark.parametrize(
    "path, word",
    [
        ("smi?colour=red", "colour"), ("smi?device=x", "device"), ("smi?device=1024", "device"),
        ("ps?pid=1", "pid"), ("buffers?pid=0", "pid"), ("buffers?type=RAM", "DRAM"),
        ("buffers?limit=0", "10000"), ("buffers?limit=10001", "10000"), ("buffers?limit=1&limit=1", "twice"),
        ("buffers?cursor=x", "cursor"), ("buffers?sort=name", "sort"), ("buffers?by=x", "by"),
        ("buffers?sort=size&cursor=b.1.2.3.4", "cursor"), ("buffers?by=name&sort=size", "by"),
        ("history", "address"), ("history?address=x", "address"), ("incidents?kind=X", "kind"),
        ("series?step=2", "step"), ("series?from=2&to=1", "after"), ("leaks?since=x", "since"),
        ("buffers?pid=%zz", "%"), ("buffers?cursor=a%00b", "%00"), ("stream?x=1", "x"),
    ],
)
def test_wrong_parameters_are_refused(server, path, word):
    assert word in server.refused(f"/api/v1/{path}", 400, token=server.token)


def test_unknown_paths_are_not_found(server):
    for path in ["/nothing", "/api/v1", "/api/v1/smi/", "//", "/api/v1/%73mi", "/../etc/passwd"]:
        server.refused(path, 404)


def test_methods_other_than_get_and_head_are_refused(server):
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]:
        status, headers, body = server.ask("/api/v1/smi", method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD"
    server.refused("/api/v1/smi", 405, method="POST", body=b"x" * 100)
    server.refused("/api/v1/smi", 413, body=b"x" * 100)


def test_head_has_the_headers_and_no_body(two):
    server, _, _ = two
    for path in ["/", "/healthz", "/api/v1/ps", "/metrics", "/api/v1/stream", "/nothing"]:
        status, headers, body = server.ask(path, method="HEAD")
        assert body == b"" and status == (404 if path == "/nothing" else 200)
    _, headers, _ = server.ask("/healthz", method="HEAD")
    assert int(headers["Content-Length"]) > 100


def test_foreign_host_names_are_refused(server):
    for name in ["localhost", f"127.0.0.1:{server.port}", "[::1]:80", "LOCALHOST:1"]:
        assert server.ask("/healthz", headers={"Host": name})[0] == 200
    for name in ["evil.example", "127.0.0.1.evil.example", "localhost.", "0.0.0.0", "a" * 1000]:
        assert "name" in server.refused("/api/v1/smi", 421, headers={"Host": name})
    assert b" 400 " in server.raw(b"GET /healthz HTTP/1.1\r\n\r\n")
    two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert b" 400 " in server.raw(two)


def test_a_host_with_a_nul_is_what_comes_before_it(server):
    """libmicrohttpd cuts a header at a NUL. Whoever can send one can as well send the name alone."""

    def answer(*hosts):
        lines = b"".join(b"Host: " + host + b"\r\n" for host in hosts)
        said = server.raw(b"GET /healthz HTTP/1.1\r\n" + lines + b"Connection: close\r\n\r\n")
        return int(said.split()[1])

    assert answer(b"localhost\0.evil.example") == answer(b"localhost") == 200
    assert answer(b"evil.example\0localhost") == answer(b"evil.example") == 421
    assert answer(b"\0localhost") == answer(b"") == 421
    # It hides neither a second name nor the header itself.
    assert answer(b"localhost\0", b"evil.example") == 400



def test_a_connection_can_be_used_again(two):
    server, _, _ = two
    connection = http.client.HTTPConnection(server.host, server.port, timeout=LIMIT)
    connection.connect()
    used = connection.sock
    for path in ["/api/v1/smi", "/healthz", "/nothing", "/api/v1/ps", "/metrics"]:
        connection.request("GET", path)
        connection.getresponse().read()
        assert connection.sock is used
    connection.close()


def test_server_stops_with_requests_under_way(two):
    server, _, _ = two
    server.tell("slow 300")
    clients = []
    for path in ["/api/v1/stream", *["/api/v1/buffers"] * 5]:
        client = server.connect()
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        client.sendall(request.encode())
        clients.append(client)
    assert clients[0].recv(10)
    server.end()
    for client in clients:
        client.close()


def test_documents_and_metrics_are_compressed_for_those_who_accept_that(two):
    """Whatever their size; the same bytes come out, but for clocks."""
    server, _, _ = two
    clocks = re.compile(rb'_ns":\d+')
    for path in ["smi", "ps", "buffers", "buffers?by=name", "leaks", "incidents", "map", "fit?size=1"]:
        path = f"/api/v1/{path}"
        _, plain, body = server.ask(path, token=server.token)
        _, packed, less = server.ask(path, token=server.token, headers={"Accept-Encoding": "gzip, br"})
        assert plain["Content-Encoding"] is None and packed["Content-Encoding"] == "gzip", path
        assert plain["Vary"] == packed["Vary"] == "Accept-Encoding"
        assert clocks.sub(b"", gzip.decompress(less)) == clocks.sub(b"", body), path
        assert packed["Content-Length"] == str(len(less)) and len(less) < len(body) + 20
    for path in ["/metrics", "/metrics/sites"]:
        status, headers, less = server.ask(path, token=server.token, headers={"Accept-Encoding": "gzip"})
        assert (status, headers["Content-Encoding"]) == (200, "gzip")
        assert headers["Vary"] == "Accept, Accept-Encoding"
        assert gzip.decompress(less).startswith(b"# HELP ttmem_")
        assert server.ask(path, token=server.token)[1]["Content-Encoding"] is None


def test_a_refusal_is_not_compressed(server):
    accepting = {"Accept-Encoding": "gzip"}
    assert server.refused("/api/v1/buffers", 401, headers=accepting)
    assert server.refused("/api/v1/leaks?cursor=wrong", 400, headers=accepting, token=server.token)


def test_a_document_has_a_tag_until_something_changes(world, server):
    """Its time is no part of that. The tag is the same for both forms, and no answer repeats what is known."""
    _, headers, body = server.ask("/api/v1/leaks", token=server.token)
    tag = headers["ETag"]
    assert re.fullmatch(r'W/"[0-9a-f]{16}"', tag)
    assert headers["Cache-Control"] == "no-store"
    for more in ({}, {"Accept-Encoding": "gzip"}):

        def ask(tags, more=more):
            return server.ask("/api/v1/leaks", token=server.token, headers={"If-None-Match": tags, **more})

        status, again, nothing = ask(f'"other", {tag}')
        assert (status, again["ETag"], again["Content-Encoding"], nothing) == (304, tag, None, b"")
        status, again, other = ask('"other"')
        assert (status, again["ETag"]) == (200, tag)
        assert json.loads(gzip.decompress(other) if more else other)["time_ns"] > json.loads(body)["time_ns"]
    player = world.player("alloc 0 DRAM 0x1000 10 a")
    tag = server.ask("/api/v1/smi")[1]["ETag"]
    player.play("alloc 0 DRAM 0x2000 10 a")
    status, headers, _ = server.ask("/api/v1/smi", headers={"If-None-Match": tag})
    assert status == 200 and headers["ETag"] != tag
    # What differs at every look has none.
    assert server.ask("/metrics")[1]["ETag"] is None
