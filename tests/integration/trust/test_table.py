# SPDX-License-Identifier: Apache-2.0
"""The table "Who sees what" of SECURITY.md: every cell is read there and played here.

Real users, and real namespaces with the socket's folder mounted as in a container. The table says what is
expected; a door or a column that this file does not know, or that the table does not have, is an error.
"""

import ast
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from common import become, shared_folder
from conftest import LIMIT, ROOT, has_legacy
from ttmemd import Ttmemd
from world import wait_for

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others"),
]

USER, OTHER, GROUP = 12345, 12346, 54321
BARE = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
ASKER = (Path(__file__).parents[1] / "support" / "asker.py").read_text(encoding="utf-8")

# What there is, by who has it: a buffer "live-..." of a process that lives, and "dead-..." of one that was killed.
OWNERS = ("host-root", "host-user", "host-other", "one-root", "one-user", "two-user", "rootless")
ADDRESSES = {f"{state}-{owner}": f"0x{base + 0x1000 * (i + 1):x}"
             for base, state in ((0x5EED0000, "live"), (0xDEAD0000, "dead")) for i, owner in enumerate(OWNERS)}

# Columns of the table: whose details are "own" or of the "container".
COLUMNS = {
    "root": set(OWNERS),
    "member": set(OWNERS),
    "user": {"host-user"},
    "other": {"host-other"},
    "container-root": {"one-root", "one-user"},
    "container-bare": {"one-root", "one-user"},
    "container-user": {"one-user"},
    "twin": {"two-user"},
    "rootless": {"rootless"},
    "unmapped": set(),
}
UNMAPPED = {"host-root", "host-user", "host-other"}  # what its daemon knows
STREAM = "told-host-root"

# Doors that show what lives, what was left behind, or both.
PAST = {"native-leaks", "native-incidents", "recordings"}
BOTH = {"native-dump", "native-history", "native-moments", "native-peak", "tcp-token", "tcp-open"}
FILES = {"log", "database", "token"}
MAPS = {"native-map", "tcp-open-map"}  # sums over all processes, without names


def table():
    """{(door, column): words} of SECURITY.md."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    text = text[text.index("## Who sees what") :]
    text = text[text.index("| door |") :]
    lines = text[: text.index("\n\n")].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head = [cell.strip("`") for cell in rows[0]]
    cells = {}
    for row in rows[2:]:
        assert len(row) == len(head), row
        for column, cell in zip(head[2:], row[2:]):
            cells[row[0].strip("`"), column] = cell
    return cells


TABLE = table()
PLAYED = [pytest.param(door, column, marks=[pytest.mark.legacy] * door.startswith("old-"), id=f"{door}-{column}")
          for door, column in sorted(TABLE)]


class World:
    """A daemon, and one of every kind of process and client for it."""

    def __init__(self, build, folder, before=()):
        self.run = folder / "run"
        self.scratch = folder / "scratch"
        for path, mode in ((self.run, 0o755), (self.scratch, 0o1777), (folder / "blind", 0o755), (folder / "logs", 0o755)):
            path.mkdir()
            path.chmod(mode)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TTMEM", "TT_ALLOC"))}
        env.update(XDG_RUNTIME_DIR=str(folder / "none"), LC_ALL="C.UTF-8", TTMEM_SHM_DIR=str(folder / "shm"),
                   TTMEM_SYS_ROOT=str(folder / "sys"))
        self.daemon = Ttmemd(build, env, folder)
        self.daemon.socket, self.daemon.legacy = self.run / "s", self.run / "old"
        self.daemon.env["TTMEM_SOCKET"] = str(self.daemon.socket)
        self.daemon.start("--group", GROUP, "--keeper", "no", "--http", "127.0.0.1:0", "--log", folder / "logs" / "details",
                          before=before)
        self.inside = {}
        self.answers = {}

    def container(self, name, before=(), user=False):
        """Namespaces with the socket's folder at /run/ttmem and nothing else of the daemon's."""
        script = (
            "mount -t tmpfs none /run && mkdir /run/ttmem && "
            f"mount --bind {self.run} /run/ttmem && mount -o remount,bind,ro /run/ttmem && "
            f"mount -t tmpfs none {self.daemon.folder / 'logs'} && "
            f"{'' if user else f'mount -t tmpfs none {self.daemon.state} && '}"
            "! touch /run/ttmem/x 2>/dev/null && echo ready && exec sleep infinity"
        )
        namespaces = ("--user", "--map-root-user") if user else ()
        process = self.daemon.adopt(subprocess.Popen(
            [*before, "unshare", *namespaces, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
            stdout=subprocess.PIPE, text=True))
        assert process.stdout.readline() == "ready\n"
        process.stdout.close()
        (inner,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.inside[name] = ("nsenter", "--target", inner, "--mount", "--pid",
                             *(("--user", "--preserve-credentials") if user else ()))

    def play(self, owner, before):
        socket = "/run/ttmem/s" if "nsenter" in before else str(self.daemon.socket)
        live, dead = f"live-{owner}", f"dead-{owner}"
        player = self.daemon.player(
            f"alloc 0 DRAM {ADDRESSES[live]} 1024 {live}", f"mark {live}", before=before, words=[live], TTMEM_SOCKET=socket)
        victim = self.daemon.player(
            f"alloc 0 DRAM {ADDRESSES[dead]} 1024 {dead}", f"alloc 0 L1 {ADDRESSES[dead]} 64 {dead}",
            f"free 0 L1 {ADDRESSES[dead]}", f"free 0 L1 {ADDRESSES[dead]}", f"mark {dead}", before=before, TTMEM_SOCKET=socket)
        return player, victim

    def ask(self, column, before):
        """What this client is told by each door."""
        inside = "nsenter" in before
        folder = "/run/ttmem" if inside else str(self.run)
        state = self.daemon.state
        setup = {
            "socket": f"{folder}/s", "legacy": f"{folder}/old" if has_legacy() else None, "http": self.daemon.json("status")["http"],
            "token": (state / "http-token").read_text().strip(), "ttmem": str(self.daemon.build / "src" / "cli" / "ttmem"),
            "env": {"TTMEM_SOCKET": f"{folder}/s", "TTMEM_PROC_ROOT": str(self.daemon.folder / "blind")},
            "scratch": str(self.scratch), "addresses": list(ADDRESSES.values()),
            "recordings": [str(path) for path in (state / "flight").glob("*/*.ttrec")],
            "files": {"log": str(self.daemon.folder / "logs" / "details"), "database": str(next(state.glob("*.db"))),
                      "token": str(state / "http-token")},
        }  # fmt: skip
        asker = self.daemon.adopt(subprocess.Popen(
            [*before, sys.executable, "-B", "-c", ASKER], env=self.daemon.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        asker.stdin.write(json.dumps(setup) + "\n")
        asker.stdin.flush()
        assert asker.stdout.readline() == "listening\n"
        # A new process: what one does again and again is told less and less often.
        self.daemon.player(f"alloc 1 DRAM 0x7000 8 {STREAM}", *["free 1 DRAM 0x7000"] * 2)
        text, _ = asker.communicate(timeout=LIMIT / 2)
        assert asker.returncode == 0, column
        self.answers[column] = json.loads(text)


@contextlib.contextmanager
def opened(build, before=()):
    with shared_folder() as folder:
        world = World(build, folder, before)
        try:
            yield world
        finally:
            world.daemon.close()


def wait_for_incidents(daemon, count):
    def is_told():
        told = daemon.json("incidents")
        # One row may have those of several owners; a daemon of another namespace hides them from our root.
        return told["hidden"] + sum(row["count"] for row in told["incidents"]) >= count

    wait_for(is_told, "their incidents")


def wait_for_past(world, count):
    wait_for(lambda: len(world.daemon.json("leaks")["processes"]) >= count
             and "double_free" in world.daemon.run("incidents").stdout, "the past")


def wait_for_peaks(daemon):
    """Those of the living are looked at once a second."""
    host = daemon.json("status")["http"]
    token = (daemon.state / "http-token").read_text().strip()

    def is_known():
        with contextlib.closing(http.client.HTTPConnection(host, timeout=LIMIT)) as connection:
            connection.request("GET", "/api/v1/peak", headers={"Authorization": f"Bearer {token}"})
            text = connection.getresponse().read().decode()
        return all(name in text for name in ADDRESSES)

    wait_for(is_known, "all peaks")


@pytest.fixture(scope="module")
def answers(build):
    """{column: {door: text}}"""
    with opened(build) as world:
        world.container("one")
        world.container("two")
        world.container("rootless", before=become(USER), user=True)
        one, two = world.inside["one"], world.inside["two"]
        rootless = (*become(USER), *world.inside["rootless"])
        players = {
            "host-root": (), "host-user": become(USER), "host-other": become(OTHER), "one-root": one,
            "one-user": (*one, *become(USER)), "two-user": (*two, *become(USER)), "rootless": rootless,
        }  # fmt: skip
        pairs = {owner: world.play(owner, before) for owner, before in players.items()}
        wait_for(lambda: world.daemon.json("status")["books"] == 2 * len(OWNERS), "all books")
        wait_for_incidents(world.daemon, len(OWNERS))
        for _, victim in pairs.values():
            victim.kill()
        wait_for_past(world, len(OWNERS))
        world.daemon.wait_for_recordings(len(OWNERS))
        wait_for_peaks(world.daemon)
        clients = {
            "root": (), "member": become(USER, groups=(7, GROUP)), "user": become(USER), "other": become(OTHER),
            "container-root": one, "container-bare": (*one, *BARE), "container-user": (*one, *become(USER, groups=(GROUP,))),
            "twin": (*two, *become(USER, groups=(GROUP,))), "rootless": rootless,
        }  # fmt: skip
        for column, before in clients.items():
            world.ask(column, before)
        # A daemon in a user namespace, where all users but its own have one number.
        with opened(build, ("unshare", "--user", "--map-root-user")) as inner:
            for owner, before in (("host-root", ()), ("host-user", become(USER)), ("host-other", become(OTHER))):
                inner.play(owner, before)[1].kill()
            wait_for(lambda: inner.daemon.json("status")["ended"] >= 3, "the ends")
            wait_for_incidents(inner.daemon, 3)
            inner.daemon.wait_for_recordings(3)
            inner.ask("unmapped", become(OTHER))
        yield {**world.answers, **inner.answers}


def seen(door, text):
    """Whose details are in a text."""
    states = ["dead"] if door in PAST else ["live", "dead"] if door in BOTH else ["live"]
    found = {owner for owner in OWNERS for state in ("live", "dead") if f"{state}-{owner}" in text}
    if door != "native-history":  # which repeats the question
        found |= {name.split("-", 1)[1] for name, address in ADDRESSES.items() if re.search(rf"{address}\b", text)}
    for owner in found if door not in FILES else ():
        for state in states:
            assert f"{state}-{owner}" in text, f"{door} shows only half of {owner}"
    return found


@pytest.mark.parametrize("door,column", PLAYED)
def test_cell(answers, door, column):
    word = TABLE[door, column]
    text = answers[column][door]
    if "stream" in door:
        # The incident is root's; test_open.py has one of who listens.
        sees = "all" if word == "all" else "totals"
        assert {"all": STREAM in text, "totals": STREAM not in text and "double_free" in text}[sees], text
        return
    found = seen(door, text)
    if door in MAPS:
        assert text.startswith({"all": "200 ", "nothing": "40"}[word])
    elif word == "all" and door in ("token", "database"):
        assert text.startswith("200 ")  # what is in it is in no plain text
    elif word == "all":
        assert found == (UNMAPPED if column == "unmapped" else set(OWNERS))
    elif word in ("own", "container"):
        assert found == COLUMNS[column]
        assert (word == "container") == (column in ("container-root", "container-bare", "rootless"))
    else:
        assert word in ("totals", "nothing") and not found
        assert (word == "totals") == bool(re.search(r"player|dram [1-9]|[1-9]\d* buffers, |others_bytes.:[1-9]", text)), text[:200]


def test_the_table_is_whole():
    """Every door with every column, and nothing that is not played."""
    doors, columns = {door for door, _ in TABLE}, {column for _, column in TABLE}
    assert columns == set(COLUMNS)
    asked = {node.slice.value for node in ast.walk(ast.parse(ASKER))
             if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "doors"
             and isinstance(node.slice, ast.Constant)} | FILES
    assert asked == doors
    assert set(TABLE) == {(door, column) for door in doors for column in columns}


def test_tests_that_security_names_exist():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)", text))
    there = {name for path in (ROOT / "tests").rglob("test_*.py")
             for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M)}
    assert named and named <= there, named - there
