# SPDX-License-Identifier: Apache-2.0
"""What all integration tests share: the programs under test, a clean environment, the counts.

Everything is run from the build folder named by TTMEM_BUILD, which ./dev sets.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What tests of several folders use.
sys.path.insert(0, str(Path(__file__).parent / "support"))

from common import LIMIT, record, shared_folder  # noqa: E402

# Files that take long. They come first, so that several runs side by side end together.
LONG = (
    "test_metal", "test_metal_preload", "test_sites", "test_test_frameworks", "test_python_stacks", "test_pytest_options",
    "test_pytest_children", "test_run", "test_cpp", "test_systemd", "test_faults", "test_kernel_package", "test_places",
    "test_leak_lists", "test_dashboard_build", "test_dist", "test_install", "test_fleet", "test_handover", "test_top",
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption(
        "--share", type=Path, help="folder by which several runs side by side share the files"
    )
    parser.addoption("--once", action="store_true", help="each test with the first of its parameters only")


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: item.path.stem not in LONG)
    if config.getoption("--once"):
        items[:] = {(item.path, item.originalname): item for item in reversed(items)}.values()
        items.reverse()


TAKEN = pytest.StashKey()


def is_ours(item):
    """Whole files: what a file has set up for its tests is not set up again elsewhere."""
    folder = item.config.getoption("--share")
    if not folder:
        return True
    taken = item.config.stash.setdefault(TAKEN, {})
    if item.path.stem not in taken:
        try:
            (folder / item.path.stem).mkdir()
            taken[item.path.stem] = True
        except FileExistsError:
            taken[item.path.stem] = False
    return taken[item.path.stem]


def pytest_configure(config):
    """Turn the SIGTERM of a suite's cap into an orderly end, so that fixtures clean up."""
    config.addinivalue_line("markers", "other_user: becomes another user, as only root can; see test_places.py")
    config.addinivalue_line("markers", "legacy: needs what -Dlegacy=disabled leaves out")
    config.addinivalue_line("markers", "needs_root: what it looks at is otherwise for an ordinary user")

    def stop(_number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


def pytest_runtest_setup(item):
    marks = {mark.name for mark in item.iter_markers()}
    if os.geteuid() != 0 and marks & {"other_user", "needs_root"}:
        pytest.skip("needs root")
    if "legacy" in marks and not has_legacy():
        pytest.skip("this build has nothing for the old system")


def pytest_sessionfinish(session, exitstatus):
    """No tests at all is no failure here; ./dev judges the sum of all suites."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    """Another run beside this one has the file: as if it were done."""
    return None if is_ours(item) else True


def pytest_terminal_summary(terminalreporter):
    record("integration", terminalreporter)


def built():
    return Path(os.environ.get("TTMEM_BUILD", ROOT / "build")).resolve()


@functools.lru_cache(None)
def has_legacy():
    options = json.loads((built() / "meson-info" / "intro-buildoptions.json").read_text())
    return {option["name"]: option["value"] for option in options}["legacy"] != "disabled"


@pytest.fixture(scope="session")
def build_folder():
    """What meson has made. For what is run, use "build"."""
    return built()


# Of the build folder, as patterns.
PROGRAMS = (
    "src/cli/ttmem", "src/daemon/ttmemd", "src/legacy/program/ttmem-legacy", "src/lib/libttmem.*",
    "src/metal/libttmem-metal.so", "tests/programs/*", "python/*", "python/ttmem/*", "python/ttmem/_run/*",
)  # fmt: skip


@pytest.fixture(scope="session")
def build(build_folder):
    """The programs under test, copied to where every user may run them: tests become other users, and the
    clone may lie in a home that is closed to them, or have been built with a narrow umask (F70)."""
    with shared_folder() as folder:
        for source in (path for pattern in PROGRAMS for path in build_folder.glob(pattern)):
            if source.is_file():
                copy = folder / source.relative_to(build_folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy, follow_symlinks=False)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield folder


def clean_environment(folder):
    """An environment without the caller's settings and with a private runtime folder."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TTMEM", "TT_ALLOC", "TT_BUFFER", "DEBUGINFOD"))
    }
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    env.update(XDG_RUNTIME_DIR=str(runtime), TTMEM_SOCKET="none", LC_ALL="C.UTF-8")
    env.update(XDG_CONFIG_HOME=str(folder / "config"))
    # Whatever cards and regions the machine has, and however wide the terminal is.
    env.update(TTMEM_SHM_DIR=str(folder / "shm"), TTMEM_SYS_ROOT=str(folder / "sys"))
    env.pop("COLUMNS", None)
    return env


@pytest.fixture
def clean_env(tmp_path):
    return clean_environment(tmp_path)


@pytest.fixture
def ttmem(build, clean_env):
    """Call as ttmem("smi", "--json"): runs the command and returns the completed process."""
    program = build / "src" / "cli" / "ttmem"
    if not program.exists():
        pytest.skip("the command ttmem is not built")

    def run(*args, env=None, check=False, **options):
        return subprocess.run(
            [program, *map(str, args)],
            env={**clean_env, **(env or {})},
            check=check,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            **options,
        )

    return run


@pytest.fixture
def analyze(ttmem):
    """Call as analyze(path, ...): the checked document of "ttmem analyze"."""
    from world import check_schema

    def run(*args, **options):
        done = ttmem("analyze", "--json", *args, **options)
        assert done.returncode == 0, done.stderr
        return check_schema(json.loads(done.stdout))

    return run


@pytest.fixture
def run_pytest(build, clean_env, tmp_path):
    """pytest, run with our plugin; see pytests.py."""
    from pytests import Runner

    if not list((build / "python" / "ttmem").glob("_ttmem*.so")):
        pytest.skip("the Python package is not built")
    folder = tmp_path / "tests"
    folder.mkdir()
    return Runner(build, clean_env, folder)


@pytest.fixture
def compile_c(build, tmp_path):
    """Call as compile_c(source, name="app"): a program linked with the library of the build."""
    library = build / "src" / "lib"
    if not (library / "libttmem.so").exists():
        pytest.skip("libttmem is not built")

    def compile_one(source, name="app", flags=()):
        text = tmp_path / f"{name}.c"
        text.write_text(source)
        program = tmp_path / name
        command = ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-pthread"]
        command += [*flags, f"-I{ROOT / 'include'}", "-o", program, text]
        command += [f"-L{library}", f"-Wl,-rpath,{library}", "-lttmem"]
        subprocess.run(command, check=True, timeout=LIMIT)
        return program

    return compile_one


@pytest.fixture
def world(build, clean_env, tmp_path):
    """Processes that only the test sees; see world.py."""
    from world import World

    if not (build / "src" / "cli" / "ttmem").exists():
        pytest.skip("the command ttmem is not built")
    world = World(build, clean_env, tmp_path)
    yield world
    world.close()


@pytest.fixture
def public(build, clean_env):
    """A world that other users can enter, and a way to run commands as one."""
    if os.getuid() != 0:
        pytest.skip("only root can become others")
    from world import World

    with shared_folder() as folder:
        world = World(build, clean_env, folder)
        yield world
        world.close()


@contextlib.contextmanager
def one_ttmemd(build, env):
    from ttmemd import Ttmemd

    if not (build / "src" / "daemon" / "ttmemd").exists():
        pytest.skip("the daemon ttmemd is not built")
    with shared_folder() as folder:
        ttmemd = Ttmemd(build, env, folder)
        yield ttmemd
        ttmemd.close()


@pytest.fixture
def ttmemd(build, clean_env):
    """A daemon that is not started yet; see ttmemd.py."""
    with one_ttmemd(build, clean_env) as ttmemd:
        yield ttmemd


@pytest.fixture(scope="module")
def shared_ttmemd(build, tmp_path_factory):
    """One for all tests of a file, which leave it as it is."""
    with one_ttmemd(build, clean_environment(tmp_path_factory.mktemp("shared"))) as ttmemd:
        yield ttmemd


@pytest.fixture
def interpreter(request):
    """The Python that runs programs; see pythons.py."""
    from pythons import default

    return getattr(request, "param", None) or default()


@pytest.fixture
def python(interpreter, build, clean_env, tmp_path_factory):
    """Runs Python programs with the package; see interpreter.py."""
    from interpreter import Interpreter
    from pythons import package

    folder = package(interpreter, build, tmp_path_factory)
    runner = Interpreter(interpreter, folder, build, clean_env)
    yield runner
    runner.close()
