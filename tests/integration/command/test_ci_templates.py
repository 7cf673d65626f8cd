# SPDX-License-Identifier: Apache-2.0
"""data/ci: the shell steps of the templates are run as they are written, with stand-ins for the CI system.

gh and curl hand out the report of an earlier run, as the CI system's artifacts would. The program is a tt-metal
application, with a stand-in for tt-metal; what reports by itself is checked in the same way.
"""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml

import pytest

from conftest import LIMIT, ROOT
from cxx import run as compile_with
from metalshapes import FLAGS, SOURCES, Shapes

yaml = pytest.importorskip("yaml")

METAL = """\
#include "metal.hpp"
#include <unistd.h>
using namespace tt::tt_metal;
int main(int argc, char **)
{
	Device card(0);
	{
		auto weights = Buffer::create({&card, 1 << 20, 2048, BufferType::DRAM});
		if (argc > 1) {
			auto cache = Buffer::create({&card, 1 << 16, 2048, BufferType::DRAM});
			weights.reset();
			_exit(0);
		}
	}
	card.close();
	return 0;
}
"""
PLAIN = """\
#include <stdlib.h>
#include <ttmem/ttmem.h>



int main(int argc, char **argv)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 1 << 20, "weights");
	if (argc > 1)
		ttmem_alloc(0, TTMEM_DRAM, 0x200000, 1 << 16, "kv_cache");
	ttmem_free(0, TTMEM_DRAM, 0x1000);
	return 0;
}
"""
FIRST_LINE, LEAKING_LINE = 8, 10


def github_steps():
    job = yaml.safe_load((ROOT / "data/ci/github-workflow.yml").read_text())["jobs"]["ttmem"]
    # GitHub ends with the first step that fails, but for those that always run.
    return [(step["run"], step.get("if") == "always()") for step in job["steps"] if "run" in step]


def gitlab_steps():
    job = yaml.safe_load((ROOT / "data/ci/gitlab-template.yml").read_text())[".ttmem"]
    return [(line, False) for line in job["script"]] + [(line, True) for line in job["after_script"]]


STAND_INS = {
    "gh": """#!/bin/sh
case "$1 $2" in
"run list") if [ -e "$ARTIFACTS/ttmem.json" ]; then echo 7; else exit 1; fi ;;
"run download") mkdir -p ttmem-base && cp "$ARTIFACTS/ttmem.json" ttmem-base/ ;;
esac
""",
    "curl": """#!/bin/sh
case "$*" in *" job=unit tests "*/jobs/artifacts/release/raw/ttmem.json) ;; *) exit 3 ;; esac
while [ "$1" != --output ]; do shift; done
cp "$ARTIFACTS/ttmem.json" "$2" 2>/dev/null || exit 22
""",
}


@pytest.fixture(scope="module")
def shapes(build, tmp_path_factory):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    return Shapes(tmp_path_factory.mktemp("shapes"))


@pytest.fixture(params=["tt-metal", "plain"])
def program(request, tmp_path):
    if request.param == "plain":
        return request.getfixturevalue("compile_c")(PLAIN)
    folder = request.getfixturevalue("shapes")(70)
    source, program = tmp_path / "app.cpp", tmp_path / "app"
    source.write_text(METAL)
    compile_with("g++", *FLAGS, "-DMETAL_SHAPE=70", f"-I{SOURCES}", source, "-o", program, f"-L{folder}",
                 "-ltt_metal", f"-Wl,-rpath,{folder}")  # fmt: skip
    return program


@pytest.fixture
def job(build, clean_env, program, tmp_path):
    """Runs the steps in a new folder, and returns it with the exit code and what was said."""
    tools, artifacts = tmp_path / "tools", tmp_path / "artifacts"
    for folder in (tools, artifacts):
        folder.mkdir()
    (tools / "ttmem").symlink_to(build / "src/cli/ttmem")
    for name, text in STAND_INS.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    def run(steps, name, *words):
        folder = tmp_path / name
        folder.mkdir()
        env = {
            **clean_env, "PATH": f"{tools}:{clean_env['PATH']}", "ARTIFACTS": str(artifacts),
            "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_WORKFLOW": "device memory", "GITHUB_STEP_SUMMARY": "shown.md",
            "CI_JOB_TOKEN": "t", "CI_API_V4_URL": "u", "CI_PROJECT_ID": "1", "CI_JOB_NAME": "unit tests",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "release", "BASE": "main",
            "COMMAND": " ".join([str(program), *words]),
        }  # fmt: skip
        code, said = 0, ""
        for script, always in steps:
            if code and not always:
                continue
            done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, text=True, timeout=LIMIT,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
            code, said = code or done.returncode, said + done.stdout
        return folder, code, said

    run.artifacts = artifacts
    run.source = next(tmp_path.glob("app.c*")).name
    return run


@pytest.mark.parametrize("steps", [github_steps, gitlab_steps])
def test_jobs_fail_for_leaks_and_compare_with_the_base(job, steps):
    base, code, _ = job(steps(), "base")
    assert code == 0 and not json.loads((base / "ttmem.json").read_text())["leaked"]
    (job.artifacts / "ttmem.json").write_text((base / "ttmem.json").read_text())

    change, code, said = job(steps(), "change", "leak")
    assert code == 86
    case = xml.parse(change / "ttmem.xml").find("testsuite/testcase")
    assert case.get("name") == "leaks"
    assert re.search(r"64\.0 KiB leaked in 1 buffer: DRAM .*\bat main", case[0].text)
    row = "| 0 | DRAM | 1.1 MiB | 1.0 MiB | **+64.0 KiB** (+6.2 %) |\n"
    if steps is github_steps:
        assert row in (change / "shown.md").read_text()
        assert f"::error file={job.source},line={LEAKING_LINE},title=ttmem::64.0 KiB leaked in 1 buffer" in said
    else:
        assert row in said


def test_a_budget_beside_the_code_counts(job, tmp_path):
    steps = github_steps()
    budget = ("printf '%s' '{\"schema\": \"ttmem.budget/1\", \"limits\": {\"DRAM\": \"512K\"}}' >budget.json", False)
    _, code, said = job([budget, *steps], "over")
    assert code == 86 and f"::error file={job.source},line={FIRST_LINE},title=ttmem::limit DRAM 512.0 KiB: exceeded" in said
