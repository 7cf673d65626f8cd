# SPDX-License-Identifier: Apache-2.0
"""What is shipped with the kernel module is taken by the tools it is for: dkms, modprobe and udev."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import LIMIT, ROOT

BUILD = pathlib.Path(os.environ.get("TTMEM_BUILD", ROOT / "build"))
HEADER = (ROOT / "include" / "ttmem" / "ttmem.h").read_text()
VERSION = ".".join(re.findall(r"^#define TTMEM_VERSION_\w+ (\d+)$", HEADER, re.MULTILINE))
SETTINGS = ROOT / "data" / "modprobe" / "ttmem.conf"
RULES = ROOT / "data" / "udev" / "60-ttmem.rules"

# Debian keeps these where only root looks.
os.environ["PATH"] += ":/usr/sbin:/sbin"


def run(*words, ok=True, env=None):
    """What a program prints, both streams."""
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
        text=True,
        timeout=4 * LIMIT,
    )
    assert not ok or done.returncode == 0, done.stdout
    return done.stdout


def kernel(series):
    """The newest kernel of a series whose headers are here."""
    found = sorted(pathlib.Path("/usr/src").glob(f"linux-headers-{series}.*-cloud-amd64"))
    versions = [path.name[len("linux-headers-") :] for path in found]
    versions = [version for version in versions if pathlib.Path(f"/lib/modules/{version}/build").exists()]
    if not versions:
        pytest.skip(f"no headers of Linux {series} here (./dev kernel-test installs them)")
    return versions[-1]


def shipped(tree):
    """The source tree of dkms as "meson install" would make it."""
    installed = json.loads(run("meson", "introspect", "--installed", BUILD))
    mark = f"/src/ttmem-{VERSION}/"
    for source, target in installed.items():
        if mark in target:
            copy = tree / f"ttmem-{VERSION}" / target.split(mark)[1]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    assert (tree / f"ttmem-{VERSION}" / "dkms.conf").exists()


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program} here (./dev kernel-test installs it)")


@pytest.mark.parametrize("series", ["6.1", "6.12"])
def test_dkms_and_modprobe(tmp_path, series):
    """The module is added, built and installed by dkms for that kernel, and modprobe finds it with its settings."""
    need("dkms", "modprobe", "depmod", "modinfo", "meson")
    if os.getuid() != 0:
        pytest.skip("dkms wants root")
    version = kernel(series)
    root = tmp_path / "root"
    folder = root / "lib" / "modules" / version
    folder.mkdir(parents=True)
    shipped(tmp_path / "src")
    trees = ["--dkmstree", tmp_path / "dkms", "--sourcetree", tmp_path / "src", "--installtree", folder.parent]
    trees += ["-m", "ttmem", "-v", VERSION]
    (tmp_path / "dkms").mkdir()
    plain = {"sign_file": "/dev/null"}  # or it would make this machine a key

    run("dkms", "add", *trees, env=plain)
    run("dkms", "build", "-k", version, *trees, env=plain)
    run("dkms", "install", "-k", version, "--no-depmod", *trees, env=plain)
    assert ": installed" in run("dkms", "status", "-k", version, *trees, env=plain)
    (module,) = folder.rglob("ttmem.ko*")
    assert module.parent == folder / "updates" / "dkms"
    assert run("modinfo", "-F", "vermagic", module).split()[0] == version
    assert run("modinfo", "-F", "license", module).strip() == "GPL"

    run("depmod", "-b", root, version)
    find = ["modprobe", "-n", "-v", "-d", root, "-S", version]
    # As it is shipped it says nothing; with its lines made real they are what the module gets.
    assert run(*find, "-C", SETTINGS, "ttmem").split() == ["insmod", str(module)]
    lines = [line[2:] for line in SETTINGS.read_text().splitlines() if line.startswith(("# options ", "# softdep "))]
    active = tmp_path / "active.conf"
    active.write_text("".join(f"{line}\n" for line in lines))
    words = lines[0].split()
    assert words[:2] == ["options", "ttmem"]
    assert run(*find, "-C", active, "ttmem").split() == ["insmod", str(module), *words[2:]]
    parameters = run("modinfo", "-F", "parm", module)
    assert {word.split("=")[0] for word in words[2:]} == {line.split(":")[0] for line in parameters.splitlines()}
    settings = run("modprobe", "-c", "-d", root, "-S", version, "-C", active).splitlines()
    assert all(line in settings for line in lines)


def complaints(tmp_path, text):
    """What udev has to say of our rules; it reads all of them before it looks for the device, which is none."""
    rules = tmp_path / "60-ttmem.rules"
    rules.write_text(text)
    script = (
        "mount -t tmpfs tmpfs /run && mkdir -p /run/udev/rules.d && "
        f"cp {rules} /run/udev/rules.d/ && udevadm test --action=add /sys/none"
    )
    said = run("unshare", "--mount", "sh", "-c", script, ok=False)
    if "Reading rules file: /run/udev/rules.d/60-ttmem.rules" not in said:
        pytest.skip("no name space of our own here")
    return [line for line in said.splitlines() if "60-ttmem.rules" in line and "Reading rules file" not in line]


def test_udev_reads_the_rule(tmp_path):
    need("udevadm", "unshare")
    text = RULES.read_text()
    assert complaints(tmp_path, text) == []
    # And it would have told.
    assert complaints(tmp_path, text.replace(" MODE=", " MODES="))
