# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy on every C file of a build folder, and remember which files were clean.

A file is checked again only if the file, any header, its flags or the list of checks has changed, so
that a second run is quick.

The static analyzer takes twenty times as long as all other checks together. TTMEM_TIDY_SHARE=I/N limits it
to share I of N of the files, and to those that recent commits have changed, the newest first.
"""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Code that applications call from any of their threads. Elsewhere getenv, exit and readdir are fine.
THREADED = ("src/base/", "src/book/", "src/legacy/debug-log/", "src/lib/")
NOT_THREADED = ("-test.c", "-fuzz.c", "fuzz-replay.c")

# With a share: files are analyzed if the last 20 commits (a merge counts as one) have changed them, at most 60.
RECENT = 20
RECENT_FILES = 30

ANALYZER = "clang-analyzer-*"

ONCE = "tidy-once"  # a folder with one command for each file

# clang-tidy takes some 200 MB; two at a time fit on small machines.
JOBS = 2


def digest(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
        total.update(b"\0")
    return total.hexdigest()


def shared_state():
    """What every file depends on. All headers: finding out which ones costs more than a rerun."""
    headers = sorted([*Path("src").rglob("*.h"), *Path("include").rglob("*.h")])
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    return digest(version, Path(".clang-tidy").read_bytes(), *(h.read_bytes() for h in headers))


def is_threaded(source):
    if source.endswith(NOT_THREADED) or source.startswith("src/base/testing/"):
        return False
    return source.startswith(THREADED)


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def is_code(line):
    """Of a line that was added or removed: not if a file that was moved, or a comment, explains it."""
    text = line[1:].strip()
    return text and not text.startswith(("#include", "/*", "*"))


def recently_changed():
    """Names of files, the last changed first, or None without git, or its history."""
    try:
        commits = git("rev-list", "--first-parent", f"-{RECENT + 1}", "HEAD").split()
        if len(commits) <= RECENT:
            return None
        difference = git("diff", "--unified=0", "--find-renames", commits[-1], "--", "*.c")
        order = git("log", "--first-parent", "-m", "--name-only", "--format=", f"{commits[-1]}..HEAD").splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    changed, source = set(), None
    for line in difference.splitlines():
        if line.startswith("+++ "):
            source = line.removeprefix("+++ b/")
        elif line.startswith(("+", "-")) and not line.startswith("--- ") and is_code(line):
            changed.add(source)
    # What is not committed is in no commit's list.
    return sorted(changed, key=lambda name: order.index(name) if name in order else -1)


def analyzed(sources):
    """Which of SOURCES the analyzer reads this time."""
    share = os.environ.get("TTMEM_TIDY_SHARE")
    recent = recently_changed() if share else None
    if recent is None:
        return set(sources)
    which, shares = (int(number) for number in share.split("/"))
    recent = [source for source in recent if source in sources]
    return {*sorted(sources)[which::shares], *recent[:RECENT_FILES]}


def check(folder, source, analyze):
    left_out = [] if is_threaded(source) else ["-concurrency-mt-unsafe"]
    if not analyze:
        left_out.append("-" + ANALYZER)
    command = ["clang-tidy", "--quiet", "-p", str(folder / ONCE), "--checks=" + ",".join(left_out), source]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, result.stdout or result.stderr


def write_once(folder, entries):
    """clang-tidy's analyzer takes a va_list for uninitialized in the second run over a file."""
    once = {entry["file"]: entry for entry in reversed(entries)}
    (folder / ONCE).mkdir(exist_ok=True)
    (folder / ONCE / "compile_commands.json").write_text(json.dumps(list(once.values())))


def main():
    folder = Path(sys.argv[1])
    stamps = folder / "tidy-clean"
    stamps.mkdir(exist_ok=True)
    state = shared_state().encode()

    todo = {}
    current = set()
    entries = json.loads((folder / "compile_commands.json").read_text())
    write_once(folder, entries)
    for entry in entries:
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
        if Path(source).is_relative_to(folder):
            continue  # generated
        flags = entry.get("command", "").encode()
        stamp = stamps / digest(state, flags, Path(source).read_bytes())
        current.add(stamp)
        # A file that is compiled twice is checked once.
        if not stamp.exists():
            todo.setdefault(source, []).append(stamp)
    for old in set(stamps.iterdir()) - current:
        old.unlink()

    deep = analyzed(todo)
    bad = 0
    with ThreadPoolExecutor(JOBS) as pool:
        results = pool.map(lambda source: check(folder, source, source in deep), todo)
        for source, (code, output) in zip(todo, results):
            if code == 0:
                for stamp in todo[source] if source in deep else ():
                    stamp.touch()
            else:
                bad += 1
                print(output)
    if bad:
        print(f"clang-tidy: {bad} of {len(todo)} files need work")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
