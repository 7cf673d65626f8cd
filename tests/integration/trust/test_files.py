# SPDX-License-Identifier: Apache-2.0
"""Files that a user names for output, where another user has been before; and descriptors named as files."""

import os
import subprocess

import pytest

from common import LIMIT

OTHER = 1001
REASON = "another user has put it"


@pytest.fixture
def trap(ttmemd):
    """A folder like /tmp, with a link, a hard link and a pipe of another user to and as what is ours."""
    folder = ttmemd.folder / "public"
    folder.mkdir()
    folder.chmod(0o1777)
    victim = ttmemd.folder / "victim"
    victim.write_text("precious")
    (folder / "link").symlink_to(victim)
    os.link(victim, folder / "hard")
    os.mkfifo(folder / "pipe")
    (folder / "way").symlink_to(ttmemd.folder)
    for name in ("link", "pipe", "way"):
        os.chown(folder / name, OTHER, OTHER, follow_symlinks=False)
    yield folder
    assert victim.read_text() == "precious"


TRAPS = ("link", "hard", "pipe", "way/victim")


@pytest.mark.needs_root
@pytest.mark.parametrize("name", TRAPS)
def test_the_daemon_logs_to_no_file_that_another_user_has_placed(ttmemd, trap, name):
    ttmemd.start("--log", trap / name)
    (door,) = [door for door in ttmemd.json("status")["doors"] if not door["open"]]
    assert (door["name"], door["where"]) == ("log", str(trap / name))
    assert REASON in door["problem"]
    assert ttmemd.stop() == 0
    assert "serving on" in ttmemd.text()


@pytest.mark.needs_root
@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_run_writes_to_no_file_that_another_user_has_placed(ttmemd, trap, name, option):
    result = ttmemd.run("run", option, trap / name, "--", "true")
    assert result.returncode != 0
    assert REASON in result.stderr


@pytest.mark.needs_root
@pytest.mark.parametrize("name", TRAPS)
def test_doctor_bundles_into_no_file_that_another_user_has_placed(ttmemd, trap, name):
    result = ttmemd.run("doctor", "--bundle", trap / name)
    assert result.returncode != 0
    assert REASON in result.stderr


def test_descriptors_and_substituted_processes_are_written_to(ttmemd):
    ttmem = ttmemd.build / "src" / "cli" / "ttmem"
    for target in ("/dev/stdout", "/dev/fd/1", ">(cat)", "/proc/self/fd/1"):
        result = subprocess.run(
            ["bash", "-c", f"{ttmem} run --json {target} -- true | cat"],
            env=ttmemd.env, capture_output=True, text=True, timeout=LIMIT,
        )  # fmt: skip
        assert '"ttmem.run/1"' in result.stdout, (target, result)


def test_a_redirected_file_is_not_truncated(ttmemd):
    out = ttmemd.folder / "out"
    with open(out, "wb") as file:
        file.write(b"before\n")
        file.flush()
        subprocess.run(
            [ttmemd.build / "src" / "cli" / "ttmem", "run", "--json", "/dev/stdout", "--", "true"],
            env=ttmemd.env, stdout=file, stderr=subprocess.PIPE, check=True, timeout=LIMIT,
        )  # fmt: skip
    text = out.read_text()
    assert text.startswith("before\n")
    assert '"ttmem.run/1"' in text


def test_the_daemon_logs_to_its_standard_error(ttmemd):
    ttmemd.start("--log", "/dev/stderr")
    ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    assert ttmemd.stop() == 0
    assert "left 1 buffers" in ttmemd.text()


LOGS = {
    "TTMEM_DEBUG": ({"TTMEM": "1"}, "tracking is on"),
    "TT_BUFFER_DEBUG_LOG_FILE": ({"TT_BUFFER_DEBUG_LOG": "1"}, "BUFFER ALLOCATED"),
}


@pytest.mark.parametrize(
    "variable", ["TTMEM_DEBUG", pytest.param("TT_BUFFER_DEBUG_LOG_FILE", marks=pytest.mark.legacy)]
)
@pytest.mark.parametrize("target", ["/dev/stderr", "/dev/fd/2"])
@pytest.mark.parametrize("kind", ["pipe", "file", "socket"])
def test_the_library_logs_to_a_descriptor(ttmemd, variable, target, kind):
    settings, expected = LOGS[variable]
    player = ttmemd.build / "tests" / "programs" / "player"
    out = ttmemd.folder / "err"
    redirect = {"pipe": "2>&1 >/dev/null | cat > ", "file": ">/dev/null 2>", "socket": ""}[kind]
    env = {**ttmemd.env, **settings, variable: target}
    if kind == "socket":
        import socket

        ours, theirs = socket.socketpair()
        with ours, theirs:
            subprocess.run(
                [player], input="alloc 0 DRAM 0x1000 64\n", env=env, stdout=subprocess.DEVNULL, stderr=theirs,
                text=True, check=True, timeout=LIMIT,
            )  # fmt: skip
            assert expected in ours.recv(65536, socket.MSG_DONTWAIT).decode()
        return
    subprocess.run(
        ["bash", "-c", f"echo alloc 0 DRAM 0x1000 64 | {player} {redirect}{out}"],
        env=env, check=True, timeout=LIMIT,
    )  # fmt: skip
    assert expected in out.read_text()


def test_a_pipe_that_nobody_reads_costs_the_log_alone(ttmemd):
    """Neither a signal nor a wait: closed at the other end, and full."""
    player = ttmemd.build / "tests" / "programs" / "player"
    script = "for i in range(3000): print(f'alloc 0 DRAM {0x1000 * (i + 1):#x} 64')"
    for reader in ("true", "sleep 1000"):
        process = subprocess.Popen(
            ["bash", "-c", f"/usr/bin/python3 -c \"{script}\" | {player} 2> >(exec {reader}) >/dev/null; echo $?"],
            env={**ttmemd.env, "TTMEM": "1", "TTMEM_DEBUG": "/dev/stderr"},
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout.readline() == "0\n", reader
        finally:
            os.killpg(process.pid, 9)
            process.wait()
            process.stdout.close()


@pytest.mark.needs_root
@pytest.mark.parametrize(("owner", "mode"), [(OTHER, 0o644), (0, 0o646), (0, 0o664)])
def test_a_configuration_that_others_can_write_starts_no_programs(ttmemd, owner, mode):
    path = ttmemd.folder / "ttmemd.conf"
    program = ttmemd.build / "src" / "daemon" / "ttmemd"

    def check(text, owner, mode):
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, owner, owner)
        words = [program, "--check", "--config", path]
        return subprocess.run(words, env=ttmemd.env, capture_output=True, text=True, timeout=LIMIT, check=False)

    result = check("on-incident = true\n", owner, mode)
    assert result.returncode == 1 and "others must not be able to write it" in result.stderr, result
    # What starts nothing is read as before.
    assert check("keep = 1d\n", owner, mode).returncode == 0
    assert check("on-incident = true\n", 0, 0o644).returncode == 0
