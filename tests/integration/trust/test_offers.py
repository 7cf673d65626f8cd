# SPDX-License-Identifier: Apache-2.0
"""To whom a program hands its book: real users and user namespaces, and listeners that should not have it."""

import contextlib
import ctypes
import os
import socket
import subprocess
import sys

import pytest

from common import become, shared_folder
from conftest import LIMIT
from world import Player

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others"),
]

ROOT_USER, DAEMON, USER, OTHER = 0, 12344, 12345, 12346
CLONE_NEWUSER = 0x10000000

# Listens, and prints for each connection how many bytes and descriptors came before its end or a pause.
LISTENER = """
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
__import__("os").chmod(sys.argv[1], 0o666)
listener.listen()
print("listening", flush=True)
input()
listener.setblocking(False)
try:
    connection = listener.accept()[0]
except BlockingIOError:
    print("nobody came")
    raise SystemExit
connection.settimeout(60)
message, fds, _, _ = socket.recv_fds(connection, 1000, 10)
print(f"{len(message)} bytes, {len(fds)} descriptors")
"""
OFFERED, REFUSED = "16 bytes, 2 descriptors", "0 bytes, 0 descriptors"


# With the build in /tmp/build, as a user without a session: its daemon, its command and its programs.
ALONE = """
import json, os, subprocess
BUILD = "/tmp/build/"
reading, writing = os.pipe()
words = "--config none --http none --legacy-socket none --keeper no --scan-interval 1d --state /tmp/state --ready-fd"
daemon = subprocess.Popen([BUILD + "src/daemon/ttmemd", *words.split(), str(writing)], pass_fds=[writing])
os.close(writing)
assert os.read(reading, 1) == b"\\n"
player = subprocess.Popen([BUILD + "tests/programs/player"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**os.environ, "TTMEM": "1"})
player.stdin.write(b"alloc 0 DRAM 0x1000 64 secret\\n")
player.stdin.flush()
assert player.stdout.readline() == b"ok\\n"
books = 0
while not books:  # nobody looks for it: it was handed over
    books = json.loads(subprocess.run([BUILD + "src/cli/ttmem", "status", "--json"], capture_output=True).stdout)["books"]
player.kill()
daemon.terminate()
assert daemon.wait() == 0
folder = os.lstat(f"/tmp/ttmem-{os.getuid()}")
print(books, oct(folder.st_mode), folder.st_uid)
"""


class Places:
    """A folder that may be mounted at /run, one at /tmp, and one for XDG_RUNTIME_DIR."""

    def __init__(self, build, folder):
        self.build = build
        self.run = folder / "run"
        self.runtime = folder / "runtime"
        self.tmp = folder / "tmp"
        self.listeners = []
        (self.tmp / "build").mkdir(parents=True)
        self.tmp.chmod(0o1777)
        for place in (self.run, self.runtime):
            place.mkdir(mode=0o755)
            (place / "ttmem").mkdir()
            (place / "ttmem").chmod(0o777)

    def listen(self, place, user, owner=None):
        """@owner: of the folder, if that is not @user."""
        return self.listen_in(place / "ttmem", user, owner)

    def listen_in(self, folder, user, owner=None):
        os.chown(folder, user if owner is None else owner, 0)
        listener = subprocess.Popen(
            [*become(user), sys.executable, "-c", LISTENER, str(folder / "ttmemd.sock")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.listeners.append(listener)
        assert listener.stdout.readline() == "listening\n"
        return listener

    def alone(self, user, *words, **options):
        """A command of a user without a session, with an empty /tmp and the build in it."""
        mount = 'mount --bind "$1" "$2/build" && mount --rbind "$2" /tmp && shift 2 && exec "$@"'
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TTMEM", "TT_ALLOC", "XDG"))}
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mount, "sh", self.build, self.tmp, *become(user), *words],
            env={**env, **options}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def heard_alone(self, listener, user):
        """What a listener received of such a user's first allocation."""
        player = self.alone(user, "/tmp/build/tests/programs/player", TTMEM="1")
        try:
            with player.stdin, player.stdout:
                player.stdin.write("alloc 0 DRAM 0x1000 64 secret\n")
                player.stdin.flush()
                assert player.stdout.readline() == "ok\n"
                return listener.communicate("\n", timeout=LIMIT)[0].strip()
        finally:
            player.kill()
            player.wait()

    def heard(self, listener, before=(), run=False, **settings):
        """What a listener received of a program's first allocation. The program's own words are @before."""
        mount = ("sh", "-c", f'mount --bind {self.run} /run && exec "$@"', "sh") if run else ()
        alone = ("unshare", "--mount", *mount) if run and "unshare" not in before else mount
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TTMEM", "TT_ALLOC", "XDG"))}
        words = [*before, *alone] if "unshare" in before else [*alone, *before]
        player = Player([*words, str(self.build / "tests" / "programs" / "player")],
                        {**env, "TTMEM": "1", "XDG_RUNTIME_DIR": str(self.runtime), **settings})  # fmt: skip
        try:
            player.play("alloc 0 DRAM 0x1000 64 secret")
            return listener.communicate("\n", timeout=LIMIT)[0].strip()
        finally:
            player.kill()
            player.process.stdin.close()
            player.process.stdout.close()

    def close(self):
        for listener in self.listeners:
            listener.kill()
            listener.communicate()


@pytest.fixture
def places(build):
    with shared_folder() as folder:
        made = Places(build, folder)
        yield made
        made.close()


@pytest.mark.parametrize("user", [ROOT_USER, USER])
def test_a_runtime_folder_of_another_user_is_offered_nothing(places, user):
    """XDG_RUNTIME_DIR as su and `sudo --preserve-env` leave it."""
    listener = places.listen(places.runtime, OTHER)
    assert places.heard(listener, become(user)) == REFUSED


@pytest.mark.parametrize("listens", [ROOT_USER, USER])
def test_a_runtime_folder_is_for_its_user_and_root(places, listens):
    listener = places.listen(places.runtime, listens)
    assert places.heard(listener, become(USER)) == OFFERED


def test_a_socket_that_was_named_is_trusted(places):
    listener = places.listen(places.runtime, OTHER)
    path = str(places.runtime / "ttmem" / "ttmemd.sock")
    assert places.heard(listener, become(USER), TTMEM_SOCKET=path) == OFFERED
    (places.runtime / "ttmem" / "ttmemd.sock").unlink()
    listener = places.listen(places.runtime, OTHER)
    assert places.heard(listener, become(USER), TTMEM_OFFER=path, TTMEM_SOCKET="none") == OFFERED


@pytest.mark.parametrize("listens", [ROOT_USER, DAEMON])
def test_the_system_folder_is_for_its_owner_and_root(places, listens):
    listener = places.listen(places.run, listens, owner=DAEMON)
    assert places.heard(listener, become(USER), run=True) == OFFERED


@pytest.mark.parametrize("listens", [USER, OTHER])
def test_others_in_the_system_folder_are_offered_nothing(places, listens):
    """Not even the program's own user: it would hide the daemon from everybody else."""
    listener = places.listen(places.run, listens, owner=DAEMON)
    assert places.heard(listener, become(USER), run=True) == REFUSED


def test_behind_an_impostor_the_users_own_daemon_is_found(places):
    impostor = places.listen(places.run, OTHER, owner=DAEMON)
    own = places.listen(places.runtime, USER)
    assert places.heard(own, become(USER), run=True) == OFFERED
    assert impostor.communicate("\n", timeout=LIMIT)[0].strip() == REFUSED


@pytest.mark.parametrize("listens", [ROOT_USER, USER])
def test_without_a_session_the_users_folder_in_tmp_is_offered_to(places, listens):
    """su, cron and containers set no XDG_RUNTIME_DIR."""
    folder = places.tmp / f"ttmem-{USER}"
    folder.mkdir(mode=0o700)
    listener = places.listen_in(folder, listens, owner=USER)
    assert places.heard_alone(listener, USER) == OFFERED


@pytest.mark.parametrize("user", [ROOT_USER, USER])
@pytest.mark.parametrize("owner,mode,listens", [(OTHER, 0o755, OTHER), (OTHER, 0o777, USER), (OTHER, 0o755, ROOT_USER),
                                                (None, 0o777, OTHER), (None, 0o770, ROOT_USER)])  # fmt: skip
def test_a_folder_in_tmp_that_others_have_made_is_not_looked_into(places, user, owner, mode, listens):
    """None: it is the user's, but others may put a socket there."""
    folder = places.tmp / f"ttmem-{user}"
    folder.mkdir()
    folder.chmod(mode)
    listener = places.listen_in(folder, listens, owner=user if owner is None else owner)
    assert places.heard_alone(listener, user) == "nobody came"


def test_the_command_asks_no_daemon_in_such_a_folder(places):
    """Not even one of its own user: somebody else has put it there."""
    folder = places.tmp / f"ttmem-{USER}"
    folder.mkdir()
    folder.chmod(0o777)
    listener = places.listen_in(folder, USER, owner=OTHER)
    asked = places.alone(USER, "sh", "-c", "/tmp/build/src/cli/ttmem status 2>&1")
    assert "no ttmemd runs here" in asked.communicate(timeout=LIMIT)[0]
    assert listener.communicate("\n", timeout=LIMIT)[0].strip() == "nobody came"


def test_a_link_in_tmp_is_not_followed(places):
    """Not even to a listener of root."""
    listener = places.listen(places.runtime, ROOT_USER, owner=USER)
    (places.tmp / f"ttmem-{USER}").symlink_to(places.runtime / "ttmem")
    assert places.heard_alone(listener, USER) == "nobody came"


def test_without_a_session_daemon_command_and_programs_find_each_other(places):
    done = places.alone(USER, sys.executable, "-c", ALONE)
    assert done.communicate(timeout=LIMIT)[0].splitlines()[-1] == f"1 0o40700 {USER}"


def test_no_daemon_starts_in_a_folder_that_others_have_made(places):
    (places.tmp / f"ttmem-{USER}").mkdir(mode=0o777)
    done = places.alone(USER, "sh", "-c", "/tmp/build/src/daemon/ttmemd --config none --check 2>&1")
    said = done.communicate(timeout=LIMIT)[0]
    assert f"the folder of /tmp/ttmem-{USER}/ttmemd.sock is not only yours" in said and done.returncode == 1


ROOTLESS = (*become(USER), "unshare", "--user", "--map-root-user", "--mount")


def test_a_rootless_container_offers_to_the_daemon_of_the_host(places):
    """The folder's owner and who listens there have no number inside."""
    listener = places.listen(places.run, DAEMON)
    assert places.heard(listener, ROOTLESS, run=True) == OFFERED


@pytest.mark.parametrize("listens,heard", [(USER, OFFERED), (OTHER, REFUSED)])
def test_a_rootless_container_offers_to_its_own_user(places, listens, heard):
    listener = places.listen(places.runtime, listens)
    assert places.heard(listener, ROOTLESS) == heard


@contextlib.contextmanager
def user_namespace(maps):
    """A process in a new user namespace, whose maps root writes: as newuidmap(1) does for /etc/subuid."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).unshare(CLONE_NEWUSER)
        theirs.send(b"x")
        ours.close()
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    ours.recv(1)
    try:
        for name in ("gid_map", "uid_map") if maps else ():
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                file.write(maps)
        yield pid
    finally:
        ours.close()
        os.waitpid(pid, 0)


SUBUIDS = f"0 {USER} 1\n1 200000 65535\n"


@pytest.mark.parametrize("inside", [0, 1000])
@pytest.mark.parametrize("listens,heard", [(200999, {0: REFUSED, 1000: OFFERED}), (USER, {0: OFFERED, 1000: OFFERED}),
                                           (OTHER, {0: REFUSED, 1000: REFUSED})])  # fmt: skip
def test_a_container_with_subordinate_users(places, inside, listens, heard):
    """200999 is user 1000 inside, USER is its root, OTHER has no number there."""
    with user_namespace(SUBUIDS) as pid:
        listener = places.listen(places.runtime, listens)
        enter = ("nsenter", f"--user=/proc/{pid}/ns/user", f"--setuid={inside}", f"--setgid={inside}")
        assert places.heard(listener, enter) == heard[inside]


@pytest.mark.parametrize("maps,inside", [("", ()), (SUBUIDS, ("--setuid=65534", "--setgid=65534"))])
def test_users_without_a_number_are_not_taken_for_one(places, maps, inside):
    """Both are 65534 there: the program, and every user outside."""
    with user_namespace(maps) as pid:
        listener = places.listen(places.runtime, OTHER)
        enter = ("nsenter", f"--user=/proc/{pid}/ns/user", *(inside or ("--preserve-credentials",)))
        assert places.heard(listener, enter) == REFUSED


def test_user_65534_of_the_machine_is_one_user(places):
    listener = places.listen(places.runtime, 65534)
    assert places.heard(listener, become(65534)) == OFFERED


def test_no_name_service_is_asked(places):
    """The library's own symbols: whoever needs none of these reads no user database."""
    library = places.build / "src" / "lib" / "libttmem.so"
    symbols = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    assert "getsockopt" in symbols
    assert not any(name in symbols for name in ("getpw", "getgr", "initgroups", "nss"))
