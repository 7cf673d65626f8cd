# SPDX-License-Identifier: Apache-2.0
"""ttmem record, ttmem run --record: everything is in the file, or what is missing is counted in it."""

import os
import resource
import signal
import subprocess

import pytest

from common import LIMIT, wait_for
from recordings import Recording

# Forks, and what the children do ends differently. The number of events is known.
FAMILY = r"""
#include <signal.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "parent");
	if (fork() == 0) {
		ttmem_alloc(0, TTMEM_L1, 0x1000, 64, "child");
		ttmem_free(0, TTMEM_L1, 0x1000);
		_exit(3);
	}
	if (fork() == 0) {
		ttmem_alloc(1, TTMEM_L1, 0x1000, 64, "killed");
		if (fork() == 0) {
			ttmem_alloc(2, TTMEM_CB, 0x1000, 64, "grandchild");
			_exit(0);
		}
		wait(NULL);
		kill(getpid(), SIGKILL);
	}
	while (wait(NULL) > 0)
		;
	ttmem_free(0, TTMEM_DRAM, 0x1000);
	return 5;
}
"""

# As many events as asked for, as fast as it can, on four devices.
FLAT_OUT = r"""
#include <stdlib.h>
#include <ttmem/ttmem.h>

int main(int argc, char **argv)
{
	long count = atol(argv[argc - 1]);

	for (long i = 0; i < count; i += 2) {
		ttmem_alloc(i / 2 % 4, TTMEM_L1, 0x1000 + i % 1000 * 64, 64, "fast");
		ttmem_free(i / 2 % 4, TTMEM_L1, 0x1000 + i % 1000 * 64);
	}
	return 0;
}
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "test.ttrec"


@pytest.fixture
def record(world, tmp_path):
    """Call as record(pid, "-o", file): starts it in an empty folder; it is recording when this returns."""
    folder = tmp_path / "here"
    folder.mkdir()

    def is_recording(output):
        file = output or max(folder.glob("*.ttrec"), key=os.path.getmtime, default=folder / "none")
        return file.exists() and Recording(file).of("keyframe")

    def start(*args):
        process = world.start("record", *args, cwd=folder)
        output = args[args.index("-o") + 1] if "-o" in args else None
        wait_for(lambda: is_recording(output), "the first keyframe")
        return process

    start.folder = folder
    return start


def stop(process, number=signal.SIGINT):
    process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT)
    return process.returncode, said


def test_run_records_every_descendant(ttmem, compile_c, path):
    done = ttmem("run", "--record", path, "--", compile_c(FAMILY))
    assert "recorded: 6 events of 4 processes" in done.stderr, done.stderr
    recording = Recording(path)
    assert recording.is_valid() and recording.torn == 0
    assert recording.events() == 6 and recording.missed() == 0
    assert len(set(recording.pids())) == 4
    # Its own child's status is always known, those of others where the kernel tells.
    known = [status for status in recording.statuses().values() if status is not None]
    assert 5 << 8 in known and len(known) == len(set(known)) and set(known) <= {5 << 8, 3 << 8, 0, 9}
    assert sorted(recording.totals().values()) == [(1, 0), (1, 0), (1, 1), (1, 1)]
    end = recording.json("end")
    assert (end["reason"], end["events"], end["missed"], end["books"]) == ("ended", 6, 0, 4)
    head = recording.json("head")
    assert head["argv"][0].endswith("/app") and head["host"] == os.uname().nodename
    assert path.stat().st_mode & 0o777 == 0o600


def test_run_gives_its_command_a_longer_history(ttmem, compile_c, path):
    program = compile_c('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv("TTMEM_HISTORY")); }')
    assert ttmem("run", "--record", path, "--", program).stdout == "1048576\n"
    assert ttmem("run", "--record", path, "--", program, env={"TTMEM_HISTORY": "4096"}).stdout == "4096\n"


def test_totals_are_exact_whatever_was_missed(ttmem, compile_c, path):
    """With the shortest ring there is; how much is missed depends on the machine, the sums do not."""
    program = compile_c(FLAT_OUT)
    done = ttmem("run", "--record", path, "--", program, 400000, env={"TTMEM_HISTORY": "1024"})
    recording = Recording(path)
    assert recording.events() + recording.missed() == 400000
    assert set(recording.totals().values()) == {(50000, 50000)} and len(recording.totals()) == 4
    end = recording.json("end")
    assert (end["events"], end["missed"]) == (recording.events(), recording.missed())
    assert ("missing" in done.stderr) == (recording.missed() > 0)
    assert recording.is_valid()


def test_names_of_functions_are_in_the_file(ttmem, compile_c, path):
    ttmem("run", "--record", path, "--", compile_c(FAMILY))
    recording = Recording(path)
    names = b"".join(recording.contents(chunk) for chunk in recording.of("names"))
    assert b'"function":"main"' in names and b"app.c" in names


def test_a_running_process_is_recorded_from_its_past_on(world, record):
    player = world.player("alloc 0 L1 0x1000 64 before", "free 0 L1 0x1000", "alloc 3 DRAM 0x1000 64")
    process = record(player.pid)
    player.play("alloc 0 L1 0x2000 64 during", "alloc 5 CB 0x1000 64 new-device")
    code, said = stop(process)
    assert code == 0
    recording = Recording(record.folder / f"ttmem-{player.pid}.ttrec")
    assert recording.pids() == [player.pid]
    assert recording.events() == 5, said
    assert recording.json("end")["reason"] == "interrupted"
    assert recording.is_valid() and not recording.of("ended")
    assert recording.path.stat().st_mode & 0o777 == 0o600


def test_no_file_is_overwritten_unless_it_is_named(world, record):
    player = world.player("alloc 0 L1 0x1000 64")
    name = f"ttmem-{player.pid}"
    (record.folder / f"{name}.ttrec").write_text("mine")
    assert stop(record(player.pid))[0] == 0
    assert (record.folder / f"{name}.ttrec").read_text() == "mine"
    assert Recording(record.folder / f"{name}-2.ttrec").events() == 1
    named = record.folder / "named"
    named.write_text("old")
    named.chmod(0o644)
    assert stop(record(player.pid, "-o", named))[0] == 0
    assert Recording(named).events() == 1
    assert named.stat().st_mode & 0o777 == 0o600


def test_it_ends_with_the_process(world, record, path):
    player = world.player("alloc 0 L1 0x1000 64")
    process = record(player.pid, "-o", path)
    player.play("free 0 L1 0x1000")
    player.end()
    assert process.wait(timeout=LIMIT) == 0
    recording = Recording(path)
    assert recording.events() == 2 and recording.json("end")["reason"] == "ended"
    assert list(recording.statuses().values()) == [None]


def test_all_has_processes_that_start_later(world, record, path):
    first = world.player("alloc 0 L1 0x1000 64")
    process = record("--all", "-o", path)
    second = world.player("alloc 0 L1 0x1000 64")
    wait_for(lambda: len(Recording(path).of("keyframe")) >= 2, "the second process")
    assert stop(process, signal.SIGTERM)[0] == 0
    assert Recording(path).pids() == [first.pid, second.pid]


def test_seconds_end_it(world, record, path):
    player = world.player("alloc 0 L1 0x1000 64")
    assert record(player.pid, "-o", path, "--seconds", "1").wait(timeout=LIMIT) == 0
    assert Recording(path).json("end")["reason"] == "seconds"


def test_a_killed_recorder_leaves_what_it_wrote(world, record, path):
    player = world.player("alloc 0 L1 0x1000 64")
    process = record(player.pid, "-o", path)
    assert stop(process, signal.SIGKILL)[0] == -signal.SIGKILL
    recording = Recording(path)
    assert recording.pids() == [player.pid] and recording.of("keyframe")
    assert not recording.of("end") and recording.torn == 0


def test_a_largest_size_is_kept(ttmem, compile_c, path):
    done = ttmem("run", "--record", path, "--max-size", "1M", "--", compile_c(FLAT_OUT), 4000000)
    assert done.returncode == 0
    assert "the recording ended early: it has reached its largest size" in done.stderr
    recording = Recording(path)
    assert path.stat().st_size <= 1 << 20
    assert recording.is_valid() and recording.torn == 0 and len(recording.of("end")) == 1


@pytest.mark.needs_root
def test_a_full_disk_ends_it_with_a_valid_file(build, clean_env, compile_c, tmp_path):
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=256k none "$1" && "$2" run --record "$1/full" -- "$3" 4000000; echo $?; cp "$1/full" "$4"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", disk, build / "src/cli/ttmem", compile_c(FLAT_OUT), copy],
        env=clean_env, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.stdout == "0\n", done.stderr  # the command's own
    assert "the recording ended early: the disk is full" in done.stderr
    recording = Recording(copy)
    assert recording.is_valid() and recording.torn == 0
    assert recording.events() > 0 and len(recording.of("keyframe")) >= 4


def test_mistakes_are_told(world, tmp_path):
    def said(*args):
        done = world.run("record", *args, cwd=tmp_path)
        return done.returncode, done.stderr.splitlines()[0]

    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    hole = os.open(fifo, os.O_RDWR)
    player = world.player("alloc 0 L1 0x1000 64")
    assert said() == (2, "ttmem record: expects one process id, or --all, got nothing")
    assert said("--all", "1") == (2, "ttmem record: PID or --all, not both")
    assert said("x") == (2, 'ttmem record: expects a process id, got "x"')
    assert said(999999999) == (1, "ttmem record: there is no process 999999999")
    world.show(os.getpid())
    assert said(os.getpid()) == (1, f'ttmem record: process {os.getpid()} is not tracked, or you may not see it: "ttmem doctor" says why')
    assert said(player.pid, "-o", fifo) == (1, f"ttmem record: {fifo}: not a regular file")
    assert said(player.pid, "-o", tmp_path / "no" / "folder")[0] == 1
    os.close(hole)


MANY = r"""
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 40; i++) {
		if (fork() == 0) {
			ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "child");
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
"""


def test_a_recording_may_have_more_processes_than_a_shell_has_files(ttmem, compile_c, path):
    ttmem("run", "--record", path, "--", compile_c(MANY))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def have_few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, most))

    done = ttmem("smi", "--from", path, preexec_fn=have_few)
    assert done.returncode == 0, done.stderr


def test_what_is_not_known_of_a_process_is_not_drawn_as_nothing(world, record, tmp_path):
    """Of one process all events are there; of the other only its last ones, and it held 1 GiB all the time."""
    path = tmp_path / "all.ttrec"
    short = world.player(f"alloc 0 DRAM 0x1000000 {1 << 30} weights", TTMEM_HISTORY="1024")
    world.player("alloc 1 DRAM 0x1000 4096 all")
    short.play("burst 0 5000")
    process = record("--all", "-o", path)
    short.play("alloc 0 DRAM 0x5000 64 last")
    stop(process)
    document = world.json("report", path)
    values = document["timeline"]["types"]["DRAM"]["bytes"]
    known = [value for value in values if value is not None]
    assert values[0] is None and known and min(known) >= 1 << 30
    assert document["timeline"]["types"]["DRAM"]["high"][0] is None
