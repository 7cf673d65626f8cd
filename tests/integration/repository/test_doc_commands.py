# SPDX-License-Identifier: Apache-2.0
"""Every command in README and docs works as printed, or is listed here with the reason why it is not run.

The commands of a page run one after the other in one shell, in a folder with what a reader would have: a program
(README's own), a Python program, a test, and an installed ttmem. Where the output is printed below a command ("$ "),
it is compared; what differs from run to run is masked as in the page.
"""

import re
import shutil
import subprocess
import sys

import pytest

from conftest import LIMIT, ROOT
from cxx import installed_tree

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]

# What a command begins with, behind a prompt and variables.
COMMANDS = """apt-get cc c++ g++ cd chrt cmake curl docker echo export install journalctl kubectl nvtop-build/src/nvtop
old-client podman pytest python3 sh sudo systemctl systemd-sysusers systemd-tmpfiles ttmem ttmemd usermod
venv/bin/pip ./model-tests venv/bin/pytest venv/bin/ttmem unshare valgrind ./app ./arena ./dev ./your_program python""".split()

# Not run, by the beginning of the command (of "page: command" where only that page is meant).
REASONS = {
    "./dev": "builds or tests the tree: every test run does it, test_install.py installs",
    "apt-get": "needs Debian's archive; test_examples.py runs the files against a stand-in",
    "cmake": "needs nvtop's source; test_examples.py runs the files against a stand-in",
    "nvtop-build": "needs nvtop's source",
    "systemctl": "needs systemd: tests/systemd has it",
    "systemd-": "needs systemd: tests/systemd has it",
    "install -D": "writes into /etc",
    "usermod": "changes the machine's users",
    "docker": "needs containers: ./dev container-test",
    "podman": "needs containers: ./dev container-test",
    "kubectl": "needs a cluster",
    "journalctl": "needs the journal: test_systemd has its fields",
    "old-client": "a test program: test_old_clients runs it",
    "sudo apt": "installs on the machine: ./dev package-test does it in a clean system",
    "sudo dkms": "needs the running kernel's headers: ./dev package-test builds it",
    "cd kernel": "needs the running kernel's headers: ./dev kernel-test",
    "echo ttmem |": "writes into /etc",
    "pip install": "needs a wheel: test_packaging.py installs one",
    "python3 -m venv": "needs a wheel: test_packaging.py installs one",
    "venv/bin": "needs a wheel: test_packaging.py installs one",
    "TTMEM=1 TTMEM_SOCKET=none valgrind": "PROGRAM and SIZE are to be replaced",
    "TTMEM_BUILD=": "runs these tests",
    "ttmem report --serve": "goes on until it is stopped: test_report_serve.py",
    "chrt": "needs a release build: ./dev bench makes it",
    "ttmem open": "starts a browser: test_open.py and tests/web",
    "ttmem smi -w": "goes on until q is pressed: test_smi.py",
    "ttmem watch": "goes on until q is pressed: test_watch.py",
    "ttmem top": "needs a terminal: test_top.py",
    "ttmem demo --keep": "goes on until q is pressed: test_demo.py",
    "ttmem record 1234": "1234 is to be replaced: test_record.py",
    "ttmem export --format ttnn-visualizer -o report PID": "PID is to be replaced: test_export_formats.py",
    "ttmem smi --from /var/lib": "a path that is to be replaced: test_from.py",
    "curl http://host-1": "another machine: test_fleet.py",
    "curl -H": "needs root's token: test_web.py",
    "curl -N": "goes on until it is stopped",
    "curl http://localhost": "a daemon on the standard port: README's line is run",
    "ttmemd --check": "of the line above, which writes into /etc",
    "deploy.md: ttmemd": "runs until it is stopped; README's line is run",
    "quickstart.md: ttmemd": "runs until it is stopped; README's line is run",
    "quickstart.md: ttmem leaks": "needs the daemon of another terminal; README's line is run",
    "cc -static": "P is to be replaced: test_static.py",
    "cc arena.c -o arena P/lib": "P is to be replaced: test_static.py",
    "c++ app.cpp": "app.cpp is the reader's: test_cpp.py",
    "leak-patterns.md: ": "run by test_leak_patterns.py",
    "integrate-tt-metal.md: ": "needs tt-metal: test_metal_preload.py with a stand-in, ./dev metal-test with the real one",
    "ttmem diff main.json": "fails as it should: the two files are the reader's (test_diff.py)",
    "ttmem diff run.ttrec@warm-up": "needs a mark of that name: test_diff.py",
    "ttmem growth --from run.ttrec --at 2m": "needs a recording of minutes: test_from.py",
    "compare-runs.md: ttmem replay run.ttrec": "run in recording.md, where this file is made",
    "recording.md: ttmem diff before.ttrec": "run in compare-runs.md, where these files are made",
    "recording.md: ttmem history 0x1f00000": "an address that is to be replaced: test_from.py",
    "recording.md: ttmem leaks  ": "needs the daemon's flight recorder: test_black_box.py",
}

# Fenced or indented, and no commands: output, diagrams, settings, code. By their first line.
OTHERS = [
    " application", " loop", "| device", "limit DRAM", "event:", "trace_overlap", "wormhole", "sub-devices", "struct ttmem", "PID ",
    "Device 0", "____", "run.ttrec at", "place (", " recorder", "log =", "fleet =", "ttnn.", "# /etc", "leaks:", "[Service]",
]  # fmt: skip

# What they have found, not that they failed.
FOUND = {"ttmem doctor": 2}


def blocks(text):
    """(language, lines) of each fenced or indented block."""
    for language, body in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.M | re.S):
        yield language, body
    bare = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    for body in re.findall(r"(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", bare):
        yield "", re.sub(r"^ {4}", "", body, flags=re.M)


def first_word(line):
    return re.sub(r"^(\$ )?([A-Z_]+=\S* )*", "", line).split(" ")[0]


def is_commands(body):
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and first_word(lines[0].strip()) in COMMANDS


def commands(page):
    """[(command, expected output or None)], in order."""
    for language, body in blocks(page.read_text(encoding="utf-8")):
        if language not in ("", "sh", "console") or not is_commands(body):
            continue
        body = re.sub(r" *\\\n\s*", " ", body)
        if re.search(r"^\$ ", body, re.M):
            yield from re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M)
        else:
            for line in body.splitlines():
                if line.strip() and not line.startswith("#"):
                    yield line.strip(), None


def reason(page, command):
    for start, why in REASONS.items():
        name, _, rest = start.partition(": ")
        if command.startswith(start) or (name == page.name and command.startswith(rest)):
            return why
    return None


def test_every_block_is_known():
    """A new kind of block is either commands or listed as something else."""
    for page in PAGES:
        for language, body in blocks(page.read_text(encoding="utf-8")):
            if language in ("", "sh", "console") and body.strip() and not is_commands(body):
                assert body.startswith(tuple(OTHERS)) or body.strip().startswith(tuple(OTHERS)), f"{page.name}: {body[:80]}"


def test_every_reason_is_needed():
    used = {(page.name, command) for page in PAGES for command, _ in commands(page)}
    for start in REASONS:
        name, _, rest = start.partition(": ")
        assert any(c.startswith(start) or (p == name and c.startswith(rest)) for p, c in used), start


PROGRAM = """\
import ttmem

bank = {"capacity": 12 << 30, "bank_base": 4096, "bank_size": 1 << 30, "banks": 12, "alignment": 64}
ttmem.device(0, card="n150", arch="wormhole_b0", memory={"DRAM": bank})


def load_weights():
    ttmem.alloc(0, ttmem.DRAM, 0x10000, 1 << 20, "weights")


def decode():
    ttmem.alloc(0, ttmem.L1, 0x20000, 4096, "activations")
    ttmem.free(0, 0x20000, ttmem.L1)


with ttmem.phase("load"):
    load_weights()
with ttmem.phase("decode"):
    decode()
ttmem.alloc_failed(0, ttmem.DRAM, 1 << 40)
ttmem.free(0, 0x10000, ttmem.DRAM)
"""
TEST = "import ttmem\n\ndef test_nothing():\n    ttmem.alloc(0, 0, 1, 1)\n    ttmem.free(0, 1, 0)\n"
BUDGET = '{"schema": "ttmem.budget/1", "limits": {"DRAM": "4G"}}'


@pytest.fixture(scope="module")
def stage(build_folder, tmp_path_factory):
    """A home with an installed ttmem in ~/ttmem, and the reader's files."""
    installed = installed_tree(build_folder, tmp_path_factory)
    if not (installed.prefix / "lib" / "python" / "ttmem").exists():
        pytest.skip("the Python package is not built")
    home = tmp_path_factory.mktemp("home")
    (home / "ttmem").symlink_to(installed.prefix)
    for pc in (installed.prefix / "lib" / "pkgconfig").glob("*.pc"):
        pc.write_text(re.sub("^prefix=.*", f"prefix={installed.prefix}", pc.read_text(), flags=re.M))
    tools = home / "bin"
    tools.mkdir()
    for name in ("python", "python3"):
        (tools / name).symlink_to("/usr/bin/python3")
    (tools / "pytest").write_text('#!/bin/sh\nexec /usr/bin/python3 -B -m pytest -p no:cacheprovider "$@"\n')
    (tools / "pytest").chmod(0o755)
    work = home / "work"
    (work / "tests").mkdir(parents=True)
    (work / "tests" / "test_model.py").write_text(TEST)
    for name in ("app.py", "my_app.py", "train.py"):
        (work / name).write_text(PROGRAM)
    (work / "budget.json").write_text(BUDGET)
    (source,) = [body for language, body in blocks((ROOT / "README.md").read_text()) if language == "c"]
    (work / "app.c").write_text(source)
    (work / "arena.c").write_text((ROOT / "examples/c/arena.c").read_text())
    (work / "gtest.cpp").write_text((ROOT / "examples/cpp-tests/gtest.cpp").read_text())
    installed.compile(work / "app.c", work / "app", compiler="cc")
    (work / "your_program").symlink_to("app")
    (work / "program").write_text("#!/bin/sh\nexec python3 app.py\n")
    (work / "program").chmod(0o755)
    return home


def mask(text, folder):
    text = text.replace(f"{folder}/", "")
    return re.sub(r"\(\d+ ms( total)?\)", "(TIME)", text)


# Until the daemon answers, or has ended.
READY = "while kill -0 $! && ! curl -sf http://127.0.0.1:5392/metrics; do sleep 0.05; done >/dev/null"

RUNNABLE = [page for page in PAGES if any(not reason(page, command) for command, _ in commands(page))]


@pytest.mark.needs_root  # a network and a state folder of its own
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_commands_work_as_printed(page, stage, clean_env, tmp_path):
    lines = [(command, output) for command, output in commands(page) if not reason(page, command)]
    folder = tmp_path / "work"
    shutil.copytree(stage / "work", folder, symlinks=True)
    # A daemon of root has its state there.
    script = [f"cd '{folder}'", "mount -t tmpfs tmpfs /var/lib"]
    for number, (command, _) in enumerate(lines):
        # A daemon in the background goes on, and the next line may need it.
        wait = f"; {READY}" if command.startswith("ttmemd &") else ""
        script.append(f"echo {number} >'{tmp_path}/last'\n{{ {command}\n}} </dev/null >'{tmp_path}/{number}' 2>&1; echo $? >'{tmp_path}/{number}.code'{wait}")
    env = {
        **clean_env,
        "HOME": str(stage), "PATH": f"{stage}/bin:{stage}/ttmem/bin:{clean_env['PATH']}",
        "PKG_CONFIG_PATH": f"{stage}/ttmem/lib/pkgconfig",
        "PYTHONPATH": f"{stage}/ttmem/lib/python", "XDG_STATE_HOME": str(tmp_path), "TT_ALLOC_SERVER_SOCKET": "none",
    }  # fmt: skip
    if any(command.startswith("ttmemd &") for command, _ in lines):
        env["TTMEM_SOCKET"] = str(tmp_path / "ttmemd.sock")
    # A new command that does not end by itself needs a reason above.
    done = subprocess.run(
        ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "timeout", "--foreground",
         str(LIMIT), sys.executable, "-B", ROOT / "tests/web/alone.py", "bash", "-c", "\n".join(script)],
        env=env, capture_output=True, text=True, timeout=LIMIT * 2,
    )  # fmt: skip
    last = lines[int((tmp_path / "last").read_text())][0]
    assert done.returncode != 124, f"does not end: {last}"
    assert done.returncode == 0, done.stderr
    for number, (command, output) in enumerate(lines):
        said, code = (tmp_path / str(number)).read_text(), int((tmp_path / f"{number}.code").read_text())
        if output is not None:
            assert mask(said, folder) == output, command
        else:
            found = [code for start, code in FOUND.items() if command.startswith(start)]
            assert code in (0, *found), f"{command}: {code}\n{said}"
