# SPDX-License-Identifier: Apache-2.0
"""Every answer with every parameter: those in docs/http.md change the answer, all others are refused."""

import http.client
import json
import re
import subprocess
import time

import pytest

from conftest import ROOT
from nativesocket import ask
from world import wait_for

FUTURE = str(2**63)
# A value of each parameter that leaves nothing over, or another answer, where there is something.
VALUES = {
    "pid": "1", "device": "1023", "type": "TRACE", "sort": "age", "by": "phase", "limit": "1", "cursor": "x",
    "address": "0x9", "kind": "overlap", "since": FUTURE, "from": FUTURE, "to": "1", "step": "60",
    "token": "wrong", "size": "4G", "page": "4096", "only": "past", "buffers": "0", "browser": "0", "at": "1",
    "changes": "1", "cores": "1", "per_bank": "4G",
    # Only options of commands have these.
    "user": "nobody", "name": "x",
}  # fmt: skip
NEEDED = {"/api/v1/history": "address=0x1000", "/api/v1/fit": "size=64"}
TCP = {"/healthz", "/metrics", "/metrics/sites", "/api/v1/host", "/api/v1/fleet", "/api/v1/stream",
       "/api/v1/sign-in", "/api/v1/sign-out"}  # fmt: skip
# Endless, or without anything to choose from here: nothing grows, and no step is coarser than a minute.
UNSEEN = {("/api/v1/stream", "token"), ("/api/v1/stream", "changes"), ("/api/v1/growth", "pid")}


def table(name, row):
    """The parameters of each route, as a document lists them."""
    rows = re.findall(row, (ROOT / "docs" / name).read_text(encoding="utf-8"), re.M)
    return {
        path: set(re.findall(r"`(\w+)`", words))
        for paths, words in rows
        for path in re.findall(r"`(/[^`]*)`", paths)
        if path != "/"
    }


LOCAL = table("protocol.md", r"^\| (`/api[^|]*`) \|([^|]*)\|")
ROUTES = table("http.md", r"^\| (`/[^|]*`) \|[^|]*\|([^|]*)\|")
ROUTES = {path: names for path, names in ROUTES.items() if path not in LOCAL}


def target(path, *parameters):
    path = path.replace("/N/", "/0/")
    needed = [NEEDED[path]] if path in NEEDED and NEEDED[path].split("=")[0] not in parameters else []
    words = needed + [f"{name}={VALUES[name]}" for name in parameters]
    return path + ("?" + "&".join(words) if words else "")


def fetch(daemon, path, *parameters):
    """(status, text); a stream would not end, and two routes change something."""
    method = {"/api/v1/stream": "HEAD", "/api/v1/sign-in": "POST", "/api/v1/sign-out": "POST"}.get(path, "GET")
    token = (daemon.state / "http-token").read_text().strip()
    connection = http.client.HTTPConnection(daemon.address(), timeout=60)
    headers = {"Authorization": f"Bearer {token}"} if path != "/api/v1/sign-in" else {}
    connection.request(method, target(path, *parameters), headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


@pytest.fixture
def daemon(ttmemd):
    """One with something to say to every question."""
    ttmemd.start("--http", "127.0.0.1:0")
    ttmemd.player(
        "push prefill", "alloc 0 DRAM 0x1000 100 weights", "pop", "alloc 0 L1 0x2000 7 act", "free 0 DRAM 0x1000",
        "alloc 0 DRAM 0x1000 50 weights", "free 0 DRAM 0x9999", "alloc 1 DRAM 0x1000 9 other",
    )  # fmt: skip
    for size in (5, 6):
        dead = ttmemd.player(f"alloc 0 DRAM 0x1000 {size} left", "alloc 0 DRAM 0x5000 1 left")
        wait_for(lambda dead=dead: str(dead.pid) in fetch(ttmemd, "/api/v1/ps")[1], "the process")
        dead.kill()
        ttmemd.wait_for_leak(dead.pid)
    # Only simulated cards say where their memory lies.
    allocator = ttmemd.adopt(
        subprocess.Popen(
            [ttmemd.build / "tests" / "programs" / "allocator", "1", "n150"],
            env={**ttmemd.env, "TTMEM": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    assert allocator.stdout.readline()
    for path, key, count in (
        ("/api/v1/map", "maps", 3),
        ("/api/v1/series", "series", 3),
        ("/api/v1/ended", "processes", 2),
        ("/api/v1/moments", "moments", 3),
        ("/api/v1/incidents", "incidents", 2),
        ("/api/v1/peak", "peaks", 3),
    ):
        wait_for(lambda p=path, k=key, n=count: len(json.loads(fetch(ttmemd, p)[1]).get(k, ())) >= n, path)
    return ttmemd


def test_the_table_is_read():
    assert ROUTES["/api/v1/leaks"] == {"pid", "since", "buffers", "limit", "cursor"}
    assert LOCAL["/api/v1/open"] == {"browser"} and len(LOCAL) == 4
    assert len(ROUTES) == 24 and {p for names in ROUTES.values() for p in names} <= set(VALUES)


def test_a_parameter_that_an_answer_does_not_honour_is_refused(daemon):
    for path, honoured in ROUTES.items():
        for name in VALUES:
            status, body = fetch(daemon, path, name)
            is_unknown = status == 400 and ("unknown parameter" in body or not body)
            assert is_unknown == (name not in honoured), (path, name, status, body)


def test_the_unix_socket_refuses_the_same(daemon):
    for path, honoured in {**ROUTES, **LOCAL}.items():
        for name in VALUES:
            status, body = ask(daemon, target(path, name))
            if path in TCP:
                assert status == 404, path
                continue
            is_unknown = status == 400 and b"unknown parameter" in body
            assert is_unknown == (name not in honoured), (path, name, status, body)


def lasting(value):
    """Without what changes from one moment to the next."""
    if isinstance(value, list):
        return [lasting(one) for one in value]
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if not key.endswith("_ns")}
    return value


def content(text):
    document = lasting(json.loads(text))
    for line in document.get("series", ()):
        line["points"] = bool(line["points"])
    return document


def test_a_parameter_that_an_answer_honours_changes_it(daemon):
    for path, honoured in ROUTES.items():
        for name in honoured:
            if (path, name) in UNSEEN:
                continue
            before, after = fetch(daemon, path), fetch(daemon, path, name)
            assert before[0] == 200, (path, before)
            is_json = path.startswith("/api/v1/")
            if after[0] == 200:
                read = content if is_json else lambda text: sorted(text.splitlines())
                assert read(before[1]) == read(fetch(daemon, path)[1]), path
                assert read(before[1]) != read(after[1]), (path, name, after)
            else:
                # Nothing is known of 1970, and the cursor is of no earlier page.
                assert name in ("at", "cursor", "from", "to") and after[0] in (400, 404), (path, name, after)


# Options with a field's name that are something else: a recording and its moment, and a kind of table.
OTHERS = {"from", "at"}
COMMANDS = {
    "smi": ([], {"user"}, {"by"}), "ps": ([], {"pid", "device"}, set()), "buffers": ([], {"name"}, set()),
    "map": ([], set(), set()), "fit": (["64"], set(), set()), "leaks": ([], set(), set()),
    "peak": ([], set(), set()), "growth": ([], set(), set()), "incidents": ([], set(), set()),
    "history": (["0x1000"], set(), set()),
}  # fmt: skip


def options(ttmemd, command):
    return set(re.findall(r"--([a-z-]+)", ttmemd.run(command, "--help").stdout)) & set(VALUES) - OTHERS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_no_option_that_its_answer_does_not_honour(ttmemd, command):
    words, own, others = COMMANDS[command]
    listed = options(ttmemd, command)
    assert own <= listed and listed - own - others <= ROUTES[f"/api/v1/{command}"]
    for name in set(VALUES) - OTHERS - listed:
        result = ttmemd.run(command, *words, f"--{name}", VALUES[name])
        assert result.returncode == 2 and f'unknown option "--{name}"' in result.stderr, name


def test_an_option_of_a_command_changes_its_answer(daemon):
    def run(*args):
        result = daemon.run(*args, "--json")
        return result.returncode, result.stdout and content(result.stdout), result.stderr

    for command, (words, _, others) in COMMANDS.items():
        for name in options(daemon, command) - others:
            if (f"/api/v1/{command}", name) in UNSEEN:
                continue
            before, after = run(command, *words), run(command, *words, f"--{name}", VALUES[name])
            assert before == run(command, *words), command
            assert before != after and after[0] != 2, (command, name, after)
