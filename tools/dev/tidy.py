# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy over every C file of a build folder, and remember what was clean.

A file is checked again only if it, any header, its flags or the list of checks has changed, so
that a second run takes no time.
"""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Code that applications call from any of their threads. Elsewhere there is one thread, and getenv,
# exit or readdir are what they should be.
THREADED = ("src/base/", "src/book/", "src/lib/")
NOT_THREADED = ("-test.c", "-fuzz.c", "fuzz-replay.c")

# clang-tidy takes some 200 MB; two at a time is kind to small machines.
JOBS = 2


def digest(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
        total.update(b"\0")
    return total.hexdigest()


def shared_state():
    """What every file depends on. All headers: finding out which is dearer than a rerun."""
    headers = sorted([*Path("src").rglob("*.h"), *Path("include").rglob("*.h")])
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    return digest(version, Path(".clang-tidy").read_bytes(), *(h.read_bytes() for h in headers))


def is_threaded(source):
    if source.endswith(NOT_THREADED) or source.startswith("src/base/unit"):
        return False
    return source.startswith(THREADED)


def check(folder, source):
    command = ["clang-tidy", "--quiet", "-p", str(folder), source]
    if not is_threaded(source):
        command.append("--checks=-concurrency-mt-unsafe")
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, result.stdout or result.stderr


def main():
    folder = Path(sys.argv[1])
    stamps = folder / "tidy-clean"
    stamps.mkdir(exist_ok=True)
    state = shared_state().encode()

    todo = {}
    current = set()
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
        if Path(source).is_relative_to(folder):
            continue  # made by the build
        flags = entry.get("command", "").encode()
        stamp = stamps / digest(state, flags, Path(source).read_bytes())
        current.add(stamp)
        # A file that is compiled twice is checked once.
        if not stamp.exists():
            todo.setdefault(source, []).append(stamp)
    for old in set(stamps.iterdir()) - current:
        old.unlink()

    bad = 0
    with ThreadPoolExecutor(JOBS) as pool:
        for source, (code, output) in zip(todo, pool.map(lambda s: check(folder, s), todo)):
            if code == 0:
                for stamp in todo[source]:
                    stamp.touch()
            else:
                bad += 1
                print(output)
    if bad:
        print(f"clang-tidy: {bad} of {len(todo)} files need work")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
