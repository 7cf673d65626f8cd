# SPDX-License-Identifier: Apache-2.0
"""The source release: it has the dashboard, built, and needs neither npm nor a network; it is never an old one."""

import os
import shutil
import subprocess
import tarfile

import pytest

from conftest import LIMIT, ROOT
from nodeless import without_node

TIME = 1_700_000_000
WHO = ["-c", "user.name=a", "-c", "user.email=a@b"]


def run(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=10 * LIMIT, **options)


def must(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def release(build_folder, tmp_path_factory):
    """Of this tree as it is, from a repository with one commit."""
    packages = build_folder / "web" / "work" / "node_modules"
    if not (ROOT / ".git").exists() or not packages.exists() or not shutil.which("xz"):
        pytest.skip("needs a clone whose build has built the dashboard, and xz")
    clone = tmp_path_factory.mktemp("clone")
    for name in must("git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard").split("\0")[:-1]:
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name, follow_symlinks=False)
    must("git", "init", "-q", clone)
    must("git", "-C", clone, "add", "-A")
    env = {**os.environ, "GIT_COMMITTER_DATE": f"{TIME} +0000"}
    must("git", "-C", clone, *WHO, "commit", "-qm", "all", env=env)
    # Those of the build, so that nothing is downloaded; where they lie must not matter.
    (clone / "build" / "dist" / "page").mkdir(parents=True)
    (clone / "build" / "dist" / "page" / "node_modules").symlink_to(packages)
    must(clone / "dev", "dist", umask=0o077)
    (archive,) = (clone / "dist").iterdir()
    return archive


@pytest.fixture(scope="module")
def unpacked(release, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    must("tar", "-C", folder, "-xf", release)
    return folder / release.name.removesuffix(".tar.xz")


@pytest.fixture
def tree(unpacked, tmp_path):
    """What the page is made of, to be changed."""
    for folder in ("web", "tools/build", "src/web/page"):
        shutil.copytree(unpacked / folder, tmp_path / "tree" / folder)
    return tmp_path / "tree"


def test_it_depends_on_the_commit_alone(release):
    with tarfile.open(release) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted(
        (member.name for member in members), key=lambda name: name.split("/")
    )
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(TIME, 0, 0, "")}
    assert {member.mode for member in members if not member.issym()} == {0o644, 0o755}


def test_it_has_this_dashboard_without_npm_and_network(build_folder, unpacked, tmp_path):
    """The page equals the one that the build of this tree made in another folder."""
    env = without_node(tmp_path / "bin")
    alone = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--net")
    if run(*alone, "true").returncode != 0:
        alone = ()
    scratch = tmp_path / "b"
    options = ("-Ddashboard=enabled", "-Dman=disabled", "-Dpython=none", "-Dtests=false")
    must(*alone, "meson", "setup", *options, scratch, unpacked, env=env)
    must(*alone, "ninja", "-C", scratch, "web/assets-data.c", env=env)
    for name in ("assets-data.c", "report-page-data.c"):
        assert (scratch / "web" / name).read_bytes() == (build_folder / "web" / name).read_bytes(), name


def changed_source(web):
    with open(web / "src" / "main.ts", "a", encoding="utf-8") as source:
        source.write("// new\n")
    return "src/main.ts"


def new_source(web):
    (web / "src" / "new.ts").write_text("export {};\n")
    return "src/new.ts"


def changed_lock(web):
    (web / "package-lock.json").write_text("{}\n")
    return "package-lock.json"


def damaged_page(web):
    (web / "built" / "dist" / "index.html").write_text("<p>not ours\n")
    return "built/dist/index.html"


def missing_part(web):
    (web / "built" / "dist-report" / "report.js").unlink()
    return "built/dist-report/report.js"


@pytest.mark.parametrize("change", [changed_source, new_source, changed_lock, damaged_page, missing_part])
def test_a_page_of_other_sources_is_not_used(tree, tmp_path, change):
    name = change(tree / "web")
    said = f"the shipped page is not of these sources: {name} differs"

    def make(mode):
        return run(
            "/usr/bin/python3", tree / "tools" / "build" / "dashboard.py", "--mode", mode, "--source", tree / "web",
            "--plain", tree / "src" / "web" / "page", "--work", tmp_path / "work", "--output", tmp_path / "assets.c",
        )  # fmt: skip

    must_be_there = make("enabled")
    assert must_be_there.returncode != 0 and said in must_be_there.stderr
    assert not (tmp_path / "assets.c").exists()
    plain = make("auto")
    assert plain.returncode == 0 and said in plain.stderr
    assert "/assets/index-" not in (tmp_path / "assets.c").read_text()
