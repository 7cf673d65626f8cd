# SPDX-License-Identifier: Apache-2.0
"""ttmem run and check where a library that reports for another one gave up: what could not be checked fails."""

import json
import os
import signal
import subprocess

import jsonschema
import pytest

from world import read_schema

FAMILY = r"""
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static int one(const char *what)
{
	if (strcmp(what, "clean") == 0) {
		ttmem_alloc(0, TTMEM_L1, 0x2000, 4096, "clean");
		ttmem_free(0, TTMEM_L1, 0x2000);
	} else if (strcmp(what, "leak") == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 0x1000, 1 << 20, "weights");
	} else if (strcmp(what, "gaveup") == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 0x7000, 1 << 20, "early");
		ttmem_give_up("libmiddle.so: two ways to ask differ");
		ttmem_free(0, TTMEM_DRAM, 0x7000);
	} else if (strcmp(what, "gaveup-first") == 0) {
		ttmem_give_up("libmiddle.so: nothing is known");
	} else if (strcmp(what, "wait") == 0) {
		puts("waiting");
		fflush(stdout);
		pause();
	} else if (strcmp(what, "fail") == 0) {
		return 3;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int code = 0;

	/* "-x" does it here, "x" in a child. */
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			code |= one(argv[i] + 1);
		} else if (fork() == 0) {
			one(argv[i]);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return code;
}
"""


@pytest.fixture
def family(compile_c):
    return compile_c(FAMILY, "family")


@pytest.fixture
def report(ttmem, tmp_path):
    """Call as report("--fail-on-leak", "--", program): the completed process and its JSON."""

    def run(*args, **options):
        path = tmp_path / "report.json"
        done = ttmem("run", "--json", path, *args, **options)
        document = json.loads(path.read_text()) if path.exists() else None
        if document:
            jsonschema.validate(document, read_schema("run"))
        return done, document

    return run


GAVE_UP = "libmiddle.so: two ways to ask differ"


@pytest.mark.parametrize("check", [["--fail-on-leak"], ["--limit", "DRAM=1G"], ["--require-tracking"],
                                   ["--baseline", "BASE"], ["--budget", "BUDGET"]])
@pytest.mark.parametrize("who", ["-gaveup", "gaveup"])
def test_a_check_fails_where_tracking_gave_up(report, family, ttmem, tmp_path, check, who):
    base, budget = tmp_path / "base.json", tmp_path / "budget.json"
    assert ttmem("run", "-q", "--json", base, "--", family, "-clean").returncode == 0
    assert ttmem("check", "--budget", budget, "--update", base).returncode == 0
    check = [{"BASE": str(base), "BUDGET": str(budget)}.get(word, word) for word in check]
    done, document = report("-q", *check, "--", family, "-clean", who)
    assert done.returncode == 87
    (line,) = [line for line in done.stderr.splitlines() if "87" in line]
    assert GAVE_UP in line and "gave up" in line
    assert document["gave_up"] == GAVE_UP and document["tracked"] and document["exact"] is False
    assert GAVE_UP in [process["gave_up"] for process in document["processes"]]
    (peak,) = [peak for peak in document["peaks"] if peak["type"] == "DRAM"]
    assert peak["bytes"] == 1 << 20 and peak["exact"] is False
    done, document = report(*check, "--", family, "-clean", who, "-fail")
    assert done.returncode == 3  # its own code stays
    assert "leaks: not known" in done.stderr and "≥ 1.0 MiB" in done.stderr
    assert report("--no-require-tracking", *check[:1], *check[1:], "--", family, "-clean", who)[0].returncode == (
        2 if "--require-tracking" in check else 0)


def test_a_leak_is_a_leak_where_tracking_gave_up(report, family):
    done, document = report("--fail-on-leak", "--", family, "-gaveup", "-leak")
    assert done.returncode == 86 and "leaks: at least 1 buffer" in done.stderr
    assert document["leaked"] and document["gave_up"] == GAVE_UP


def test_who_gave_up_before_anything_was_seen_is_seen(report, family):
    done, document = report("--require-tracking", "--", family, "-gaveup-first")
    assert done.returncode == 87 and "libmiddle.so: nothing is known" in done.stderr
    assert document["tracked"] and document["gave_up"] == "libmiddle.so: nothing is known"


def test_who_gave_up_and_still_runs_is_seen(report, family, tmp_path):
    """A daemon that outlives the command is not judged, but what it says of itself counts."""
    done, document = report("-q", "--fail-on-leak", "--", "sh", "-c",
                            f"{family} -gaveup -wait >{tmp_path}/said 2>/dev/null </dev/null & "
                            f"while ! grep -q waiting {tmp_path}/said; do sleep 0.01; done; echo $! >{tmp_path}/pid")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert done.returncode == 87 and GAVE_UP in done.stderr
    assert document["still_running"] == 1


def test_a_recording_of_a_process_that_gave_up_says_so(ttmem, family, tmp_path):
    """Files have it, too: its totals are bounds, and a budget cannot be checked with it."""
    file, run = tmp_path / "file.ttmem", tmp_path / "run.json"
    assert ttmem("run", "-q", "--record", file, "--json", run, "--", family, "-clean", "-gaveup").returncode == 0
    (process,) = json.loads(ttmem("ps", "--from", file, "--json").stdout)["processes"]
    assert process["gave_up"] == GAVE_UP and process["exact"] is False
    for source in (file, run):
        done = ttmem("check", "--limit", "DRAM=1G", source)
        assert done.returncode == 87 and GAVE_UP in done.stderr
        done = ttmem("check", "--limit", "DRAM=1K", source)
        assert done.returncode == 86



def test_every_view_marks_a_process_that_gave_up(ttmem, family, clean_env):
    with subprocess.Popen([family, "-leak", "-gaveup", "-wait"], stdout=subprocess.PIPE,
                          env={**clean_env, "TTMEM": "1"}) as program:
        assert program.stdout.readline() == b"waiting\n"
        documents = {}
        for name in ("smi", "ps", "buffers", "doctor"):
            documents[name] = json.loads(ttmem(name, "--json").stdout)
            jsonschema.validate(documents[name], read_schema(name))
        texts = {name: ttmem(name).stdout for name in ("smi", "ps")}
        program.kill()
    for name in ("smi", "ps"):
        (process,) = documents[name]["processes"]
        assert process["gave_up"] == GAVE_UP and process["exact"] is False
        assert process["devices"][0]["memory"]["DRAM"]["bound"] == "at_least"
        assert "≥1.0 MiB" in texts[name]
    assert documents["smi"]["devices"][0]["memory"]["DRAM"]["bound"] == "at_least"
    assert " lost " in texts["smi"] and "(gave up) family" in texts["ps"]
    (row,) = documents["buffers"]["untracked"]
    assert row == {"pid": program.pid, "comm": "family", "ended": False, "process_phase": None, "reason": GAVE_UP}
    errors = [finding for finding in documents["doctor"]["findings"] if finding["level"] == "error"]
    assert [finding["id"] for finding in errors] == ["tracking-gave-up"] and GAVE_UP in errors[0]["what"]
