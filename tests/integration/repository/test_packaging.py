# SPDX-License-Identifier: Apache-2.0
"""What ./dev package packs is complete and says one version. The packages themselves are tried by ./dev package-test."""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

import pythons
from conftest import LIMIT, ROOT

DEBIAN = ROOT / "data" / "debian"
HEADER = (ROOT / "include" / "ttmem" / "ttmem.h").read_text()
VERSION = ".".join(re.findall(r"^#define TTMEM_VERSION_\w+ (\d+)$", HEADER, re.MULTILINE))
RULES = (DEBIAN / "rules").read_text().replace("$(DEB_HOST_MULTIARCH)", "TRIPLET")


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def debian_path(path):
    """Where a file of the default installation is in debian/tmp: as rules configures it, and then moves it."""
    stays = ("systemd", "sysusers.d", "tmpfiles.d", "udev")
    if path.startswith("lib/python/"):
        path = path.replace("lib/python/", "lib/python3/dist-packages/", 1)
    elif path.startswith("lib/") and path.split("/")[1] not in stays:
        path = path.replace("lib/", "lib/TRIPLET/", 1)
    for source, target in re.findall(r"\bmv (\S+) (\S+)", RULES):
        if path == source:
            path = target + pathlib.PurePath(source).name if target.endswith("/") else target
    return f"usr/{path}"


def packages_with(path):
    lists = {file.stem: file.read_text().splitlines() for file in DEBIAN.glob("*.install")}
    return [name for name, lines in lists.items()
            if any(fnmatch.fnmatch(path, line) or fnmatch.fnmatch(path, f"{line}/*") for line in lines)]


@pytest.fixture(scope="module")
def installed(build_folder, tmp_path_factory):
    """Every installed file, relative to the prefix."""
    folder = tmp_path_factory.mktemp("installed")
    run("meson", "install", "-C", build_folder, "--no-rebuild", "--destdir", folder)
    (program,) = folder.glob("**/bin/ttmem")
    prefix = program.parents[1]
    return [str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()]


def test_every_installed_file_is_in_one_package(installed):
    wrong = {path: packages_with(debian_path(path)) for path in installed}
    wrong = {path: found for path, found in wrong.items() if len(found) != 1}
    assert not wrong, "add each to one data/debian/PACKAGE.install"


def test_every_package_has_a_list():
    control = re.findall(r"^Package: (.*)$", (DEBIAN / "control").read_text(), re.MULTILINE)
    assert sorted(control) == sorted(file.stem for file in DEBIAN.glob("*.install"))


@pytest.mark.legacy
def test_lists_name_only_what_is_there(installed):
    """debhelper fails where a list names a missing file."""
    paths = [debian_path(path) for path in installed]
    for file in DEBIAN.glob("*.install"):
        for line in file.read_text().splitlines():
            pattern = line.split()[0]
            if " " in line:  # of the source tree
                assert list(ROOT.glob(pattern)), f"{file.name}: {line}"
                continue
            assert fnmatch.filter(paths, pattern) or fnmatch.filter(paths, f"{pattern}/*"), f"{file.name}: {line}"


def test_one_version():
    """Whatever cannot be made from the header says the same."""
    assert f'MODULE_VERSION("{VERSION}");' in (ROOT / "kernel" / "main.c").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+)", changes, re.MULTILINE)
    assert versions[versions[0] == "Unreleased"] == VERSION


def test_one_list_of_entry_points():
    """pip makes it from pyproject.toml; packages and the wheel have it as a file."""
    said = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    lines = (ROOT / "python" / "dist-info" / "entry_points.txt").read_text().splitlines()
    assert lines == ["[pytest11]", *(f"{name} = {place}" for name, place in said.items())]


def test_newer_symbols_of_glibc_are_found():
    """The check of the build can fail: this program needs something newer than glibc 2.0."""
    done = subprocess.run(["sh", ROOT / "tools" / "check" / "glibc.sh", "2.0", shutil.which("true")],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1 and "at most 2.0 is allowed" in done.stdout


@pytest.mark.parametrize("before, after", [
    ("ttmem_free_all", "ttmem_free_some"),
    ("<parameter type-id='{}' name='address'/>", ""),
])
def test_a_changed_abi_is_found(build_folder, tmp_path, before, after):
    """The check can fail: for a release that had another function, or one with fewer parameters."""
    if not shutil.which("abidiff"):
        pytest.skip("no abidiff")
    (file,) = (ROOT / "tests" / "abi").glob("*-x86_64.abi")
    text, count = re.subn(before.replace("{}", r"[^']+"), after, file.read_text())
    assert count > 0
    (tmp_path / file.name).write_text(text)
    done = subprocess.run(["sh", ROOT / "tools" / "check" / "abi.sh", tmp_path], capture_output=True,
                          text=True, timeout=LIMIT, env={**os.environ, "TTMEM_BUILD": str(build_folder)})
    assert done.returncode not in (0, 77), done.stdout


@pytest.fixture(scope="module")
def wheel(build_folder, tmp_path_factory):
    for program in ("patchelf", "strip"):
        if not shutil.which(program):
            pytest.skip(f"no {program}")
    if not (build_folder / "python" / "ttmem" / "_ttmem.abi3.so").exists():
        pytest.skip("the Python package is not built")
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-B", ROOT / "tools" / "build" / "wheel.py", build_folder, folder)
    (file,) = folder.glob("*.whl")
    return file


def test_wheel_brings_library_and_command(wheel, clean_env, tmp_path):
    """Installed by pip from the file; nothing of it comes from the build or from this machine."""
    site = tmp_path / "site"
    clean_env.pop("LD_LIBRARY_PATH", None)
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site, wheel, env=clean_env)
    env = {**clean_env, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    command = site / "bin" / "ttmem"
    assert run(command, "--version", env=env) == f"ttmem {VERSION}\n"
    loaded = [line.split()[2] for line in run("ldd", site / "ttmem" / "_bin" / "ttmem").splitlines() if "=>" in line]
    foreign = [path for path in loaded if not os.path.realpath(path).startswith(str(site.resolve()))]
    assert [pathlib.PurePath(path).name for path in foreign] == ["libc.so.6"]
    env["TTMEM_COMMAND"] = str(command)
    program = "import os, ttmem; ttmem.alloc(0, ttmem.DRAM, 4096, 5, 'kept'); print(ttmem.buffers(pid=os.getpid())[0]['name'])"
    out = run(command, "run", "-q", "--", sys.executable, "-c", program, env=env)
    assert "kept" in out.splitlines()
    # The same files for every version of Python.
    for python in pythons.every():
        if python.version >= (3, 10):
            assert run(python.path, "-c", "import ttmem; print(ttmem.version())", env=env) == f"{VERSION}\n"
    assert f"{site}/ttmem/libttmem-metal.so" in run(command, "run", "-q", "--metal", "--", "env", env=env)


def test_wheel_tracks_tt_metal_in_pytest(wheel, clean_env, tmp_path):
    """With all that the plugin asks its command for."""
    site = tmp_path / "site"
    clean_env.pop("LD_LIBRARY_PATH", None)
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site, wheel, env=clean_env)
    env = {**clean_env, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{site}/bin:/usr/bin:/bin"}
    (tmp_path / "test_it.py").write_text(f"""
import os, ttmem

def test_it():
    library = {str(site / "ttmem" / "libttmem-metal.so")!r}
    assert os.environ["LD_PRELOAD"] == library and library in open("/proc/self/maps").read()
    assert os.environ["PYTHONPATH"].startswith({str(site / "ttmem" / "_run")!r})
    ttmem.alloc(0, "DRAM", 0x1000, 64, "weights")
    ttmem.alloc_failed(0, "DRAM", 1 << 30)
    assert False, "no room"
""")
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--ttmem", "test_it.py"],
                          cwd=tmp_path, env=env, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1 and "AssertionError: no room" in done.stdout, done.stdout + done.stderr
    assert "live at the highest peaks:" in done.stdout and "failed allocations:" in done.stdout
