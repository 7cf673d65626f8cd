# SPDX-License-Identifier: Apache-2.0
"""Texts of other processes, in every output: what a terminal, a log viewer or a spreadsheet would act on is escaped."""

import contextlib
import csv
import io
import json
import sqlite3
import subprocess
import unicodedata

import pytest

from world import wait_for

# One of each kind; a name has up to 255 bytes, a command's name 15.
HOSTILE = {
    "esc": "\x1b]0;owned", "bel": "\x07", "csi": "\u009b2J", "rlo": "\u202e", "lri": "\u2066", "lrm": "\u200e",
    "rlm": "\u200f", "alm": "\u061c", "bom": "\ufeff", "line": "\u2028", "del": "\x7f", "tag": "\U000e0041",
}  # fmt: skip

PROGRAM = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct ttmem_device_args device = {.struct_size = sizeof(device), .arch = argv[2], .card = argv[2]};

	prctl(PR_SET_NAME, argv[1]);
	ttmem_device(&device);
	ttmem_phase_push(argv[2]);
	for (int i = 2; i < argc; i++)
		ttmem_alloc(0, TTMEM_DRAM, 0x1000 * (unsigned)i, 64, argv[i]);
	ttmem_alloc(0, TTMEM_L1, 0x1000, 64, argv[2]);
	ttmem_free(0, TTMEM_L1, 0x1000);
	ttmem_free(0, TTMEM_L1, 0x1000);
	ttmem_alloc_failed(0, TTMEM_DRAM, 1 << 30, 5);
	ttmem_mark(argv[2]);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
"""


COMMANDS = [
    ("smi", "--json"), ("smi",), ("smi", "--csv"), ("ps",), ("ps", "--json"), ("buffers",), ("buffers", "--json"),
    ("buffers", "--csv"), ("buffers", "--by", "name"), ("buffers", "--by", "name", "--csv"),
    ("buffers", "--by", "phase", "--json"), ("incidents",), ("incidents", "--json"), ("history",),
    ("history", "--json"), ("map",), ("map", "--json"), ("doctor",), ("doctor", "--json"), ("status",),
    ("fit", "1G"), ("fit", "1G", "--json"), ("peak", "--ended", "--by", "name"), ("peak", "--ended", "--json"),
]  # fmt: skip

PAGES = [
    "/metrics", "/api/v1/smi", "/api/v1/ps", "/api/v1/buffers", "/api/v1/incidents", "/api/v1/leaks", "/api/v1/peak",
    "/api/devices",
]  # fmt: skip


def is_harmful(character):
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cn")


def raw(text):
    """What must not be in an output, as names for a message."""
    return sorted({f"U+{ord(c):04X}" for c in text if is_harmful(c)})


@pytest.fixture
def victim(ttmemd, compile_c):
    """A daemon that has seen a process with all these names, and one that has died with them."""
    ttmemd.start("--http", "127.0.0.1:0")
    program = compile_c(PROGRAM)

    def start():
        names = [f"{kind}{text}{kind}" for kind, text in HOSTILE.items()]
        process = ttmemd.adopt(
            subprocess.Popen(
                [program, "c\x1b[2J\u202e\u009bm", *names], env={**ttmemd.env, "TTMEM": "1"},
                stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        process.stdout.close()
        return process

    dead = start()
    dead.kill()
    dead.wait()
    ttmemd.wait_for_leak(dead.pid)
    living = start()
    wait_for(lambda: any(p["pid"] == living.pid for p in ttmemd.json("smi")["processes"]), "the process")
    return ttmemd


def test_no_command_prints_a_control_of_another_process(victim):
    seen = 0
    for command in [*COMMANDS, ("leaks",), ("leaks", "--json")]:
        result = victim.run(*command)
        assert not raw(result.stdout), command
        assert not raw(result.stderr), command
        seen += "x1b" in result.stdout or "u001b" in result.stdout
    # The names are there, escaped: in nearly all of them.
    assert seen > len(COMMANDS) / 2
    names = {row["name"] for row in json.loads(victim.run("buffers", "--json").stdout)["buffers"]}
    assert {f"{kind}{text}{kind}" for kind, text in HOSTILE.items()} <= names


def test_no_page_and_no_log_contains_a_control_of_another_process(victim):
    for page in PAGES:
        status, body = victim.fetch(page, token=True)
        assert status == 200, page
        assert not raw(body), page
        if page != "/api/devices":
            assert "x1b" in body or "u001b" in body, page
    wait_for(lambda: "x1b" in victim.text(), "the names in the log")
    assert not raw(victim.text())


def test_a_cell_of_csv_is_no_formula(ttmemd):
    ttmemd.start()
    names = ["=1+1", "+1", "-2+3", "@SUM(A1)", "=cmd|'/c calc'!A0", "harmless"]
    ttmemd.player(*(f"alloc 0 DRAM {0x1000 * (i + 1):#x} 64 {name}" for i, name in enumerate(names)))
    rows = wait_for(
        lambda: list(csv.DictReader(io.StringIO(ttmemd.run("buffers", "--csv").stdout))), "the buffers"
    )
    found = {row["name"] for row in rows}
    assert "harmless" in found
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "-", "@")]
    assert "'=1+1" in found


def test_messages_of_sqlite_reach_the_log_escaped(ttmemd):
    """They quote the database, which may be damaged."""
    ttmemd.state.mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(ttmemd.state / "history.db")) as db:
        db.execute("CREATE TABLE odd(x)")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET name = ?, sql = 'CREATE TABLE'", ["odd\x1b]0;owned\x07"])
        db.commit()
    ttmemd.start()
    wait_for(lambda: "ttmemd: history in" in ttmemd.text(), "the reason in the log")
    assert "odd\\x1b]0;owned\\x07" in ttmemd.text()
    assert not set(ttmemd.text()) & {"\x1b", "\x07"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["x"], "`true x`: "),
        (["`<img src=x>`"], "`` true `<img src=x>` ``: "),
        (["``", "`"], "``` true `` ` ```: "),
    ],
)
def test_a_command_does_not_leave_its_code_in_markdown(ttmem, tmp_path, words, shown):
    path = tmp_path / "summary.md"
    assert ttmem("run", "--markdown", path, "--", "true", *words).returncode == 0
    assert shown in path.read_text().splitlines()[2]
