# SPDX-License-Identifier: Apache-2.0
"""An installed tree is complete: it runs from any folder, and others can compile against it."""

import os
import shutil
import subprocess

import pytest

from conftest import LIMIT

SOURCE = """
#include <ttmem/ttmem.h>

int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 65536, "weights");
	ttmem_free(0, TTMEM_DRAM, 0x1000);
	return 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(app C)
find_package(ttmem 0.1 REQUIRED)
add_executable(app app.c)
target_link_libraries(app ttmem::ttmem)
"""


def run(*command, **options):
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        **options,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory):
    """What the build installs, in a folder that it was not configured for."""
    if not (build / "src" / "lib" / "libttmem.so").exists():
        pytest.skip("libttmem is not built")
    destination = tmp_path_factory.mktemp("install")
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", destination)
    (pc,) = destination.glob("**/pkgconfig/ttmem.pc")
    return pc.parents[2]


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.c").write_text(SOURCE)
    return tmp_path


def test_files_are_where_they_are_promised(prefix):
    for name in ("lib/libttmem.so", "lib/pkgconfig/ttmem.pc", "include/ttmem/ttmem.h"):
        assert (prefix / name).exists(), name


def test_command_finds_its_library(prefix, clean_env):
    program = prefix / "bin" / "ttmem"
    if not program.exists():
        pytest.skip("the command ttmem is not built")
    clean_env.pop("LD_LIBRARY_PATH", None)
    for line in run("ldd", program, env=clean_env).splitlines():
        assert "not found" not in line
        if "libttmem.so" in line:
            path = line.split("=>")[1].split()[0]
            assert os.path.realpath(path).startswith(os.path.realpath(prefix / "lib"))


def test_compile_with_pkg_config(prefix, app):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    # The .pc file names the configured prefix; the tree has been moved.
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs", "ttmem",
                env=env).split()
    run("cc", "-Wall", "-Werror", app / "app.c", "-o", app / "app", *flags,
        f"-Wl,-rpath,{prefix / 'lib'}")
    run(app / "app")


def test_compile_with_cmake(prefix, app):
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    (app / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-G", "Ninja", "-S", app, "-B", app / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", app / "build")
    run(app / "build" / "app")
