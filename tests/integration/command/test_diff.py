# SPDX-License-Identifier: Apache-2.0
"""ttmem diff: two runs are compared by call site, and moved lines are no difference."""

import json
import os
import pty
import subprocess

import pytest

from conftest import LIMIT
from world import check_schema

# What a program allocates is told by its arguments; MOVED only moves its lines.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>
%s
__attribute__((noinline)) static void weights(int count)
{
	for (int i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "layer.%%d", i);
		ttmem_alloc(0, TTMEM_DRAM, 0x1000 + 0x1000ull * i, 4096, name);
	}
}

__attribute__((noinline)) static void cache(int size)
{
	ttmem_phase_push("warm up");
	ttmem_alloc(1, TTMEM_L1, 0x100000, size, "kv");
	ttmem_phase_pop();
}

int main(int argc, char **argv)
{
	weights(atoi(argv[1]));
	if (argc > 2)
		cache(atoi(argv[2]));
	/* What is freed again counts for the peak only. */
	if (argc > 3) {
		ttmem_alloc(0, TTMEM_DRAM, 0x900000, atoi(argv[3]), "scratch");
		ttmem_free(0, TTMEM_DRAM, 0x900000);
	}
	return 0;
}
"""


VALUES = ("peak", "end", "buffers", "allocs", "frees", "temporaries")


@pytest.fixture
def programs(compile_c):
    """The same program twice, the second with all lines moved."""
    return {
        "here": compile_c(PROGRAM % "", "here", flags=["-O0", "-g", "-fno-omit-frame-pointer"]),
        "moved": compile_c(
            PROGRAM % ("\n" * 40), "moved", flags=["-O0", "-g", "-fno-omit-frame-pointer"]
        ),
    }


@pytest.fixture
def runs(ttmem, programs, tmp_path):
    """Call as runs("a", "here", 20, 4096): the report of such a run."""

    def run(name, program, *args, env=None):
        path = tmp_path / f"{name}.json"
        ttmem("run", "--json", path, "--", programs[program], *args, env=env)
        return path

    return run


@pytest.fixture
def diff(ttmem):
    """Call as diff(a, b): the document, which conforms to its schema."""

    def run(*args):
        done = ttmem("diff", "--json", *args)
        assert done.returncode == 0, done.stderr
        return check_schema(json.loads(done.stdout))

    return run


def normalized(path):
    """Files of stacks without the names that the test gave the two programs' sources."""
    text = path.read_text()
    path.write_text(text.replace("moved.c", "program.c").replace("here.c", "program.c"))
    return path


def test_a_run_does_not_differ_from_itself(runs, diff, ttmem):
    a = runs("a", "here", 5, 4096, 64)
    document = diff(a, a)
    assert document["rows"] == []
    assert document["totals"]
    for total in document["totals"]:
        for value in ("peak", "end", "buffers"):
            assert total[value]["change"] == 0
    assert "no difference" in ttmem("diff", a, a).stdout


def test_moved_lines_are_no_difference(runs, diff):
    a = normalized(runs("a", "here", 5, 4096))
    b = normalized(runs("b", "moved", 5, 4096))
    assert diff(a, b)["rows"] == []


def test_the_largest_change_comes_first(runs, diff):
    a = runs("a", "here", 5, 100)
    b = runs("b", "here", 7, 100000)
    document = diff(a, b)
    first, second = document["rows"]
    assert first["type"] == "L1" and first["key"].startswith("here.c:cache <- here.c:main")
    assert first["end"] == {"before": 100, "after": 100000, "change": 99900}
    assert first["site"]["function"] == "cache" and first["site"]["line"] is None
    assert second["type"] == "DRAM" and second["end"]["change"] == 2 * 4096
    assert second["buffers"] == {"before": 5, "after": 7, "change": 2}
    assert first["allocs"] is None, "a report has no counts"


def test_the_peak_counts_what_was_freed(runs, diff):
    a = runs("a", "here", 5, 100)
    b = runs("b", "here", 5, 100, 777)
    document = diff(a, b)
    dram = next(t for t in document["totals"] if t["type"] == "DRAM")
    assert dram["peak"]["change"] == 777 and dram["end"]["change"] == 0


def test_the_reverse_has_the_opposite_sign(runs, diff):
    a = runs("a", "here", 3, 100)
    b = runs("b", "here", 9, 50, 10)
    there, back = diff(a, b), diff(b, a)
    for key in ("rows", "totals"):
        assert len(there[key]) == len(back[key]) > 0
        for x, y in zip(there[key], back[key]):
            for value in ("peak", "end", "buffers"):
                if x[value] is not None:
                    assert x[value]["change"] == -y[value]["change"]


def test_rows_add_up_to_the_totals(runs, diff):
    a = runs("a", "here", 3, 100)
    b = runs("b", "here", 9, 50, 10)
    for by in ("site", "phase", "name"):
        document = diff(a, b, "--by", by)
        assert document["by"] == by
        for value in ("end", "buffers"):
            for kind in ("DRAM", "L1"):
                rows = [r[value]["change"] for r in document["rows"] if r["type"] == kind]
                totals = [t[value]["change"] for t in document["totals"] if t["type"] == kind]
                assert sum(rows) == sum(totals)


def test_by_phase_and_by_name(runs, diff):
    a = runs("a", "here", 1, 100)
    b = runs("b", "here", 2, 300)
    assert {(r["type"], r["key"]) for r in diff(a, b, "--by", "phase")["rows"]} == {
        ("L1", "warm up"),
        ("DRAM", None),
    }
    assert {r["key"] for r in diff(a, b, "--by", "name")["rows"]} == {"kv", "layer.1"}


def test_without_stacks_names_without_numbers_are_the_sites(runs, diff):
    env = {"TTMEM_STACKS": "off"}
    a = runs("a", "here", 2, 100, env=env)
    b = runs("b", "here", 4, 100, env=env)
    (row,) = diff(a, b)["rows"]
    assert row["key"] == "layer.#" and row["buffers"]["change"] == 2


def test_one_without_stacks_is_noted(runs, diff):
    a = runs("a", "here", 2, env={"TTMEM_STACKS": "off"})
    b = runs("b", "here", 2)
    assert "the first has no call stacks" in diff(a, b)["notes"][0]
    assert "the second has no call stacks" in diff(b, a)["notes"][0]


@pytest.mark.parametrize(
    ("limit", "code"), [("8191", 86), ("8192", 0), ("49%", 86), ("50%", 0), ("1G", 0), ("0%", 86)]
)
def test_fail_above(runs, ttmem, limit, code):
    a = runs("a", "here", 4)
    b = runs("b", "here", 6)  # 8192 bytes or half as much more
    done = ttmem("diff", a, b, "--fail-above", limit)
    assert done.returncode == code, done.stderr
    assert ("--fail-above" in done.stderr) == (code == 86)
    assert json.loads(ttmem("diff", a, b, "--json", "--fail-above", limit).stdout)["exceeded"] == (
        code == 86
    )
    assert ttmem("diff", b, a, "--fail-above", limit).returncode == 0, "shrinking is fine"


def test_fail_above_wants_something_tracked(runs, ttmem, tmp_path):
    a = runs("a", "here", 4)
    ttmem("run", "--json", tmp_path / "b.json", "--", "true")
    done = ttmem("diff", a, tmp_path / "b.json", "--fail-above", "1G")
    assert done.returncode == 87 and "nothing was tracked" in done.stderr
    assert ttmem("diff", a, tmp_path / "b.json").returncode == 0


@pytest.mark.parametrize("limit", ["", "many", "-5%", "5%%", "nan%", "%"])
def test_a_limit_that_is_none_is_a_mistake(runs, ttmem, limit):
    a = runs("a", "here", 4)
    assert ttmem("diff", a, a, "--fail-above", limit).returncode == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "line 1"),
        ("{", "line 1"),
        ("[]", "neither a recording nor a report"),
        ('{"schema": "ttmem.smi/1"}', "neither a recording nor a report"),
        ('{"schema": "ttmem.run/1", "peaks": [], "processes": 3}', "neither a recording"),
        (
            '{"schema": "ttmem.run/1", "processes": [], "peaks": [{"device": 1024, "type": "L1"}]}',
            "neither a recording",
        ),
        (
            '{"schema": "ttmem.run/1", "processes": [], "peaks": [{"device": 0, "type": "L9"}]}',
            "neither a recording",
        ),
    ],
)
def test_a_bad_file_fails_with_one_line(runs, ttmem, tmp_path, content, why):
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    a = runs("a", "here", 1)
    for pair in ((a, bad), (bad, a)):
        done = ttmem("diff", *pair)
        assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1
        assert done.stdout == ""


def test_moments_are_of_recordings_only(runs, ttmem, tmp_path):
    a = runs("a", "here", 1)
    done = ttmem("diff", f"{a}@peak", a)
    assert done.returncode == 1 and "only a recording has moments" in done.stderr
    # A file may have such a name.
    other = tmp_path / "run@peak"
    other.write_bytes(a.read_bytes())
    assert ttmem("diff", other, a).returncode == 0


def test_two_are_wanted(ttmem):
    for args in ((), ("a.json",), ("a.json", "b.json", "c.json")):
        done = ttmem("diff", *args)
        assert done.returncode == 2 and "expects two files" in done.stderr
    assert ttmem("diff", "a", "b", "--by", "thread").returncode == 2


def peak_report(path, load, kv, known):
    """A report that tells what its peak was made of, @known bytes of @load + @kv at least."""
    site = {"function": "load", "file": "m.py", "line": 3, "module": None}
    groups = [
        {"key": f"DRAM: run.py:{load}:main -> m.py:3:load", "site": site, "bytes": load},
        {"key": "DRAM kv.#", "site": None, "names": [{"name": "kv.7"}], "bytes": kv},
    ]
    peak = {"device": 0, "type": "DRAM", "bytes": load + kv, "exact": True}
    peak["at_peak"] = {"groups": groups} if known else None
    path.write_text(
        json.dumps({"schema": "ttmem.run/1", "tracked": True, "processes": [], "peaks": [peak]})
    )
    return path


def test_a_report_may_tell_what_its_peak_was_made_of(diff, tmp_path):
    a = peak_report(tmp_path / "a.json", 100, 20, known=True)
    b = peak_report(tmp_path / "b.json", 107, 50, known=True)
    document = diff(a, b)
    assert [(r["key"], r["peak"]["change"]) for r in document["rows"]] == [
        ("kv.#", 30),
        ("m.py:load <- run.py:main", 7),
    ]
    b = peak_report(tmp_path / "c.json", 107, 50, known=False)
    document = diff(a, b)
    assert {r["key"]: r["peak"]["change"] for r in document["rows"]} == {
        "(not known)": 157,
        "m.py:load <- run.py:main": -100,
        "kv.#": -20,
    }
    assert sum(r["peak"]["change"] for r in document["rows"]) == 37


# Recordings


@pytest.fixture
def recordings(ttmem, programs, tmp_path):
    """Call as recordings("a", "here", 20): the recording and the report of such a run."""

    def run(name, program, *args):
        files = tmp_path / f"{name}.ttrec", tmp_path / f"{name}.json"
        ttmem("run", "--record", files[0], "--json", files[1], "--", programs[program], *args)
        return files

    return run


def test_a_recording_and_the_report_of_the_same_run_agree(recordings, diff):
    recording, report = recordings("a", "here", 5, 4096, 64)
    for by in ("site", "phase", "name"):
        document = diff(recording, report, "--by", by)
        assert document["rows"] == []
        assert (document["before"]["kind"], document["after"]["kind"]) == ("recording", "run")
        for total in document["totals"]:
            for value in ("peak", "end", "buffers"):
                assert total[value]["change"] == 0
            assert total["allocs"] is None, "a report has no counts"


NO_MAIN = r"""
#include <ttmem/ttmem.h>

static void __attribute__((noinline)) load(int size)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, size, "weights");
	ttmem_free(0, TTMEM_DRAM, 0x1000);
}

int __attribute__((noinline)) work(void)
{
	load(4096);
	load(64);
	return 0;
}

int main(void)
{
	return work();
}
"""


def test_they_agree_where_main_has_left_the_stack(ttmem, compile_c, diff, tmp_path):
    """It calls its last function by a jump; then what started the program is in the stack."""
    program = compile_c(NO_MAIN, "nomain", flags=["-O2", "-g", "-fno-omit-frame-pointer"])
    recording, report = tmp_path / "a.ttrec", tmp_path / "a.json"
    ttmem("run", "--record", recording, "--json", report, "--", program)
    assert diff(recording, report)["rows"] == []
    (peak,) = json.loads(report.read_text())["peaks"]
    (group,) = peak["at_peak"]["groups"]
    assert group["calls"].startswith("nomain.c:load <- nomain.c:work")


def test_a_recording_does_not_differ_from_itself(recordings, diff):
    recording, _ = recordings("a", "here", 5, 4096, 64)
    document = diff(recording, recording)
    assert document["rows"] == [] and document["exact"]
    for total in document["totals"]:
        for value in VALUES:
            assert total[value]["change"] == 0


def test_recordings_count_allocations_and_temporaries(recordings, diff):
    a, _ = recordings("a", "here", 5, 100)
    b, _ = recordings("b", "here", 5, 100, 777)
    (row,) = diff(a, b)["rows"]
    assert row["key"].startswith("here.c:main")
    assert row["allocs"]["change"] == row["frees"]["change"] == 1
    # Freed at once, however busy the machine is: its life is one call long or it was interrupted.
    assert row["temporaries"]["change"] in (0, 1)
    # The peak was when the freed one was there, and it is known of which site that is.
    assert row["peak"] == {"before": 0, "after": 777, "change": 777}
    assert row["end"]["change"] == 0


def test_rows_of_recordings_add_up_and_reverse(recordings, diff):
    a, _ = recordings("a", "here", 3, 100)
    b, _ = recordings("b", "here", 9, 50, 10)
    there, back = diff(a, b), diff(b, a)
    assert len(there["rows"]) == len(back["rows"]) == 3
    for x, y in zip(there["rows"], back["rows"]):
        assert (x["type"], x["key"]) == (y["type"], y["key"])
        for value in VALUES:
            assert x[value]["change"] == -y[value]["change"]
    for value in VALUES:
        for kind in ("DRAM", "L1"):
            rows = [r[value]["change"] for r in there["rows"] if r["type"] == kind]
            totals = [t[value]["change"] for t in there["totals"] if t["type"] == kind]
            assert sum(rows) == sum(totals), (value, kind)


def test_two_moments_of_one_run(recordings, diff):
    recording, _ = recordings("a", "here", 3, 100, 777)
    document = diff(f"{recording}@start", f"{recording}@peak")
    assert (document["before"]["at"], document["after"]["at"]) == ("start", "peak")
    dram = next(t for t in document["totals"] if t["type"] == "DRAM")
    assert dram["end"] == {"before": 0, "after": 3 * 4096 + 777, "change": 3 * 4096 + 777}
    assert dram["peak"] is None, "a moment is not a peak"
    # Seconds are moments, too.
    assert diff(f"{recording}@0.0", f"{recording}@start")["rows"] == []
    # What is there at the peak and not at the end is what was freed.
    (row,) = [r for r in diff(f"{recording}@peak", recording)["rows"] if r["end"]["change"]]
    assert row["end"]["change"] == -777 and row["buffers"]["change"] == -1


def test_a_moment_that_is_none_fails_with_one_line(recordings, ttmem):
    recording, _ = recordings("a", "here", 3)
    done = ttmem("diff", f"{recording}@nobody", recording)
    assert done.returncode == 1 and done.stdout == ""
    assert "nobody" in done.stderr and done.stderr.count("\n") == 1


def test_a_recording_that_is_torn_is_compared_as_far_as_it_goes(recordings, ttmem, tmp_path):
    recording, _ = recordings("a", "here", 3)
    torn = tmp_path / "torn.ttrec"
    torn.write_bytes(recording.read_bytes()[:-100])
    done = ttmem("diff", recording, torn, "--json")
    assert done.returncode == 0 and not json.loads(done.stdout)["after"]["exact"]


def test_fail_above_judges_recordings(recordings, ttmem):
    a, _ = recordings("a", "here", 4)
    b, _ = recordings("b", "here", 4, 0, 5000)  # only the peak has grown
    assert ttmem("diff", a, b, "--fail-above", "4999").returncode == 86
    assert ttmem("diff", a, b, "--fail-above", "5000").returncode == 0
    # A moment has no peak that another one's could have grown from.
    assert ttmem("diff", f"{b}@end", b, "--fail-above", "0").returncode == 0


def test_colours_on_a_terminal_only(runs, ttmem, build, clean_env):
    a = runs("a", "here", 2, 100)
    b = runs("b", "here", 4, 50)
    assert "\x1b" not in ttmem("diff", a, b).stdout
    ours, theirs = pty.openpty()
    env = {**clean_env, "TERM": "xterm", "TTMEM_PAGER": "cat"}
    program = build / "src" / "cli" / "ttmem"
    subprocess.run([program, "diff", a, b], stdout=theirs, env=env, check=True, timeout=LIMIT)
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    assert b"\x1b[31m" in shown and b"\x1b[32m" in shown, "growth is red, the rest green"
