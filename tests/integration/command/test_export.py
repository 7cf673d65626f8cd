# SPDX-License-Identifier: Apache-2.0
"""ttmem export: reports for ttnn-visualizer, compared with its schema and with ttmem buffers."""

import contextlib
import os
import pty
import resource
import signal
import sqlite3
import subprocess
import sys

import pytest

from common import LIMIT, wait_for
from world import TYPES

FORMAT = ("export", "--format", "ttnn-visualizer")

# Schema 3.3; every table but the last two ends with rank.
SCHEMA = {
    "operations": "operation_id name duration",
    "operation_arguments": "operation_id name value",
    "buffers": "operation_id device_id address max_size_per_bank buffer_type buffer_layout",
    "devices": "device_id num_y_cores num_x_cores num_y_compute_cores num_x_compute_cores worker_l1_size"
    " l1_num_banks l1_bank_size address_at_first_l1_bank address_at_first_l1_cb_buffer"
    " num_banks_per_storage_core num_compute_cores num_storage_cores total_l1_memory total_l1_for_tensors"
    " total_l1_for_interleaved_buffers total_l1_for_sharded_buffers cb_limit",
    "stack_traces": "operation_id stack_trace source_file_id",
    "buffer_chunks": "operation_id device_id address bank_id core_x core_y chunk_address chunk_size page_size"
    " num_pages buffer_type",
    "tensors": "tensor_id shape dtype layout memory_config device_id address buffer_type",
    "device_tensors": "tensor_id device_id address",
    "input_tensors": "operation_id input_index tensor_id",
    "output_tensors": "operation_id output_index tensor_id",
    "tensor_lifetime": "tensor_id producer_operation_id last_use_operation_id deallocate_operation_id"
    " producer_source_file producer_source_line last_use_source_file last_use_source_line",
    "tensor_consumers": "tensor_id operation_id input_index",
    "tensor_producers": "tensor_id operation_id output_index",
    "local_tensor_comparison_records": "tensor_id golden_tensor_id matches desired_pcc actual_pcc",
    "global_tensor_comparison_records": "tensor_id golden_tensor_id matches desired_pcc actual_pcc",
    "captured_graph": "operation_id captured_graph",
    "nodes": "operation_id unique_id node_operation_id name",
    "edges": "operation_id source_unique_id sink_unique_id source_output_index sink_input_index key",
    "errors": "operation_id operation_name error_type error_message stack_trace timestamp",
    "source_files": "id path contents",
    "report_metadata": "key value",
}


class Report:
    def __init__(self, folder):
        assert os.listdir(folder) == ["db.sqlite"]
        with contextlib.closing(sqlite3.connect(f"file:{folder}/db.sqlite?mode=ro", uri=True)) as db:
            tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            self.columns = {table: list(db.execute(f"PRAGMA table_info({table})")) for table in tables}
            self.rows = {table: db.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall() for table in tables}
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    def names(self):
        return [row[1] for row in self.rows["operations"]]

    def live(self, operation):
        """{(device, type, address): size in each bank} of an operation."""
        return {(row[1], TYPES[row[4]], row[2]): row[3] for row in self.rows["buffers"] if row[0] == operation}


@pytest.fixture
def place(tmp_path):
    """An empty folder."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture
def export(world, place):
    def run(player, *args):
        result = world.run(*FORMAT, "-o", place / "report", *args, player.pid)
        assert result.returncode == 0, result.stderr
        assert os.listdir(place) == ["report"]
        return Report(place / "report"), result

    return run


def test_columns_are_those_of_the_schema(world, export):
    report, _ = export(world.player("alloc 0 DRAM 0x1000 64"))
    assert set(report.columns) == set(SCHEMA)
    for table, columns in SCHEMA.items():
        names = [column[1] for column in report.columns[table]]
        assert names[: len(columns.split())] == columns.split(), table
        if table in ("source_files", "report_metadata"):
            assert len(names) == len(columns.split())
        else:
            assert len(names) == len(columns.split()) + 1, table
            name, kind, *rest = report.columns[table][-1][1:5]
            assert (name, kind.lower(), *rest) == ("rank", "int", 1, "0"), table
    assert dict(report.rows["report_metadata"])["schema_version"] == "3.3"


def test_the_last_operation_has_what_buffers_shows(world, export):
    player = world.player(
        "device 0 0xabc wormhole_b0 n150 0 1000 100",
        "push load", "alloc 0 DRAM 0x1000 100 w", "alloc 0 L1 0x1000 30", "pop",
        "alloc 3 DRAM 0x2000 20", "alloc 3 TRACE 0x2000 10", "alloc 3 L1_SMALL 0x40 5",
        "alloc 3 SYSTEM_MEMORY 0x40 6", "alloc 3 CB 0x40 7", "kernel 0 0x2000 50 1",
    )  # fmt: skip
    world.player("alloc 0 DRAM 0x7000 64")  # another process is not in the report
    report, result = export(player)
    shown = {
        (row["device"], row["type"], int(row["address"], 16)): row.get("size_per_bank")
        for row in world.json("buffers", "--pid", player.pid)["buffers"]
        if row["type"] not in ("CB", "KERNEL")
    }
    last = report.live(len(report.rows["operations"]))
    assert set(last) == set(shown) and len(shown) == 6
    assert "without 2 of type CB or KERNEL" in result.stderr
    assert [row[0] for row in report.rows["devices"]] == [0, 3]
    assert all(row[5] is None and row[6] == 0 for row in report.rows["buffers"])  # layout is not known


def test_sizes_in_each_bank_are_the_allocators(world, export):
    """The simulated allocator tells sizes per bank, and declares its device."""
    process = world.adopt(
        subprocess.Popen(
            [world.build / "tests" / "programs" / "allocator", "1", "n150"],
            env={**world.env, "TTMEM": "1"}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    process.stdout.readline()
    world.show(process.pid)
    report, result = export(process)
    rows = world.json("buffers", "--pid", process.pid)["buffers"]
    assert len(rows) > 100
    assert "bank" not in result.stderr  # no size was guessed
    shown = {(row["device"], row["type"], int(row["address"], 16)): row["size_per_bank"] for row in rows}
    assert report.live(1) == {key: size for key, size in shown.items() if key[1] in TYPES[:5]}
    (device,) = report.rows["devices"]
    (l1,) = [m for m in world.json("map", "--type", "L1")["maps"] if m["pid"] == process.pid]
    facts = dict(zip(SCHEMA["devices"].split(), device))
    assert facts["device_id"] == 2 and facts["l1_num_banks"] == l1["banks"]
    assert facts["address_at_first_l1_cb_buffer"] == int(l1["base"], 16)
    assert facts["worker_l1_size"] > facts["l1_bank_size"] > 0
    assert facts["cb_limit"] == facts["worker_l1_size"] - int(l1["base"], 16)


def test_operations_are_phases_and_marks(world, export):
    player = world.player(
        "push load", "alloc 0 DRAM 0x1000 64", "alloc 0 DRAM 0x9000 64", "pop",
        "mark step", "push loop", "alloc 0 DRAM 0x2000 64", "pop", "alloc 0 DRAM 0x3000 64",
        "mark step", "push loop", "alloc 0 DRAM 0x4000 64", "alloc 0 DRAM 0x5000 64", "pop",
        "free 0 DRAM 0x9000", "free 0 DRAM 0x5000",
    )  # fmt: skip
    report, _ = export(player)
    assert report.names() == ["load", "step", "loop", "step", "loop"]
    assert [sorted(address for _, _, address in report.live(i)) for i in range(1, 6)] == [
        [0x1000], [0x1000, 0x3000], [0x1000, 0x2000, 0x3000],
        [0x1000, 0x2000, 0x3000], [0x1000, 0x2000, 0x3000, 0x4000],
    ]  # fmt: skip
    kinds = [row[2] for row in report.rows["operation_arguments"] if row[1] == "ttmem.kind"]
    assert kinds == ["phase", "mark", "phase", "mark", "phase"]
    seconds = sum(row[2] for row in report.rows["operations"])
    total = int(dict(report.rows["report_metadata"])["total_duration_ns"])
    assert abs(seconds * 1e9 - total) < 1000 and all(row[2] >= 0 for row in report.rows["operations"])


def test_only_the_newest_marks_are_known(world, export):
    player = world.player(*[f"mark m{i}" for i in range(300)], "alloc 0 DRAM 0x1000 64")
    report, result = export(player)
    assert report.names() == [f"m{i}" for i in range(300 - 256, 300)]
    assert "44 older marks were overwritten: their operations are" in result.stderr
    assert "note: 1 buffer is on devices whose banks are not known" in result.stderr


def test_one_of_a_kind_is_told_in_the_singular(world, export):
    player = world.player(*[f"mark m{i}" for i in range(257)])
    assert "note: 1 older mark was overwritten: its operation is" in export(player)[1].stderr


def test_a_process_without_buffers_or_names_has_one_operation(world, export):
    report, _ = export(world.player("alloc 0 DRAM 0x1000 64", "free 0 DRAM 0x1000"))
    assert report.names() == ["(no phase)"] and report.rows["buffers"] == []


def test_rows_are_limited(world, export, place):
    player = world.player(*[f"phase p{i // 2}" if i % 2 == 0 else f"alloc 0 DRAM {i * 0x1000} 64" for i in range(20)])
    report, result = export(player, "--rows", "27")
    assert report.names() == ["(8 earlier operations)", "p8", "p9"]
    assert [len(report.live(i)) for i in (1, 2, 3)] == [8, 9, 10]
    assert "the 8 oldest operations are merged into one" in result.stderr
    before = (place / "report" / "db.sqlite").read_bytes()
    refused = world.run(*FORMAT, "-o", place / "report", "--rows", "9", player.pid)
    assert refused.returncode == 1 and "10 live buffers are more than 9 rows" in refused.stderr
    assert (place / "report" / "db.sqlite").read_bytes() == before
    report, _ = export(player, "--rows", "9", "--type", "L1")
    assert report.rows["buffers"] == []


def test_only_an_earlier_export_is_replaced(world, place):
    player = world.player("alloc 0 DRAM 0x1000 64")
    folder = place / "mine"
    folder.mkdir()
    (folder / "db.sqlite").write_bytes(b"precious")
    for path in (folder, folder / "db.sqlite", place):
        result = world.run(*FORMAT, "-o", path, player.pid)
        assert result.returncode == 1 and "is not an earlier export" in result.stderr
    assert (folder / "db.sqlite").read_bytes() == b"precious"
    (folder / "db.sqlite").unlink()
    with contextlib.closing(sqlite3.connect(folder / "db.sqlite")) as other:
        other.execute("CREATE TABLE operations (operation_id int)")
    assert world.run(*FORMAT, "-o", folder, player.pid).returncode == 1
    result = world.run(*FORMAT, "-o", place / "no" / "such", player.pid)
    assert result.returncode == 1 and "No such file or directory" in result.stderr
    assert world.run(*FORMAT, "-o", place / "new", player.pid).returncode == 0
    player.play("alloc 0 DRAM 0x2000 64")
    assert world.run(*FORMAT, "-o", place / "new", player.pid).returncode == 0
    assert len(Report(place / "new").live(1)) == 2
    (place / "new" / "notes").write_text("mine")
    assert world.run(*FORMAT, "-o", place / "new", player.pid).returncode == 1
    assert set(os.listdir(place)) == {"mine", "new"}


def test_a_disk_that_is_full_leaves_nothing(world, place):
    player = world.player("many 0 DRAM 0x1000 64 20000")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))

    result = world.run(*FORMAT, "-o", place / "report", player.pid, preexec_fn=limit)
    assert result.returncode == 1 and "db.sqlite: " in result.stderr
    assert os.listdir(place) == []


def test_ctrl_c_leaves_nothing(world, place):
    player = world.player(*[f"phase p{i}" if i % 2 else f"many 0 DRAM {i << 28} 64 3000" for i in range(40)])
    process = world.start(*FORMAT, "-o", place / "report", player.pid)
    wait_for(lambda: [name for name in os.listdir(place) if name.startswith(".ttmem")], "the first file")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT)
    # It may have been quicker than the signal; but there is never half a report.
    if process.returncode == 0:
        Report(place / "report")
    else:
        assert process.returncode == 1 and not (place / "report").exists()
    assert set(os.listdir(place)) <= {"report"}


def test_progress_on_a_terminal_only(world, place):
    player = world.player(*[f"phase p{i}" if i % 2 else f"many 0 DRAM {i << 28} 64 3000" for i in range(40)])
    command = [world.program, *FORMAT, "-o", place / "report", str(player.pid)]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=world.env, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    process.communicate(timeout=LIMIT)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert b"\r[" in shown and b" rows\x1b[K" in shown
    piped = subprocess.run(command, env=world.env, capture_output=True, timeout=LIMIT)
    assert b"\r" not in piped.stderr and piped.returncode == 0


def test_mistakes(world, place):
    for args, text in {
        ("1",): "--format is missing",
        ("--format", "ttnn-visualizer", "1"): "expects a folder: -o FOLDER",
        ("--format", "ttnn-visualizer", "-o", "x"): "expects a process: PID",
        ("--format", "ttnn-visualizer", "-o", "x", "1", "2"): "one process",
        ("--format", "ttnn-visualizer", "-o", "x", "--pid", "abc"): "abc",
        ("--format", "pickle", "-o", "x", "1"): "pickle",
        ("--format", "ttnn-visualizer", "-o", "x", "--type", "CB", "1"): "no CB",
    }.items():
        result = world.run("export", *args, cwd=place)
        assert result.returncode == 2 and text in result.stderr, args
    result = world.run(*FORMAT, "-o", place / "x", "abc", cwd=place)
    assert result.returncode == 1 and "abc: No such file" in result.stderr
    result = world.run(*FORMAT, "-o", place / "x", 999999)
    assert result.returncode == 1 and "there is no process 999999" in result.stderr
    assert os.listdir(place) == []


def test_stacks_and_source_files(world, tmp_path, export):
    source = tmp_path.resolve() / "model.py"
    source.write_text(
        "import sys, ttmem\n"
        "def forward(address, size):\n"
        "    ttmem.alloc(0, ttmem.DRAM, address, size)\n"
        "with ttmem.phase('load'):\n"
        "    forward(0x1000, 64)\n"
        "    ttmem.alloc(0, ttmem.DRAM, 0x9000, 32)\n"
        "ttmem.alloc(0, ttmem.DRAM, 0x3000, 64)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    env = {
        **world.env, "TTMEM": "1", "PYTHONPATH": str(world.build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(world.build / "src" / "lib"),
    }  # fmt: skip
    process = world.adopt(
        subprocess.Popen([sys.executable, source], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    report, result = export(process)
    assert "1 source file\n" in result.stdout
    assert report.names() == ["load", "(no phase)"]
    first, second = report.rows["stack_traces"]
    assert first[:3] == (
        1, f'  File "{source}", line 3, in forward\n  File "{source}", line 5, in <module>\n', 1,
    )  # fmt: skip
    assert second[1].startswith(f'  File "{source}", line 7, in <module>\n') and second[2] == 1
    assert report.rows["source_files"] == [(1, str(source), source.read_text())]
