# SPDX-License-Identifier: Apache-2.0
"""ttmem run: every descendant is checked, and the exit code says what scripts need to know."""

import json
import os
import resource
import signal
import subprocess

import jsonschema
import pytest

from conftest import LIMIT
from world import read_schema

# A program that does one thing per argument, each in a way that ends its process differently.
FAMILY = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static void grandchild(void)
{
	setsid();
	if (fork() == 0) {
		usleep(30000);
		ttmem_alloc(2, TTMEM_TRACE, 0x10, 7, "grandchild");
		_exit(0);
	}
	_exit(0);
}

/* A daemon's child: it has memory when this returns, and lives until the file FAMILY_END is there. */
static void daemonize(void)
{
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		abort();
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			close(0); close(1); close(2);
			ttmem_alloc(5, TTMEM_DRAM, 0x1000, 5, "daemon");
			if (write(ready[1], "", 1) != 1)
				abort();
			while (access(getenv("FAMILY_END"), F_OK) < 0)
				usleep(10000);
		}
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		abort();
}

static void one(const char *what)
{
	if (strcmp(what, "leak") == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 0x1000, 1 << 20, "weights");
	} else if (strcmp(what, "clean") == 0) {
		ttmem_alloc(0, TTMEM_L1, 0x2000, 4096, "clean");
		ttmem_free(0, TTMEM_L1, 0x2000);
	} else if (strcmp(what, "listed") == 0) {
		struct ttmem_alloc_args args = {.struct_size = sizeof(args), .type = TTMEM_KERNEL,
			.address = 1, .flags = TTMEM_FLAG_ALIAS, .name = "kernels"};
		ttmem_alloc_ex(&args);
		args.type = TTMEM_CB;
		args.size = 4096;
		args.name = "a view";
		ttmem_alloc_ex(&args);
	} else if (strcmp(what, "double") == 0) {
		ttmem_alloc(0, TTMEM_L1, 0x3000, 64, "twice");
		ttmem_free(0, TTMEM_L1, 0x3000);
		ttmem_free(0, TTMEM_L1, 0x3000);
	} else if (strcmp(what, "killed") == 0) {
		ttmem_alloc(1, TTMEM_CB, 0x4000, 100, "killed");
		kill(getpid(), SIGKILL);
	} else if (strcmp(what, "exec") == 0) {
		ttmem_alloc(3, TTMEM_DRAM, 0x5000, 10, "before exec");
		execlp("sleep", "sleep", "0.1", NULL);
	} else if (strcmp(what, "setsid") == 0) {
		grandchild();
	} else if (strcmp(what, "many") == 0) {
		for (int i = 0; i < 200; i++) {
			if (fork() == 0) {
				ttmem_alloc(4, TTMEM_DRAM, 0x1000, 1, "short life");
				kill(getpid(), SIGKILL);
			}
		}
		while (wait(NULL) > 0)
			;
	} else if (strcmp(what, "daemon") == 0) {
		daemonize();
	} else if (strcmp(what, "fail") == 0) {
		exit(3);
	} else if (strcmp(what, "wait") == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 0x6000, 1, "waiting");
		puts("waiting");
		fflush(stdout);
		pause();
	}
}

int main(int argc, char **argv)
{
	/* "-x" does it here, "x" in a child. */
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			one(argv[i] + 1);
		else if (fork() == 0) {
			one(argv[i]);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
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
            schema = read_schema("run")
            jsonschema.validate(document, schema)
        return done, document

    return run


def labels(leak):
    """A site's names, each with its type."""
    return [f"{leak['type']} {name['name']}" for name in leak["names"]]


def sites(document):
    """By type and name; each from one place only."""
    found = {}
    for leak in document["leaks"]:
        assert leak["name_count"] == len(leak["names"])
        for label, name in zip(labels(leak), leak["names"]):
            assert label not in found
            found[label] = (name["bytes"], name["buffers"])
    return found


def test_every_kind_of_descendant_is_judged(report, family):
    done, document = report("--", family, "-leak", "-clean", "double", "killed", "exec", "setsid")
    assert done.returncode == 0
    assert sites(document) == {
        "DRAM weights": (1 << 20, 1),
        "CB killed": (100, 1),
        "DRAM before exec": (10, 1),
        "TRACE grandchild": (7, 1),
    }
    assert document["leaked_buffers"] == 4
    assert [i["kind"] for i in document["incidents"] if i["kind"] != "leak"] == ["double_free"]
    how = {p["buffers"][0]["name"]: p["how"] for p in document["processes"] if p["buffers"]}
    assert how == {"weights": "closed", "killed": "died", "before exec": "died", "grandchild": "died"}
    assert "DRAM weights" in done.stderr and "double_free" in done.stderr


def test_how_descendants_ended_is_told(report, compile_c):
    """Also of those that are not our children, and that their parent waits for only later."""
    program = compile_c(
        r"""
#include <signal.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>
int main(void)
{
	siginfo_t info;
	pid_t first = fork(), second;

	if (first == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 10, "killed");
		raise(SIGKILL);
	}
	second = fork();
	if (second == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 2, 20, "code");
		_exit(3);
	}
	waitid(P_PID, first, &info, WEXITED | WNOWAIT); /* they stay zombies */
	waitid(P_PID, second, &info, WEXITED | WNOWAIT);
	ttmem_alloc(0, TTMEM_DRAM, 3, 30, "last");
	return 0;
}
""",
        "family",
    )
    _, document = report("--", program)
    exits = {process["buffers"][0]["name"]: process["exit"] for process in document["processes"]}
    assert exits == {
        "killed": {"code": None, "signal": 9, "name": "SIGKILL"},
        "code": {"code": 3, "signal": None, "name": None},
        "last": {"code": 0, "signal": None, "name": None},
    }


def test_an_exec_ends_the_old_book(report, compile_c, tmp_path):
    """When it happens: the new program lives on, longer than ttmem takes to hear of it."""
    program = compile_c(
        """
#include <ttmem/ttmem.h>
#include <unistd.h>
int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 1, 10, "before exec");
	execlp("sh", "sh", "-c", "sleep 1; date +%s%N >later; exit 3", NULL);
}
""",
        "execs",
    )
    done, document = report("--", program, cwd=tmp_path)
    assert done.returncode == 3
    (process,) = document["processes"]
    assert (process["how"], process["exec"], process["exit"]) == ("died", True, None)
    assert process["ended_ns"] < int((tmp_path / "later").read_text())
    assert sites(document) == {"DRAM before exec": (10, 1)}


def test_few_descriptors_lose_no_book(report, family, tmp_path):
    """Thirty processes at once under a soft limit that would not do: it is raised, not for them."""
    script = tmp_path / "crowd.sh"
    script.write_text(
        f"ulimit -Sn; for i in $(seq 30); do '{family}' -leak -wait >>said & pids=\"$pids $!\"; done\n"
        "until [ $(wc -l <said) = 30 ]; do sleep 0.05; done; kill $pids; wait; exit 0\n"
    )
    done, document = report(
        "--fail-on-leak", "--", "sh", script, cwd=tmp_path, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
    )
    assert document["refused"] == 0
    assert sites(document)["DRAM weights"] == (30 << 20, 30)
    assert done.stdout.splitlines()[0] == "40"


def test_processes_killed_right_after_their_first_event_are_reported(report, family):
    # Without stacks, which are most of the time that such a process takes.
    _, document = report("--", family, "-many", env={"TTMEM_STACKS": "off"})
    assert sites(document) == {"DRAM short life": (200, 200)}
    assert document["refused"] == 0


def test_exit_codes(report, family, tmp_path):
    def code(*args):
        return report(*args)[0].returncode

    assert code("--", family, "-clean") == 0
    assert code("--fail-on-leak", "--", family, "-clean") == 0
    assert code("--fail-on-leak", "--", family, "leak") == 86
    assert code("--", family, "leak") == 0
    assert code("--fail-on-leak", "--", family, "-leak", "-fail") == 3
    assert code("--", family, "-killed") == 128 + signal.SIGKILL
    assert code("--", tmp_path / "no-such-program") == 127
    assert code("--", tmp_path) == 126
    assert code() == 2
    assert code("--ignore", "L2", "--", "true") == 2


def test_a_check_of_what_was_not_tracked_does_not_pass(ttmem, report, family, tmp_path):
    off = ("env", "TTMEM=0", family, "-leak")
    for command in (off, ("true",)):
        done, document = report("--fail-on-leak", "--", *command)
        assert (done.returncode, document["tracked"], document["leaked"]) == (87, False, False)
        assert "ttmem run: nothing was tracked" in done.stderr and "leaks: not known" in done.stderr
    known = tmp_path / "known.json"
    assert ttmem("run", "-q", "--json", known, "--", family, "leak").returncode == 0
    assert json.loads(known.read_text())["tracked"] is True
    assert report("--baseline", known, "--", *off)[0].returncode == 87
    assert report("--require-tracking", "--", *off)[0].returncode == 87
    summary = tmp_path / "summary.md"
    done = ttmem("run", "-q", "--fail-on-leak", "--markdown", summary, "--", *off)
    assert done.returncode == 87
    assert len(done.stderr.splitlines()) == 1 and "nothing was tracked" in done.stderr
    assert "nothing was tracked" in summary.read_text() and "no new leak" not in summary.read_text()


def test_tracking_is_required_only_by_checks_of_what_succeeded(ttmem, report, family, tmp_path):
    def code(*args):
        return report(*args)[0].returncode

    assert code("--", "true") == 0
    assert code("--no-require-tracking", "--fail-on-leak", "--", "true") == 0
    assert code("--no-require-tracking", "--fail-on-leak", "--", family, "leak") == 86
    assert code("--require-tracking", "--", family, "-clean") == 0
    assert code("--fail-on-leak", "--", "false") == 1
    assert code("--fail-on-leak", "--", tmp_path / "no-such-program") == 127
    assert code("--fail-on-leak", "--", tmp_path) == 126
    assert code("--require-tracking", "--no-require-tracking", "--", "true") == 2
    for own in (1, 87):
        done = ttmem("run", "-q", "--fail-on-leak", "--", "sh", "-c", f"exit {own}")
        assert (done.returncode, done.stderr) == (own, "")


def test_stacks_are_taken_unless_they_are_off(report, family, clean_env):
    done, document = report("--", family, "-leak")
    (leak,) = document["leaks"]
    functions = [frame["function"] for frame in leak["stacks"][0]["stack"]]
    assert functions[:2] == ["one", "main"]
    assert "one" in done.stderr and "main" in done.stderr
    done, document = report("--", family, "-leak", env={**clean_env, "TTMEM_STACKS": "off"})
    assert document["leaks"][0]["stacks"] == []


def test_ignore_and_baseline(ttmem, report, family, tmp_path):
    done, document = report("--fail-on-leak", "--ignore", "CB", "--", family, "killed")
    assert (done.returncode, document["ignored_buffers"], document["leaks"]) == (0, 1, [])

    known = tmp_path / "known.json"
    assert ttmem("run", "-q", "--json", known, "--", family, "leak").returncode == 0
    again = ("--fail-on-leak", "--baseline", known, "--", family)
    assert report(*again, "leak")[0].returncode == 0
    done, document = report(*again, "leak", "killed")
    assert done.returncode == 86
    assert {label: leak["known"] for leak in document["leaks"] for label in labels(leak)} == {
        "DRAM weights": True,
        "CB killed": False,
    }
    # Twice as much at a known site is a new leak.
    assert report(*again, "leak", "leak")[0].returncode == 86

    known.write_text("{}")
    done = ttmem("run", "--baseline", known, "--", family)
    assert done.returncode == 2 and "ttmem.run/1" in done.stderr
    known.write_text("not json")
    assert ttmem("run", "--baseline", known, "--", family).returncode == 2


MOVING = """
#include <stdlib.h>
#include <ttmem/ttmem.h>
%s
static __attribute__((noinline)) void one(void) { ttmem_alloc(0, 0, 1, 64, NAME); __asm__(""); }
static __attribute__((noinline)) void two(void) { ttmem_alloc(0, 0, 1, 64, NAME); __asm__(""); }
int main(int argc, char **argv) { if (argc > 1) two(); else one(); return 0; }
"""


def older(document, with_calls=True):
    """A report as older versions wrote it: a site for each name, which is part of its text."""
    leaks = []
    for leak in document["leaks"]:
        for name in leak["names"]:
            site = leak["type"] + (f" {name['name']}" if name["name"] else "")
            if with_calls and leak["calls"]:
                site += f": {leak['calls']}"
            leaks.append({"site": site, "type": leak["type"], "known": False, "stacks": [], **name})
    return {**document, "leaks": leaks}


@pytest.mark.parametrize("name", ["NULL", '"named"'])
def test_a_site_is_a_function_and_not_a_line(ttmem, compile_c, clean_env, tmp_path, name):
    known, plain, old = (tmp_path / file for file in ("known.json", "plain.json", "old.json"))
    program = compile_c(f"#define NAME {name}\n" + MOVING % "", "program")
    off = {**clean_env, "TTMEM_STACKS": "off"}

    def run(*words, baseline=known, env=clean_env):
        words = ("--fail-on-leak", "--baseline", baseline, "--", *words)
        return ttmem("run", "-q", *words, env=env).returncode

    assert ttmem("run", "-q", "--json", known, "--", program).returncode == 0
    (leak,) = json.loads(known.read_text())["leaks"]
    assert leak["key"] == "DRAM: program.c:one <- program.c:main"
    assert leak["name"] == (None if name == "NULL" else "named")
    assert leak["site"]["function"] == "one" and leak["site"]["file"].endswith("/program.c")
    assert run(program) == 0
    compile_c(f"#define NAME {name}\n" + MOVING % "\n\n\n", "program")
    assert run(program) == 0
    assert run(program, "two") == 86
    assert run(program, env=off) == run(program, "two", env=off) == 0
    old.write_text(json.dumps(older(json.loads(known.read_text()))))
    assert run(program, baseline=old) == 0 and run(program, "two", baseline=old) == 86

    # Without stacks, and as files were written when they did not count: by type and name.
    assert ttmem("run", "-q", "--json", plain, "--", program, env=off).returncode == 0
    old.write_text(json.dumps(older(json.loads(known.read_text()), with_calls=False)))
    for baseline in (plain, old):
        assert run(program, "two", baseline=baseline) == 0
        document = json.loads(baseline.read_text())
        document["leaks"][0]["bytes"] -= 1
        baseline.write_text(json.dumps(document))
        assert run(program, baseline=baseline) == 86


@pytest.mark.parametrize("where", ["", "-"])
def test_buffers_without_memory_are_no_leak(report, family, where):
    done, document = report("--fail-on-leak", "--", family, f"{where}listed", "-clean")
    assert done.returncode == 0
    assert "leaks: none" in done.stderr
    assert "kernels" not in done.stderr and "a view" not in done.stderr
    assert (document["leaked"], document["leaked_buffers"], document["leaks"]) == (False, 0, [])
    assert all(not p["buffers"] and p["bytes"] == 0 for p in document["processes"])
    done, document = report("--fail-on-leak", "--", family, f"{where}listed", "-leak")
    assert (done.returncode, document["leaked_buffers"]) == (86, 1)


def test_output_of_the_command_is_its_own(ttmem):
    done = ttmem("run", "--", "sh", "-c", "echo out; echo err >&2; cat", input="typed\n")
    assert done.stdout == "out\ntyped\n"
    assert done.stderr.startswith("err\n")
    assert "nothing was reported" in done.stderr
    assert ttmem("run", "-q", "--", "true").stderr == ""


def test_nested_runs_both_report(ttmem, report, family, build, tmp_path):
    inner = tmp_path / "inner.json"
    done, outer = report(
        "--", build / "src/cli/ttmem", "run", "--json", inner, "--", family, "leak"
    )
    assert done.returncode == 0
    assert sites(outer) == sites(json.loads(inner.read_text())) == {"DRAM weights": (1 << 20, 1)}


def test_descendants_still_running_are_not_judged(report, family, tmp_path):
    end = tmp_path / "end"
    _, document = report("--", family, "-daemon", env={"FAMILY_END": str(end)})
    end.touch()
    assert document["still_running"] == 1
    assert document["leaks"] == []


def test_descendants_without_a_book_are_counted(report):
    # Seen if they live while ttmem looks, which it does twenty times a second.
    _, document = report("--", "sh", "-c", "sleep 1.5 & sleep 1.5; wait")
    assert document["without_book"] == 3


def test_peaks(report, family):
    _, document = report("--", family, "-clean", "-leak", "leak")
    peaks = {(p["device"], p["type"]): (p["bytes"], p["exact"]) for p in document["peaks"]}
    assert peaks[0, "L1"] == (4096, True)
    assert peaks[0, "DRAM"][0] >= 1 << 20 and not peaks[0, "DRAM"][1]


def test_markdown_is_safe(ttmem, compile_c, tmp_path):
    program = compile_c(
        '#include <ttmem/ttmem.h>\nint main(void){ttmem_alloc(0,0,1,1,"a|b<script>`c`[d](e)\\n");}', "odd"
    )
    path = tmp_path / "summary.md"
    assert ttmem("run", "--markdown", path, "--", program).returncode == 0
    text = path.read_text()
    assert "<script>" not in text and "a&#124;b" in text and "&#91;d](e)" in text and "**new**" in text


def test_markdown_compares_with_the_base(ttmem, compile_c, tmp_path):
    program = compile_c(
        """#include <stdlib.h>
        #include <ttmem/ttmem.h>
        int main(int n, char **words) {
            ttmem_alloc(0, TTMEM_DRAM, 0x1000, (uint64_t)atoi(words[1]) << 20, "cache");
            ttmem_alloc(1, n > 2 ? TTMEM_TRACE : TTMEM_L1, 0x1000, 4096, "tile");
            ttmem_free(1, TTMEM_ANY, 0x1000);
        }""", "base"
    )  # fmt: skip
    base, summary = tmp_path / "base.json", tmp_path / "summary.md"
    assert ttmem("run", "-q", "--json", base, "--", program, 2).returncode == 0

    def text(*words):
        ttmem("run", "-q", "--baseline", base, "--markdown", summary, "--", program, *words)
        return summary.read_text()

    same = text(2)
    assert "leaked: 2.0 MiB, base 2.0 MiB: same\n" in same
    assert "| 0 | DRAM | 2.0 MiB | 2.0 MiB | same |\n| 1 | L1 | 4.0 KiB | 4.0 KiB | same |\n" in same
    more = text(3, "trace")
    assert "leaked: 3.0 MiB, base 2.0 MiB: **+1.0 MiB** (+50.0 %)\n" in more
    assert "| 0 | DRAM | 3.0 MiB | 2.0 MiB | **+1.0 MiB** (+50.0 %) |\n" in more
    assert "| 1 | L1 | 0 B | 4.0 KiB | -4.0 KiB (-100.0 %) |\n" in more
    assert "| 1 | TRACE | 4.0 KiB | 0 B | **+4.0 KiB** |\n" in more


def test_sigterm_reaches_the_command(build, clean_env, family, tmp_path):
    path = tmp_path / "report.json"
    run = subprocess.Popen(
        [build / "src/cli/ttmem", "run", "-q", "--json", path, "--", family, "-wait"], env=clean_env,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with run.stdout:
        assert run.stdout.readline() == "waiting\n"
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=LIMIT) == 128 + signal.SIGTERM
    assert sites(json.loads(path.read_text())) == {"DRAM waiting": (1, 1)}


def test_sigint_from_another_process_reaches_the_command(build, clean_env):
    run = subprocess.Popen(
        [build / "src/cli/ttmem", "run", "-q", "--", "sh", "-c", f"echo waiting; exec sleep {LIMIT}"],
        env=clean_env, stdout=subprocess.PIPE, text=True,
        # A shell's background jobs ignore it, and so would everything below them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with run.stdout:
        assert run.stdout.readline() == "waiting\n"
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=LIMIT) == 128 + signal.SIGINT


def test_hostile_offers_are_refused_and_counted(report, tmp_path):
    """Garbage on the offered socket, and a book that is none: refused, counted, nothing else."""
    script = tmp_path / "hostile.py"
    script.write_text(
        """
import array, os, socket
path = os.environ["TTMEM_OFFER"].split(":")[0]
def send(data, fds=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    return s
offer = (0x464F5454).to_bytes(4, "little") + (1).to_bytes(4, "little") + bytes([16, 0, 0, 0]) + bytes(4)
fake = os.memfd_create("ttmem-book")
keep = [send(b"x"), send(offer), send(offer, [0]), send(offer, [fake]), send(offer + b"y" * 100, [fake])]
keep += [send(offer, [os.open("/dev/null", os.O_RDWR)] * 2)]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(path); keep.append(s)
"""
    )
    done, document = report("--", "/usr/bin/python3", script)
    assert done.returncode == 0
    assert document["refused"] == 7  # six messages, and one who said nothing
    assert document["leaks"] == []


def test_run_leaves_no_files_behind(clean_env, report, family):
    report("--", family, "leak")
    assert os.listdir(clean_env["XDG_RUNTIME_DIR"]) == []
