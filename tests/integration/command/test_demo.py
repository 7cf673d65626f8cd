# SPDX-License-Identifier: Apache-2.0
"""ttmem demo and selftest, as a person meets them: on a real terminal, and into a pipe."""

import glob
import os
import re
import shutil
import subprocess
import time

import pytest

from conftest import LIMIT, has_legacy
from ttmemd import get
from world import wait_for as wait_for_it

STORY = ("double free", "kv_cache.block 3", "failed alloc", "load adapter", "killed -9", "train-llama")


@pytest.fixture
def terminal(clean_env, tmp_path, build):
    """A tmux of our own; call as terminal("demo", rows=40): types, and returns a way to look."""
    if subprocess.run(["which", "tmux"], capture_output=True, check=False).returncode:
        pytest.skip("tmux is not installed")
    server = ["tmux", "-S", str(tmp_path / "tmux")]

    def start(*args, rows=45, columns=80):
        command = " ".join([str(build / "src/cli/ttmem"), *args]) + "; echo THE END; sleep 1000"
        subprocess.run(
            [*server, "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command],
            env={**clean_env, "TERM": "xterm"},
            check=True,
            timeout=LIMIT,
        )

        def look(*keys):
            if keys:
                subprocess.run([*server, "send-keys", *keys], check=True, timeout=LIMIT)
            shown = subprocess.run(
                [*server, "capture-pane", "-p"], capture_output=True, text=True, check=True, timeout=LIMIT
            )
            return shown.stdout

        return look

    yield start
    subprocess.run([*server, "kill-server"], capture_output=True, check=False, timeout=LIMIT)


def wait_for(look, *texts):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        screen = look()
        if all(text in screen for text in texts):
            return screen
        time.sleep(0.1)
    raise AssertionError(f"{texts} did not all appear on:\n{look()}")


def test_demo_tells_its_story_on_a_terminal(terminal):
    look = terminal("demo", "--seconds", "6", rows=60)
    wait_for(look, "llama-serve", "n300 wormhole_b0", "q ends it")
    screen = wait_for(look, "What happened", "THE END", *STORY)
    assert "ttmem run -- ./your_app" in screen
    assert all(len(line) <= 80 for line in screen.splitlines())


def test_demo_keeps_going_until_q(terminal):
    look = terminal("demo", "--keep", "--seconds", "2")
    wait_for(look, "llama-serve")
    time.sleep(3)
    assert "THE END" not in look()
    look("q")
    wait_for(look, "THE END")


def test_demo_fits_a_small_terminal(terminal):
    look = terminal("demo", "--seconds", "5", rows=24)
    screen = wait_for(look, "ttmem demo", "killed -9")
    assert len(screen.splitlines()) <= 24


def test_demo_into_a_pipe(ttmem, build):
    done = ttmem("demo", "--seconds", "5")
    # Started by its path, it says how the shell finds it by its name.
    assert f'  export PATH="{(build / "src/cli").resolve()}:$PATH"\n' in done.stdout
    assert done.returncode == 0
    assert "\033" not in done.stdout
    assert "server-worker-1" in done.stdout  # no terminal: no name is cut
    for text in STORY:
        assert text in done.stdout


def test_demo_shows_workloads_that_do_not_disturb_each_other(ttmemd):
    """Processes that share a card have addresses of their own, and answers name the workload's line."""
    ttmemd.start("--http", "127.0.0.1:0")
    demo = ttmemd.adopt(
        subprocess.Popen(
            [ttmemd.build / "src" / "cli" / "ttmem", "demo", "--keep", "--seconds", "20"],
            env=ttmemd.env, stdout=subprocess.DEVNULL,
        )
    )  # fmt: skip

    def incidents():
        return get(ttmemd, "/api/v1/incidents")["incidents"]

    def sharing():
        """The programs of each card that several use."""
        cards = {}
        for process in get(ttmemd, "/api/v1/smi")["processes"]:
            for device in process["devices"]:
                cards.setdefault(device["uid"], set()).add(process["comm"])
        return [comms for comms in cards.values() if len(comms) > 1]

    wait_for_it(sharing, "two programs on one card")
    failed = wait_for_it(lambda: [row for row in incidents() if row["kind"] == "alloc_failed"], "the failure")
    assert failed[0]["second"]["site"]["function"] == "fragment"
    assert "overlap" not in {row["kind"] for row in incidents()}
    assert not [note for note in get(ttmemd, "/api/v1/smi")["notes"] if "overlap" in note]
    demo.terminate()
    demo.wait(timeout=LIMIT)


def test_demo_leaves_no_process_behind(clean_env, build):
    path = {"PATH": f"{build / 'src/cli'}:{os.environ['PATH']}"}
    done = subprocess.run(["ttmem", "demo", "--seconds", "2"], env={**clean_env, **path}, capture_output=True,
                          text=True, timeout=LIMIT, check=True)  # fmt: skip
    assert "export PATH" not in done.stdout
    left = subprocess.run(
        ["pgrep", "-f", "ttmem demo --play"], capture_output=True, text=True, check=False
    )
    # Other tests may be running theirs: only those without a parent are ours to answer for.
    for pid in left.stdout.split():
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                assert stat.read().rsplit(")", 1)[1].split()[1] != "1"
        except OSError:
            pass


def test_selftest(ttmem):
    before = set(glob.glob("/tmp/ttmem-selftest-*"))
    done = ttmem("selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and ("skip" in done.stdout) is not has_legacy()
    good = re.findall(r"^ok   (.*)$", done.stdout, re.M)
    assert len(good) == 10 + has_legacy()
    assert good[7:] == [
        "a ttmemd of our own comes up",
        "the library, through ttmemd to every tool",
        *["the old socket, likewise"] * has_legacy(),
        "Python, likewise",
    ]
    # Nothing of it stays behind.
    new = set(glob.glob("/tmp/ttmem-selftest-*")) - before  # others may be running theirs
    wait_for_it(lambda: not any(map(os.path.exists, new)), "folders that stay behind")


def test_selftest_notices_a_daemon_that_does_not_serve(clean_env, build, tmp_path):
    """The same program beside something else that is called ttmemd."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(build / "src/cli/ttmem", folder / "ttmem")
    (folder / "ttmemd").write_text("#!/bin/sh\nexit 1\n")
    (folder / "ttmemd").chmod(0o755)
    env = {**clean_env, "LD_LIBRARY_PATH": str(build / "src/lib")}
    done = subprocess.run(
        [folder / "ttmem", "selftest"], env=env, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 1
    assert "FAIL a ttmemd of our own comes up: ttmemd does not come up\n" in done.stdout


def test_selftest_with_tensors_needs_ttnn(ttmem):
    done = ttmem("selftest", "--ttnn")
    assert done.returncode == 0
    assert done.stdout == "skip tensors of ttnn: python3 has no module ttnn\n"


def test_selftest_says_what_is_wrong(ttmem):
    done = ttmem("selftest", env={"TTMEM_PROC_ROOT": "/nonexistent"})
    assert done.returncode == 1
    assert "FAIL" in done.stdout or "selftest" in done.stderr
