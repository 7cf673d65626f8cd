# SPDX-License-Identifier: Apache-2.0
"""ttmem open: a link that signs a browser in, once, for one user, with that user's rights; and who would like to have it."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from common import become
from conftest import LIMIT
from nativesocket import GROUP, USER, OTHER, place, wait_until_seen  # noqa: F401 (a fixture)
from web import request_as
from world import check_schema, wait_for

pytestmark = pytest.mark.other_user

LINK = re.compile(r"^http://(127\.0\.0\.1:\d+)/#/open/([0-9a-f]{64})((?:/[a-z]+/[0-9a-fx]+)?)$")


@pytest.fixture
def served(place):  # noqa: F811
    return place.start("--group", str(GROUP), "--keeper", "no", "--http", "127.0.0.1:0")


def browse(daemon, user, path, method="GET", before=None, **headers):
    return request_as(before or become(user), daemon.address(), method, path, **headers)


def link(daemon, user, *words, groups=()):
    """(address, code, place) of a new link."""
    result = daemon.run("open", *words, before=become(user, groups))
    assert result.returncode == 0, result.stderr
    found = LINK.match(result.stdout.rstrip("\n"))
    assert found, result.stdout
    return found.groups()


def sign_in(daemon, code, user, **headers):
    return browse(daemon, user, "/api/v1/sign-in", "POST", Authorization=f"Code {code}", **headers)


def cookie(daemon, user, groups=(), browser=None):
    """The cookie of a browser that has signed in."""
    _, code, _ = link(daemon, user, groups=groups)
    status, headers, body = sign_in(daemon, code, user if browser is None else browser)
    assert status == 200, body
    check_schema(json.loads(body))
    return headers["Set-Cookie"].split(";")[0]


def names(body):
    return {buffer["name"] for buffer in json.loads(body)["buffers"]}


@pytest.fixture
def two(served):
    """Processes of two users, with a buffer each."""
    mine = served.player("alloc 0 DRAM 0x1000 10 mine", before=become(USER))
    theirs = served.player("alloc 0 DRAM 0x1000 20 theirs", before=become(OTHER))
    wait_until_seen(served, mine.pid, theirs.pid)
    return served, mine, theirs


def test_a_link_shows_a_users_own_details_and_no_others(two):
    daemon, mine, theirs = two
    status, headers, body = sign_in(daemon, link(daemon, USER)[1], USER)
    assert (status, headers["Cache-Control"], headers["Referrer-Policy"]) == (200, "no-store", "no-referrer")
    session = check_schema(json.loads(body))["session"]
    assert (session["user_id"], session["sees_all"]) == (USER, False)
    port = daemon.address().rpartition(":")[2]
    assert re.fullmatch(rf"ttmem-{port}=[0-9a-f]{{64}}; HttpOnly; SameSite=Strict; Path=/", headers["Set-Cookie"])
    jar = headers["Set-Cookie"].split(";")[0]
    status, _, body = browse(daemon, USER, "/api/v1/buffers", Cookie=jar)
    assert status == 200 and names(check_and_text(body)) == {"mine"}
    assert names(browse(daemon, USER, f"/api/v1/buffers?pid={theirs.pid}", Cookie=jar)[2]) == set()
    # What reads all buffers for one answer is for those who see all.
    for more in ("by=name", "by=site", "sort=size"):
        status, _, body = browse(daemon, USER, f"/api/v1/buffers?{more}", Cookie=jar)
        assert status == 403 and "ask for pages" in body
    assert browse(daemon, USER, "/api/v1/history?address=0x1000", Cookie=jar)[2].count('"pid":') == 1
    # Totals are of all, as for everybody; a map of all processes is not to be had.
    assert len(json.loads(browse(daemon, USER, "/api/v1/smi", Cookie=jar)[2])["processes"]) == 2
    for path in ("/api/v1/map", "/api/v1/fit?size=1", "/metrics/sites"):
        status, _, body = browse(daemon, USER, path, Cookie=jar)
        assert status == 403 and "only root and members" in body
    health = check_schema(json.loads(browse(daemon, USER, "/healthz", Cookie=jar)[2]))
    assert health["session"] == session


def check_and_text(body):
    check_schema(json.loads(body))
    return body


def test_members_see_all_and_the_token_still_does(two):
    daemon, _, _ = two
    jar = cookie(daemon, USER, groups=(7, GROUP))
    assert names(browse(daemon, USER, "/api/v1/buffers", Cookie=jar)[2]) == {"mine", "theirs"}
    assert browse(daemon, USER, "/api/v1/map", Cookie=jar)[0] == 200
    token = (daemon.state / "http-token").read_text().strip()
    jar = cookie(daemon, OTHER)
    status, _, body = browse(daemon, OTHER, "/api/v1/buffers", Cookie=jar, Authorization=f"Bearer {token}")
    assert status == 200 and names(body) == {"mine", "theirs"}
    assert browse(daemon, OTHER, "/api/v1/buffers", Cookie=jar, Authorization="Bearer wrong")[0] == 401


def test_a_link_works_once(served):
    _, code, _ = link(served, USER)
    assert sign_in(served, code, USER)[0] == 200
    status, headers, body = sign_in(served, code, USER)
    assert status == 401 and "each works once" in body and "Set-Cookie" not in headers


def test_another_user_can_use_neither_link_nor_cookie(two):
    """Command lines are readable by all, and browsers send cookies of 127.0.0.1 to everybody's ports there."""
    daemon, _, _ = two
    _, code, _ = link(daemon, USER)
    for user in (OTHER, 0):
        status, headers, body = sign_in(daemon, code, user)
        assert status == 403 and "another user" in body and "Set-Cookie" not in headers
    status, headers, _ = sign_in(daemon, code, USER)
    assert status == 200  # trying has not ended it
    jar = headers["Set-Cookie"].split(";")[0]
    for user in (OTHER, 0):
        assert browse(daemon, user, "/api/v1/buffers", Cookie=jar)[0] == 401
        assert json.loads(browse(daemon, user, "/healthz", Cookie=jar)[2])["session"] is None
        browse(daemon, user, "/api/v1/sign-out", "POST", Cookie=jar)
    assert browse(daemon, USER, "/api/v1/buffers", Cookie=jar)[0] == 200


# Sends a request and is gone.
RUDE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as client:
    client.sendall(sys.argv[3].encode())
"""


def test_a_client_that_has_gone_has_no_user_and_uses_up_no_link(served):
    """For the kernel a socket that nobody holds any more is user 0's."""
    _, code, _ = link(served, 0)
    host, _, port = served.address().rpartition(":")
    text = f"POST /api/v1/sign-in HTTP/1.1\r\nHost: localhost\r\nAuthorization: Code {code}\r\n\r\n"
    # So that it is accepted only after its end.
    served.process.send_signal(signal.SIGSTOP)
    try:
        subprocess.run([*become(OTHER), sys.executable, "-c", RUDE, host, port, text], timeout=LIMIT, check=True)
    finally:
        served.process.send_signal(signal.SIGCONT)
    # Accepted after the one before it, and so answered after it, too.
    assert browse(served, USER, "/healthz")[0] == 200
    assert sign_in(served, code, 0)[0] == 200


def test_a_client_that_sends_nothing_more_has_no_user(served):
    """Its socket still names its user, but is no established one: only those are believed."""
    _, code, _ = link(served, 0)
    host, _, port = served.address().rpartition(":")
    served.process.send_signal(signal.SIGSTOP)  # so that it is accepted only afterwards
    try:
        client = socket.create_connection((host, int(port)), timeout=LIMIT)
        client.sendall(f"POST /api/v1/sign-in HTTP/1.1\r\nHost: localhost\r\nAuthorization: Code {code}\r\n\r\n".encode())
        client.shutdown(socket.SHUT_WR)
    finally:
        served.process.send_signal(signal.SIGCONT)
    with client, client.makefile() as answer:
        text = answer.read()
    assert text.startswith("HTTP/1.1 403 ") and "only browsers on the daemon's machine" in text, text
    assert sign_in(served, code, 0)[0] == 200


def test_root_can_make_a_link_for_the_browser_of_who_called_sudo(two):
    daemon, _, _ = two
    result = daemon.run("open", env={"SUDO_UID": str(USER)})
    _, code, _ = LINK.match(result.stdout.strip()).groups()
    assert sign_in(daemon, code, 0)[0] == 403
    status, headers, body = sign_in(daemon, code, USER)
    assert status == 200 and json.loads(body)["session"] == {"user": "root", "user_id": 0, "sees_all": True}
    assert names(browse(daemon, USER, "/api/v1/buffers", Cookie=headers["Set-Cookie"].split(";")[0])[2]) == {"mine", "theirs"}
    _, code, _ = link(daemon, 0, "--user", OTHER)
    assert sign_in(daemon, code, OTHER)[0] == 200
    result = daemon.run("open", "--user", OTHER, before=become(USER))
    assert result.returncode == 1 and "only root may" in result.stderr and not result.stdout


def test_signing_out_ends_the_session(two):
    daemon, _, _ = two
    jar, other = cookie(daemon, USER), cookie(daemon, USER)
    status, headers, body = browse(daemon, USER, "/api/v1/sign-out", "POST", Cookie=jar)
    assert status == 200 and check_schema(json.loads(body))["session"] is None
    assert "Max-Age=0" in headers["Set-Cookie"]
    assert browse(daemon, USER, "/api/v1/buffers", Cookie=jar)[0] == 401
    assert browse(daemon, USER, "/api/v1/buffers", Cookie=other)[0] == 200


def test_sessions_and_links_end_with_the_daemon(served):
    jar, (where, code, _) = cookie(served, USER), link(served, USER)
    served.stop()
    served.start("--group", str(GROUP), "--keeper", "no", "--http", where)
    assert browse(served, USER, "/api/v1/buffers", Cookie=jar)[0] == 401
    assert sign_in(served, code, USER)[0] == 401


CROSS = [
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},  # a page on another port of this machine
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_pages_of_other_sites_can_use_neither_link_nor_cookie(served, headers):
    _, code, _ = link(served, USER)
    status, _, body = sign_in(served, code, USER, **headers)
    assert status == 403 and "another site" in body
    jar = cookie(served, USER)
    assert browse(served, USER, "/api/v1/buffers", Cookie=jar, **headers)[0] == 401
    assert browse(served, USER, "/api/v1/sign-out", "POST", Cookie=jar, **headers)[0] == 403
    ours = {"Origin": f"http://{served.address()}", "Sec_Fetch_Site": "same-origin"}
    assert browse(served, USER, "/api/v1/buffers", Cookie=jar, **ours)[0] == 200
    assert sign_in(served, code, USER, **ours)[0] == 200


def test_a_foreign_name_for_the_server_gets_nothing(served):
    _, code, _ = link(served, USER)
    jar = cookie(served, USER)
    assert sign_in(served, code, USER, Host="evil.example")[0] == 421
    assert browse(served, USER, "/api/v1/buffers", Cookie=jar, Host="evil.example")[0] == 421
    assert sign_in(served, code, USER)[0] == 200


def test_what_fetches_addresses_cannot_use_up_a_link(served):
    """Scanners and prefetchers know only GET, HEAD, and what is before the "#"."""
    _, code, _ = link(served, USER)
    for method in ("GET", "HEAD"):
        status, headers, _ = browse(served, USER, "/api/v1/sign-in", method, Authorization=f"Code {code}")
        assert (status, headers["Allow"]) == (405, "POST")
        assert browse(served, USER, "/", method)[0] == 200
    assert browse(served, USER, f"/api/v1/sign-in?code={code}", "POST")[0] == 400
    assert browse(served, USER, "/api/v1/sign-in", "POST")[0] == 401
    assert sign_in(served, code, USER)[0] == 200


WRONG = ["", "0", "0" * 64, "0" * 65, "f" * 64, "x" * 64, "0" * 4000, "../" * 20, "%00"]


@pytest.mark.parametrize("secret", WRONG, ids=lambda text: text[:8] + str(len(text)))
def test_guesses_get_nothing(served, secret):
    cookie(served, USER)
    link(served, USER)
    assert sign_in(served, secret, USER)[0] == 401
    port = served.address().rpartition(":")[2]
    assert browse(served, USER, "/api/v1/buffers", Cookie=f"ttmem-{port}={secret}")[0] == 401
    assert browse(served, USER, "/api/v1/buffers", Cookie=f"ttmem-{port}")[0] == 401


FLOOD = """
import socket, sys
for _ in range(2000):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(sys.argv[1])
        client.send(b"GET /api/v1/open HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        assert b" 200 " in client.recv(65536)
"""


def test_a_flood_of_one_user_costs_another_no_link(served):
    _, code, _ = link(served, USER)
    subprocess.run([*become(OTHER), sys.executable, "-c", FLOOD, str(served.socket)], check=True, timeout=LIMIT)
    assert sign_in(served, link(served, USER)[1], USER)[0] == 200
    assert sign_in(served, code, USER)[0] == 200


def test_the_daemons_own_socket_alone_makes_links(served):
    assert browse(served, USER, "/api/v1/open")[0] == 403
    jar = cookie(served, USER)
    assert browse(served, USER, "/api/v1/open", Cookie=jar)[0] == 403


def test_no_link_to_a_port_that_is_another_users(place):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        place.start("--keeper", "no", "--http", f"127.0.0.1:{port}")
        wait_for(lambda: "in use by" in place.run("status").stdout, "who has the port")
        result = place.run("open", before=become(USER))
        assert result.returncode == 1 and not result.stdout
        assert f"HTTP is not served on 127.0.0.1:{port} (in use by process" in result.stderr and "--http" in result.stderr


def test_no_link_without_http(place):  # noqa: F811
    place.start("--keeper", "no")
    result = place.run("open", before=become(USER))
    assert result.returncode == 1 and "--http none" in result.stderr and not result.stdout


def test_a_link_names_a_process_or_a_device(two):
    daemon, mine, _ = two
    assert link(daemon, USER, mine.pid)[2] == f"/process/{mine.pid}"
    assert link(daemon, USER, "0")[2] == "/device/0"
    daemon.player("device 3 0xabc wormhole_b0 n150 0 1000 100", "alloc 3 DRAM 0x1000 1", before=become(USER))
    wait_for(lambda: link(daemon, USER, "0")[2] and len(daemon.json("smi")["devices"]) == 2, "the device")
    assert link(daemon, USER, "3")[2] == link(daemon, USER, "0xabc")[2] == "/device/0xabc"
    result = daemon.run("open", "0x999", before=become(USER))
    assert result.returncode == 1 and "neither a process nor a device" in result.stderr and not result.stdout


def listen(daemon, user, jar):
    """A stream of that user's that has begun."""
    words = [*become(user), sys.executable, "-uc", STREAM, daemon.address(), jar]
    process = daemon.adopt(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
    assert process.stdout.readline() == "listening\n"
    return process


STREAM = """
import http.client, sys
client = http.client.HTTPConnection(sys.argv[1], timeout=100)
client.request("GET", "/api/v1/stream", headers={"Cookie": sys.argv[2]})
answer = client.getresponse()
while b"event: totals" not in answer.readline():
    pass
print("listening")
while line := answer.readline():
    if b"event: incident" in line:
        print(answer.readline().decode().strip())
"""


def test_the_stream_tells_details_of_own_incidents_until_the_end_of_the_session(two):
    daemon, mine, theirs = two
    jar = cookie(daemon, USER)
    stream = listen(daemon, USER, jar)
    theirs.play("free 0 DRAM 0x1000", "free 0 DRAM 0x1000")
    told = stream.stdout.readline()
    assert f'"pid":{theirs.pid}' in told and "double_free" in told and "theirs" not in told
    mine.play("free 0 DRAM 0x1000", "free 0 DRAM 0x1000")
    told = stream.stdout.readline()
    assert f'"pid":{mine.pid}' in told and '"name":"mine"' in told
    browse(daemon, USER, "/api/v1/sign-out", "POST", Cookie=jar)
    later = daemon.player("alloc 1 DRAM 0x9000 8 later", "free 1 DRAM 0x9000", "free 1 DRAM 0x9000", before=become(USER))
    told = stream.stdout.readline()
    assert f'"pid":{later.pid}' in told and "later" not in told
    stream.stdout.close()


CROWD = """
import http.client, sys
kept = []
for _ in range(100):
    client = http.client.HTTPConnection(sys.argv[1], timeout=100)
    client.request("GET", "/api/v1/stream", headers={"Cookie": sys.argv[2]})
    answer = client.getresponse()
    kept.append((client, answer))
    assert answer.status == 200, answer.status
print("taken", flush=True)
sys.stdin.read()
"""


def test_streams_of_one_user_who_is_signed_in_leave_places_for_others(served):
    words = [*become(OTHER), sys.executable, "-c", CROWD, served.address(), cookie(served, OTHER)]
    crowd = served.adopt(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    assert crowd.stdout.readline() == "taken\n"
    listening = re.search(r"^ttmem_http_subscribers (\d+)", served.fetch("/metrics")[1], re.M)
    assert int(listening[1]) <= 8
    listen(served, USER, cookie(served, USER)).stdout.close()
    crowd.stdin.close()
    crowd.stdout.close()


OPENER = """#!/bin/sh
printf '%s\\n' "$@" >"$0.part" && mv "$0.part" "$0.said"
"""


def on_a_terminal(daemon, folder, *words, **env):
    """Runs the command at a terminal with a desktop. Returns what it printed."""
    (folder / "xdg-open").write_text(OPENER)
    (folder / "xdg-open").chmod(0o755)
    env = {**daemon.env, "DISPLAY": ":0", "PATH": f"{folder}:{daemon.env['PATH']}", **env}
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as screen:
        command = [str(daemon.build / "src" / "cli" / "ttmem"), "open", *words]
        process = subprocess.Popen(command, env={k: v for k, v in env.items() if v}, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := screen.read(4096):
                text += part
    assert process.wait(timeout=LIMIT) == 0, text
    return text.decode()


def test_a_desktop_opens_the_link(served, tmp_path):
    text = on_a_terminal(served, tmp_path, SUDO_UID="")
    (link_said,) = (tmp_path / "xdg-open.said").read_text().splitlines()
    assert LINK.match(link_said) and link_said in text and "It works once, within 60 s" in text


@pytest.mark.parametrize("words,env", [(["--print"], {"SUDO_UID": ""}), ([], {"SUDO_UID": "", "DISPLAY": ""}), ([], {"SUDO_UID": str(USER)})])
def test_nothing_is_opened_where_that_is_not_meant(served, tmp_path, words, env):
    assert "/#/open/" in on_a_terminal(served, tmp_path, *words, **env)
    assert not (tmp_path / "xdg-open.said").exists()


def test_an_opener_that_fails_leaves_the_link(served, tmp_path):
    text = on_a_terminal(served, tmp_path, SUDO_UID="", PATH="/nonexistent")
    assert "/#/open/" in text and "open the link yourself" in text
