# SPDX-License-Identifier: Apache-2.0
"""The formats that others would parse: the samples in docs/samples mean what kernel-integration.md says."""

import json
import pathlib
import re
import shutil

import pytest

from world import TYPES, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "docs" / "samples"
COLUMNS = ["PID", "Comm", "DRAM", "L1", "L1_SMALL", "TRACE", "BUFFERS", "CB", "KERNEL"]


def name(word):
    """A name without its escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def allocations(text):
    """Rows and sums of the table, by nothing but blanks."""
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == COLUMNS and set("".join(lines[1])) == {"-"}
    rows = []
    for words in lines[2:]:
        if words and words[0] == "TOTAL":
            return rows, dict(zip(COLUMNS[2:], map(int, words[1:])))
        if words:
            values = dict(zip(COLUMNS[2:], map(int, words[2:])))
            rows.append({"PID": int(words[0]), "Comm": name(words[1]), **values})
    raise AssertionError("no sums")


def old_allocations(text):
    """What a reader of the old note does, who knows only the first seven columns."""
    rows = {}
    for line in text.splitlines()[2:]:
        words = line.split()
        if len(words) >= 7 and words[0].isdigit():
            rows[int(words[0])] = [int(word) for word in words[2:7]]
    return rows


def usage(text):
    """The keys of drm-usage-stats, as monitors read them: value and an optional unit."""
    units = {"": 1, "KiB": 1024, "MiB": 1024 * 1024}
    keys = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        match = re.fullmatch(r"(\d+) ?(KiB|MiB|)", value.strip())
        keys[key] = int(match[1]) * units[match[2]] if match else value.strip()
    return keys


def totals(text):
    """Bytes of each holder and type."""
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["ttmem", "1"]
    holders = {}
    for words in lines[1:]:
        if words[0] == "holder":
            memory = holders[int(words[4])] = {}
        elif words[0] == "memory":
            memory[int(words[2])] = memory.get(int(words[2]), 0) + int(words[3])
    return holders


def test_sample_table_adds_up():
    rows, sums = allocations((SAMPLES / "allocations").read_text())
    assert [row["Comm"] for row in rows] == ["python3", "llama server"]
    for column in COLUMNS[2:]:
        assert sum(row[column] for row in rows) == sums[column]


def test_a_reader_of_the_old_columns_still_reads_them():
    rows = old_allocations((SAMPLES / "allocations").read_text())
    assert rows == {4711: [3221225472, 1048576, 32768, 0, 130], 4802: [536870912, 0, 0, 67108864, 12]}


def test_sample_fdinfo_matches_the_table():
    keys = usage((SAMPLES / "fdinfo").read_text())
    rows, _ = allocations((SAMPLES / "allocations").read_text())
    assert keys["drm-driver"] == "ttmem" and keys["drm-client-id"] == 7
    for region, column in [("dram", "DRAM"), ("l1", "L1"), ("l1-small", "L1_SMALL"), ("cb", "CB")]:
        assert keys[f"drm-total-{region}"] == keys[f"drm-resident-{region}"] == rows[0][column]


def test_samples_agree_with_each_other():
    rows, _ = allocations((SAMPLES / "allocations").read_text())
    holders = totals((SAMPLES / "totals").read_text())
    for row in rows:
        assert holders[row["PID"]].get(0, 0) == row["DRAM"]
        assert holders[row["PID"]].get(4, 0) == row["TRACE"]


def test_the_command_reads_the_sample_totals(ttmem, tmp_path):
    folder = tmp_path / "driver" / "ttmem"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLES / "totals", folder / "totals")
    done = ttmem("smi", "--json", env={"TTMEM_PROC_ROOT": str(tmp_path), "TTMEM_SOCKET": "none"})
    assert done.returncode == 0, done.stderr
    assert '"totals":{"bytes":3826876416,"buffers":142}' in done.stdout
    assert '"comm":"llama server"' in done.stdout and done.stdout.count('"source":"kernel"') == 2


def test_the_daemon_reads_the_sample_totals(ttmemd):
    """In its documents, its metrics and its past; and the command, which asks both, counts them once."""
    folder = ttmemd.folder / "machine" / "driver" / "ttmem"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLES / "totals", folder / "totals")
    env = {"TTMEM_PROC_ROOT": str(ttmemd.folder / "machine")}
    ttmemd.start("--http", "127.0.0.1:0", env=env)

    def get(path):
        status, text = ttmemd.fetch(path)
        assert status == 200
        return text

    wanted = {"bytes": 3826876416, "buffers": 142}
    smi = json.loads(get("/api/v1/smi"))
    assert smi["totals"] == wanted and [p["pid"] for p in smi["processes"]] == [4711, 4802]
    assert re.search(r'^ttmem_device_bytes\{device="0",.*type="DRAM"\} 3758096384$', get("/metrics"), re.MULTILINE)
    wait_for(lambda: "3758096384" in get("/api/v1/series?device=0"), "a sample")
    assert ttmemd.json("smi", env=env)["totals"] == wanted


LIAR, HONEST = 3001001, 3001000  # users that have no names


def write_flood(folder):
    """Some 70 MB: 85 books of one user that claim all there is, then one of somebody else."""
    claim = " 4611686018427387904" * 5
    claims = "".join(f"memory {device} {kind}{claim} 0\n" for device in range(1024) for kind in range(len(TYPES)))
    folder.mkdir(parents=True)
    with open(folder / "totals", "w", encoding="ascii") as file:
        file.write("ttmem 1\n")
        for i in range(85):
            file.write(f"holder {i + 10} book 38 {100000 + i} {LIAR} liar\n{claims}")
        file.write(f"holder 1000 book 38 4711 {HONEST} honest\nmemory 5 1 4096 2 8192 5 3 0\n")
        file.write(f"holder 1001 plain 0 4712 {LIAR} late\nmemory 5 1 4096 2 8192 5 3 0\n")


def check_flood(text):
    """The honest one is exact, and the liar's books are cut."""
    document = json.loads(text)
    (honest,) = [process for process in document["processes"] if process["user_id"] == HONEST]
    assert honest["pid"] == 4711 and honest["exact"] and not document["exact"]
    (device,) = honest["devices"]
    assert device["device"] == 5
    assert device["memory"]["L1"] == {"used": 4096, "occupied": None, "buffers": 2, "peak": 8192, "bound": "exact"}
    assert [re.sub(r"\d+ more", "N more", note) for note in document["notes"] if "more lines" in note] == [
        f"user {LIAR}: N more lines of the kernel module, with 16.0 EiB, are not shown"]
    assert 20 < len(document["processes"]) < 40 and "late" not in {p["comm"] for p in document["processes"]}


def test_a_flood_of_kernel_rows_costs_only_its_user(ttmem, tmp_path):
    write_flood(tmp_path / "driver" / "ttmem")
    assert (tmp_path / "driver" / "ttmem" / "totals").stat().st_size > 64 << 20
    done = ttmem("smi", "--json", env={"TTMEM_PROC_ROOT": str(tmp_path), "TTMEM_SOCKET": "none"})
    assert done.returncode == 0, done.stderr
    check_flood(done.stdout)


def test_a_flood_of_kernel_rows_costs_only_its_user_in_the_daemon(ttmemd):
    write_flood(ttmemd.folder / "machine" / "driver" / "ttmem")
    ttmemd.start("--http", "127.0.0.1:0", env={"TTMEM_PROC_ROOT": str(ttmemd.folder / "machine")})
    status, text = ttmemd.fetch("/api/v1/smi")
    assert status == 200
    check_flood(text)


def test_doctor_reports_a_missing_device_node(ttmem, tmp_path):
    """The module is loaded there, but this machine has no node."""
    if pathlib.Path("/dev/ttmem").exists():
        pytest.skip("the module is loaded here")
    (tmp_path / "driver" / "ttmem").mkdir(parents=True)
    env = {"TTMEM_PROC_ROOT": str(tmp_path), "TTMEM_SOCKET": "none"}
    assert '"kernel-node"' in ttmem("doctor", "--json", env=env).stdout
    (tmp_path / "driver" / "ttmem").rmdir()
    assert "kernel-" not in ttmem("doctor", "--json", env=env).stdout


def test_doctor_reports_users_who_used_up_their_share(ttmem, tmp_path):
    stats = tmp_path / "driver" / "ttmem" / "stats"
    stats.parent.mkdir(parents=True)

    def shares(text):
        stats.write_text(text)
        done = ttmem("doctor", "--json", env={"TTMEM_PROC_ROOT": str(tmp_path), "TTMEM_SOCKET": "none"})
        findings = json.loads(done.stdout)["findings"]
        return [finding["what"] for finding in findings if finding["id"] == "kernel-share"]

    all_of_them = "all bytes {} limit 4194304 user_limit 1048576\nleaked clients 1 buffers 1 bytes 1048576\n"
    first = "user 3001000 books 2 clients 0 bytes 983040\n"
    assert shares(all_of_them.format(2031616) + first) == []
    second = "user 3001001 books 1 clients 4 bytes 983041\n"
    (what,) = shares(all_of_them.format(2031616) + first + second)
    assert "user 3001001" in what and "new processes of 3001001 keep their books in a memfd" in what
    (what,) = shares(all_of_them.format(4194304) + first)
    assert what.startswith("the module's memory for books (4.0 MiB) is used up")


def test_documented_settings_are_the_module_parameters():
    """The example for modprobe.d and the page name the module's parameters with their defaults, and no others."""
    module = {}
    for path in (ROOT / "kernel").glob("*.c"):
        text = path.read_text()
        for name in re.findall(r"module_param_named\((\w+),", text):
            module[name] = re.search(rf"static (?:unsigned )?int {name}(?: = (-?\d+))?;", text)[1] or "0"
    example = (ROOT / "data" / "modprobe" / "ttmem.conf").read_text()
    options = re.search(r"^# options ttmem (.*)$", example, re.MULTILINE)[1]
    assert dict(word.split("=") for word in options.split()) == module
    table = re.findall(r"^\| (\w+) \| (-?\d+) \|", (ROOT / "docs" / "kernel.md").read_text(), re.MULTILINE)
    assert dict(table) == module


def test_udev_rule_matches_the_module_node():
    """Udev gets the name and the mode that the module gives the node itself."""
    rules = (ROOT / "data" / "udev" / "60-ttmem.rules").read_text().splitlines()
    (rule,) = [line for line in rules if line and not line.startswith("#")]
    words = dict(re.fullmatch(r'(\w+)==?"([^"]*)"', word.strip()).groups() for word in rule.split(","))
    source = (ROOT / "kernel" / "main.c").read_text()
    assert words == {"KERNEL": "ttmem", "SUBSYSTEM": "misc", "MODE": "0666"}
    assert '.name = "ttmem"' in source and ".mode = 0666" in source
