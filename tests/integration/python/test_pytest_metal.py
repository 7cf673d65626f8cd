# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem on a stock ttnn, with nothing else to set: a stand-in for ttnn, and tests that do not know ttmem."""

import re
import sys
import textwrap

import pytest

from metalpython import install, packages  # noqa: F401
from pytests import Runner

LEAKY = """
kept = []

def test_leaks():
    kept.append(ttnn.zeros(ttnn.open_device(0), 4096))  # kept

def test_clean():
    ttnn.drop(ttnn.zeros(ttnn.open_device(0), 64))
"""


class Installed(Runner):
    """A folder of tests, and the packages of an interpreter into which ttmem and ttnn were installed by pip."""

    def __init__(self, build, env, folder, packages):
        super().__init__(build, env, folder)
        self.packages = folder.parent / "packages"
        info = self.packages / "ttmem-0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ttmem\nVersion: 0\n")
        (info / "entry_points.txt").write_text("[pytest11]\nttmem.pytest_plugin = ttmem.pytest_plugin\n")
        (self.packages / "imports_ttnn.py").write_text("import ttnn\n")
        self.env["PYTHONPATH"] = f"{self.packages}:{build / 'python'}:{packages}"

    def write(self, name, text):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def __call__(self, *options, tests="import ttnn\n" + LEAKY, **settings):
        return super().__call__(tests, *options, plugin=False, start="", **settings)


@pytest.fixture
def tests(run_pytest, build, clean_env, packages):  # noqa: F811
    return Installed(build, clean_env, run_pytest.folder, packages)


def check(done):
    """The leak was found, with its line, and the other test passed in the same run."""
    assert (done.code, done.leaked, done.failed) == (1, {"test_leaks"}, set()), done.text
    assert re.search(r"^DRAM +4\.0 KiB +0 +\d+ +- +ttnn\.zeros$", done.section("test_leaks"), re.M), done.text
    assert re.search(r"^    at test_leaks .*test_it\.py:\d+$", done.section("test_leaks"), re.M), done.text
    assert "1 failed, 1 passed" in done.text


def test_the_option_alone_tracks_ttnn(tests):
    check(tests())


@pytest.mark.parametrize("options", [["-n", "2"], ["--forked"], ["--forked", "-n", "2"]])
def test_in_workers_and_in_processes_of_their_own(tests, options):
    check(tests(*options))


def test_ttnn_that_a_conftest_imports(tests):
    tests.write("conftest.py", "import ttnn\n")
    check(tests())


def test_ttnn_that_a_plugin_imports_after_ours(tests):
    check(tests(PYTEST_PLUGINS="imports_ttnn"))
    check(tests("-p", "ttmem.pytest_plugin", "-p", "imports_ttnn"))


def test_without_the_loading_of_plugins(tests):
    check(tests("-p", "ttmem.pytest_plugin", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"))


@pytest.mark.parametrize("where", ["environment", "ini", "pyproject.toml"])
def test_asked_for_elsewhere(tests, where):
    if where == "ini":
        tests.write("pytest.ini", "[pytest]\naddopts = -q --ttmem\n")
    elif where == "pyproject.toml":
        tests.write("pyproject.toml", "[tool.pytest.ini_options]\naddopts = ['--ttmem']\n")
    check(tests(ttmem=None, PYTEST_PLUGINS="imports_ttnn",
                **{"PYTEST_ADDOPTS": "--ttmem"} if where == "environment" else {}))


def test_not_asked_for(tests):
    done = tests(ttmem=None, tests="import os\ndef test_it():\n    assert 'LD_PRELOAD' not in os.environ\n" + LEAKY)
    assert "1 passed" in done.text and "LEAKED" not in done.text


CHILD = """
import os, subprocess, sys

CHILD = "import ttnn; kept = ttnn.zeros(ttnn.open_device(0), 4096); import os; os._exit(0)"

def test_leaks():
    subprocess.run([sys.executable, "-c", CHILD], check=True)

def test_clean():
    subprocess.run([sys.executable, "-c", CHILD.replace("kept =", "ttnn.drop(").replace("4096);", "4096));")], check=True)
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_programs_that_a_test_starts(tests, options):
    done = tests(*options, tests=CHILD)
    assert (done.code, done.leaked, done.failed) == (1, {"test_leaks"}, set()), done.text
    assert re.search(r"^DRAM +4\.0 KiB +0 +\d+ \(ended\) +- +ttnn\.zeros$", done.section("test_leaks"), re.M), done.text


MAIN = """
import os, sys
import pytest
{first}
os.environ["STARTED"] = str(os.getpid())
sys.exit(pytest.main(sys.argv[1:]))
"""

STARTED = """
import os, ttnn

def test_it_is_the_process_that_was_started():
    assert os.getpid() == int(os.environ["STARTED"])

def test_leaks():
    global kept
    kept = ttnn.zeros(ttnn.open_device(0), 4096)
"""


def test_main_of_pytest(tests):
    program = tests.write("program.py", MAIN.format(first=""))
    done = tests(tests=STARTED, words=[sys.executable, program])
    assert (done.code, done.leaked, done.failed) == (1, {"test_leaks"}, set()), done.text


TOO_LATE = {
    "-p": (["-p", "imports_ttnn"], {}),
    "PYTEST_PLUGINS": ([], {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                            "PYTEST_PLUGINS": "imports_ttnn,ttmem.pytest_plugin"}),
    "-n": (["-n", "2", "-p", "imports_ttnn"], {}),
}  # fmt: skip


def check_too_late(done, tests):
    assert done.code == 4 and "passed" not in done.text, done.text
    (line,) = [line for line in done.text.splitlines() if line.startswith("ERROR: --ttmem: ")]
    assert re.search(r"tt-metal \(/\S*/libtt_metal\.so\) was loaded before libttmem-metal\.so", line)
    assert "ttmem run --metal -- pytest -p no:cacheprovider --ttmem " in line and line.endswith("test_it.py")
    assert not (tests.folder / "began").exists()


BEGINS = "def test_begins():\n    open('began', 'w').close()\n"


@pytest.mark.parametrize("way", TOO_LATE)
def test_ttnn_that_was_there_before_is_an_error(tests, way):
    options, settings = TOO_LATE[way]
    check_too_late(tests(*options, tests=BEGINS, **settings), tests)


def test_main_of_pytest_after_ttnn_is_an_error(tests):
    program = tests.write("program.py", MAIN.format(first="import ttnn"))
    check_too_late(tests(tests=BEGINS, words=[sys.executable, program]), tests)


def test_ttnn_of_sitecustomize_is_an_error_that_the_command_in_it_solves(tests, build):
    (tests.packages / "sitecustomize.py").write_text("import ttnn\n")
    check_too_late(tests(tests=BEGINS), tests)
    check(tests(words=[build / "src" / "cli" / "ttmem", "run", "--quiet", "--metal", "--", sys.executable, "-m", "pytest"]))


def test_ttnn_can_be_left_alone(tests):
    done = tests("--ttmem-no-metal", tests="import os, ttnn\n" + LEAKY +
                 "def test_environment():\n    assert 'LD_PRELOAD' not in os.environ\n")
    assert (done.code, done.leaked) == (0, set()) and "3 passed" in done.text, done.text


def test_without_the_preload_library_nothing_begins(tests, build, tmp_path):
    """An error that says what to do."""
    library = tmp_path / "elsewhere"
    library.mkdir()
    (library / "libttmem.so.0").write_bytes((build / "src" / "lib" / "libttmem.so.0").read_bytes())
    done = tests(LD_LIBRARY_PATH=str(library))
    assert done.code == 4 and "libttmem-metal.so was not found" in done.text and "--ttmem-no-metal" in done.text


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_a_run_that_holds_nothing_says_so(tests, options):
    note = "no device memory was allocated, so there was nothing to check"
    done = tests(*options, tests="def test_it():\n    pass\n")
    assert done.code == 0 and note in done.text, done.text
    done = tests(*options, tests=CHILD.replace("def test_leaks", "def leaks"))
    assert done.code == 0 and note not in done.text, done.text


@pytest.fixture(scope="module")
def other_packages(build, tmp_path_factory):
    """A tt-metal that is not what the preload library takes it for: it gives up."""
    return install(build, tmp_path_factory.mktemp("other"), "-DMETAL_OTHER_SIZE")


@pytest.fixture
def other(run_pytest, build, clean_env, other_packages):
    return Installed(build, clean_env, run_pytest.folder, other_packages)


def gave_up(done):
    (line,) = [line for line in done.text.splitlines() if "tracking gave up" in line]
    assert re.search(r"ttmem: tracking gave up, so not everything was checked: pid \d+: .*"
                     r"size is not page_size\(\) x num_pages\(\)", line), line
    return line


@pytest.mark.parametrize("options", [[], ["-n", "2"], ["--forked"], ["--forked", "-n", "2"]])
def test_success_is_87_if_tracking_gave_up(other, options):
    """Leaks are not known any more, so no test fails."""
    done = other(*options)
    assert done.code == 87 and "2 passed" in done.text and gave_up(done), done.text


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_success_is_87_if_tracking_gave_up_in_a_child(other, options):
    done = other(*options, tests=CHILD)
    assert done.code == 87 and "2 passed" in done.text and gave_up(done), done.text


def test_no_tests_are_87_if_tracking_gave_up(other):
    other.write("conftest.py", "import ttnn\nkept = ttnn.zeros(ttnn.open_device(0), 64)\n")
    done = other("-k", "nothing")
    assert done.code == 87 and gave_up(done), done.text


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_a_failure_stays_what_it_is_if_tracking_gave_up(other, options):
    done = other(*options, tests="import ttnn\n" + LEAKY + "def test_fails():\n    assert False\n")
    assert (done.code, done.failed) == (1, {"test_fails"}) and gave_up(done), done.text


def test_why_tracking_gave_up_is_said_without_a_summary(other):
    done = other("--no-summary", "-q")
    assert done.code == 87 and gave_up(done), done.text


def test_a_tt_metal_that_nobody_uses_is_no_reason_for_87(other):
    done = other(tests="import ttnn\n\ndef test_it():\n    pass\n")
    assert done.code == 0 and "nothing to check" in done.text, done.text


CLOSES = """
import pytest, ttnn

@pytest.fixture
def device():
    device = ttnn.open_device(0)
    yield device
    ttnn.close_device(device)

def test_holds(device):
    global kept
    kept = ttnn.zeros(device, 4096)

def test_frees(device):
    ttnn.drop(ttnn.zeros(device, 64))
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_a_fixture_that_closes_its_device(tests, options):
    """What it holds is not a leak, so only the option shows it."""
    done = tests(*options, tests=CLOSES)
    assert done.code == 0 and "2 passed" in done.text, done.text
    done = tests("--ttmem-strict-close", *options, tests=CLOSES)
    assert (done.code, done.leaked, done.failed) == (1, {"test_holds"}, set()), done.text
    section = done.section("test_holds")
    assert "ttmem: closed a device with 1 buffer, 4.0 KiB" in section
    assert re.search(r"^    at test_holds .*test_it\.py:\d+$", section, re.M), section


SHORT = """
import pytest, ttnn

def test_fails():
    device = ttnn.open_device(0)
    kept = ttnn.zeros(device, 1 << 20)  # held
    ttnn.zeros(device, 1 << 34)

def test_catches():
    device = ttnn.open_device(0)
    with pytest.raises(RuntimeError, match="Out of Memory"):
        ttnn.zeros(device, 1 << 34)
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_an_allocation_that_tt_metal_refuses_is_explained(tests, options):
    done = tests(*options, tests=SHORT)
    assert (done.code, done.failed) == (1, {"test_fails"}), done.text
    _, found, end = done.text.partition("\nfailed allocations:\n")
    paragraph, caught, *_ = end.splitlines()
    assert found and paragraph.startswith("  test_it.py::test_fails: "), done.text
    assert "16.0 GiB of DRAM on device 0" in paragraph and "test_it.py:7" in paragraph and "test_it.py:6" in paragraph, paragraph
    assert caught == "  1 allocation failed in tests that went on or passed"
