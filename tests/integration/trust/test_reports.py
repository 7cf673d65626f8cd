# SPDX-License-Identifier: Apache-2.0
"""ttmem export by root, of another user's process: what that process could not read stays out of it."""

import contextlib
import os
import sqlite3
import subprocess
import sys

import pytest

from common import AS_NOBODY, NOBODY, shared_folder

# A process says itself which files its code is from.
SCRIPT = """
import sys, ttmem
for i, path in enumerate(sys.argv[1:]):
    with ttmem.phase(path):
        exec(compile("ttmem.alloc(0, ttmem.DRAM, 0x1000 * (i + 1), 64)", path, "exec"))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.other_user
def test_files_that_the_process_may_not_read_are_not_in_a_report_of_roots(world):
    with shared_folder() as folder:
        public, secret, hidden = folder / "public.py", folder / "secret.py", folder / "closed" / "hidden.py"
        hidden.parent.mkdir()
        for path, mode in ((public, 0o644), (secret, 0o600), (hidden, 0o644)):
            path.write_text("# of " + path.name)
            path.chmod(mode)
        hidden.parent.chmod(0o700)
        link = folder / "link.py"
        link.symlink_to(secret)
        env = {
            **world.env, "TTMEM": "1", "PYTHONPATH": str(world.build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(world.build / "src" / "lib"),
        }  # fmt: skip
        paths = [public, secret, hidden, link, "/etc/shadow", f"/proc/{os.getpid()}/environ"]
        process = world.adopt(
            subprocess.Popen(
                [*AS_NOBODY, sys.executable, "-c", SCRIPT, *map(str, paths)],
                env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        world.show(process.pid)
        result = world.run("export", "--format", "ttnn-visualizer", "-o", folder / "report", process.pid)
        assert result.returncode == 0, result.stderr
        with contextlib.closing(sqlite3.connect(folder / "report" / "db.sqlite")) as db:
            assert [row[0] for row in db.execute("SELECT name FROM operations")] == [*map(str, paths)]
            assert len(list(db.execute("SELECT * FROM stack_traces"))) == len(paths)
            assert list(db.execute("SELECT path, contents FROM source_files")) == [(str(public), "# of public.py")]


@pytest.mark.other_user
def test_a_report_or_link_of_another_user_is_not_replaced(world):
    player = world.player("alloc 0 DRAM 0x1000 64")
    with shared_folder() as folder:
        open_to_all = folder / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o1777)
        command = ("export", "--format", "ttnn-visualizer", "-o")
        assert world.run(*command, open_to_all / "theirs", player.pid).returncode == 0
        os.chown(open_to_all / "theirs", NOBODY, NOBODY)
        result = world.run(*command, open_to_all / "theirs", player.pid)
        assert result.returncode == 1 and "is not an earlier export of yours" in result.stderr
        (folder / "victim").mkdir()
        (open_to_all / "link").symlink_to(folder / "victim")
        os.chown(open_to_all / "link", NOBODY, NOBODY, follow_symlinks=False)
        result = world.run(*command, open_to_all / "link" / "report", player.pid)
        assert result.returncode == 1 and "another user has put it" in result.stderr
        assert os.listdir(folder / "victim") == []
        assert sorted(os.listdir(open_to_all)) == ["link", "theirs"]


def test_a_recording_cannot_name_files_for_a_report(world, tmp_path):
    """It may be made up, and claim to be of a process whose owner may read everything."""
    source = tmp_path.resolve() / "model.py"
    source.write_text(SCRIPT)
    env = {
        **world.env, "TTMEM": "1", "PYTHONPATH": str(world.build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(world.build / "src" / "lib"),
    }  # fmt: skip
    process = world.adopt(
        subprocess.Popen(
            [sys.executable, source, str(source)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    assert world.run("record", process.pid, "--seconds", "1", "-o", tmp_path / "rec").returncode == 0
    for target, files in ((process.pid, 1), (tmp_path / "rec", 0)):
        result = world.run("export", "--format", "ttnn-visualizer", "-o", tmp_path / "report", target)
        assert result.returncode == 0, result.stderr
        with contextlib.closing(sqlite3.connect(tmp_path / "report" / "db.sqlite")) as db:
            assert len(list(db.execute("SELECT * FROM stack_traces"))) == 1
            assert len(list(db.execute("SELECT * FROM source_files"))) == files


@pytest.mark.other_user
def test_a_file_that_another_user_has_put_there_is_not_written(world):
    player = world.player("alloc 0 DRAM 0x1000 64")
    with shared_folder() as folder:
        open_to_all = folder / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o1777)
        (folder / "victim").write_text("precious")
        (open_to_all / "link").symlink_to(folder / "victim")
        os.chown(open_to_all / "link", NOBODY, NOBODY, follow_symlinks=False)
        result = world.run("export", "--format", "folded", "-o", open_to_all / "link", player.pid)
        assert result.returncode == 1 and "another user has put it" in result.stderr
        assert (folder / "victim").read_text() == "precious"
