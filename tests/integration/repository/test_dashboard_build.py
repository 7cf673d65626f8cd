# SPDX-License-Identifier: Apache-2.0
"""A build without node, or whose npm cannot fetch packages: it says why, and serves a page that says so."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import LIMIT, ROOT
from nodeless import without_node

HELP = "<code>apt-get install nodejs npm</code>"

# As npm 9 and npm 11 say it.
REFUSED = """\
npm {word} code ECONNREFUSED
npm {word} syscall connect
npm {word} errno ECONNREFUSED
npm {word} FetchError: request to http://127.0.0.1:9/vite failed, reason: connect ECONNREFUSED 127.0.0.1:9
npm {word}     at ClientRequest.<anonymous> (index.js:130:14)
"""


def run(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=3 * LIMIT, **options)


def plain_page(build):
    """What tests/programs/ttmemd-plain is linked with."""
    return (build / "tests" / "programs" / "plain-page.c").read_bytes()


def test_a_build_without_node_has_the_plain_page(build, tmp_path):
    """Nothing but this file tells such a daemon from ttmemd-plain: see tests/programs/meson.build."""
    scratch = tmp_path / "b"
    env = without_node(tmp_path / "bin")

    def configured(*options):
        done = run("meson", "setup", *options, scratch, ROOT, env=env)
        if done.returncode == 0:
            made = run("ninja", "-C", scratch, "web/assets-data.c", env=env)
            assert made.returncode == 0, made.stdout
        return done

    failed = configured("-Ddashboard=enabled", "-Dtests=false")
    assert failed.returncode != 0 and "npm" in failed.stdout
    for more in ([], ["--reconfigure", "-Ddashboard=disabled"]):
        done = configured("-Dman=disabled", "-Dpython=none", "-Dtests=false", *more)
        assert done.returncode == 0, done.stdout
        assets = scratch / "web" / "assets-data.c"
        assert assets.read_bytes() == plain_page(build)
        assets.unlink()


def test_a_change_of_any_source_is_built():
    """meson knows only the files that are listed."""
    web = ROOT / "web"
    sources = {str(path.relative_to(web)) for part in ("src", "public") for path in (web / part).rglob("*") if path.is_file()}
    assert set(re.findall(r"'((?:src|public)/[^']+)'", (web / "meson.build").read_text())) == sources


def test_what_it_serves(ttmemd, build):
    _, *rest = ttmemd.command()
    ttmemd.command = lambda *args: [build / "tests" / "programs" / "ttmemd-plain", *rest, *args]
    ttmemd.start("--http", "127.0.0.1:0")
    status, page = ttmemd.fetch("/")
    assert status == 200 and HELP in page
    assert ttmemd.stop() == 0


def make(tmp_path, npm, mode, plain=ROOT / "src" / "web" / "page"):
    return run(
        sys.executable, ROOT / "tools" / "build" / "dashboard.py", "--mode", mode, "--npm", npm,
        "--source", ROOT / "web", "--plain", plain, "--work", tmp_path / "work",
        "--output", tmp_path / "assets-data.c",
        env={**os.environ, "npm_config_registry": "http://127.0.0.1:9/", "npm_config_cache": str(tmp_path / "cache")},
    )  # fmt: skip


def stand_in(tmp_path, word):
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{REFUSED.format(word=word)}END\nexit 1\n")
    npm.chmod(0o755)
    return npm


@pytest.mark.parametrize("npm", ["ERR!", "error", "real"])
def test_a_registry_that_is_not_there(build, tmp_path, npm):
    program = shutil.which("npm") if npm == "real" else stand_in(tmp_path, npm)
    if not program:
        pytest.skip("no npm")
    done = make(tmp_path, program, "auto")
    assert done.returncode == 0
    assert "the plain page instead of the dashboard: " in done.stderr
    assert "code ECONNREFUSED; " in done.stderr and "request to http://127.0.0.1:9/" in done.stderr
    assert (tmp_path / "assets-data.c").read_bytes() == plain_page(build)


def test_a_dashboard_that_must_be_there(tmp_path):
    done = make(tmp_path, stand_in(tmp_path, "error"), "enabled")
    assert done.returncode != 0 and "the dashboard cannot be built: " in done.stderr
    assert "code ECONNREFUSED; " in done.stderr and not (tmp_path / "assets-data.c").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [(b" " * 226_083, "scripts are 226083 bytes, more than 226082"), (os.urandom(93 * 1024), "packed, more than 95232")],
    ids=["scripts", "all"],
)
def test_a_dashboard_that_has_grown_too_large(tmp_path, script, said):
    page = tmp_path / "page"
    page.mkdir()
    (page / "page.js").write_bytes(script)
    done = make(tmp_path, "", "disabled", page)
    assert done.returncode != 0 and said in done.stderr
    assert not (tmp_path / "assets-data.c").exists()
