# SPDX-License-Identifier: Apache-2.0
"""Who may keep books for whom, and what a link tells whom: forgeries by other users and from other namespaces."""

import os

import pytest

from common import become, shared_folder
from linked import WANT_BOOKS, WANT_LINES, Keeper
from nativesocket import document
from world import wait_for

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others"),
]

USER, OTHER = 12345, 12346
AS_USER, AS_OTHER = become(USER), become(OTHER)


@pytest.fixture
def daemon(ttmemd):
    with shared_folder() as folder:
        ttmemd.offers = folder / "offers"
        ttmemd.offers.mkdir()
        ttmemd.offers.chmod(0o1777)
        ttmemd.socket = folder / "s"
        ttmemd.env["TTMEM_SOCKET"] = str(ttmemd.socket)
        yield ttmemd.start("--legacy-socket", "none", "--keeper", "no")
        if ttmemd.process:
            ttmemd.stop()


def keeper_of(daemon, before=(), want=0):
    return Keeper(daemon, daemon.offers, before).link(want)


def wait_until(daemon, books, refused):
    """It publishes its counts once a second."""

    def is_so():
        status = daemon.json("status")
        return (status["books"], status["books_refused"]) == (books, refused)

    wait_for(is_so, f"{books} books, {refused} refused")


def test_a_user_keeps_books_for_its_own_processes_only(daemon):
    keeper = keeper_of(daemon, AS_USER)
    own = keeper.learn("own", "alloc 0 DRAM 0x1000 64 own", before=AS_USER)
    keeper.learn("foreign", "alloc 0 DRAM 0x1000 64 foreign", before=AS_OTHER)
    keeper.learn("roots", "alloc 0 DRAM 0x1000 64 roots")
    for name in ("foreign", "roots"):
        keeper("offer", name)
        # Nor as if its own process were the other's, whatever the book says of its user.
        keeper("offer", name, pidfd="own")
        keeper("offer", name, uid=USER)
    keeper("sync")
    wait_until(daemon, 0, 6)
    keeper("offer", "own", uid=0, keeper=1)
    keeper("sync")
    wait_until(daemon, 1, 6)
    (row,) = document(daemon, "/api/v1/ps")["processes"]
    assert (row["pid"], row["user_id"]) == (own.pid, USER)


@pytest.mark.parametrize("wrong", [
    {"pidfd": "none"}, {"pidfd": "second"}, {"pid": 1}, {"start": 5}, {"namespace": 7}, {"source": 1}, {"seals": 0},
], ids=str)  # fmt: skip
def test_what_is_wrong_with_an_offer_refuses_it(daemon, wrong):
    """Everything else is right: without it the same is taken."""
    keeper = keeper_of(daemon, AS_USER)
    keeper.learn("first", "alloc 0 DRAM 0x1000 64 first", before=AS_USER)
    keeper.learn("second", "alloc 0 DRAM 0x1000 64 second", before=AS_USER)
    keeper("offer", "first", **wrong)
    keeper("sync")
    wait_until(daemon, 0, 1)
    keeper("offer", "first")
    keeper("sync")
    wait_until(daemon, 1, 1)


def test_an_ended_process_is_not_believed_of_a_user(daemon):
    keeper = keeper_of(daemon, AS_USER)
    player = keeper.learn("own", "alloc 0 DRAM 0x1000 64 own", before=AS_USER)
    player.kill()
    keeper("offer", "own", user=USER)
    keeper("sync")
    wait_until(daemon, 0, 1)


def test_root_keeps_books_for_everybody_and_each_sees_its_own(daemon):
    keeper = keeper_of(daemon)
    keeper.learn("user", "alloc 0 DRAM 0x1000 64 of-user", before=AS_USER)
    keeper.learn("other", "alloc 0 DRAM 0x1000 64 of-other", before=AS_OTHER)
    for name in ("user", "other"):
        keeper("offer", name, uid=0)
    keeper("sync")
    wait_until(daemon, 2, 0)
    reader = keeper_of(daemon, AS_USER, WANT_BOOKS)
    told = reader("sync")
    players = {row["user_id"]: row["pid"] for row in document(daemon, "/api/v1/ps")["processes"]}
    assert [one[1] for one in told if one[0] == "book"] == [players[USER]]
    reader = keeper_of(daemon, (), WANT_BOOKS)
    # What root's other program keeps is told to all of root's.
    assert {one[1] for one in reader("sync") if one[0] == "book"} == set(players.values())


def test_a_user_does_not_end_or_replace_what_root_keeps(daemon):
    keeper = keeper_of(daemon)
    player = keeper.learn("a", "alloc 0 DRAM 0x1000 64 a", before=AS_USER)
    keeper("offer", "a")
    keeper("sync")
    hostile = keeper_of(daemon, AS_USER)
    hostile.learn("a", "alloc 0 DRAM 0x1000 64 forged", before=AS_USER)
    hostile("offer", "a")
    player.kill()
    hostile("closed", "a")
    hostile("hang_up")
    keeper("sync")
    assert player.pid in {row["pid"] for row in document(daemon, "/api/v1/ps")["processes"]}


BELOW = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
ROOTLESS = (*AS_USER, "unshare", "--user", "--map-root-user")


@pytest.mark.parametrize("before", [BELOW, (*BELOW, *AS_USER), ROOTLESS], ids=["container", "container-user", "rootless"])
def test_other_namespaces_keep_nothing_and_are_told_nothing(daemon, before):
    """Their pids and users have other numbers there."""
    player = daemon.player("alloc 0 DRAM 0x1000 64 secret", before=AS_USER)
    wait_until(daemon, 1, 0)
    keeper = Keeper(daemon, daemon.offers, before)
    keeper("connect", str(daemon.socket), WANT_BOOKS)
    assert keeper("is_gone") is True
    assert player.process.poll() is None


def test_what_a_user_says_of_old_clients_is_not_shown(daemon):
    keeper = keeper_of(daemon, AS_USER)
    keeper("state", path="/run/forged", connections=7)
    keeper("sync")
    assert "old_clients" not in {door["name"] for door in daemon.json("status")["doors"]}


def test_reports_are_not_printed_by_a_user(daemon):
    """It would keep them from the log, and they are about everybody."""
    keeper = keeper_of(daemon, AS_USER, WANT_BOOKS | WANT_LINES)
    player = daemon.player("alloc 0 DRAM 0x1000 64 secret", before=AS_OTHER)
    wait_until(daemon, 1, 0)
    player.kill()
    wait_for(lambda: f"Process {player.pid} exited" in daemon.text(), "the line")
    assert [one[0] for one in keeper("sync")] == ["synced"]
