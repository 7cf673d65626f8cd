# SPDX-License-Identifier: Apache-2.0
"""data/ci: the shell steps of the templates are run as they are written, with stand-ins for the CI system.

gh and curl hand out the report of an earlier run, as the CI system's artifacts would.
"""

import json
import subprocess
import xml.etree.ElementTree as xml

import pytest

from conftest import LIMIT, ROOT

yaml = pytest.importorskip("yaml")

PROGRAM = """\
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
LEAKING_LINE = 7


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


@pytest.fixture
def job(build, clean_env, compile_c, tmp_path):
    """Runs the steps in a new folder, and returns it with the exit code and what was said."""
    program = compile_c(PROGRAM)
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
    return run


@pytest.mark.parametrize("steps", [github_steps, gitlab_steps])
def test_jobs_fail_for_leaks_and_compare_with_the_base(job, steps):
    base, code, _ = job(steps(), "base")
    assert code == 0 and not json.loads((base / "ttmem.json").read_text())["leaked"]
    (job.artifacts / "ttmem.json").write_text((base / "ttmem.json").read_text())

    change, code, said = job(steps(), "change", "leak")
    assert code == 86
    case = xml.parse(change / "ttmem.xml").find("testsuite/testcase")
    assert case.get("name") == "leaks" and "64.0 KiB leaked in 1 buffer: DRAM kv_cache at main" in case[0].text
    row = "| 0 | DRAM | 1.1 MiB | 1.0 MiB | **+64.0 KiB** (+6.2 %) |\n"
    if steps is github_steps:
        assert row in (change / "shown.md").read_text()
        assert f"::error file=app.c,line={LEAKING_LINE},title=ttmem::64.0 KiB leaked in 1 buffer" in said
    else:
        assert row in said


def test_a_budget_beside_the_code_counts(job, tmp_path):
    steps = github_steps()
    budget = ("printf '%s' '{\"schema\": \"ttmem.budget/1\", \"limits\": {\"DRAM\": \"512K\"}}' >budget.json", False)
    _, code, said = job([budget, *steps], "over")
    assert code == 86 and "::error file=app.c,line=5,title=ttmem::limit DRAM 512.0 KiB: exceeded" in said
