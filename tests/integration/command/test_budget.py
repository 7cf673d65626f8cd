# SPDX-License-Identifier: Apache-2.0
"""Limits: ttmem run --limit and --budget, ttmem check, and what they write for CI systems."""

import json
import xml.etree.ElementTree

import jsonschema
import pytest

from conftest import ROOT
from world import check_schema

# Holds 3 MiB that it leaves and 2 MiB that it frees on device 0, and 4 KiB on device 1; for each argument
# a child does the same first.
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

void load_weights(void)
{
	ttmem_phase_push("load");
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 3 << 20, "weights"); /* weights */
	ttmem_phase_pop();
}

void decode(void)
{
	ttmem_phase_push("decode");
	ttmem_alloc(0, TTMEM_DRAM, 0x10000000, 2 << 20, "activations");
	ttmem_free(0, TTMEM_DRAM, 0x10000000);
	ttmem_phase_pop();
}

static void work(void)
{
	load_weights();
	decode();
	ttmem_alloc(1, TTMEM_L1, 0x10, 4096, "small");
	ttmem_free(1, TTMEM_L1, 0x10);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "exec") == 0) {
			work();
			execv(argv[0], (char *[]){argv[0], NULL});
		}
		if (strcmp(argv[i], "fail") == 0)
			exit(3);
		if (strcmp(argv[i], "hostile") == 0) {
			prctl(PR_SET_NAME, "a\n::set x::<&\"");
			ttmem_alloc(0, TTMEM_DRAM, 0x5000, 9 << 20, "x\n::error::y %0A <&\"");
			_exit(0);
		}
		if (fork() == 0)
			break;
		wait(NULL);
	}
	work();
	return 0;
}
"""

LINE = 1 + PROGRAM.split("/* weights */")[0].count("\n")


@pytest.fixture
def program(compile_c):
    return compile_c(PROGRAM, "program")


@pytest.fixture
def report(ttmem, tmp_path):
    """Call as report("--limit", "DRAM=1", "--", program): the completed process and its JSON."""

    def run(*args, **options):
        path = tmp_path / "report.json"
        path.unlink(missing_ok=True)
        done = ttmem("run", "--json", path, *args, **options)
        return done, check_schema(json.loads(path.read_text())) if path.exists() else None

    return run


def budget_of(tmp_path, limits, **more):
    document = {"schema": "ttmem.budget/1", "limits": limits, **more}
    jsonschema.validate(document, json.loads((ROOT / "docs/schema/budget.json").read_text()))
    path = tmp_path / "budget.json"
    path.write_text(json.dumps(document, indent=1))
    return path


def test_a_limit_that_is_exceeded_is_named_with_the_peak_and_its_sites(report, program):
    done, document = report("--limit", "DRAM=4M", "--limit", "L1=4K", "--", program)
    assert done.returncode == 86
    (dram, l1) = document["limits"]
    assert (dram["limit"], dram["bytes"], dram["over"]) == ("DRAM", 4 << 20, True)
    held = dram["held"]
    assert (held["bytes"], held["exact"], held["device"], held["type"]) == (5 << 20, True, 0, "DRAM")
    assert held["pid"] == document["processes"][0]["pid"]
    assert held["sites_at"] == "peak"
    assert [(site["function"], site["phase"], site["bytes"]) for site in held["sites"]] == [
        ("load_weights", "load", 3 << 20),
        ("decode", "decode", 2 << 20),
    ]
    assert (l1["over"], l1["held"]["bytes"], l1["held"]["device"]) == (False, 4096, 1)
    assert f"limit DRAM 4.0 MiB: exceeded, pid {held['pid']} (program) held 5.0 MiB" in done.stderr
    assert f"load_weights (program.c:{LINE}), in load" in done.stderr
    assert "limit L1 4.0 KiB: kept" in done.stderr


@pytest.mark.parametrize(
    "limits, code",
    [
        (["DRAM=5M"], 0),
        (["DRAM=5242879"], 86),
        (["0:DRAM=4M"], 86),
        (["1:DRAM=0"], 0),
        (["0:L1=0", "1:L1=4095"], 86),
        (["site:load_weights=3145727"], 86),
        (["site:load_*=3M"], 0),
        (["site:program.c=2M"], 86),
        (["DRAM:site:load_weights=1"], 86),
        (["1:site:load_weights=1"], 0),
        (["L1:site:load_weights=1"], 0),
        (["phase:load=1M"], 86),
        (["phase:load=3M"], 0),
        (["phase:decode=2097151"], 86),
        (["phase:decode=2M"], 0),
        (["site:decode=1M"], 86),
    ],
)
def test_what_a_limit_is_about(report, program, limits, code):
    words = [word for limit in limits for word in ("--limit", limit)]
    assert report("-q", *words, "--", program)[0].returncode == code


def test_each_process_is_judged_alone(report, program):
    """Three processes of 5 MiB each, and one that was two programs."""
    done, document = report("--limit", "DRAM=5M", "--", program, "child", "child")
    assert done.returncode == 0 and len(document["processes"]) == 3
    (held,) = [limit["held"] for limit in document["limits"]]
    assert (held["bytes"], held["exact"]) == (5 << 20, True)
    done, document = report("--limit", "DRAM=5M", "--", program, "exec")
    assert done.returncode == 0 and len(document["processes"]) == 1
    assert document["limits"][0]["held"]["bytes"] == 5 << 20


def test_a_limit_of_what_was_not_tracked_does_not_pass(ttmem, report, program, tmp_path):
    off = ("env", "TTMEM=0", program)
    done, document = report("--limit", "DRAM=5M", "--", *off)
    assert (done.returncode, document["limits"][0]["held"]) == (87, None)
    assert report("--budget", budget_of(tmp_path, {"DRAM": 1}), "--", *off)[0].returncode == 87
    assert report("--limit", "DRAM=1", "--no-require-tracking", "--", *off)[0].returncode == 0
    junit = tmp_path / "limits.xml"
    done = ttmem("run", "-q", "--limit", "DRAM=5M", "--junit", junit, "--annotate", "github", "--", *off)
    assert done.returncode == 87
    assert "::error title=ttmem::nothing was tracked" in done.stderr
    suite = xml.etree.ElementTree.parse(junit).find("testsuite")
    assert suite.get("errors") == "1" and suite.find("testcase/error") is not None


def test_the_command_s_own_failure_comes_first(report, program):
    done, document = report("--limit", "DRAM=1", "--", program, "child", "fail")
    assert (done.returncode, document["limits"][0]["over"]) == (3, True)


def test_a_limit_that_matches_nothing_fails_and_names_near_matches(ttmem, report, program, tmp_path):
    limits = ["--limit", "phase:decoed=1G", "--limit", "site:load_wieghts=1G", "--limit", "TRACE=1"]
    done, document = report(*limits, "--", program)
    assert done.returncode == 86
    assert [limit["matched"] for limit in document["limits"]] == [False, False, True]
    assert [limit["near"] for limit in document["limits"]] == [["decode"], ["load_weights"], []]
    assert [limit["over"] for limit in document["limits"]] == [False] * 3
    assert "limit phase:decoed 1.0 GiB: not checked, no phase of that name was seen" in done.stderr
    assert "did you mean decode?" in done.stderr and "did you mean load_weights?" in done.stderr
    assert "limit TRACE 1 B: kept, nothing of it was held" in done.stderr
    done = ttmem("check", "-q", tmp_path / "report.json", *limits)
    assert done.returncode == 86 and len(done.stdout.splitlines()) == 2
    assert report("-q", "--limit", "site:nobody=1G", "--", program, "child", "fail")[0].returncode == 3


def test_a_limit_of_a_call_site_matches_any_frame_of_the_stack(ttmem, report, program, tmp_path):
    done, document = report("--limit", "DRAM:site:work=1M", "--", program)
    (limit,) = document["limits"]
    assert (done.returncode, limit["held"]["bytes"]) == (86, 5 << 20)
    assert [site["function"] for site in limit["held"]["sites"]] == ["load_weights", "decode"]
    checked = ttmem("check", tmp_path / "report.json", "--limit", "DRAM:site:work=1M", "--json")
    assert checked.returncode == 86
    assert check_schema(json.loads(checked.stdout))["limits"] == document["limits"]


def test_a_limit_that_update_wrote_or_that_is_optional_may_match_nothing(ttmem, report, program, tmp_path):
    report("--", program)
    path, budget = tmp_path / "report.json", tmp_path / "new.json"
    done = ttmem("check", path, "--budget", budget, "--update")
    assert done.stdout == f"{budget}:\n  DRAM  5.0 MiB, new\n  L1  4.0 KiB, new\n"
    document = json.loads(budget.read_text())
    assert document["optional"] == ["DRAM", "L1"]
    budget = budget_of(tmp_path, {"site:gone": 1})
    assert ttmem("check", path, "--budget", budget).returncode == 86
    budget = budget_of(tmp_path, {"site:gone": 1}, optional=["site:gone"])
    done = ttmem("check", path, "--budget", budget)
    assert done.returncode == 0 and "limit site:gone 1 B: kept" in done.stdout


@pytest.mark.parametrize("limit", ["DRAM", "DRM=4G", "1024:DRAM=1", "DRAM=x", "phase:=1", "site=1"])
def test_what_is_no_limit_is_refused(ttmem, limit):
    done = ttmem("run", "--limit", limit, "--", "true")
    assert done.returncode == 2 and limit in done.stderr


def test_a_budget_and_limits_that_count_instead(report, program, tmp_path):
    budget = budget_of(tmp_path, {"DRAM": "4M", "0:L1": 0, "site:load_*": "3 MiB"}, description="mine")
    done, document = report("--budget", budget, "--", program)
    assert done.returncode == 86
    assert [limit["over"] for limit in document["limits"]] == [True, False, False]
    assert report("--budget", budget, "--limit", "dram=5M", "--", program)[0].returncode == 0


def test_a_wrong_budget_is_told_with_its_line_and_nothing_is_run(ttmem, tmp_path):
    budget = tmp_path / "budget.json"
    budget.write_text('{"schema": "ttmem.budget/1",\n"limits": {\n"DRAM": "4G",\n"L2": 1}}\n')
    done = ttmem("run", "--budget", budget, "--", "touch", tmp_path / "ran")
    assert done.returncode == 2 and "budget.json: line 4: \"L2\" is no limit" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert ttmem("run", "--budget", tmp_path / "none", "--", "true").returncode == 2


def test_check_says_of_a_report_what_run_said(ttmem, report, program, tmp_path):
    limits = ["--limit", "DRAM=4M", "--limit", "site:load_weights=1M", "--limit", "phase:x=1"]
    _, document = report(*limits, "--", program)
    path = tmp_path / "report.json"
    done = ttmem("check", path, *limits, "--json")
    assert done.returncode == 86
    checked = check_schema(json.loads(done.stdout))
    assert checked["limits"] == document["limits"]
    assert (checked["over"], checked["tracked"]) == (True, True)
    done = ttmem("check", path, "--limit", "DRAM=5M")
    assert done.returncode == 0 and "kept" in done.stdout
    done = ttmem("check", "-q", path, "--limit", "DRAM=5M")
    assert (done.returncode, done.stdout) == (0, "")


def test_check_of_a_report_without_what_was_live_at_the_peak(ttmem, report, program, tmp_path):
    """As older versions wrote it: the end of the process is all that tells of call sites."""
    _, document = report("--", program)
    for peak in document["peaks"]:
        del peak["at_peak"], peak["parts"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    done = ttmem("check", path, "--limit", "DRAM=4M")
    assert done.returncode == 86 and "a process held 5.0 MiB of DRAM" in done.stdout
    assert ttmem("check", path, "--limit", "phase:decode=1M").returncode == 86  # not known any more
    assert ttmem("check", path, "--limit", "phase:load=1M").returncode == 86


def test_check_of_what_cannot_be_checked(ttmem, report, program, tmp_path):
    path = tmp_path / "report.json"
    _, document = report("--", "true")
    assert ttmem("check", path, "--limit", "DRAM=4M").returncode == 87
    path.write_text(json.dumps({**document, "tracked": True, "refused": 1}))
    assert ttmem("check", path, "--limit", "DRAM=4M").returncode == 86
    path.write_text("{\n")
    done = ttmem("check", path, "--limit", "DRAM=4M")
    assert done.returncode == 2 and "line 2" in done.stderr
    path.write_text('{"schema": "ttmem.smi/1"}')
    assert "neither a recording nor a report" in ttmem("check", path, "--limit", "DRAM=4M").stderr
    done = ttmem("check", tmp_path / "none", "--limit", "DRAM=4M")
    assert done.returncode == 2 and done.stderr.endswith("none: No such file or directory\n")
    for wrong in ([], [path], [path, path, "--limit", "L1=1"], [path, "--limit", "L1=1", "--update"]):
        assert ttmem("check", *wrong).returncode == 2


def test_update_makes_a_budget_that_the_run_keeps_and_one_byte_more_does_not(
    ttmem, report, program, tmp_path
):
    report("--", program)
    path, budget = tmp_path / "report.json", tmp_path / "new.json"
    assert ttmem("check", path, "--budget", budget, "--update").returncode == 0
    document = json.loads(budget.read_text())
    jsonschema.validate(document, json.loads((ROOT / "docs/schema/budget.json").read_text()))
    assert document["limits"] == {"DRAM": 5 << 20, "L1": 4096}
    assert ttmem("check", path, "--budget", budget).returncode == 0
    document["limits"]["L1"] -= 1
    budget.write_text(json.dumps(document))
    assert ttmem("check", path, "--budget", budget).returncode == 86


def test_update_keeps_the_choice_of_limits(ttmem, report, program, tmp_path):
    report("--", program)
    limits = {"phase:x": "1G", "0:DRAM": "1K", "site:load_*": 1}
    budget = budget_of(tmp_path, limits, description="mine")
    done = ttmem("check", tmp_path / "report.json", "--budget", budget, "--update")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == [
        "  phase:x  1.0 GiB, left as it is: nothing of it was seen",
        "  0:DRAM  5.0 MiB, was 1.0 KiB",
        "  site:load_*  3.0 MiB, was 1 B",
    ]
    document = json.loads(budget.read_text())
    assert list(document["limits"].items()) == [
        ("phase:x", "1G"), ("0:DRAM", 5 << 20), ("site:load_*", 3 << 20)
    ]
    assert document["description"] == "mine"


def test_no_budget_comes_from_what_was_not_tracked(ttmem, report, tmp_path):
    report("--", "true")
    budget = tmp_path / "budget.json"
    done = ttmem("check", tmp_path / "report.json", "--budget", budget, "--update")
    assert done.returncode == 87 and not budget.exists()


def test_junit_and_annotations_name_file_and_line(ttmem, program, tmp_path):
    junit = tmp_path / "limits.xml"
    words = ["--limit", "DRAM=4M", "--limit", "L1=1M", "--limit", "phase:x=1", "--limit", "TRACE=1", "--junit", junit]
    done = ttmem(
        "run", *words, "--annotate", "github", "--", program, env={"GITHUB_WORKSPACE": f"{tmp_path}/"}
    )
    assert done.returncode == 86
    notes = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert len(notes) == 2
    assert notes[0].startswith(
        f"::error file=program.c,line={LINE},title=ttmem::limit DRAM 4.0 MiB: exceeded"
    )
    assert notes[1].startswith("::error title=ttmem::limit phase:x 1 B: not checked")
    suite = xml.etree.ElementTree.parse(junit).find("testsuite")
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "2", "errors": "0", "skipped": "1"
    }
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert f"load_weights (program.c:{LINE})" in cases["DRAM"].find("failure").text
    assert len(cases["L1"]) == 0 and cases["TRACE"].find("skipped") is not None
    assert "no phase of that name" in cases["phase:x"].find("failure").text


def test_names_of_programs_cannot_write_annotations_or_xml(ttmem, program, tmp_path):
    junit, summary = tmp_path / "limits.xml", tmp_path / "summary.md"
    done = ttmem(
        "run", "--limit", "DRAM=1M", "--junit", junit, "--markdown", summary, "--annotate", "github",
        "--", program, "hostile", env={"TTMEM_STACKS": "off"},
    )
    assert done.returncode == 86
    notes = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert len(notes) == 1 and notes[0].startswith("::error title=ttmem::limit DRAM")
    text = xml.etree.ElementTree.parse(junit).find("testsuite/testcase/failure").text
    assert r"x\x0a::error::y %0A <&" in text
    assert "| `DRAM` | 1.0 MiB | 9.0 MiB | **exceeded** |" in summary.read_text()


def test_files_cannot_write_to_the_terminal(ttmem, report, program, tmp_path):
    """A budget or a report may come with somebody's change."""
    budget = tmp_path / "budget.json"
    budget.write_text('{"schema": "ttmem.budget/1", "limits": {"DRAM": 1 "\x7f\u202e::error::y" }}')
    done = ttmem("run", "--budget", budget, "--", "true")
    assert done.returncode == 2 and "\x7f" not in done.stderr and "\u202e" not in done.stderr
    assert ttmem("check", budget, "--limit", "L1=1").stderr == done.stderr.replace(
        f"ttmem run: budget {budget}", f"ttmem check: {budget}: neither a recording nor JSON"
    )
    report("--", program)
    budget.write_text('{"schema": "ttmem.budget/1", "limits": {"phase:x\\n::error::y": 1}}')
    done = ttmem("check", tmp_path / "report.json", "--budget", budget, "--update")
    assert done.returncode == 0 and r"phase:x\x0a::error::y" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("::")]


def test_options_for_ci_need_a_check(ttmem):
    assert ttmem("run", "--annotate", "github", "--", "true").returncode == 2
    assert ttmem("run", "--limit", "L1=1", "--annotate", "gitlab", "--", "true").returncode == 2
