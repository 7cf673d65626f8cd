# SPDX-License-Identifier: Apache-2.0
"""./dev mutate: measures the tests by small faults in the code that they test.

Each mutant is put into a copy of a commit, in build-mutate/, and is built there. It is killed by the first
test that fails with it and passes without it: of the layer's unit, hostile and proof tests, or else of the transcripts
in tests/golden (the net), or else of the integration tests in TABLE, or else of the layer's tests with sanitizers (as
./dev sanitize memory runs them). A mutant that does not compile, or whose object code is the same, does not count.
"""

import argparse
import ctypes
import fcntl
import hashlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mutants import described, mutants_of, mutated

ROOT = Path.cwd()
FOLDER = ROOT / "build-mutate"
TREE = FOLDER / "tree"
BUILD = TREE / "build"
SANITIZED = TREE / "build-asan"
USUAL = FOLDER / "usual.json"

# Seconds of a test program, and of a file of integration tests; one that hangs has failed. Once a test has passed, the
# limit is ten times as long as it took.
UNIT_LIMIT = 120
SANITIZED_LIMIT = 600
FILE_LIMIT = 300
NET_LIMIT = 600
LIMIT_MIN = 20

STAGES = ("unit", "net", "integration", "sanitizer")

# Which integration tests concern a folder, or the files in it whose names begin so: the longest that fits. Below
# tests/integration.
TABLE = {
    "base": ["command/test_command.py", "command/test_run.py", "daemon/test_daemon.py"],
    "base/files": ["trust/test_files.py", "trust/test_recordings_kept.py", "command/test_record.py", "daemon/test_faults_disk.py"],
    "base/process": ["command/test_run.py", "daemon/test_settings.py", "daemon/test_exits.py", "trust/test_namespaces.py"],
    "base/threads": ["daemon/test_daemon.py", "daemon/test_faults.py"],
    "book": ["library/test_books.py", "library/test_leak_patterns.py", "library/test_spaces.py", "trust/test_book_files.py", "library/test_life_syscalls.py"],
    "wire": ["daemon/test_native.py", "daemon/test_native_http.py", "trust/test_doors.py"],
    "model": ["command/test_smi.py", "command/test_buffers.py", "command/test_map.py", "host/test_machines.py", "daemon/test_web_metrics.py"],
    "model/cards": ["host", "daemon/test_cards.py"],
    "answers": ["command/test_output.py", "command/test_smi_full.py", "daemon/test_daemon_http.py", "daemon/test_fleet.py"],
    "model/sites": ["library/test_sites.py", "command/test_buffers.py", "command/test_diff.py"],
    "symbol": ["library/test_lines.py", "library/test_names.py", "library/test_sites.py", "library/test_stacks.py", "trust/test_sandbox.py"],
    "source": ["host", "command/test_smi.py", "command/test_untracked.py", "trust/test_regions.py", "trust/test_devices.py"],
    "source/books": ["library/test_books.py", "command/test_peak.py", "command/test_smi.py", "command/test_watch.py", "trust/test_dead_books.py", "trust/test_hostile.py"],
    "source/fleet": ["command/test_hosts.py", "daemon/test_fleet.py"],
    "recording": ["command/test_record.py", "command/test_replay.py", "command/test_from.py", "command/test_report.py", "command/test_export_recordings.py", "command/test_top_recording.py"],
    "recording/json": ["command/test_report_serve.py", "command/test_from.py"],
    "recording/flight": ["daemon/test_flight.py", "command/test_black_box.py", "trust/test_recordings_kept.py"],
    "store": ["command/test_history.py", "daemon/test_leak_lists.py", "daemon/test_ended.py", "daemon/test_faults_disk.py", "daemon/test_peaks.py", "daemon/test_faults_counts.py"],
    "web": ["daemon/test_web.py", "daemon/test_web_limits.py", "daemon/test_web_stream.py", "daemon/test_daemon_http.py", "trust/test_open.py"],
    "web/export": ["daemon/test_web_metrics.py", "daemon/test_otlp.py", "daemon/test_otlp_hostile.py"],
    "daemon": ["daemon/test_daemon.py", "daemon/test_daemon_joining.py", "daemon/test_exits.py", "daemon/test_commands.py", "trust/test_shares.py"],
    "daemon/config": ["daemon/test_settings.py"],
    "daemon/custody": ["daemon/test_handover.py", "daemon/test_held.py", "daemon/test_systemd.py"],
    "daemon/fleet": ["daemon/test_fleet.py", "daemon/test_fleet_page.py"],
    "daemon/flight": ["daemon/test_flight.py", "daemon/test_moments.py"],
    "daemon/link": ["daemon/test_kept_books.py", "trust/test_links.py", "daemon/test_handover.py"],
    "daemon/native": ["daemon/test_native.py", "daemon/test_native_http.py", "daemon/test_daemon_regions.py", "trust/test_offers.py", "trust/test_shares.py"],
    "daemon/notify": ["daemon/test_faults.py", "daemon/test_daemon.py"],
    "daemon/playback": ["command/test_report_serve.py", "trust/test_playback.py"],
    "daemon/recorder": ["daemon/test_ended.py", "daemon/test_peaks.py", "daemon/test_leak_lists.py", "daemon/test_short_lived.py"],
    "lib": ["library", "python/test_python.py"],
    "lib/stack": ["library/test_stacks.py", "library/test_stacks_unwind.py", "library/test_lines.py", "python/test_python_stacks.py"],
    "metal": ["library/test_metal.py", "library/test_metal_preload.py", "library/test_metal_refused.py", "python/test_metal_lines.py"],
    "query": ["library/test_examples.py", "library/test_headers.py"],
    "sim": ["command/test_demo.py", "command/test_fit_shared.py"],
    "tui": ["command/test_top.py", "command/test_top_recording.py", "command/test_keys.py"],
    "legacy": ["daemon/test_old_clients.py", "daemon/test_old_servers.py", "command/test_analyze.py", "library/test_life_oldlogs.py"],
    "legacy/analyze": ["command/test_analyze.py", "command/test_analyze_ends.py"],
    "legacy/commands": ["daemon/test_old_servers.py", "daemon/test_unlisted.py"],
    "legacy/debug-log": ["library/test_life_oldlogs.py", "library/test_life_debug.py"],
    "legacy/program": ["daemon/test_handover.py", "daemon/test_log_order.py", "daemon/test_old_servers.py", "daemon/test_faults.py"],
    "legacy/server": ["daemon/test_old_clients.py", "daemon/test_old_servers.py", "daemon/test_handover.py", "trust/test_texts.py", "trust/test_shares.py"],
    "cli": ["command/test_command.py", "command/test_output.py", "command/test_selection.py", "command/test_completion.py"],
    "cli/bench": ["daemon/test_unlisted.py"],
    "cli/buffers": ["command/test_buffers.py", "command/test_output.py", "command/test_from.py"],
    "cli/demo": ["command/test_demo.py"],
    "cli/fit": ["command/test_map.py", "command/test_fit_shared.py"],
    "cli/growth": ["command/test_buffers.py", "command/test_from.py"],
    "cli/history": ["command/test_history.py", "command/test_command.py"],
    "cli/incidents": ["daemon/test_native.py", "command/test_from.py"],
    "cli/map": ["command/test_map.py", "command/test_fit_shared.py"],
    "cli/open": ["trust/test_open.py"],
    "cli/peak": ["command/test_peak.py", "command/test_from.py"],
    "cli/ps": ["command/test_selection.py", "command/test_output.py", "command/test_from.py"],
    "cli/status": ["daemon/test_native.py", "daemon/test_systemd.py"],
    "cli/top": ["command/test_top.py", "command/test_top_recording.py", "command/test_keys.py"],
    "cli/budget": ["command/test_budget.py", "command/test_budget_recordings.py"],
    "cli/diff": ["command/test_diff.py"],
    "cli/doctor": ["command/test_doctor.py", "command/test_doctor_machine.py"],
    "cli/export": ["command/test_export.py", "command/test_export_formats.py", "command/test_export_recordings.py"],
    "cli/leaks": ["daemon/test_leak_lists.py", "command/test_from.py"],
    "cli/record": ["command/test_record.py"],
    "cli/replay": ["command/test_replay.py"],
    "cli/report": ["command/test_report.py", "command/test_report_serve.py"],
    "cli/run": ["command/test_run.py", "command/test_run_close.py", "command/test_run_failed.py", "command/test_run_gave_up.py"],
    "cli/selftest": ["daemon/test_unlisted.py", "command/test_demo.py"],
    "cli/smi": ["command/test_smi.py", "command/test_smi_full.py"],
    "cli/watch": ["command/test_watch.py"],
}  # fmt: skip


def die(text):
    sys.exit(f"dev mutate: {text}")


running = set()  # processes that are waited for


def stop(*_):
    for process in list(running):
        os.killpg(process.pid, signal.SIGKILL)
    sys.exit("stopped")


def run(words, limit=None, **options):
    """(exit code, output). One that takes too long is ended with all that it has started; its code is None."""
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True, **options,
    ) as process:  # fmt: skip
        running.add(process)
        try:
            output = process.communicate(timeout=limit)[0]
        except BaseException as failure:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(failure, subprocess.TimeoutExpired):
                return None, "takes too long"
            raise
        finally:
            running.discard(process)
        return process.returncode, output


def end_orphans():
    """Ends what tests have left behind that ran into their limit; between tests nothing else is ours."""
    while children := Path("/proc/thread-self/children").read_text().split():
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


usual = {}  # the shortest time in which a test has passed; kept from run to run


class Late(str):
    """Why a test fails that was ended at its limit."""


is_patient = False  # a test that was late has all the time that there is


def run_test(name, most, words, **options):
    """As run(), within the time that the test may take."""
    start = time.monotonic()
    code, output = run(words, most if is_patient else min(most, max(LIMIT_MIN, 10 * usual.get(name, most))), **options)
    if code == 0:
        usual[name] = min(usual.get(name, most), time.monotonic() - start)
    return code, output


def ninja(*targets, folder=BUILD):
    return run(["ninja", "-C", folder, *targets])


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def is_production(path):
    if path.endswith(("-test.c", "-fuzz.c")) or "fuzz" in path:
        return False
    return not re.search(r"\btesting\b", path)


def layer_of(path):
    """The folder of a source below src."""
    return str(Path(path).parent.relative_to("src"))


def longest(folder, known, joint="/"):
    """What is known of the folder, or else of the one that it is in, and so on; [] if there is nothing."""
    parts = folder.split("/")
    for length in range(len(parts), 0, -1):
        if (name := joint.join(parts[:length])) in known:
            return known[name]
    return []


class Copy:
    """The commit and its build."""

    def __init__(self, commit):
        self.commit = git("rev-parse", "--verify", f"{commit}^{{commit}}").strip()
        FOLDER.mkdir(exist_ok=True)
        self.lock = (FOLDER / "lock").open("w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            die(f"another one works in {FOLDER}")
        self.unsound = set()  # tests and transcripts that fail without a mutant too
        if not (TREE / ".git").exists():
            git("clone", "-q", "--shared", "--no-checkout", str(ROOT), str(TREE))
        # Only files that differ are written, so that only those are built again.
        git("-C", str(TREE), "checkout", "-q", "--force", "--detach", self.commit)

    def configure(self):
        for folder, options in (BUILD, ""), (SANITIZED, "-Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false"):
            script = "set -u; ROOT=$PWD; . tools/dev/common.sh; . tools/dev/build.sh; configure "
            code, output = run(["sh", "-c", f"{script} {folder.name} -Ddashboard=disabled {options}"], cwd=TREE)
            if code == 0:  # a build that was there: if a meson.build has changed since, it has other tests
                code, output = ninja("build.ninja", folder=folder)
            if code != 0:
                die(f"cannot configure {folder}:\n{output}")
        self.objects = defaultdict(list)
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            path = os.path.relpath(BUILD / entry["file"], TREE)
            self.objects[path].append(entry["output"])
        # A file may be compiled as a part of another one.
        for path in list(self.objects):
            if path.startswith("src/"):
                for name in re.findall(r'^#include "(\S+\.c)"', (TREE / path).read_text(), re.M):
                    self.objects[f"src/{name}"] += self.objects[path]
        self.tests = defaultdict(list)
        self.proofs = set()  # their names; they take longer than all others
        for test in json.loads(self.introspect("--tests")):
            for suite in test["suite"]:
                kind, _, layer = suite.partition(":")[2].partition("-")
                if layer and kind in ("unit", "hostile", "proof"):
                    self.tests[layer].append(test)
                if kind == "proof":
                    self.proofs.add(test["name"])
        self.transcripts = sorted(path.stem for path in (TREE / "tests/golden/transcripts").glob("*.txt"))
        self.programs = [
            os.path.relpath(name, BUILD)
            for target in json.loads(self.introspect("--targets"))
            for name in target["filename"]
            if target["build_by_default"] and not target["name"].endswith(("-test", "-replay"))
        ]

    @staticmethod
    def introspect(what):
        return subprocess.run(["meson", "introspect", BUILD, what], capture_output=True, text=True, check=True).stdout

    def code(self, path):
        """The object code of a file, without its lines; None if it does not compile."""
        if ninja(*self.objects[path])[0] != 0:
            return None
        total = hashlib.sha256()
        for name in self.objects[path]:
            stripped = FOLDER / "object.o"
            subprocess.run(["objcopy", "-g", BUILD / name, stripped], check=True)
            total.update(stripped.read_bytes())
        return total.hexdigest()

    def layer_tests(self, path):
        """In groups: the one with the file's name, the others, proofs."""
        groups, stem = ([], [], []), Path(path).stem
        for test in longest(layer_of(path), self.tests, "-"):
            is_own = test["name"].endswith(f"-{stem}") or f"-{stem}-" in test["name"]
            if test["name"] not in self.unsound:
                groups[2 if test["name"] in self.proofs else 0 if is_own else 1].append(test)
        return groups


def integration_files(path):
    """Those that concern the file."""
    keys = [key for key in TABLE if re.match(rf"src/{key}[/.-]", path)]
    folder, names = TREE / "tests/integration", TABLE[max(keys, key=len)] if keys else []
    found = [file for name in names for file in (sorted((folder / name).glob("test_*.py")) or [folder / name])]
    return [str(file.relative_to(TREE)) for file in found]


def program_of(test):
    return os.path.relpath(test["cmd"][0], BUILD)


def run_unit(test, folder=BUILD):
    """Why it fails; "" if it does not."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TTMEM")}
    words, name, limit = [folder / program_of(test), *test["cmd"][1:]], test["name"], UNIT_LIMIT
    if folder == SANITIZED:
        name, limit = f"{name} (sanitized)", SANITIZED_LIMIT
        env |= {"TTMEM_UNIT_TIMEOUT": "10", "UBSAN_OPTIONS": "halt_on_error=1",
                "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1"}  # fmt: skip
    code, output = run_test(name, limit, words, cwd=folder, env=env)
    if code == 0:
        return ""
    if code is None:
        return Late(output)
    case = re.search(r"^FAIL (\S+)", output, re.M)
    return case[1] if case else output.strip().splitlines()[-1] if output.strip() else f"exit code {code}"


def run_pytest(name, without=()):
    """The test of a file that fails; "" if none does."""
    words = ["/usr/bin/python3", "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", name]
    words += [word for other in sorted(without) for word in ("--deselect", other)]
    if os.geteuid() == 0:
        words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *words]
    code, output = run_test(name, FILE_LIMIT, words, cwd=TREE, env={**os.environ, "TTMEM_BUILD": str(BUILD)})
    if code in (0, 5):  # 5: there is no test
        return ""
    if code is None:
        return Late(name)
    # A parameter in the name may have blanks; a reason may follow.
    failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)(?: - .*)?$", output, re.M)
    return failed[1] if failed else name


def run_transcript(name):
    """Why it fails; "" if it does not."""
    words = ["/usr/bin/python3", "-B", "tests/golden/run.py", name]
    code, output = run_test(f"net {name}", NET_LIMIT, words, cwd=TREE, env={**os.environ, "TTMEM_BUILD": str(BUILD)})
    if code in (0, 77):  # 77: needs root
        return ""
    step = re.search(rf"^{name}: \$ (.*)", output, re.M)
    return step[1] if step else Late(output) if code is None else f"exit code {code}"


def failures(jobs, items, test):
    """(item, why it fails) of those that fail; when one has failed, no other begins."""
    failed = []
    with ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(test, item): item for item in items}
        try:
            for done in as_completed(runs):
                if not done.cancelled() and done.result():
                    failed.append((runs[done], done.result()))
                    for other in runs:
                        other.cancel()
        finally:
            for other in runs:
                other.cancel()
    return failed


class Mutation:
    """One mutant in the copy."""

    def __init__(self, copy, mutant, jobs):
        self.copy, self.mutant, self.jobs = copy, mutant, jobs
        self.file = TREE / mutant.path
        self.text = self.file.read_text()

    def put(self):
        self.file.write_text(mutated(self.text, self.mutant))

    def take_back(self):
        self.file.write_text(self.text)

    def is_sound(self, name, why, targets, test, folder=BUILD):
        """Whether a test that has failed passes without the mutant. If it was only late, it has to be late again."""
        global is_patient
        self.take_back()
        passes = ninja(*targets, folder=folder)[0] == 0 and not test()
        self.put()
        if passes and isinstance(why, Late):
            is_patient = True
            fails = ninja(*targets, folder=folder)[0] == 0 and test()
            is_patient = False
            return bool(fails)
        if not passes:
            self.copy.unsound.add(name)
            print(f"{name} fails without a mutant too: it is left out", file=sys.stderr)
        return passes

    def by_unit(self, folder=BUILD):
        for left in self.copy.layer_tests(self.mutant.path)[: 2 if folder == SANITIZED else 3]:
            while left:
                if ninja("-k", "0", *map(program_of, left), folder=folder)[0] != 0:
                    die(f"the tests cannot be built with a mutant in {self.mutant.path}:{self.mutant.line}")
                failed = failures(self.jobs, left, lambda test: run_unit(test, folder))
                for test, why in failed:
                    if self.is_sound(test["name"], why, [program_of(test)], lambda test=test: run_unit(test, folder), folder):
                        return f"{test['name']} ({why})"
                    left.remove(test)
                if not failed:
                    break
        return ""

    def by_sanitizer(self):
        return self.by_unit(SANITIZED)

    def build_programs(self):
        if ninja(*self.copy.programs)[0] != 0:
            die(f"the programs cannot be built with a mutant in {self.mutant.path}:{self.mutant.line}")

    def by_net(self):
        self.build_programs()
        left = set(self.copy.transcripts) - self.copy.unsound
        while failed := failures(2 * self.jobs, sorted(left), run_transcript):  # they wait more than they compute
            for name, why in failed:
                if self.is_sound(name, why, self.copy.programs, lambda name=name: run_transcript(name)):
                    return f"{name} ({why})"
                left.discard(name)
            self.build_programs()
        return ""

    def by_integration(self):
        self.build_programs()
        left = integration_files(self.mutant.path)
        while failed := failures(self.jobs, left, lambda name: run_pytest(name, self.copy.unsound)):
            for name, found in failed:
                if self.is_sound(found, found, self.copy.programs, lambda found=found: run_pytest(found)):
                    return found.removeprefix("tests/integration/")
                if found == name:
                    left.remove(name)
            self.build_programs()
        return ""

    def judge(self, stages):
        """(outcome, by whom): not counted, one of the stages, or survived."""
        if not self.copy.objects[self.mutant.path]:
            return "not counted", "not built here"
        before = self.copy.code(self.mutant.path)
        self.put()
        try:
            after = self.copy.code(self.mutant.path)
            if after is None:
                return "not counted", "does not compile"
            if after == before:
                return "not counted", "same object code"
            for stage in stages:
                if who := getattr(self, f"by_{stage}")():
                    return stage, who
            return "survived", ""
        finally:
            self.take_back()
            end_orphans()


def draw(seed, area):
    """Mutants in random order; every kind is as likely as the others while there are any of it."""
    pools = defaultdict(list)
    for path in git("-C", str(TREE), "ls-files", "src").splitlines():
        if path.endswith(".c") and is_production(path) and f"{path}/".startswith(f"src/{area}/" if area else "src/"):
            for mutant in mutants_of(path, (TREE / path).read_text()):
                pools[mutant.kind].append(mutant)
    chance = random.Random(seed)
    for kind in sorted(pools):
        chance.shuffle(pools[kind])
    while pools:
        kind = chance.choice(sorted(pools))
        yield pools[kind].pop()
        if not pools[kind]:
            del pools[kind]


def show_table(results):
    counts = defaultdict(Counter)
    for entry in results:
        for name in (entry["path"].split("/")[1], "all"):
            counts[name][entry["outcome"]] += 1
    print(f"\n{'area':12} {'mutants':>8}" + "".join(f" {f'by {stage}':>15}" for stage in STAGES) + f" {'survived':>9} {'killed':>7}")
    for name in [*sorted(name for name in counts if name != "all"), "all"]:
        count = counts[name]
        total = sum(count[outcome] for outcome in (*STAGES, "survived"))
        killed = f"{100 * (total - count['survived']) // total} %" if total else "-"
        print(f"{name:12} {total:8}" + "".join(f" {count[stage]:15}" for stage in STAGES) + f" {count['survived']:9} {killed:>7}")


def parse():
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Measure the tests: put faults into the code and see which test notices.")
    parser.add_argument("count", nargs="?", type=int, default=10, metavar="N", help="mutants that count (10)")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn (1)")
    parser.add_argument("--commit", default="HEAD", help="what is measured, by the tests that it has itself (HEAD)")
    parser.add_argument("--area", default="", help="only of this folder or file below src: web, web/server, web/server/url.c")
    parser.add_argument("--kind", help="only of this kind, as --list names it: negation, boundary, dropped, ...")
    parser.add_argument("--by", default=",".join(STAGES), type=lambda text: text.split(","), metavar="STAGES",
                        help=f"the tests to run, in this order ({','.join(STAGES)})")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print what would be drawn; nothing is built")
    parser.add_argument("--resume", action="store_true", help="keep the results of earlier runs; a survivor meets the tests that it has not met yet")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    return parser.parse_args()


def show(entry, seconds):
    what = f"killed, {entry['outcome']}" if entry["outcome"] in STAGES else entry["outcome"]
    by = f": {entry['by']}" if entry["by"] else ""
    print(f"{entry['path']}:{entry['line']}  {entry['what']}\n    {what}{by} [{seconds:.0f} s]", flush=True)


def main():
    signal.signal(signal.SIGTERM, stop)  # then the mutant is taken back
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans become ours
    options = parse()
    copy = Copy(options.commit)
    drawn = (mutant for mutant in draw(options.seed, options.area) if options.kind in (None, mutant.kind))
    if options.list:
        for mutant in itertools.islice(drawn, options.count):
            print(f"{mutant.path}:{mutant.line}  {mutant.kind}: {described((TREE / mutant.path).read_text(), mutant)}")
        return
    copy.configure()
    record = FOLDER / f"results-{options.seed}-{options.area.replace('/', '+')}.jsonl"
    known = {}
    if options.resume and record.exists():
        for entry in map(json.loads, record.read_text().splitlines()):
            if entry["commit"] == copy.commit:
                known[entry["key"]] = entry
    if USUAL.exists():
        usual.update(json.loads(USUAL.read_text()))
    results = []
    for mutant in drawn:
        if sum(entry["outcome"] != "not counted" for entry in results) == options.count:
            break
        key = f"{mutant.path}:{mutant.at}:{mutant.end}:{mutant.new}"
        start = time.monotonic()
        entry = known.get(key)
        met = entry["met"] if entry else []
        if not entry or (entry["outcome"] == "survived" and set(options.by) - set(met)):
            one = Mutation(copy, mutant, options.jobs)
            outcome, who = one.judge([stage for stage in options.by if stage not in met])
            entry = {"commit": copy.commit, "key": key, "path": mutant.path, "line": mutant.line, "kind": mutant.kind,
                     "what": described(one.text, mutant), "outcome": outcome, "by": who, "met": [*met, *options.by]}  # fmt: skip
            show(entry, time.monotonic() - start)
            USUAL.write_text(json.dumps(usual))
        results.append(entry)
        known[key] = entry
        record.write_text("".join(json.dumps(one) + "\n" for one in known.values()))
    show_table(results)


if __name__ == "__main__":
    main()
