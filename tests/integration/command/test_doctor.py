# SPDX-License-Identifier: Apache-2.0
"""ttmem doctor, of processes and their memory: each finding with the real condition, and without it."""

import json
import os
import re
import shutil
import subprocess

import pytest

from common import AS_NOBODY, NOBODY
from conftest import ROOT
from world import check_schema, end_children, wait_for

# A healthy process: a device, enough memory of both kinds, and stacks.
HEALTHY = (
    "device 0 0x1 wormhole_b0 n300 0 1000000000 1000000",
    "alloc 0 DRAM 0x100000 33554432 weights",
    "alloc 0 L1 0x1000 524288 activations",
)

FIBER = """
#define _GNU_SOURCE
#include <stdio.h>
#include <ttmem/ttmem.h>
#include <ucontext.h>

static ucontext_t home, fiber;
static char stack[65536];

static void inside(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 4096, 4096, 0);
}

int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 65536, 4096, 0);
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = sizeof(stack);
	fiber.uc_link = &home;
	makecontext(&fiber, inside, 0);
	swapcontext(&home, &fiber);
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
"""

CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, time);

	if (r == 0 && clock == CLOCK_REALTIME)
		time->tv_sec -= 86400;
	return r;
}
"""


def examine(world, *args, **options):
    """The document; the exit code must fit it."""
    result = world.run("doctor", "--json", *args, **options)
    assert result.stderr == ""
    document = check_schema(json.loads(result.stdout))
    levels = {f["level"] for f in document["findings"]}
    assert result.returncode == (1 if "error" in levels else 2 if "warning" in levels else 0)
    assert document["healthy"] == (result.returncode == 0)
    return document


def found(world, *args, **options):
    """{id: [pids]}"""
    ids = {}
    for finding in examine(world, *args, **options)["findings"]:
        ids.setdefault(finding["id"], []).append(finding["pid"])
    return ids


def healthy(world, **settings):
    return world.player(*HEALTHY, TTMEM_STACKS="fp", **settings)


def adopt(world, command, **options):
    process = world.adopt(subprocess.Popen([str(word) for word in command], **options))
    world.show(process.pid)
    return process


def test_nothing_is_wrong_with_a_healthy_process(world):
    """The other half of every test below: none of it is found where all is well."""
    player = healthy(world)
    assert set(found(world)) <= {"daemon-none", "driver-none", "clock-slow"}
    assert set(found(world, "--pid", player.pid)) <= {"daemon-none", "driver-none", "clock-slow"}
    document = examine(world)
    assert document["tracked"] == 1 and document["totals"]["bytes"] == 33554432 + 524288
    assert document["totals"]["memory"]["L1"] == {"used": 524288, "buffers": 1}


def test_text(world):
    healthy(world)
    player = world.player(TTMEM="")
    result = world.run("doctor")
    assert result.returncode == 2 and result.stderr == ""
    assert f"warning tracking-off, pid {player.pid}\n" in result.stdout
    assert "  fix: set TTMEM=1" in result.stdout
    assert "  DRAM            32.0 MiB in 1 buffer\n" in result.stdout
    assert "  all together    32.5 MiB in 2 buffers\n" in result.stdout
    assert result.stdout.endswith("\n0 errors, 1 warning.\n")


def test_tracking_off(world):
    player = world.player(TTMEM="")
    assert found(world)["tracking-off"] == [player.pid]
    assert "cannot be seen" in str(examine(world)["findings"])


def test_tracking_disabled(world):
    player = world.player(TTMEM="0", TT_ALLOC_TRACKING_ENABLED="1")
    ids = found(world)
    assert ids["tracking-disabled"] == [player.pid] and "tracking-off" not in ids


def test_tracking_paused(world):
    player = healthy(world)
    player.play("pause")
    assert found(world)["tracking-paused"] == [player.pid]
    player.play("resume")
    assert "tracking-paused" not in found(world)


def test_never_called(world):
    player = world.player()
    assert found(world)["never-called"] == [player.pid]
    player.play(*HEALTHY)
    assert "never-called" not in found(world)


PARENT = """
#include <stdio.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(void)
{
	int child = fork();

	if (child == 0)
		execlp("sleep", "sleep", "1000", (char *)0);
	ttmem_alloc(0, TTMEM_L1, 4096, 33554432, 0);
	printf("%d\\n", child);
	fflush(stdout);
	return getchar() == 'x';
}
"""


def preloaded(world, build):
    """The library is in everything that is started, as with "ttmem run --metal"."""
    library = build / "src" / "lib" / "libttmem.so.0"
    return {**world.env, "TTMEM": "1", "TTMEM_STACKS": "fp", "LD_PRELOAD": str(library)}


def wait_for_library(pid):
    wait_for(lambda: "libttmem" in open(f"/proc/{pid}/maps").read(), "the library")


def test_helpers_of_a_tracked_program_need_no_book(world, build, compile_c):
    pipe = subprocess.PIPE
    env = preloaded(world, build)
    parent = adopt(world, [compile_c(PARENT, "parent")], env=env, stdin=pipe, stdout=pipe)
    child = int(parent.stdout.readline())
    world.show(child)
    try:
        wait_for(lambda: open(f"/proc/{child}/comm").read() == "sleep\n", "exec")
        wait_for_library(child)
        assert "never-called" not in found(world)
        # Who asks about it is told, and one that stands alone is told of.
        assert found(world, "--pid", child)["never-called"] == [child]
        (world.root / str(parent.pid)).unlink()
        assert found(world)["never-called"] == [child]
    finally:
        end_children(child)


def test_a_shell_that_starts_a_tracked_program_needs_no_book(world, build, compile_c):
    program = compile_c(PARENT, "parent")
    pipe = subprocess.PIPE
    shell = adopt(world, ["sh", "-c", f"{program}; true"], env=preloaded(world, build), stdin=pipe, stdout=pipe)
    child = int(shell.stdout.readline())
    (tracked,) = map(int, open(f"/proc/{shell.pid}/task/{shell.pid}/children").read().split())
    world.show(tracked)
    wait_for_library(shell.pid)
    try:
        assert "never-called" not in found(world)
    finally:
        end_children(child)


def test_our_own_symbol_worker_needs_no_library(world, build, tmp_path):
    """It maps the files whose symbols it reads."""
    metal = tmp_path / "libtt_metal.so"
    shutil.copy(build / "src" / "lib" / "libttmem.so", metal)
    worker = tmp_path / "ttmem-symbols"
    shutil.copy(shutil.which("sleep"), worker)
    process = adopt(world, [worker, "1000"], env={**world.env, "LD_PRELOAD": str(metal)})
    wait_for(lambda: "libtt_metal" in open(f"/proc/{process.pid}/maps").read(), "the library")
    assert open(f"/proc/{process.pid}/comm").read() == "ttmem-symbols\n"
    assert "library-missing" not in found(world)


def test_library_missing(world, build, tmp_path):
    plain = adopt(world, ["sleep", "1000"])
    metal = tmp_path / "libtt_metal.so"
    shutil.copy(build / "src" / "lib" / "libttmem.so", metal)
    env = {**world.env, "LD_PRELOAD": str(metal)}
    loaded = adopt(world, ["sleep", "1000"], env=env)
    wait_for(lambda: "libtt_metal" in open(f"/proc/{loaded.pid}/maps").read(), "the library")
    # A process that does not seem to need the library is only reported if it is asked for.
    assert found(world)["library-missing"] == [loaded.pid]
    assert found(world, "--pid", plain.pid)["library-missing"] == [plain.pid]


def copied_library(world, build, tmp_path):
    """A copy of the library that a player can be made to use."""
    folder = tmp_path / "lib"
    folder.mkdir()
    copy = folder / "libttmem.so.0"
    shutil.copy(build / "src" / "lib" / "libttmem.so.0", copy)
    return copy


def test_library_replaced(world, build, tmp_path):
    library = copied_library(world, build, tmp_path)
    player = healthy(world, LD_LIBRARY_PATH=str(library.parent))
    if str(library) not in open(f"/proc/{player.pid}/maps").read():
        pytest.skip("the program does not take the library from where it is told")
    assert "library-replaced" not in found(world)
    library.unlink()
    assert found(world)["library-replaced"] == [player.pid]


def test_library_other(world, build, tmp_path):
    library = copied_library(world, build, tmp_path)
    version = world.text("--version").split()[1].encode() + b"\0"
    bytes_ = library.read_bytes()
    assert version in bytes_
    library.write_bytes(bytes_.replace(version, b"9" + version[1:]))
    player = healthy(world, LD_LIBRARY_PATH=str(library.parent))
    if str(library) not in open(f"/proc/{player.pid}/maps").read():
        pytest.skip("the program does not take the library from where it is told")
    assert found(world)["library-other"] == [player.pid]


def test_book_hidden(world):
    player = healthy(world)
    player.play("closefds")
    assert found(world)["book-hidden"] == [player.pid]


def test_book_refused(world):
    script = "import os, time; os.memfd_create('ttmem-book'); print(flush=True); time.sleep(1000)"
    process = adopt(world, ["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE)
    process.stdout.readline()
    # A file that is not even sealed cannot be a book.
    assert found(world)["book-refused"] == [process.pid]
    assert found(world, "--pid", process.pid)["book-refused"] == [process.pid]


def test_book_left(world):
    player = healthy(world)
    child = player.play("hold")
    world.show(child)
    assert "book-left" not in found(world)
    player.kill()
    (world.root / str(player.pid)).unlink()
    try:
        ids = found(world)
        assert ids["book-left"] == [player.pid] and "nothing-tracked" in ids
    finally:
        end_children(child)


def test_book_limited(world):
    player = world.player(*HEALTHY, before=("prlimit", "--fsize=4096"))
    assert found(world)["book-limited"] == [player.pid]


def test_full_books_and_lost_events(world):
    player = healthy(world, TTMEM_ROOM="3M")
    assert "book-full" not in found(world)
    player.play("many 0 DRAM 0x10000000 64 200000")
    ids = found(world)
    assert ids["book-full"] == [player.pid] and ids["events-lost"] == [player.pid]


def test_names_lost(world):
    player = healthy(world, TTMEM_ROOM="3M")
    player.play("many 0 DRAM 0x10000000 64 200000")
    for i in range(300):
        player.play(f"alloc 1 DRAM {0x1000 + i} 1 {'n' * 240}{i}")
    wait_for(lambda: "names-lost" in found(world), "names without room")


def test_stacks_off(world):
    player = world.player(*HEALTHY, TTMEM_STACKS="off")
    assert found(world)["stacks-off"] == [player.pid]


def test_stacks_are_on_without_being_asked_for(world):
    world.player(*HEALTHY)
    assert not {"stacks-off", "stacks-lost"} & set(found(world))


def test_stacks_lost(world, compile_c):
    program = compile_c(FIBER)
    env = {**world.env, "TTMEM": "1", "TTMEM_STACKS": "fp"}
    pipe = subprocess.PIPE
    process = adopt(world, [program], env=env, stdin=pipe, stdout=pipe)
    process.stdout.readline()
    assert found(world)["stacks-lost"] == [process.pid]


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


AS_ASKER = {"preexec_fn": become_nobody}


def test_process_unreadable(public):
    player = public.player(*HEALTHY, before=AS_NOBODY)
    assert "process-unreadable" not in found(public, **AS_ASKER)
    player.play("hide")
    assert found(public, **AS_ASKER)["process-unreadable"] == [player.pid]


def test_others_unseen(public):
    healthy(public)
    assert "others-unseen" in found(public, **AS_ASKER)
    assert "others-unseen" not in found(public)


def test_nothing_tracked(world):
    assert "nothing-tracked" in found(world)
    healthy(world)
    assert "nothing-tracked" not in found(world)


def test_total_small(world):
    player = world.player(HEALTHY[0], "alloc 0 L1 0x1000 4096")
    assert found(world)["total-small"] == [player.pid]
    player.play("alloc 0 L1 0x10000 2000000")
    assert "total-small" not in found(world)
    player.play("free 0 L1 0x10000", "close 0")
    assert "total-small" not in found(world)


def test_total_small_without_a_declared_device(world):
    player = world.player("alloc 0 L1 0x1000 65536")
    assert found(world)["total-small"] == [player.pid]
    assert "64.0 KiB in all, and never held 1 MiB" in str(examine(world)["findings"])
    player.play("alloc 0 L1 0x20000 2000000")
    assert "total-small" not in found(world)
    # It was more: nothing is missing.
    player.play("free 0 L1 0x20000")
    assert "total-small" not in found(world)
    ended = world.player("alloc 0 L1 0x1000 65536", "free 0 L1 0x1000")
    assert ended.pid not in found(world).get("total-small", [])


def test_dram_only(world):
    player = world.player(*HEALTHY[:2])
    assert found(world)["dram-only"] == [player.pid]
    assert "ttnn.L1_MEMORY_CONFIG" in str(examine(world)["findings"])
    # It had some: so it knows how to ask for it.
    player.play("alloc 0 L1 0x1000 64", "free 0 L1 0x1000")
    assert "dram-only" not in found(world)


def test_peak_past(world):
    player = healthy(world)
    player.play("free 0 DRAM 0x100000")
    ids = found(world)
    assert ids["peak-past"] == [player.pid] and "total-small" not in ids


def test_frees_unknown(world):
    player = healthy(world)
    player.play("free 0 DRAM 0x777")
    assert found(world)["frees-unknown"] == [player.pid]


def test_clock_wrong(world, tmp_path):
    player = healthy(world)
    source = tmp_path / "clock.c"
    source.write_text(CLOCK)
    shifted = tmp_path / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shifted, source], check=True)
    env = {**world.env, "LD_PRELOAD": str(shifted)}
    if "AddressSanitizer" in world.run("--version", env=env).stderr:
        pytest.skip("sanitizers want to be loaded first")
    assert found(world, env=env)["clock-wrong"] == [player.pid]


def test_no_such_process(world):
    result = world.run("doctor", "--pid", 4000000)
    assert result.returncode == 1 and "there is no process 4000000" in result.stderr
    # 2 would mean a warning.
    assert world.run("doctor", "--wrong").returncode == 1


def advice():
    """Every command that a text of ours tells to type, as words: those in quotes, in all sources."""
    for path in sorted(path for path in (ROOT / "src").rglob("*.c") if not path.name.endswith("-test.c")):
        # Strings that follow each other are one.
        text = re.sub(r'"\s*\n\s*"', "", path.read_text())
        for command in re.findall(r'\\"(ttmem [a-z][^"\\]*)\\"', text):
            if "%" not in command:
                yield path.name, command.split()[1:]


def test_every_advice_is_a_command_that_works(ttmem):
    seen = 0
    for name, (command, *words) in advice():
        if command == "help":
            continue
        help = ttmem(command, "--help")
        assert help.returncode == 0, (name, command)
        options = {}
        for short, long, argument in re.findall(r"^  (-.|  )[, ] (--[a-z-]+)(?: (\S+))?", help.stdout, re.M):
            options[short] = options[long] = argument
        needed = help.stdout.split("\n")[0].split("[OPTION]...")[1].split()
        needed = [word for word in needed if not word.startswith("[")]
        given = []
        while words:
            word = words.pop(0)
            if word == "--":
                given += words
                break
            if word.startswith("-"):
                assert word in options, (name, command, word)
                if options[word]:
                    assert words and not words[0].startswith("-"), (name, command, word)
                    words.pop(0)
            else:
                given.append(word)
        assert len(given) >= len(needed), (name, command, needed)
        seen += 1
    assert seen > 10


def test_every_kind_has_a_test():
    """Those of the machine are in test_doctor_machine.py."""
    tests = ROOT / "tests"
    text = "".join(
        (tests / name).read_text()
        for name in (
            "integration/command/test_doctor.py", "integration/command/test_doctor_machine.py",
            "integration/host/test_kernel_files.py", "integration/trust/test_devices.py",
            "integration/trust/test_regions.py", "integration/library/test_metal_preload.py",
            "integration/command/test_run_gave_up.py", "kernel/view-test.c",
        )  # fmt: skip
    )
    table = (ROOT / "src/cli/doctor/doctor-kinds.c").read_text()
    kinds = [part.split('"')[1] for part in table.split("[DOCTOR_")[2:]]
    assert len(kinds) > 30
    quotes = '"', '\\"'  # as Python and as C writes them
    missing = [kind for kind in kinds if not any(f"{q}{kind}{q}" in text for q in quotes)]
    assert not missing
