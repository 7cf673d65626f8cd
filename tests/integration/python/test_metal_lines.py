# SPDX-License-Identifier: Apache-2.0
"""Python programs of tt-metal that do not know ttmem, under `ttmem run --metal`, with a stand-in for ttnn: call
sites are lines of the application, and operations are phases."""

import re
import shutil
import subprocess
import sys

from metalpython import APP, END, WAIT, app, leaks, packages, report, site  # noqa: F401
from world import wait_for


def test_buffers_name_the_line_of_the_application(world, app, build):
    process = world.adopt(subprocess.Popen(
        [build / "src" / "cli" / "ttmem", "run", "--metal", "--", sys.executable, app(APP + WAIT)],
        env={**world.env, **app.env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True))
    word, pid = process.stdout.readline().split()
    assert word == "pid"
    world.show(int(pid))
    rows = wait_for(lambda: world.json("buffers")["buffers"], "the buffers")
    assert {row["size"]: (site(row), row["phase"]) for row in rows} == {
        4096: (("__init__", "app.py", app.line("weights")), "ttnn.zeros"),
        2048: (("forward", "app.py", app.line("forward")), "ttnn.linear/ttnn.zeros"),
    }
    # The wrappers are in the stack, which is whole: C++ inside, Python outside.
    (linear,) = [row["stack"] for row in rows if row["size"] == 2048]
    names = [frame["function"].split("(")[0] for frame in linear]
    assert names.index("ttnn::operations::creation::zeros") < names.index("linear") < names.index("forward")
    groups = world.json("buffers", "--by", "phase")["groups"]
    assert {group["key"]: group["bytes"] for group in groups} == {"ttnn.zeros": 4096, "ttnn.linear/ttnn.zeros": 2048}
    process.stdin.close()
    process.wait()


def test_leaks_name_the_line_of_the_application(app, report):
    _, document = report(sys.executable, app(APP + END))
    assert leaks(document) == {
        4096: ("__init__", "app.py", app.line("weights")),
        2048: ("forward", "app.py", app.line("forward")),
    }


def test_where_ttnn_is_does_not_matter(app, report, packages, tmp_path):
    """In a folder that only its name tells."""
    shutil.copytree(packages / "ttnn", tmp_path / "opt" / "ttnn")
    _, document = report(sys.executable, app(APP + END), PYTHONPATH=str(tmp_path / "opt"))
    assert leaks(document)[2048] == ("forward", "app.py", app.line("forward"))


def test_operations_are_phases_that_end(app, report, build, packages):
    """Also if they fail, or are passed on from one class to the other; around them are the application's own."""
    _, document = report(sys.executable, app("""
        import os, threading
        import ttnn, ttmem
        device = ttnn.open_device(0)
        try:
            ttnn.zeros(device, -1)
        except ValueError as error:
            assert str(error) == "size"
        a = ttnn._ttnn.bind_zeros(device, 32)
        with ttmem.phase("prefill"):
            b = ttnn.linear(device, 64)
        ttnn.decorators.FastOperation.slow = True
        c = ttnn.linear(device, 96)
        thread = threading.Thread(target=lambda: ttnn.zeros(device, 128))
        thread.start()
        thread.join()
        assert ttnn.zeros.__call__.__doc__ == "Runs it."
        os._exit(0)
    """), PYTHONPATH=f"{packages}:{build / 'python'}")
    phases = {b["size"]: b["phase"] for p in document["processes"] for b in p["buffers"]}
    assert phases == {32: None, 64: "prefill/ttnn.linear/ttnn.zeros", 96: "ttnn.linear/ttnn.zeros", 128: "ttnn.zeros"}


def test_an_application_notices_nothing(app, report, tmp_path):
    """Neither in its path nor in its modules' places, and its own sitecustomize is run."""
    custom = tmp_path / "custom"
    custom.mkdir()
    (custom / "sitecustomize.py").write_text("done = __file__\n")
    program = app("""
        import sys
        print([path for path in sys.path if "ttmem" in path or "_run" in path], sys.modules["sitecustomize"].done)
    """)
    out, document = report(sys.executable, program, PYTHONPATH=str(custom))
    assert out == f"[] {custom / 'sitecustomize.py'}\n"
    assert document["processes"] == []


def test_a_broken_sitecustomize_is_said_as_ever(app, ttmem, tmp_path):
    custom = tmp_path / "custom"
    custom.mkdir()
    (custom / "sitecustomize.py").write_text("import no_such_module\n")
    done = ttmem("run", "--quiet", "--metal", "--", sys.executable, app("print('ran')"),
                 env={**app.env, "PYTHONPATH": str(custom)})
    assert (done.returncode, done.stdout) == (0, "ran\n") and "no_such_module" in done.stderr


def test_python_that_ignores_the_environment_is_tracked_all_the_same(app, report, packages):
    program = app(f"import sys; sys.path.insert(0, {str(packages)!r})\n" + APP + END)
    _, document = report(sys.executable, "-E", program)
    assert document["leaked_bytes"] == 6144
    assert all(not frame["python"] for p in document["processes"] for b in p["buffers"] for frame in b["stack"])


def test_pth_file_gives_lines_and_phases(world, app, build, packages, tmp_path):
    """Without `ttmem run`."""
    text = (build / "python" / "ttmem-metal.pth").read_text()
    for pattern, path in [(r'CDLL\("[^"]*"', f'CDLL("{build}/src/metal/libttmem-metal.so"'),
                          (r'run_path\("[^"]*"', f'run_path("{build}/python/ttmem/_run/sitecustomize.py"')]:
        text, count = re.subn(pattern, path, text)
        assert count == 1
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "ttmem-metal.pth").write_text(text)
    program = app(f"import site; site.addsitedir({str(folder)!r})\n" + APP + WAIT)
    process = world.adopt(subprocess.Popen([sys.executable, program], env={**world.env, **app.env, "TTMEM_METAL": "1"},
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    assert process.stdout.readline() == f"pid {process.pid}\n"
    world.show(process.pid)
    rows = {row["size"]: row for row in world.json("buffers")["buffers"]}
    assert site(rows[2048]) == ("forward", "app.py", app.line("forward"))
    assert rows[2048]["phase"] == "ttnn.linear/ttnn.zeros"
    process.stdin.close()
    process.wait()
