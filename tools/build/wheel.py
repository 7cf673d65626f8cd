#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a Python wheel of a build: the package, libttmem, and the command with the libraries that it needs.

It installs into a venv without root, without a compiler and without a network, and serves CPython 3.10 and
later. What a machine may lack is in it: libraries of the command other than libc lie in a folder of their own,
which only the command looks into. The same build gives the same bytes.

usage: wheel.py BUILD FOLDER: the build folder, and where to put the wheel
"""

import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GLIBC = "2_34"  # tools/check/glibc.sh

# Part of every glibc, and of no use without its own loader.
LIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s))\.so")


def say(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def version():
    header = (ROOT / "include" / "ttmem" / "ttmem.h").read_text()
    return ".".join(re.findall(r"^#define TTMEM_VERSION_\w+ (\d+)$", header, re.MULTILINE))


def place(source, target, rpath=None):
    """A copy. A binary has no debug information and finds its libraries in @rpath; "" if it needs none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    if rpath is not None:
        say("strip", "--strip-unneeded", target)
    if rpath:
        # The old kind of path counts for the libraries of libraries too.
        say("patchelf", "--force-rpath", "--set-rpath", rpath, target)


def libraries(program):
    """Name and file of each library that @program loads, other than libc and our own."""
    lines = [line.split() for line in say("ldd", program).splitlines() if "=>" in line]
    found = {words[0]: words[2] for words in lines}
    return {name: path for name, path in found.items() if not LIBC.match(name) and "ttmem" not in name}


def licence(library):
    """Debian's copyright file of a library."""
    real = os.path.realpath(library)
    for name in (real, real.removeprefix("/usr")):
        done = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            return package, pathlib.Path("/usr/share/doc") / package / "copyright"
    sys.exit(f"wheel: no package has {real}, so its licence is not known")


def lay_out(build, tree, info):
    package = tree / "ttmem"
    built = build / "python" / "ttmem"
    for source in sorted(built.rglob("*.py*")) + [built / "py.typed"]:
        if source.suffix in (".py", ".pyi", ".typed"):
            place(source, package / source.relative_to(built))
    for name in ("allocation_client.py", "query_stats.py"):
        place(build / "python" / name, tree / name)
    place(ROOT / "python" / "ttmem_program.py", tree / "ttmem_program.py")
    for source in sorted(built.glob("*.abi3.so")):
        place(source, package / source.name, "$ORIGIN")
    place(build / "src" / "lib" / "libttmem.so.0", package / "libttmem.so.0", "")
    place(build / "src" / "metal" / "libttmem-metal.so", package / "libttmem-metal.so", "$ORIGIN")

    program = build / "src" / "cli" / "ttmem-wheel"
    place(program, package / "_bin" / "ttmem", "$ORIGIN/..:$ORIGIN/../_lib")
    place(ROOT / "LICENSE", info / "licenses" / "LICENSE")
    for name, path in sorted(libraries(program).items()):
        place(path, package / "_lib" / name, "$ORIGIN")
        owner, text = licence(path)
        place(text, info / "licenses" / owner)


def describe(info, tag):
    template = ROOT / "python" / "dist-info"
    (info / "METADATA").write_text((template / "METADATA.in").read_text().replace("@version@", version()))
    (info / "entry_points.txt").write_text(
        (template / "entry_points.txt").read_text() + "\n[console_scripts]\nttmem = ttmem_program:main\n"
    )
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: ttmem {version()}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )


def record(tree, info):
    rows = []
    for path in sorted(p for p in tree.rglob("*") if p.is_file()):
        data = path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path.relative_to(tree)},sha256={digest},{len(data)}")
    rows.append(f"{(info / 'RECORD').relative_to(tree)},,")
    (info / "RECORD").write_text("\n".join(rows) + "\n")


def pack(tree, wheel):
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(p for p in tree.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(str(path.relative_to(tree)), (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = path.parent.name == "_bin"
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            file.writestr(entry, path.read_bytes())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[-1])
    build, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tag = f"cp310-abi3-manylinux_{GLIBC}_{platform.machine()}"
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name)
        info = tree / f"ttmem-{version()}.dist-info"
        info.mkdir()
        lay_out(build, tree, info)
        programs = [path for path in tree.rglob("*") if ".so" in path.name or path.parent.name == "_bin"]
        done = subprocess.run(["sh", ROOT / "tools/check/glibc.sh", GLIBC.replace("_", "."), *programs])
        if done.returncode != 0:
            sys.exit("wheel: it would need a newer libc than its name says")
        describe(info, tag)
        record(tree, info)
        folder.mkdir(parents=True, exist_ok=True)
        pack(tree, folder / f"ttmem-{version()}-{tag}.whl")


main()
