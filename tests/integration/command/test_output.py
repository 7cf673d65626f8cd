# SPDX-License-Identifier: Apache-2.0
"""How commands write: sizes for people or in full, and long lists through a pager on a terminal."""

import os
import pty
import subprocess
import threading

from conftest import LIMIT


def on_terminal(world, *args, **settings):
    """What somebody sees at a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [world.program, *args],
        env={**world.env, "TERM": "xterm", **settings},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    seen = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        seen += more
    os.close(ours)
    limit.cancel()
    assert process.wait(timeout=LIMIT) == 0
    return seen.decode().replace("\r\n", "\n")


def test_bytes_option_prints_sizes_in_full(world):
    world.player("alloc 0 DRAM 0x1000 1048577 weights")
    for command in ("smi", "ps", "buffers", "doctor"):
        shown = world.run(command).stdout, world.run(command, "--bytes").stdout
        assert "1048577" not in shown[0] and "1.0 MiB" in shown[0], command
        assert "1048577" in shown[1] and "1.0 MiB" not in shown[1], command


def test_long_output_on_a_terminal_is_paged(world):
    world.player("many 0 DRAM 0x1000 64 100")
    paged = on_terminal(world, "buffers", PAGER="sed 's/^/> /'")
    lines = paged.splitlines()
    assert len(lines) == 101 and all(line.startswith("> ") for line in lines)
    assert "> " not in on_terminal(world, "buffers", PAGER="sed 's/^/> /'", TTMEM_PAGER="")
    assert "> " not in on_terminal(world, "buffers", PAGER="cat")
    # JSON is for programs.
    assert "> " not in on_terminal(world, "buffers", "--json", PAGER="sed 's/^/> /'")


def test_output_to_a_pipe_is_not_paged(world):
    world.player("many 0 DRAM 0x1000 64 100")
    assert "> " not in world.text("buffers", env={**world.env, "TERM": "xterm", "PAGER": "sed 's/^/> /'"})
    assert "> " not in on_terminal(world, "buffers", PAGER="sed 's/^/> /'", TERM="dumb")


def test_leaving_the_pager_early_is_no_error(world):
    world.player("many 0 DRAM 0x1000 64 50000")
    assert len(on_terminal(world, "buffers", PAGER="head -n 3").splitlines()) == 3


def test_less_is_used_where_it_is_there(world, tmp_path):
    """less shows what fits at once, and a machine without it still shows everything."""
    world.player("alloc 0 DRAM 0x1000 64 weights")
    for name in ("LESS", "PAGER", "TTMEM_PAGER"):
        world.env.pop(name, None)
    assert "weights" in on_terminal(world, "buffers")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cat").symlink_to("/bin/cat")
    assert "weights" in on_terminal(world, "buffers", PATH=str(tmp_path / "bin"))
