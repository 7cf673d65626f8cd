# SPDX-License-Identifier: Apache-2.0
"""The dashboard as a source release ships it, in web/built: what npm made, for machines without npm or network.

web/built/SHA256SUMS lists the sources that the page was made of and the files that were made. A page is only used if
every sum is right, so that nobody changes a source and still gets the old page. It is in sha256sum's format, with paths
from web/: "cd web && sha256sum -c built/SHA256SUMS".
"""

import hashlib
import shutil

FOLDER = "built"
RESULTS = ("dist", "dist-report")

# Of web/, what the page is not made of.
NOT_SOURCES = ("meson.build", "node_modules", "test", FOLDER, *RESULTS)


def sums(source):
    """A line for each source in web/ and each file of the shipped page."""
    paths = [
        path
        for entry in source.iterdir()
        if entry.name not in NOT_SOURCES
        for path in ([entry] if entry.is_file() else entry.rglob("*"))
    ]
    paths += [path for name in RESULTS for path in (source / FOLDER / name).rglob("*")]
    names = sorted((path.relative_to(source).as_posix(), path) for path in paths if path.is_file())
    return [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}" for name, path in names]


def write(source, work):
    """Puts what was built in @work into web/built, as a release has it."""
    folder = source / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    for name in RESULTS:
        shutil.copytree(work / name, folder / name)
    (folder / "SHA256SUMS").write_text("\n".join(sums(source)) + "\n", encoding="utf-8")


def use(source, work):
    """Puts the shipped page where a build would. Returns why it cannot be used: "" if it can, None if there is none."""
    listed = source / FOLDER / "SHA256SUMS"
    if not listed.exists():
        return None
    different = set(listed.read_text(encoding="utf-8").splitlines()) ^ set(sums(source))
    if different:
        name = min(line.partition("  ")[2] for line in different)
        return f"the shipped page is not of these sources: {name} differs"
    for name in RESULTS:
        shutil.rmtree(work / name, ignore_errors=True)
        shutil.copytree(source / FOLDER / name, work / name)
    return ""
