#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Runs the transcripts of this folder, and compares their output with what is expected. README.md explains them.

    run.py [--library BUILD] [--daemon BUILD] [--successor BUILD] [--command BUILD]
           [--write | --release | --keep] [NAME...]

Each BUILD is a build folder (TTMEM_BUILD, else build/). With different ones, each line may be that of 0.2.0 or of today.
--write replaces the expected output, --release that of 0.2.0, by what these builds print. --keep makes the files in
inputs/ again, as make-inputs.txt says.

Everything runs in namespaces of its own, with the same process ids, paths, host name and port every time.
"""

import argparse
import difflib
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from release import add_to_release, explain, numbered, read_transcript, release_outputs  # noqa: E402

INSIDE = "TTMEM_GOLDEN_INSIDE"
ROLES = ("library", "daemon", "successor", "command")
PROGRAMS = (
    "src/cli/ttmem", "src/daemon/ttmemd", "src/legacy/program/ttmem-legacy", "src/lib/libttmem.so*",
    "src/metal/libttmem-metal.so", "tests/programs/player",
)  # fmt: skip


def enter_namespaces():
    """Starts this script again where it is alone: processes, mounts, network and host name."""
    if os.geteuid() != 0:
        sys.exit(77)
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--uts", "--ipc"]
    os.environ[INSIDE] = "1"
    os.execvp(command[0], [*command, sys.executable, "-B", *sys.argv])


def prepare_namespaces():
    socket.sethostname("golden")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "golden", "/mnt"], check=True)
    os.umask(0o022)


def copy_programs(builds):
    """Into folders whose names do not depend on the machine."""
    for role, build in builds.items():
        for path in (path for pattern in PROGRAMS for path in build.glob(pattern) if path.is_file()):
            copy = Path("/mnt", role, path.relative_to(build))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy, follow_symlinks=False)


def copy_python(build):
    """Away from the programs: "ttmem selftest" finds the package of its build."""
    for path in [*build.glob("python/ttmem/**/*.py"), *build.glob("python/ttmem/*.so")]:
        copy = Path("/mnt", path.relative_to(build))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def build_worker():
    """At a place and without optimisation, so that its stacks are the same on every machine."""
    shutil.copy(HERE / "worker.c", "/mnt/worker.c")
    library = "/mnt/library/src/lib"
    command = ["cc", "-std=gnu11", "-O0", "-g", "-o", "worker", "worker.c", f"-I{ROOT / 'include'}"]
    subprocess.run([*command, f"-L{library}", f"-Wl,-rpath,{library}", "-l:libttmem.so.0"], cwd="/mnt", check=True)


def transcript_text(steps, outputs):
    lines = []
    for (comments, command, _), output in zip(steps, outputs):
        lines += [*comments, f"$ {command}", *(f"|{line}" for line in output)]
    return "\n".join(lines) + "\n"


def is_mix(output, before, expected):
    """Whether all lines are of 0.2.0 or of today, and none is missing that both have: for builds of both."""
    both = set(before) & set(expected)
    return both <= set(output) <= set(before) | set(expected)


def run_transcript(name, steps, options):
    """Prints what differs. Return: (outputs, whether all is as expected)."""
    from scene import Scene

    good, outputs = True, []
    before = release_outputs(name)
    with Scene(options.keep) as scene:
        for step, expected in numbered(steps):
            scene.expected = [] if options.is_writing else [expected, before.get(step, expected)]
            output = scene.step(step[0])
            outputs.append(output)
            if options.is_writing or output == expected:
                continue
            if options.is_mixed and is_mix(output, before.get(step, []), expected):
                continue
            good = False
            print(f"{name}: $ {step[0]}")
            print("\n".join(difflib.unified_diff(expected, output, "expected", "printed", n=2, lineterm="")))
    return outputs, good


def all_names():
    return sorted(path.stem for path in (HERE / "transcripts").glob("*.txt"))


def record(line):
    if path := os.environ.get("TTMEM_RESULTS"):
        with open(path, "a", encoding="utf-8") as results:
            results.write(line + "\n")


def main():
    build = Path(os.environ.get("TTMEM_BUILD", ROOT / "build"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for role in ROLES:
        parser.add_argument(f"--{role}", type=Path, default=build, metavar="BUILD")
    for action in ("write", "release", "keep"):
        parser.add_argument(f"--{action}", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.is_writing = options.write or options.release or options.keep or os.environ.get("TTMEM_GOLDEN") == "write"
    builds = {role: getattr(options, role).resolve() for role in ROLES}
    options.is_mixed = len(set(builds.values())) > 1
    if not os.environ.get(INSIDE):
        enter_namespaces()
    prepare_namespaces()
    copy_programs(builds)
    copy_python(builds["library"])
    build_worker()
    bad = 0
    for name in ["make-inputs"] if options.keep else options.names or all_names():
        path = HERE / ("" if options.keep else "transcripts") / f"{name}.txt"
        steps = read_transcript(path, path.read_text())
        start = time.monotonic()
        outputs, good = run_transcript(name, steps, options)
        text = transcript_text(steps, outputs)
        if options.release:
            add_to_release(name, text)
        elif options.is_writing:
            path.write_text(text)
        print(f"{'ok  ' if good else 'FAIL'} {name:<16} {len(steps):4} steps {time.monotonic() - start:6.1f} s", flush=True)
        record(f"golden-{name} {int(good)} {int(not good)} 0")
        bad += not good
    if not options.is_writing:
        unexplained = explain(options.names or all_names(), is_all=not options.names)
        record(f"golden-differences {int(not unexplained)} {int(bool(unexplained))} 0")
        bad += unexplained
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
