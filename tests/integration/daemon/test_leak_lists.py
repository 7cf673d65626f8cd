# SPDX-License-Identifier: Apache-2.0
"""The lists of buffers in leak reports: complete up to a bound that is told, read in pages, kept while there is room."""

import csv
import io
import json
import resource
import sqlite3
import subprocess
import time

import pytest

from conftest import LIMIT
from terminal import Terminal
from world import check_schema, wait_for

LISTED_MAX = 131072
PAGE_MAX = 2 << 20


@pytest.fixture
def served(ttmemd):
    return ttmemd.start("--http", "127.0.0.1:0")


def page(served, query):
    status, text = served.fetch("/api/v1/leaks?" + query, token=True)
    assert status == 200, text
    assert len(text) < PAGE_MAX
    return json.loads(text)


def leave(ttmemd, *lines, **settings):
    """A process that leaves what the lines allocate; its number, once the report is there."""
    player = ttmemd.player(*lines, **settings)
    wait_for(lambda: any(p["pid"] == player.pid for p in ttmemd.json("ps")["processes"]), "the process")
    player.kill()
    wait_for(lambda: f"pid {player.pid} " in ttmemd.run("leaks", "--pid", player.pid).stdout, "the report")
    return player.pid


def pages(served, query):
    """All pages of a list."""
    found = [page(served, query)]
    while found[-1]["next"]:
        found.append(page(served, f"{query}&cursor={found[-1]['next']}"))
    return found


def test_a_terminal_shows_a_line_for_each_process(served, tmp_path):
    """With room for names, and no line longer than the terminal; with --full, and for a program that reads it, more."""
    pid = leave(served, "alloc 0 DRAM 0x1000 4096 prompt_cache.keys", "alloc 0 L1 0x2000 64 small")
    script = 'for c in 64 100 140; do stty cols $c; "$0" leaks; echo --; done; "$0" leaks | cat > piped; ' \
             '"$0" leaks --full; echo all done'  # fmt: skip
    program = served.build / "src" / "cli" / "ttmem"
    terminal = Terminal(["sh", "-c", script, program], served.env, columns=140, rows=60, folder=tmp_path)
    try:
        terminal.wait("all done")
        *summaries, full = terminal.text().split("\n--\n")
    finally:
        terminal.close()
    always = {"PID", "COMMAND", "ENDED", "HOW", "LEFT", "MOSTLY"}
    for width, summary in zip((64, 100, 140), summaries, strict=True):
        # The sentence below the table is not part of it.
        head, row = summary.split("\n")[:2]
        more = {"USER", "BUFFERS"} if width >= 100 else set()
        assert set(head.split()) == always | more and max(len(head), len(row)) <= width
        assert row.split()[0] == str(pid) and " DRAM prompt_" in row and "small" not in summary
        assert row.endswith("prompt_cache.keys") or width < 100
    for text in (full, (tmp_path / "piped").read_text()):
        assert "small" in text and "MOSTLY" not in text


def test_a_report_lists_all_buffers(served):
    count = 25000
    pid = leave(served, "phase decode/layer 3", f"many 0 DRAM 0x1000 64 {count}", "alloc 1 L1 0x10 5000 large",
                TTMEM_STACKS="off")  # stacks would be most of what is read
    document = json.loads(served.run("leaks", "--pid", pid, "--json").stdout)
    (leak,) = document["processes"]
    assert document["exact"] and document["notes"] == [] and document["next"] is None
    assert leak["listed"] == leak["buffer_count"] == len(leak["buffers"]) == count + 1
    assert leak["bytes"] == count * 64 + 5000
    assert leak["buffers"][0]["name"] == "large"
    assert len({b["address"] for b in leak["buffers"]}) == count + 1
    check_schema(document)
    # The same over HTTP, in pages that end within the list.
    found = pages(served, f"pid={pid}&limit=1000")
    assert len(found) > 2
    rows = [row for one in found for process in one["processes"] for row in process["buffers"]]
    assert rows == leak["buffers"]
    offsets = [process.get("offset", 0) for one in found for process in one["processes"]]
    assert offsets == sorted(set(offsets)) and offsets[0] == 0
    check_schema(found[1])


def test_the_command_pages_through_reports_while_others_come(served):
    """Every report that was there is on one page, once and with the same row as in the whole list."""
    pids = [leave(served, f"alloc 0 DRAM 0x1000 {i + 1} one", "alloc 0 L1 0x10 7 two") for i in range(5)]
    # The recording of a process is written a little later than its report.
    served.wait_for_recordings(len(pids))
    whole = served.json("leaks")["processes"]
    assert [row["pid"] for row in whole] == pids[::-1]
    first = served.json("leaks", "--limit", 2)
    check_schema(first)
    leave(served, "alloc 0 DRAM 0x1000 99 later")
    second = served.json("leaks", "--limit", 2, "--cursor", first["next"])
    third = served.json("leaks", "--limit", 2, "--cursor", second["next"])
    assert first["processes"] + second["processes"] + third["processes"] == whole
    assert third["next"] is None and all(page["exact"] for page in (first, second, third))
    # Without a limit: all that follows.
    rest = served.json("leaks", "--cursor", first["next"])
    assert rest["processes"] == whole[2:] and rest["next"] is None


def test_a_page_of_the_command_may_end_within_a_report(served):
    pid = leave(served, "many 0 DRAM 0x1000 64 20000", TTMEM_STACKS="off")
    (leak,) = served.json("leaks", "--pid", pid)["processes"]
    rows, cursor, pages_read = [], [], 0
    while cursor is not None:
        page_of = served.json("leaks", "--pid", pid, "--limit", 1, *cursor)
        (process,) = page_of["processes"]
        assert process.get("offset", 0) == len(rows)
        rows += process["buffers"]
        pages_read += 1
        cursor = ["--cursor", page_of["next"]] if page_of["next"] else None
    assert rows == leak["buffers"] and pages_read > 2


@pytest.mark.parametrize(
    "words", [["--limit", "2"], ["--cursor", "1-0"], ["--json", "--limit", "0"], ["--json", "--limit", "10001"],
              ["--json", "--cursor", "A&limit=9"], ["--json", "--cursor", ""]],
)  # fmt: skip
def test_wrong_pages_are_mistakes(served, words):
    result = served.run("leaks", *words)
    assert result.returncode == 2 and result.stdout == ""


def test_older_reports_of_a_call_site_keep_their_buffers(served):
    pids = [leave(served, "phase load", "alloc 0 DRAM 0x1000 64 weights") for _ in range(6)]
    processes = {p["pid"]: p for p in served.json("leaks")["processes"]}
    for pid in pids:
        assert processes[pid]["listed"] == len(processes[pid]["buffers"]) == 1
        (site,) = processes[pid]["sites"]
        assert (site["name"], site["phase"], site["phases"]) == ("weights", "load", ["load"])
        assert processes[pid]["buffers"][0]["phase"] == "load"
    document = page(served, "limit=1000&buffers=0")
    assert [p["buffers"] for p in document["processes"]] == [[]] * 6
    assert [p["listed"] for p in document["processes"]] == [1] * 6


def test_a_huge_report_is_cut_and_says_so(served):
    count = LISTED_MAX + 1234
    player = served.player(f"many 0 DRAM 0x1000 64 {count}", "alloc 1 L1 0x10 5000 large", TTMEM_STACKS="off")
    wait_for(lambda: any(p["pid"] == player.pid for p in served.json("ps")["processes"]), "the process")
    player.kill()
    began = time.monotonic()
    wait_for(lambda: f"left {count + 1} buffers allocated:" in served.text(), "the line")
    document = wait_for(lambda: page(served, "limit=1000")["processes"] and page(served, "limit=1000"), "the report")
    print(f"reported after {time.monotonic() - began:.2f} s")
    (leak,) = document["processes"]
    assert not document["exact"] and document["next"]
    assert f"pid {player.pid}: {LISTED_MAX} of its {count + 1} buffers are listed; the sums are of all" in document["notes"]
    assert (leak["buffer_count"], leak["listed"]) == (count + 1, LISTED_MAX)
    assert leak["bytes"] == count * 64 + 5000
    assert leak["buffers"][0]["name"] == "large"
    # The command reads all pages without holding them.
    command = served.build / "src" / "cli" / "ttmem"
    small = 300 << 20
    done = subprocess.run(
        [command, "leaks", "--json"], env=served.env, capture_output=True, timeout=LIMIT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (small, small)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (whole,) = json.loads(done.stdout)["processes"]
    assert len(whole["buffers"]) == LISTED_MAX and "offset" not in whole


def test_a_list_that_went_for_the_size_of_the_file_is_missed(ttmemd):
    ttmemd.start("--size-max", "1M", "--http", "127.0.0.1:0")
    first = leave(ttmemd, "many 0 DRAM 0x1000 64 20000")

    def lost():
        leave(ttmemd, "many 0 DRAM 0x1000 64 20000")
        (old,) = page(ttmemd, f"pid={first}&buffers=0")["processes"]
        return old["listed"] == 0 and old

    old = wait_for(lost, "the oldest list to go")
    assert old["buffer_count"] == 20000 and old["bytes"] == 20000 * 64 and old["sites"]
    document = page(ttmemd, f"pid={first}")
    assert not document["exact"]
    assert document["notes"] == [f"pid {first}: 0 of its 20000 buffers are listed; the sums are of all"]


def test_a_database_of_an_earlier_version_is_converted(served):
    pid = leave(served, "phase load", "alloc 0 DRAM 0x1000 64 weights")
    assert served.stop() == 0
    with sqlite3.connect(served.state / "history.db") as old:
        old.executescript(
            """
            CREATE TABLE leak_buffers(leak INTEGER NOT NULL REFERENCES leaks ON DELETE CASCADE,
             place INTEGER NOT NULL, site INTEGER NOT NULL, device INTEGER NOT NULL,
             device_uid INTEGER NOT NULL, type INTEGER NOT NULL, address INTEGER NOT NULL,
             size INTEGER NOT NULL, refs INTEGER NOT NULL, born_ns INTEGER NOT NULL,
             thread INTEGER NOT NULL, flags INTEGER NOT NULL, kernel_sort INTEGER NOT NULL,
             name TEXT NOT NULL, phase TEXT NOT NULL, stack TEXT NOT NULL,
             PRIMARY KEY(leak, place)) STRICT, WITHOUT ROWID;
            CREATE INDEX leak_buffers_site ON leak_buffers(site, leak);
            INSERT INTO leak_buffers SELECT leak, 0, site, 3, 0, 1, 8192, 77, 1, 5, 9, 0, 0,
             'old', 'before', '' FROM leak_sites;
            DROP TABLE leak_chunks;
            UPDATE sites SET name = (SELECT name FROM leak_sites WHERE site = id);
            ALTER TABLE leak_sites DROP COLUMN name;
            ALTER TABLE leak_sites DROP COLUMN name_count;
            ALTER TABLE leak_sites DROP COLUMN names;
            ALTER TABLE incidents DROP COLUMN space;
            ALTER TABLE incidents DROP COLUMN size_per_bank;
            ALTER TABLE incidents DROP COLUMN banks;
            ALTER TABLE incidents DROP COLUMN bank_size;
            ALTER TABLE incidents DROP COLUMN bank_free;
            ALTER TABLE incidents DROP COLUMN explanation;
            DROP TABLE owners;
            ALTER TABLE leak_sites DROP COLUMN phases;
            ALTER TABLE held DROP COLUMN name_count;
            ALTER TABLE held DROP COLUMN names;
            DROP TABLE seen;
            CREATE TABLE seen(process INTEGER NOT NULL, site INTEGER NOT NULL, device INTEGER NOT NULL,
             address INTEGER NOT NULL, size INTEGER NOT NULL, count INTEGER NOT NULL,
             PRIMARY KEY(process, site, device, address, size)) STRICT, WITHOUT ROWID;
            CREATE INDEX seen_site ON seen(site);
            DROP TABLE endings;
            DROP TABLE runs;
            UPDATE schema SET version = 3;
            """
        )
    old.close()
    served.start("--http", "127.0.0.1:0")
    leak = served.wait_for_leak(pid)
    (row,) = leak["buffers"]
    assert (row["device"], row["type"], row["address"], row["size"]) == (3, "L1", "0x2000", 77)
    assert (row["name"], row["phase"], leak["sites"][0]["phase"]) == ("old", "before", "before")
    site = leak["sites"][0]
    assert (site["name"], site["name_count"], site["names"]) == ("weights", None, [])


def test_a_summary_has_a_line_for_each_process(served):
    first = leave(served, "alloc 0 DRAM 0x1000 64 =weights", "alloc 0 L1 0x2000 32 cb")
    second = leave(served, "alloc 0 DRAM 0x1000 4096 kv")
    lines = served.run("leaks", "--summary").stdout.splitlines()
    assert lines[0].split()[:2] == ["PID", "USER"]
    assert [line.split()[0] for line in lines[1:3]] == [str(second), str(first)]  # the newest first
    assert "4.0 KiB" in lines[1] and lines[1].endswith("DRAM kv")
    assert "2 processes, 3 buffers, 4.1 KiB" in lines and "--full" in lines[-1]


def test_leaks_as_csv(served):
    first = leave(served, "alloc 0 DRAM 0x1000 64 =weights", "alloc 0 L1 0x2000 32 cb")
    rows = list(csv.DictReader(io.StringIO(served.run("leaks", "--csv").stdout)))
    assert [(r["pid"], r["type"], r["bytes"], r["name"]) for r in rows] == [
        (str(first), "DRAM", "64", "'=weights"), (str(first), "L1", "32", "cb"),
    ]  # fmt: skip
    (row,) = csv.DictReader(io.StringIO(served.run("leaks", "--csv", "--summary").stdout))
    assert (row["pid"], row["bytes"], row["buffers"]) == (str(first), "96", "2")


@pytest.mark.legacy
def test_only_what_was_left_since(served):
    pid = leave(served, "alloc 0 DRAM 0x1000 64")
    later = (json.loads(served.run("leaks", "--json").stdout)["processes"][0]["ended_ns"]) + 1
    assert f"pid {pid} " in served.run("leaks", "--since", "1h").stdout
    assert "no ended process left anything" in served.run("leaks", "--since", later).stdout
    assert f"Process {pid} " in served.run("dump", "--since", "1h").stdout
    assert f"Process {pid} " not in served.run("dump", "--since", later).stdout
    living = served.player("alloc 0 DRAM 0x5000 7")
    wait_for(lambda: any(p["pid"] == living.pid for p in served.json("ps")["processes"]), "the process")
    text = served.run("dump", "--live").stdout
    assert str(living.pid) in text and f"Process {pid} " not in text
