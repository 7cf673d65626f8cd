# SPDX-License-Identifier: Apache-2.0
"""Settings of ttmemd as users see them, and that all documentation of them agrees."""

import re
import subprocess

import pytest

from conftest import LIMIT, ROOT

NOT_SETTINGS = {"config", "check", "help", "version"}


@pytest.fixture
def ttmemd_check(build, clean_env, tmp_path):
    """Call as ttmemd_check("--keep", "1d"): only looks at its settings, starts nothing."""
    program = build / "src" / "daemon" / "ttmemd"
    if not program.exists():
        pytest.skip("the daemon ttmemd is not built")

    def run(*args):
        env = {**clean_env, "TTMEM_SOCKET": str(tmp_path / "s")}
        return subprocess.run([program, "--check", *map(str, args)], env=env, text=True,
                              capture_output=True, timeout=LIMIT)

    return run


@pytest.fixture
def options(ttmemd_check):
    """The names of all long options."""
    names = set(re.findall(r"^ {2}(?:-\w, | {4})--([a-z-]+)", ttmemd_check("--help").stdout, re.M))
    assert {"socket", "quiet", *NOT_SETTINGS} <= names
    return names


def settings(text):
    return dict(line.split(" = ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_a_wrong_file_exits_with_1(ttmemd_check, tmp_path):
    file = tmp_path / "wrong.conf"
    file.write_text("# fine\nkeep = 1d\nkepe = 2d\n")
    result = ttmemd_check("--config", file)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f'ttmemd: {file}:3: unknown key "kepe"; did you mean keep?\n'


def test_a_wrong_line_exits_with_2(ttmemd_check):
    result = ttmemd_check("--config", "none", "--keep", "soon")
    assert (result.returncode, result.stdout) == (2, "")
    assert "--keep" in result.stderr and "ttmemd --help" in result.stderr


def test_the_example_shows_the_defaults(ttmemd_check, options, tmp_path):
    """Every setting is in it, and every line of it can be used as it is."""
    example = (ROOT / "data" / "ttmemd.conf").read_text()
    defaults = settings(ttmemd_check("--config", "none", "--state", "/var/lib/ttmem").stdout)
    keys = re.findall(r"^#([a-z-]+) = ", example, re.M)
    assert sorted(keys) == sorted(options - NOT_SETTINGS)

    # Nobody opens a descriptor for us here.
    used = re.sub(r"^#([a-z-]+ = )", r"\1", example, flags=re.M).replace("ready-fd = 3", "")
    (tmp_path / "all.conf").write_text(used)
    result = ttmemd_check("--config", tmp_path / "all.conf")
    assert result.returncode == 0, result.stderr
    shown = settings(result.stdout)
    # These have no default, and the socket comes from the environment of the test.
    for name in ("log", "on-incident", "http-host", "skip-frames", "otlp", "fleet", "fleet-prometheus"):
        del shown[name]
    del shown["socket"], defaults["socket"]
    assert shown == defaults


def test_everything_is_written_about(options):
    """A new option must be in both man pages and in both completions."""
    manual = (ROOT / "docs" / "man" / "ttmemd.8.scd").read_text()
    assert set(re.findall(r"^\*(?:-\w\*, \*)?--([a-z-]+)\*", manual, re.M)) == options
    keys = (ROOT / "docs" / "man" / "ttmemd.conf.5.scd").read_text()
    assert set(re.findall(r"^\*([a-z-]+)\* = ", keys, re.M)) == options - NOT_SETTINGS
    bash = (ROOT / "data" / "completion" / "ttmemd.bash").read_text()
    offered = re.search(r"words='(--socket .*?)'", bash, re.S)[1]
    assert {word[2:] for word in offered.split()} == options
    fish = (ROOT / "data" / "completion" / "ttmemd.fish").read_text()
    assert set(re.findall(r"^complete -c ttmemd .*-l ([a-z-]+)", fish, re.M)) == options
