# SPDX-License-Identifier: Apache-2.0
"""An installed tree is complete: it runs from any folder, and others can compile against it."""

import os
import shutil
import subprocess

import pytest

from conftest import LIMIT, ROOT

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
add_executable(inside app.c)
target_link_libraries(inside ttmem::static)
add_executable(alone app.c)
target_link_libraries(alone ttmem::static -static)
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
def prefix(build_folder, tmp_path_factory):
    """What the build installs, in a folder that it was not configured for."""
    if not (build_folder / "src" / "lib" / "libttmem.so").exists():
        pytest.skip("libttmem is not built")
    destination = tmp_path_factory.mktemp("install")
    run("meson", "install", "-C", build_folder, "--no-rebuild", "--destdir", destination)
    (pc,) = destination.glob("**/pkgconfig/ttmem.pc")
    return pc.parents[2]


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.c").write_text(SOURCE)
    return tmp_path


def test_files_are_where_they_are_promised(prefix):
    for name in ("lib/libttmem.so", "lib/libttmem.a", "lib/libttmem-metal.so", "lib/pkgconfig/ttmem.pc",
                 "include/ttmem/ttmem.h"):
        assert (prefix / name).exists(), name


def test_run_finds_the_library_for_tt_metal(prefix, clean_env):
    program = prefix / "bin" / "ttmem"
    if not program.exists():
        pytest.skip("the command ttmem is not built")
    clean_env.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run([program, "run", "-q", "--metal", "--", "sh", "-c", "echo $LD_PRELOAD; ldd $LD_PRELOAD"],
                          env=clean_env, capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (0, "")
    shim, *needed = done.stdout.splitlines()
    assert shim == str((prefix / "lib" / "libttmem-metal.so").resolve())
    assert any("libttmem.so.0 => " in line and str(prefix.resolve()) in os.path.realpath(line.split()[2])
               for line in needed if "=>" in line)


def test_run_finds_the_lines_of_python(prefix, clean_env):
    """For an application that has no ttmem of its own."""
    if not (prefix / "lib" / "python").exists() or not (prefix / "bin" / "ttmem").exists():
        pytest.skip("the Python package or the command is not built")
    clean_env.pop("LD_LIBRARY_PATH", None)
    program = "import sys; print(sys.modules['ttmem'].__file__, 'ttmem._metal' in sys.modules, sys.path[-1])"
    out = run(prefix / "bin" / "ttmem", "run", "-q", "--metal", "--", "/usr/bin/python3", "-B", "-c", program,
              env=clean_env)
    where, started, last = out.split()
    assert os.path.realpath(where).startswith(os.path.realpath(prefix / "lib" / "python" / "ttmem"))
    assert started == "True" and "ttmem" not in last


def test_pytest_finds_the_library_for_tt_metal(prefix, clean_env, tmp_path):
    package = prefix / "lib" / "python"
    if not package.exists() or not (prefix / "bin" / "ttmem").exists():
        pytest.skip("the Python package or the command is not built")
    clean_env.pop("LD_LIBRARY_PATH", None)
    (tmp_path / "test_it.py").write_text(f"""
import os

def test_it():
    library = {str((prefix / "lib" / "libttmem-metal.so").resolve())!r}
    assert os.environ["LD_PRELOAD"] == library and library in open("/proc/self/maps").read()
""")
    out = run("/usr/bin/python3", "-B", "-m", "pytest", "-p", "no:cacheprovider", "--ttmem", tmp_path,
              env={**clean_env, "PYTHONPATH": str(package)})
    assert "1 passed" in out


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


def test_python_package_finds_library_and_command(prefix, clean_env, tmp_path):
    package = prefix / "lib" / "python"
    if not package.exists():
        pytest.skip("the Python package is not built")
    clean_env.pop("LD_LIBRARY_PATH", None)
    env = {**clean_env, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "TTMEM": "1"}
    env["PATH"] = str(tmp_path)  # only what lies beside it
    program = """
import os, re
import allocation_client, query_stats, ttmem
ttmem.alloc(0, ttmem.DRAM, 0x1000, 5, "installed")
print([b["name"] for b in ttmem.buffers(pid=os.getpid())])
print(re.findall(r"/\\S*/libttmem\\.so\\S*", open("/proc/self/maps").read())[0])
"""
    names, library = run("/usr/bin/python3", "-c", program, env=env).splitlines()
    assert names == "['installed']"
    assert os.path.realpath(library).startswith(os.path.realpath(prefix / "lib"))


def test_compile_with_pkg_config(prefix, app):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    # The .pc file names the configured prefix; the tree has been moved.
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs", "ttmem",
                env=env).split()
    run("cc", "-Wall", "-Werror", app / "app.c", "-o", app / "app", *flags,
        f"-Wl,-rpath,{prefix / 'lib'}")
    run(app / "app")


@pytest.mark.parametrize("kind", ["-static", "-static-pie"])
def test_compile_statically_with_pkg_config(prefix, app, kind):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--static", "--cflags", "--libs",
                "ttmem", env=env).split()
    run("cc", kind, "-Wall", "-Werror", "-Wl,--fatal-warnings", app / "app.c", "-o", app / "app",
        *flags)
    assert "(NEEDED)" not in run("readelf", "-d", app / "app")
    run(app / "app", env={**os.environ, "TTMEM": "1", "TTMEM_SOCKET": "none"})


def test_compile_with_cmake(prefix, app):
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    (app / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-G", "Ninja", "-S", app, "-B", app / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", app / "build")
    for name in ("app", "inside", "alone"):
        run(app / "build" / name)
    assert "libttmem" not in run("readelf", "-d", app / "build" / "inside")


@pytest.mark.legacy
def test_old_names_find_what_they_call(prefix, clean_env, tmp_path):
    """Also through a link from another folder, as administrators make them."""
    if not (prefix / "bin" / "ttmemd").exists():
        pytest.skip("the daemon ttmemd is not built")
    clean_env["TTMEM_SOCKET"] = str(tmp_path / "s")
    for name in ("allocation_server_poc", "allocation_server_enhanced"):
        link = tmp_path / name
        link.symlink_to(prefix / "bin" / name)
        for program in (prefix / "bin" / name, link):
            shown = run(program, "--check", "--config", "none", "--ids", "decimal", env=clean_env)
            assert "\nlog-events = yes\n" in shown and "\nids = decimal\n" in shown


@pytest.mark.legacy
def test_old_monitors_are_there(prefix, clean_env):
    for name in ("tt_smi", "allocation_monitor_client"):
        assert "usage: ttmem smi" in run(prefix / "bin" / name, "--help", env=clean_env)
    assert "usage: ttmem top" in run(prefix / "bin" / "tt_smi_umd", "--help", env=clean_env)
    own, old = (run(prefix / "bin" / words[0], *words[1:], env=clean_env).splitlines()[0]
                for words in (("ttmem", "smi", "--details"), ("tt_smi_umd", "--sysfs", "-r", "100")))  # fmt: skip
    assert own.split()[0] == old.split()[0]
    wrong = subprocess.run([prefix / "bin" / "tt_smi_umd", "-x"], env=clean_env, capture_output=True, text=True)
    assert wrong.returncode == 2 and "unknown option -x" in wrong.stderr


def test_the_page_of_the_old_tools_is_installed(prefix):
    text = (ROOT / "docs" / "from-the-old-tools.md").read_text()
    assert (prefix / "share" / "doc" / "ttmem" / "from-the-old-tools.md").read_text() == text


def test_old_dump_finds_what_it_calls(prefix, clean_env, tmp_path):
    if " dump " not in run(prefix / "bin" / "ttmem", "help", env=clean_env):
        pytest.skip("the command ttmem has no dump yet")
    for name in ("dump_remaining_buffers", "dump_remaining_buffers.py"):
        link = tmp_path / name
        link.symlink_to(prefix / "bin" / name)
        for program in (prefix / "bin" / name, link):
            assert "usage: ttmem dump" in run(program, "--help", env=clean_env)
    # People also give it to an interpreter of their own.
    script = prefix / "bin" / "dump_remaining_buffers.py"
    assert "usage: ttmem dump" in run("/usr/bin/python3", script, "--help", env=clean_env)


@pytest.mark.parametrize("name, options", [("ttmemd", ["--legacy-socket", "none"]), ("ttmem-legacy", [])])
def test_units_name_the_installed_daemons(prefix, name, options):
    service = (prefix / "lib" / "systemd" / "system" / f"{name}.service").read_text()
    (start,) = [line for line in service.splitlines() if line.startswith("ExecStart=")]
    program, *words = start.removeprefix("ExecStart=").split()
    # The tree has been moved; what it was configured for is the part after the destination.
    assert str(prefix / "bin" / name).endswith(program) and words == options
    assert os.access(prefix / "bin" / name, os.X_OK)
    assert "@" not in service.replace("@system-service", "")


def test_units_are_complete(prefix):
    for name in ("systemd/system/ttmemd.socket", "systemd/system/ttmemd-legacy.socket", "systemd/system/tt-allocation-server.service",
                 "sysusers.d/ttmem.conf", "tmpfiles.d/ttmem.conf"):
        assert (prefix / "lib" / name).exists(), name
