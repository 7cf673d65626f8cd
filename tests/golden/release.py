# SPDX-License-Identifier: Apache-2.0
"""The output of release 0.2.0, and the reasons why today's is different.

The archive has each transcript as 0.2.0 printed it. The file "differences" says for each line that has changed since then
why it has.
"""

import functools
import io
import re
import sys
import tarfile
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCHIVE = HERE / "0.2.0.tar.xz"


def read_transcript(path, text):
    """[(comments, command, expected lines)]; comments stand before their command."""
    steps, comments = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("$ "):
            steps.append((comments, line[2:], []))
            comments = []
        elif line.startswith("|"):
            steps[-1][2].append(line[1:])
        elif not line or line.startswith("#"):
            comments.append(line)
        else:
            sys.exit(f"{path}:{number}: neither a command nor output nor a comment")
    return steps


@functools.cache
def read_release():
    """{name: text}"""
    if not ARCHIVE.exists():
        return {}
    with tarfile.open(ARCHIVE) as tar:
        return {member.name: tar.extractfile(member).read().decode() for member in tar}


def add_to_release(name, text):
    texts = {**read_release(), name: text}
    read_release.cache_clear()
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for one in sorted(texts):
            member = tarfile.TarInfo(one)
            member.size = len(texts[one].encode())
            tar.addfile(member, io.BytesIO(texts[one].encode()))


def numbered(steps):
    """[((command, how often it came before), lines)]: steps can be compared although others came in between."""
    seen = Counter()
    for _, command, output in steps:
        yield (command, seen[command]), output
        seen[command] += 1


def release_outputs(name):
    return dict(numbered(read_transcript(ARCHIVE, read_release().get(name, ""))))


MEMBER = re.compile(r'"[^"]+": (?:"(?:\\.|[^"\\])*"|[\w.+-]+)')


def atoms(lines):
    """What the lines say: each member of a document, each line of text; how they are laid out does not count."""
    found = Counter()
    for line in lines:
        if re.match(r" *[]{}[\"]", line):
            found.update(MEMBER.findall(line))
        else:
            found[" ".join(line.split())] += 1
    return found


def changes(before, now):
    before, now = atoms(before), atoms(now)
    return [f"-{atom}" for atom in before - now] + [f"+{atom}" for atom in now - before]


class Difference:
    """An entry of the file: where lines have changed, and which."""

    def __init__(self, number):
        self.number, self.where, self.lines, self.uses = number, [], [], 0

    def explains(self, place, line):
        """@line begins with "-" if 0.2.0 had it, with "+" if it is there now."""
        if not any(fnmatchcase(place, where) for where in self.where):
            return False
        is_explained = any(sign in (line[0], "~") and pattern.fullmatch(line[1:]) for sign, pattern in self.lines)
        self.uses += is_explained
        return is_explained


def read_differences():
    found = []
    for number, line in enumerate((HERE / "differences").read_text().splitlines(), 1):
        if line.startswith("@ "):
            if not found or found[-1].lines:
                found.append(Difference(number))
            found[-1].where.append(line[2:])
        elif line[:2] in ("- ", "+ ", "~ ") and found:
            found[-1].lines.append((line[0], re.compile(line[2:])))
    return found


def explain(names, is_all):
    """Prints the lines that differ from those of 0.2.0 without a reason. Return: how many."""
    differences, count = read_differences(), 0
    for name in names:
        text = (HERE / "transcripts" / f"{name}.txt").read_text()
        before = release_outputs(name)
        for step, output in numbered(read_transcript(name, text)):
            place = f"{name}: {step[0]}"
            for line in changes(before.get(step, []), output):
                if not any([one.explains(place, line) for one in differences]):
                    print(f"without a reason: {place}\n{line}")
                    count += 1
    for difference in differences if is_all else []:
        if not difference.uses:
            print(f"differences:{difference.number}: explains nothing")
            count += 1
    return count
