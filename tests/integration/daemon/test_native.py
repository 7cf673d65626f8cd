# SPDX-License-Identifier: Apache-2.0
"""The native socket with real users: who sees what, what is remembered, and clients that do harm."""

import contextlib
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import subprocess

import pytest

from conftest import has_legacy
from nativesocket import (  # noqa: F401 (fixtures)
    AS_MEMBER,
    AS_OTHER,
    AS_USER,
    HAS_BOOK,
    MAY_SEE,
    OTHER,
    PROCESS,
    ROSTER,
    STATUS,
    USER,
    connect,
    daemon,
    document,
    get,
    names,
    packets,
    pids_of,
    place,
    request,
    wait_until_seen,
)
from world import check_schema, used, wait_for


def test_a_user_sees_totals_of_all_and_details_of_own_processes(daemon):
    roots = daemon.player("alloc 0 DRAM 0x1000 10 secret")
    theirs = daemon.player("alloc 0 DRAM 0x1000 20 other", before=AS_OTHER)
    mine = daemon.player("alloc 1 L1 0x1000 40 mine", "alloc 1 L1 0x2000 2", before=AS_USER)
    wait_until_seen(daemon, roots.pid, theirs.pid, mine.pid)

    document = daemon.json("smi", before=AS_USER)
    assert used(document, roots.pid) == {(0, "DRAM"): 10}
    assert used(document, theirs.pid) == {(0, "DRAM"): 20}
    assert used(document, mine.pid) == {(1, "L1"): 42}
    assert document["totals"] == {"bytes": 72, "buffers": 4}
    users = {p["pid"]: p["user_id"] for p in document["processes"]}
    assert (users[roots.pid], users[theirs.pid], users[mine.pid]) == (0, OTHER, USER)
    assert pids_of(daemon.json("ps", before=AS_USER)) == pids_of(document)

    document = daemon.json("buffers", before=AS_USER)
    assert names(document) == {"mine", None}
    assert "details of 2 processes of other users are not shown" in document["notes"]
    text = daemon.run("buffers", before=AS_USER)
    assert "secret" not in text.stdout and "details of 2 processes" in text.stderr
    assert daemon.json("history", "0x1000", before=AS_USER)["buffers"][0]["pid"] == mine.pid
    assert len(daemon.json("history", "0x1000", before=AS_USER)["buffers"]) == 1


@pytest.mark.parametrize("before", [(), AS_MEMBER], ids=["root", "member"])
def test_root_and_members_see_all(daemon, before):
    roots = daemon.player("alloc 0 DRAM 0x1000 10 secret")
    theirs = daemon.player("alloc 0 DRAM 0x1000 20 other", before=AS_OTHER)
    wait_until_seen(daemon, roots.pid, theirs.pid)
    document = daemon.json("buffers", before=before)
    assert names(document) == {"secret", "other"} and document["notes"] == []
    document = daemon.json("smi", before=before)
    assert used(document, roots.pid) == {(0, "DRAM"): 10}  # and not twice
    assert len(daemon.json("history", "0x1000", before=before)["buffers"]) == 2
    assert daemon.json("status", before=before)["you_see_all"] is True


def test_totals_are_shown_when_descriptors_run_out(daemon):
    players = [daemon.player(f"alloc 0 DRAM 0x1000 {i + 1}") for i in range(12)]
    wait_until_seen(daemon, *[p.pid for p in players])
    document = daemon.json("smi", before=(*AS_MEMBER, "prlimit", "--nofile=12:12"))
    for i, player in enumerate(players):
        assert used(document, player.pid) == {(0, "DRAM"): i + 1}
    assert any("books could not be opened: too many files" in note for note in document["notes"])


def test_root_trusts_books_kept_by_another_users_daemon(place):
    """As the user ttmem does for clients of the old protocol."""
    os.chown(place.folder, USER, USER)
    place.start("--keeper", "no", before=AS_USER)
    client = place.old_client()
    client.alloc(0, 0, 0x1000, 4096)
    assert client.query(0)[0] == 4096
    document = place.json("smi")
    assert used(document, os.getpid()) == {(0, "DRAM"): 4096} and document["notes"] == []
    (process,) = document["processes"]
    assert (process["source"], process["user_id"], process["book_user_id"]) == ("socket", 0, 0)
    assert place.json("buffers")["buffers"][0]["address"] == "0x1000"
    # It is root's, so neither the daemon's user nor anybody else sees more than totals.
    document = place.json("buffers", before=AS_OTHER)
    assert document["buffers"] == []
    client.close()


def test_members_watch_processes_of_others(daemon):
    roots = daemon.player("alloc 0 DRAM 0x1000 10 first")
    wait_until_seen(daemon, roots.pid)
    watch = daemon.adopt(
        subprocess.Popen(
            [*AS_MEMBER, str(daemon.build / "src/cli/ttmem"), "watch"],
            env=daemon.env,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert str(roots.pid) in watch.stdout.readline()
    roots.play("alloc 0 DRAM 0x2000 20 second")
    assert "second" in watch.stdout.readline()
    watch.stdout.close()


def test_own_processes_are_shown_without_a_daemon(daemon):
    mine = daemon.player("alloc 1 L1 0x1000 40 mine", before=AS_USER)
    daemon.player("alloc 0 DRAM 0x1000 10 secret")
    daemon.kill()
    document = daemon.json("smi", before=AS_USER)
    assert pids_of(document) == {mine.pid} and document["notes"] == []
    assert daemon.json("incidents", before=AS_USER)["incidents"] == []
    assert daemon.json("history", "0x1000", before=AS_USER)["past"] is None


def test_a_hanging_daemon_is_noted(daemon):
    mine = daemon.player("alloc 1 L1 0x1000 40 mine", before=AS_USER)
    wait_until_seen(daemon, mine.pid)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        for command in ("smi", "buffers"):
            document = daemon.json(command, before=AS_USER)
            assert any("ttmemd does not answer" in note for note in document["notes"])
        assert names(document) == {"mine"}
        result = daemon.run("status", before=AS_USER)
        assert result.returncode == 1 and "does not answer" in result.stderr
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    wait_for(lambda: daemon.json("smi", before=AS_USER)["notes"] == [], "the daemon to answer")


def test_smi_goes_on_before_those_who_wait_for_documents(daemon):
    """The daemon may take its time for a list of leaks, but not for saying which cards there are."""
    mine = daemon.player("alloc 1 L1 0x1000 40 mine", before=AS_USER)
    wait_until_seen(daemon, mine.pid)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        with subprocess.Popen([daemon.build / "src" / "cli" / "ttmem", "leaks"], env=daemon.env, stderr=subprocess.DEVNULL) as waits:
            assert pids_of(daemon.json("smi", before=AS_USER)) == {mine.pid}
            assert waits.poll() is None
            waits.kill()
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_leaks_are_shown_to_their_user_and_members_only(daemon):
    roots = daemon.player("alloc 0 DRAM 0x1000 10 secret")
    mine = daemon.player("alloc 1 L1 0x2000 40 mine", "alloc 1 L1 0x3000 2", before=AS_USER, TTMEM_STACKS="off")
    wait_until_seen(daemon, roots.pid, mine.pid)
    for player in (roots, mine):
        player.kill()
    wait_for(lambda: len(daemon.json("leaks")["processes"]) == 2, "two leak reports")
    (report,) = daemon.json("leaks", before=AS_USER)["processes"]
    assert (report["pid"], report["bytes"], report["buffer_count"]) == (mine.pid, 42, 2)
    assert report["how"] == "died" and report["user_id"] == USER
    assert {b["name"] for b in report["buffers"]} == {"mine", None}
    assert pids_of(daemon.json("leaks", before=AS_MEMBER)) == {roots.pid, mine.pid}
    assert daemon.json("leaks", before=AS_OTHER)["processes"] == []
    assert pids_of(daemon.json("leaks", "--pid", roots.pid)) == {roots.pid}

    text = daemon.run("leaks", before=AS_USER).stdout
    assert re.match(rf"pid {mine.pid} \(player\) of {USER}, .* ago: (died|killed by signal 9 \(SIGKILL\)), left 2 buffers, 42 B\n", text)
    assert '40 B in 1 buffer of L1, "mine"' in text
    text = daemon.run("leaks").stdout
    assert text.endswith("\n2 processes, 3 buffers, 52 B\n")
    assert daemon.json("leaks", before=AS_MEMBER)["hidden"] == daemon.json("leaks")["hidden"] == 0


def test_a_user_is_told_how_many_may_not_be_seen(daemon):
    """The number, and nothing that would tell more of them: it does not depend on the question."""
    assert daemon.run("leaks", before=AS_OTHER).stdout == "no ended process left anything\n"
    assert daemon.run("incidents", before=AS_OTHER).stdout == "no incidents\n"
    roots = daemon.player("alloc 0 DRAM 0x1000 10 secret", "free 0 L1 0x5000")
    mine = daemon.player("alloc 0 DRAM 0x1000 2 mine", before=AS_USER)
    wait_until_seen(daemon, roots.pid, mine.pid)
    for player in (roots, mine):
        player.kill()
    wait_for(lambda: len(daemon.json("leaks")["processes"]) == 2, "two leak reports")
    for before, others in ((AS_USER, (1, 2)), (AS_OTHER, (2, 3)), (AS_MEMBER, (0, 0)), ([], (0, 0))):
        for options in ([], ["--pid", roots.pid], ["--pid", mine.pid]):
            hidden = [daemon.json(c, *options, before=before)["hidden"] for c in ("leaks", "incidents")]
            assert tuple(hidden) == others
    text = daemon.run("leaks", before=AS_OTHER).stdout
    assert text == (
        "no ended process of yours left anything\nand 2 leak reports of other users, which you may not see\n"
    )
    text = daemon.run("leaks", before=AS_USER).stdout
    assert text.endswith("\nand 1 leak report of other users, which you may not see\n")
    assert "secret" not in text
    text = daemon.run("incidents", before=AS_OTHER).stdout
    assert text == "no incidents of yours\nand 3 incidents of other users, which you may not see\n"
    assert "may not see" not in daemon.run("leaks").stdout + daemon.run("incidents").stdout


def test_leaks_are_served_in_pages(daemon):
    players = [daemon.player(f"alloc 0 DRAM 0x1000 {i + 1} buffer{i}") for i in range(3)]
    for player in players:
        wait_until_seen(daemon, player.pid)
        player.kill()
    wait_for(lambda: len(daemon.json("leaks")["processes"]) == 3, "three leak reports")
    seen, cursor = [], ""
    for _ in range(3):
        page = document(daemon, f"/api/v1/leaks?limit=1{cursor}")
        (row,) = check_schema(page)["processes"]
        seen.append(row["pid"])
        cursor = f"&cursor={page['next']}" if page["next"] else ""
    assert cursor == "" and seen == [p.pid for p in reversed(players)]


def test_leaks_need_a_daemon(daemon):
    daemon.kill()
    result = daemon.run("leaks")
    assert result.returncode == 1 and result.stdout == ""
    assert "no ttmemd runs here" in result.stderr and "ttmem run --fail-on-leak" in result.stderr
    if has_legacy():
        result = daemon.run("dump")
        assert result.returncode == 1 and "no ttmemd runs here" in result.stderr
    result = daemon.run("status", "--json")
    assert result.returncode == 1
    assert check_schema(json.loads(result.stdout))["running"] is False


def test_incidents_outlive_their_process(daemon):
    player = daemon.player("alloc 0 DRAM 0x1000 10 twice", "free 0 DRAM 0x1000",
                           "free 0 DRAM 0x1000", before=AS_USER)  # fmt: skip
    wait_until_seen(daemon, player.pid)
    # At once, though nobody has looked at the book since.
    (row,) = daemon.json("incidents", before=AS_USER)["incidents"]
    assert (row["kind"], row["pid"], row["address"]) == ("double_free", player.pid, "0x1000")
    assert row["count"] == 1 and row["first"]["name"] == "twice"
    player.end()
    wait_for(lambda: player.pid not in pids_of(daemon.json("ps")), "its end")
    assert len(daemon.json("incidents", before=AS_USER)["incidents"]) == 1
    assert daemon.json("incidents", before=AS_OTHER)["incidents"] == []
    text = daemon.run("incidents", before=AS_USER).stdout
    assert text.startswith(f"double_free: pid {player.pid} (player), device 0, DRAM, address 0x1000")
    assert "of other users" in daemon.run("incidents", before=AS_OTHER).stdout


def test_incidents_have_both_stacks_and_the_figures_of_their_process(daemon):
    again = ["alloc 0 DRAM 0x1000 10 twice", *2 * ["free 0 DRAM 0x1000"]]
    stacks = {"TTMEM_STACKS": "auto"}
    one = daemon.player(*3 * again, before=AS_USER, **stacks)
    wait_until_seen(daemon, one.pid)
    (first,) = daemon.json("incidents", before=AS_USER)["incidents"]
    other = daemon.player(*5 * again, before=AS_USER, **stacks)
    wait_until_seen(daemon, other.pid)

    (both,) = daemon.json("incidents", before=AS_USER)["incidents"]
    assert (both["count"], both["processes"], both["pid"]) == (8, 2, other.pid)
    assert both["time_ns"] == first["time_ns"]
    (row,) = daemon.json("incidents", "--pid", one.pid, before=AS_USER)["incidents"]
    assert (row["count"], row["processes"], row["time_ns"]) == (3, 1, first["time_ns"])
    (row,) = daemon.json("incidents", "--pid", other.pid, before=AS_USER)["incidents"]
    assert (row["count"], row["processes"]) == (5, 1) and row["time_ns"] > first["time_ns"]

    text = daemon.run("incidents", "--pid", one.pid, before=AS_USER).stdout
    assert re.match(
        rf"double_free: pid {one.pid} \(player\), .*, 3 times: first [^,]+ ago, last [^,]+ ago\n  first .* ago by", text
    )
    # Below each party its stack, as the document has it.
    parties = re.split(r"\n  (?:first|then ) ", text)[1:]
    assert len(parties) == 2
    for party, key in zip(parties, ("first", "second")):
        functions = [frame["function"] for frame in row[key]["stack"]]
        assert "main" in functions
        assert [line.split()[0] for line in party.splitlines()[1:]] == functions
    text = daemon.run("incidents", before=AS_USER).stdout
    assert re.match(rf"double_free: pid {other.pid} .*, 8 times in 2 processes, this one the newest: first ", text)


def test_an_incident_of_one_line_on_two_devices_names_both(daemon):
    twice = [f"{what} {device} DRAM 0x1000{more}" for device in (1, 0)
             for what, more in (("alloc", " 10 twice"), ("free", ""), ("free", ""))]  # fmt: skip
    player = daemon.player(*twice, before=AS_USER, TTMEM_STACKS="auto")
    wait_until_seen(daemon, player.pid)
    (row,) = daemon.json("incidents", before=AS_USER)["incidents"]
    assert (row["kind"], row["count"], row["devices"]) == ("double_free", 2, [0, 1])
    text = daemon.run("incidents", before=AS_USER).stdout
    assert ", 2 times on devices 0, 1, this one the newest: first " in text


def test_a_failed_allocation_names_the_holders(daemon):
    holder = daemon.player("alloc 0 DRAM 0x1000 4096 secret", before=AS_OTHER)
    failing = daemon.player("alloc 0 DRAM 0x1000 10 mine", before=AS_USER)
    wait_until_seen(daemon, holder.pid, failing.pid)
    failing.play("failed 0 DRAM 100000 64")

    def incident(before):
        rows = daemon.json("incidents", before=before)["incidents"]
        return [row for row in rows if row["kind"] == "alloc_failed"]

    (row,) = wait_for(lambda: incident(AS_MEMBER), "the incident")
    assert [(h["pid"], h["used"]) for h in row["holders"]] == [(holder.pid, 4096), (failing.pid, 10)]
    assert {site["name"] for site in row["sites"]} == {"secret", "mine"}
    # Who holds how much is everybody's to know, but not what it is called.
    (row,) = incident(AS_USER)
    assert len(row["holders"]) == 2 and row["sites"] == []
    assert f"held by pid {holder.pid}" in daemon.run("incidents", before=AS_USER).stdout


def test_history_knows_ended_processes(daemon):
    ended = daemon.player("alloc 0 DRAM 0x1000 524288 lost", "alloc 1 L1 0x1000 5", before=AS_USER)
    living = daemon.player("alloc 0 DRAM 0x1000 98304", before=AS_USER)
    wait_until_seen(daemon, ended.pid, living.pid)
    ended.kill()
    wait_for(lambda: daemon.leaks(ended.pid), "its leak report")
    document = daemon.json("history", "0x1000", before=AS_USER)
    assert [life["pid"] for life in document["buffers"]] == [living.pid]
    (leak,) = document["past"]["leaks"]
    assert leak["pid"] == ended.pid and len(leak["buffers"]) == 2
    (leak,) = daemon.json("history", "0x1000", "--type", "L1")["past"]["leaks"]
    assert [b["size"] for b in leak["buffers"]] == [5]
    (leak,) = daemon.json("history", "0x1000", "--device", "0")["past"]["leaks"]
    assert [b["size"] for b in leak["buffers"]] == [524288]
    (leak,) = daemon.json("history", "0x1000", "--device", "0", "--device", "1")["past"]["leaks"]
    assert [b["size"] for b in leak["buffers"]] == [524288, 5]
    text = daemon.run("history", "0x1000", before=AS_USER).stdout
    assert re.search(rf"pid={living.pid} ref=1 time=\S+  ← Still allocated!", text)
    assert "Remembered of ended processes:\n" in text
    assert re.search(
        rf'  pid {ended.pid} \(player\), .* ago: left 512.0 KiB of DRAM on device 0, "lost", .* old, at \w+ \(player.c:\d+\)\n',
        text,
    )
    assert daemon.json("history", "0x1000", before=AS_OTHER)["past"]["leaks"] == []
    assert "nothing is known" in daemon.run("history", "0x7777").stdout


def test_history_names_the_command_for_what_is_recorded(daemon):
    """After the exit only the leak is known at once; the line under it, typed as it is, shows the whole life."""
    ended = daemon.player(
        "alloc 0 DRAM 0x1000 524288 first", "free 0 DRAM 0x1000", "alloc 0 DRAM 0x1000 98304 lost", before=AS_USER
    )
    wait_until_seen(daemon, ended.pid)
    ended.kill()
    wait_for(lambda: daemon.leaks(ended.pid) and daemon.leaks(ended.pid)[0]["recording"], "its recording")
    text = daemon.run("history", "0x1000", before=AS_USER).stdout
    command = shlex.split(re.search(r"^  its last minute: (ttmem history 0x1000 --from .*)$", text, re.M)[1])
    whole = daemon.run(*command[1:], before=AS_USER)
    assert whole.returncode == 0, whole.stderr
    assert [line.split()[:2] for line in whole.stdout.splitlines() if " pid=" in line] == [
        ["ALLOC", "size=524288"], ["FREE", "size=524288"], ["ALLOC", "size=98304"]]  # fmt: skip
    stacks = daemon.run("history", "0x1000", "--stacks", before=AS_USER).stdout
    assert re.search(r'"lost", .*\n +\w+ \(.*player.c:\d+\)\n', stacks) and not re.search(r"\n +\w+ \(.*player.c", text)


def test_growth_tells_the_trend(daemon):
    player = daemon.player("leak 0 1000 20", before=AS_USER)
    wait_until_seen(daemon, player.pid)

    def trend():
        document = daemon.json("growth", "--seconds", "1", before=AS_USER)
        return [t for t in document["trends"] if t["bytes_per_second"] > 0]

    (found,) = wait_for(trend, "a trend")
    assert found["pid"] == player.pid and found["bytes"] > found["bytes_before"]
    text = daemon.run("growth", "--seconds", "1", before=AS_USER).stdout
    assert re.search(rf"^pid {player.pid} over the last .*: from .* to .*, \+.* per hour$", text, re.M)


def test_series_are_served_over_the_native_socket(daemon):
    player = daemon.player("alloc 0 DRAM 0x1000 100", before=AS_USER)
    wait_until_seen(daemon, player.pid)

    def lines(query=""):
        series = check_schema(document(daemon, "/api/v1/series" + query))["series"]
        return [s for s in series if s["type"] == "DRAM"]

    (line,) = wait_for(lambda: lines(f"?pid={player.pid}"), "points of the process")
    assert (line["pid"], line["device"], line["points"][-1][1:3]) == (player.pid, 0, [100, 1])
    (line,) = wait_for(lines, "points of the device")
    assert line["pid"] is None and line["points"][-1][1] == 100


def test_status_tells_what_the_daemon_sees(daemon):
    player = daemon.player("alloc 0 DRAM 0x1000 1")
    wait_until_seen(daemon, player.pid)
    document = daemon.json("status", before=AS_USER)
    assert document["running"] is True and document["pid"] == daemon.process.pid
    assert document["you_see_all"] is False and document["socket"] == str(daemon.socket)
    wait_for(lambda: daemon.json("status")["books"] == 1, "a book")
    text = daemon.run("status", before=AS_USER).stdout
    assert text.startswith(f"ttmemd:  pid {daemon.process.pid}, user 0, version ")
    assert "you see: the details of your own processes, totals of the others\n" in text


def test_books_are_handed_out_read_only(daemon):
    players = [daemon.player("alloc 0 DRAM 0x1000 1"), daemon.player("alloc 0 DRAM 0x1000 2")]
    wait_until_seen(daemon, *[p.pid for p in players])
    found = set()
    with connect(daemon) as client:
        client.send(request(ROSTER, want=3))
        for payload, fds in packets(client):
            process = PROCESS.unpack(payload[: PROCESS.size])
            assert process[11] & (MAY_SEE | HAS_BOOK) == MAY_SEE | HAS_BOOK and process[12] == 1
            (fd,) = fds
            assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            assert os.fstat(fd).st_ino == process[1]
            with pytest.raises(OSError):
                os.write(fd, b"x")
            # Neither can it be had for writing by another way.
            with contextlib.suppress(OSError):
                again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
                with pytest.raises(PermissionError):
                    os.pwrite(again, b"x", 0)
                os.close(again)
            os.close(fd)
            found.add(process[6])
    assert found == {p.pid for p in players}


def as_user(daemon, script):
    """Runs a hostile script as another user; it prints a line and stays."""
    process = daemon.adopt(
        subprocess.Popen(
            [*AS_OTHER, "/usr/bin/python3", "-c", script, str(daemon.socket)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    line = process.stdout.readline()
    return process, line


HOARD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
clients = []
for i in range(1000):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(sys.argv[1])
    clients.append(client)
print("ready", flush=True)
sys.stdin.read()
"""

NEVER_READS = """
import socket, sys
request = bytes.fromhex(%r)
clients = []
for i in range(60):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(sys.argv[1])
    client.send(request)
    clients.append(client)
print("ready", flush=True)
sys.stdin.read()
"""


# As many as one user may have; each has asked once, and may then be idle for a minute.
FILL = """
import socket, sys
request = bytes.fromhex(%r)
clients = []
for i in range(64):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(sys.argv[1])
    client.send(request)
    client.recv(65536)
    client.recv(65536)
    clients.append(client)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "script",
    [
        HOARD,
        NEVER_READS % request(ROSTER, want=3).hex(),
        NEVER_READS % get("/api/v1/smi").hex(),
        NEVER_READS % get("/api/v1/history?address=0x1000").hex(),
    ],
    ids=["hoard", "never reads a roster", "never reads totals", "never reads a history"],
)
def test_a_hostile_user_does_not_harm_others(daemon, script):
    player = daemon.player("alloc 0 DRAM 0x1000 1")
    wait_until_seen(daemon, player.pid)
    process, line = as_user(daemon, script)
    assert line == "ready\n"
    for before in ((), AS_USER):
        document = daemon.json("smi", before=before)
        assert used(document, player.pid) == {(0, "DRAM"): 1} and document["notes"] == []
    late = daemon.player("alloc 0 DRAM 0x1000 2", before=AS_USER)
    wait_until_seen(daemon, late.pid)
    # And even for the hoarder: what it offers is taken.
    own = daemon.player("alloc 0 DRAM 0x1000 3", before=AS_OTHER)
    wait_until_seen(daemon, own.pid)
    held = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    assert held < 200
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_user_who_holds_all_connections_works_without_the_daemon(daemon):
    own = daemon.player("alloc 0 DRAM 0x1000 3", before=AS_OTHER)
    wait_until_seen(daemon, own.pid)
    process, line = as_user(daemon, FILL % STATUS.hex())
    assert line == "ready\n"
    document = daemon.json("smi", before=AS_OTHER)
    assert used(document, own.pid) == {(0, "DRAM"): 3}
    assert any("hung up" in note for note in document["notes"])
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    wait_for(lambda: daemon.json("smi", before=AS_OTHER)["notes"] == [], "the daemon to answer")


def test_offers_and_requests_can_be_mixed(daemon):
    players = []
    for _ in range(20):
        players.append(daemon.player("alloc 0 DRAM 0x1000 1", before=AS_USER))
        document(daemon, "/api/v1/status")
    wait_until_seen(daemon, *[p.pid for p in players])
