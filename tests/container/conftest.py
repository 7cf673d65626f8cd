# SPDX-License-Identifier: Apache-2.0
"""Fixtures: set up the namespaces that run.sh created as a machine for the container engine."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from common import LIMIT, record  # noqa: E402
HERE = "http://127.0.0.1:5392"
USER = 12345  # its name exists only on the host


def run(*command, **env):
    env = {**os.environ, **{name: str(value) for name, value in env.items()}}
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, timeout=4 * LIMIT)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def fetch(path, where=HERE, **headers):
    """The body, or None if there is no server yet."""
    request = urllib.request.Request(where + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return answer.read()
    except OSError:
        return None


def ask(path, where=HERE, **headers):
    """A JSON document, or None if there is no server yet."""
    text = fetch(path, where, **headers)
    return json.loads(text) if text else None


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    """Folders and users of a host separate from this machine."""
    run("mount", "--make-rprivate", "/")
    if os.path.ismount("/sys/fs/cgroup/unified"):  # crun supports either cgroup version, not both at once
        run("umount", "/sys/fs/cgroup/unified")
    run("ip", "link", "set", "lo", "up")
    users = tmp_path_factory.mktemp("users") / "passwd"
    users.write_text(Path("/etc/passwd").read_text() + f"tracked:x:{USER}:{USER}::/:/bin/false\n")
    users.chmod(0o644)
    run("mount", "--bind", users, "/etc/passwd")
    for place in ("/run/ttmem", "/var/lib/ttmem"):
        os.makedirs(place, exist_ok=True)


@pytest.fixture
def folders(machine):
    """Empty folders for each test."""
    places = ("/run/ttmem", "/var/lib/ttmem", "/tmp")
    for place in places:
        run("mount", "-t", "tmpfs", "-o", "mode=1777" if place == "/tmp" else "mode=755", "none", place)
    yield
    for place in places:
        run("umount", "-l", place)


def pytest_terminal_summary(terminalreporter):
    record("container", terminalreporter)
