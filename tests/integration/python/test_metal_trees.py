# SPDX-License-Identifier: Apache-2.0
"""`ttmem run --metal` reaches whatever the command starts; and what a container or a service needs instead."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metalpython import APP, END, WAIT, app, leaks, packages, report, site  # noqa: F401
from world import wait_for

TESTS = """\
import os
import pytest
import ttnn

kept = []

@pytest.mark.parametrize("size", [32, 64, 96, 128])
def test_it(size):
    kept.append(ttnn.zeros(ttnn.open_device(0), size))  # kept
"""


def test_workers_of_xdist(app, report):
    pytest.importorskip("xdist")
    path = app(TESTS, "test_model.py")
    _, document = report(sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "load", "-p", "no:cacheprovider",
                         path.name, cwd=path.parent)
    assert {b["size"] for p in document["processes"] for b in p["buffers"]} == {32, 64, 96, 128}
    assert {site(b) for p in document["processes"] for b in p["buffers"]} == {
        ("test_it", "test_model.py", app.line("kept"))}


def test_ranks_of_a_launcher(app, report, tmp_path):
    """As mpirun: a program of its own kind starts ranks in sessions of their own, which change their folder."""
    launcher = tmp_path / "launch"
    launcher.write_text("""#!/bin/sh
cd /
for RANK in 0 1 2; do
	export RANK
	setsid "$@" &
done
wait
""")
    launcher.chmod(0o755)
    _, document = report(launcher, sys.executable, app(APP + END))
    assert [sorted(b["size"] for b in p["buffers"]) for p in document["processes"]] == [[2048, 4096]] * 3
    assert leaks(document)[2 * 2048 + 2048] == ("forward", "app.py", app.line("forward"))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing(app, report, method):
    _, document = report(sys.executable, app(f"""
        import multiprocessing, os, ttnn

        def work(size):
            kept = ttnn.zeros(ttnn.open_device(0), size)  # work
            os._exit(0)

        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            workers = [context.Process(target=work, args=(size,)) for size in (32, 64)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    """))
    assert sorted(b["size"] for p in document["processes"] for b in p["buffers"]) == [32, 64]
    assert {site(leak) for leak in document["leaks"]} == {("work", "app.py", app.line("work"))}


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_container_with_the_libraries_mounted(world, app, build, tmp_path):
    """Nothing else of ttmem is there, and they are where they never were."""
    mounted, image = tmp_path / "mounted", tmp_path / "opt"
    image.mkdir()
    for part in ("src/lib", "src/metal", "python"):
        shutil.copytree(build / part, mounted / part, symlinks=True)
    inside = f"""mount --bind -o ro {mounted} {image} && mount -t tmpfs none {build} &&
        LD_PRELOAD={image}/src/metal/libttmem-metal.so exec "$@" """
    process = world.adopt(subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside, "sh",
         sys.executable, app(APP + WAIT)],
        env={**world.env, **app.env, "TTMEM": "1",
             "PYTHONPATH": f"{image}/python/ttmem/_run:{app.env['PYTHONPATH']}"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    assert process.stdout.readline() == "pid 1\n"
    (pid,) = children(process.pid)
    world.show(int(pid))
    rows = wait_for(lambda: world.json("buffers")["buffers"], "the buffers")
    assert {row["size"]: (site(row), row["phase"]) for row in rows} == {
        4096: (("__init__", "app.py", app.line("weights")), "ttnn.zeros"),
        2048: (("forward", "app.py", app.line("forward")), "ttnn.linear/ttnn.zeros"),
    }
    process.stdin.close()
    process.wait()
