# SPDX-License-Identifier: Apache-2.0
"""The old system's debug logs as the library writes them: format, filters, robustness."""

import json
import os
import random
import re
import subprocess

import pytest

from conftest import LIMIT
from life import track  # noqa: F401 (fixture)
from oldlogs import Logs, agrees, events, replay
from test_stacks import compiled  # noqa: F401 (fixture)

pytestmark = pytest.mark.legacy

CALLS = r"""
#include <ttmem/ttmem.h>

int main(void)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args), .device = 1, .type = TTMEM_L1_SMALL,
		.flags = TTMEM_FLAG_OWNS_DATA, .address = 0x7000, .size = 1536, .owner = 0x7f8a4c001230,
	};
	struct ttmem_alloc_args hooked = {
		.struct_size = sizeof(hooked), .type = TTMEM_L1, .flags = TTMEM_FLAG_HOOKED,
	};
	uint32_t mesh[] = {0, 1};

	ttmem_alloc(0, TTMEM_DRAM, 0x18862c0, 524288, "weights");
	ttmem_alloc_mesh(mesh, 2, TTMEM_TRACE, 0x1000, 64, 0);
	ttmem_alloc_ex(&args);
	ttmem_alloc_ex(&hooked);
	ttmem_free(0, TTMEM_ANY, 0x18862c0);
	ttmem_free(0, TTMEM_DRAM, 0x99);
	/* Mistakes, and what is not recorded, are no events. */
	ttmem_alloc(9999, TTMEM_DRAM, 0x1, 1, 0);
	ttmem_alloc(0, 77, 0x1, 1, 0);
	ttmem_alloc(0, TTMEM_DRAM, 0x1, 0, 0);
	ttmem_free(9999, TTMEM_DRAM, 0x1);
	ttmem_free(0, 77, 0x1);
	ttmem_free_ex(0);
	ttmem_pause();
	ttmem_alloc(0, TTMEM_DRAM, 0x2, 1, 0);
	ttmem_free(0, TTMEM_DRAM, 0x2);
	ttmem_resume();
	ttmem_free_all(1, TTMEM_ANY, 0);
	return 0;
}
"""


def record(title, device, address, size, type, owner, *more):
    lines = [
        "═" * 59, f"BUFFER {title}", "Time: T", f"Device: {device}",
        f"Address: {address:#x} ({address})", f"Size: {size}", f"Type: {type}",
        f"Buffer*: {owner}", *more, "Call Stack:", "", "",
    ]  # fmt: skip
    return "\n".join(lines)


UNKNOWN = ("Owns Data: unknown", "Hooked: no")


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


@pytest.fixture
def program(compile_c):
    return compile_c(CALLS)


def run(program, env, **options):
    return subprocess.run([program], env=env, check=True, timeout=LIMIT, **options)


def test_buffer_debug_log_has_the_old_form(program, clean_env, logs):
    """TT_BUFFER_DEBUG_LOG alone turns tracking on, as it needed no server before."""
    settings = {name: value for name, value in logs.settings().items() if "BUFFER" in name}
    run(program, {**clean_env, **settings, "LC_ALL": "de_DE.UTF-8", "TTMEM_STACKS": "off"})
    text = re.sub(r"Time: \d\d:\d\d:\d\d", "Time: T", logs.buffer.read_text())
    assert text == "".join([
        record("ALLOCATED", 0, 0x18862C0, "524288 bytes (512 KB)", "DRAM", "unknown", *UNKNOWN),
        record("ALLOCATED", 0, 0x1000, "64 bytes (0.0625 KB) of TRACE", "OTHER", "unknown", *UNKNOWN),
        record("ALLOCATED", 1, 0x1000, "64 bytes (0.0625 KB) of TRACE", "OTHER", "unknown", *UNKNOWN),
        record(
            "ALLOCATED", 1, 0x7000, "1536 bytes (1.5 KB)", "L1_SMALL", "0x7f8a4c001230",
            "Owns Data: yes", "Hooked: no",
        ),
        record(
            "ALLOCATED", 0, 0, "0 bytes (0 KB)", "L1", "unknown", "Owns Data: no", "Hooked: yes",
        ),
        record("DEALLOCATED", 0, 0x18862C0, "524288 bytes (512 KB)", "DRAM", "unknown"),
        record("DEALLOCATED", 0, 0x99, "unknown", "DRAM", "unknown"),
        record("DEALLOCATED", 1, 0x1000, "64 bytes (0.0625 KB) of TRACE", "OTHER", "unknown"),
        record("DEALLOCATED", 1, 0x7000, "1536 bytes (1.5 KB)", "L1_SMALL", "unknown"),
    ])  # fmt: skip
    assert not logs.detailed.exists() and not logs.stack.exists()
    assert logs.buffer.stat().st_mode & 0o777 == 0o600


DESTRUCTOR = r"""
#include <ttmem/ttmem.h>

int main(void)
{
	struct ttmem_free_args args = {
		.struct_size = sizeof(args), .type = TTMEM_DRAM, .flags = TTMEM_FREE_DESTRUCTOR,
		.address = 0x1000,
	};

	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, 0);
	ttmem_free_ex(&args);
	ttmem_alloc(0, TTMEM_DRAM, 0x2000, 64, 0);
	args.type = TTMEM_ANY;
	args.flags |= TTMEM_FREE_BUFFER;
	args.address = 0x2000;
	ttmem_free_ex(&args);
	return 0;
}
"""


def test_a_destructor_that_frees(compile_c, track, logs, ttmem):  # noqa: F811
    """It is told before the free, in the buffer log only, and is no second free."""
    run(compile_c(DESTRUCTOR), {**track, **logs.settings(), "TTMEM_STACKS": "off"})
    text = re.sub(r"Time: \d\d:\d\d:\d\d", "Time: T", logs.buffer.read_text())
    size, title = "64 bytes (0.0625 KB)", "DESTRUCTOR (still ALLOCATED - will deallocate)"
    assert text == "".join(
        record("ALLOCATED", 0, address, size, "DRAM", "unknown", *UNKNOWN)
        + record(title, 0, address, size, "DRAM", "unknown")
        + record("DEALLOCATED", 0, address, size, "DRAM", "unknown")
        for address in (0x1000, 0x2000)
    )
    assert logs.stack.read_text().count("\nDeallocation\n") == 2
    for log in (logs.buffer, logs.stack):
        assert "nothing was left, freed twice" in ttmem("analyze", "--fail-on-leak", log).stdout


def test_detailed_and_stack_form(program, track, logs):  # noqa: F811
    run(program, {**track, **logs.settings(), "TTMEM_STACKS": "off"})
    lines = logs.detailed.read_text().splitlines()
    form = r"ALLOC: pid=(\d+) device=0 size=524288 type=0 addr=0x18862c0 timestamp=\d{19}"
    pid = re.fullmatch(form, lines[0]).group(1)
    assert [re.search(r"device=.*addr=\S+", line).group() for line in lines[1:]] == [
        "device=0 size=64 type=4 addr=0x1000", "device=1 size=64 type=4 addr=0x1000",
        "device=1 size=1536 type=3 addr=0x7000",
    ]
    text = re.sub(r"Time: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n", "", logs.stack.read_text())
    head, *records = text.split("─" * 59 + "\n")
    assert head == f"=== TT-Metal Buffer Allocation Stack Traces ===\nPID: {pid}\n"
    assert len(records) == 8
    assert records[0] == (
        "Allocation #1\nDevice: 0\nType: DRAM\nSize: 524288 bytes (512 KB)\n"
        "Address: 0x18862c0\nStack trace:\n\n"
    )
    assert records[1].startswith("Allocation #2\nDevice: 0\nType: TRACE\n")
    assert records[5] == (
        "Deallocation\nDevice: 0\nType: DRAM\nSize: unknown\nAddress: 0x99\nStack trace:\n\n"
    )


@pytest.mark.parametrize(
    "filters, count",
    [
        ({"TT_BUFFER_DEBUG_DEVICE": "1"}, 4),
        ({"TT_BUFFER_DEBUG_TYPE": "dram,TRACE"}, 6),
        ({"TT_BUFFER_DEBUG_DEVICE": "0,1", "TT_BUFFER_DEBUG_TYPE": "L1"}, 1),
        ({"TT_BUFFER_DEBUG_DEVICE": "all", "TT_BUFFER_DEBUG_TYPE": "everything"}, 9),
    ],
)
def test_filters(program, track, logs, filters, count):  # noqa: F811
    run(program, {**track, **logs.settings(**filters)})
    assert logs.buffer.read_text().count("BUFFER ") == count
    assert len(logs.detailed.read_text().splitlines()) == 4


def test_off(program, track, clean_env, logs):  # noqa: F811
    """Only "1" turns a log on, and nothing does if tracking is off."""
    off = {name: "0" if value == "1" else value for name, value in logs.settings().items()}
    run(program, {**track, **off})
    run(program, {**clean_env, **logs.settings(), "TTMEM": "0"})
    assert not any(path.exists() for path in (logs.buffer, logs.detailed, logs.stack))


def test_files_that_are_none(program, track, tmp_path):  # noqa: F811
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    target = tmp_path / "target"
    link = tmp_path / "link"
    link.symlink_to(target)
    for path in (fifo, link, tmp_path, "/dev/full", "/nowhere/at/all", "x" * 5000):
        settings = {"TT_BUFFER_DEBUG_LOG": "1", "TT_BUFFER_DEBUG_LOG_FILE": str(path)}
        run(program, {**track, **settings})
    assert not target.exists()


def calls(seed):
    """Lines for player: few places, so that much goes wrong. Below 0x5000 the caller knows type and space."""
    dice = random.Random(seed)
    for _ in range(400):
        device, type = dice.randrange(2), dice.choice(["DRAM", "L1", "TRACE", "SYSTEM_MEMORY"])
        address, space, size = dice.randrange(1, 9) << 12, dice.randrange(3), dice.choice([64, 4096])
        if address >= 0x5000:
            space = 0
        if dice.random() < 0.5:
            yield f"place {device} {type} {address:#x} {size} {space} 0 0"
        elif address < 0x5000:
            yield f"take {device} {type} {address:#x} {space}"
        else:
            yield f"free {device} ANY {address:#x}"


@pytest.mark.parametrize("seed", range(4))
def test_the_buffer_log_says_what_the_books_say(build, ttmem, logs, tmp_path, seed):
    """Also of addresses that several allocators have, and of frees that do not say of what."""
    report = tmp_path / "report.json"
    ttmem("run", "--quiet", "--json", report, "--", build / "tests" / "programs" / "player",
          input="\n".join([*calls(seed), ""]), env=logs.settings(), check=True)
    model = replay(logs.buffer)
    agrees(model, json.loads(report.read_text()))
    assert min(len(model.live), model.double_frees, model.unknown_frees, model.size_changes) > 0
    assert {fields["Space"] for _, fields in events(logs.buffer)} == {0, 1, 2}


THREADS = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static void *work(void *argument)
{
	uint64_t base = (uint64_t)(uintptr_t)argument << 20;

	for (uint64_t i = 0; i < 200; i++) {
		ttmem_alloc((uint32_t)(base >> 20) % 2, TTMEM_L1, base + i * 64, 64, 0);
		if (i % 4)
			ttmem_free((uint32_t)(base >> 20) % 2, TTMEM_L1, base + i * 64);
	}
	return 0;
}

int main(void)
{
	int child = fork() == 0;
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, work, (void *)(i + 1 + 8 * (uintptr_t)child));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	if (!child)
		wait(0);
	return 0;
}
"""


def test_many_threads_and_processes(compile_c, track, logs, ttmem):  # noqa: F811
    """Records never mix: two processes of four threads each, all of it understood and right."""
    run(compile_c(THREADS), {**track, **logs.settings()})
    for log in (logs.buffer, logs.stack):
        done = ttmem("analyze", log, "--top", 1)
        assert "events" in done.stdout and "damaged" not in done.stdout
        assert "Not freed when the log ends: 400 buffers" in done.stdout
        assert "Double frees" not in done.stdout and "Unknown frees" not in done.stdout
    assert len(logs.detailed.read_text().splitlines()) == 1600


STACKS = r"""
#include <ttmem/ttmem.h>

#define KEEP() __asm__ volatile("")

__attribute__((noinline)) void take(uint64_t address)
{
	ttmem_alloc(0, TTMEM_DRAM, address, 64, 0);
	KEEP();
}

namespace model {
template <typename T> __attribute__((noinline)) void load(T address)
{
	take(address);
	KEEP();
}
}

static __attribute__((noinline)) void hidden(uint64_t address)
{
	ttmem_free(0, TTMEM_DRAM, address);
	KEEP();
}

int main(void)
{
	model::load<unsigned long>(0x1000);
	model::load<unsigned long>(0x2000);
	hidden(0x1000);
	return 0;
}
"""


# As in every program that uses more of C++ than names.
RUNTIME = ("-rdynamic", "-Wl,--no-as-needed", "-lstdc++")


@pytest.mark.parametrize("has_runtime", [True, False])
def test_call_stacks(compiled, track, logs, ttmem, has_runtime):  # noqa: F811
    """Without TTMEM_STACKS: the old logs had them always. What is not exported has its place."""
    flags = RUNTIME if has_runtime else ("-rdynamic", "-Wl,--as-needed")
    run(compiled(STACKS, *flags, compiler="g++"), {**track, **logs.settings()})
    stacks = re.findall(r"Call Stack:\n((?:    .*\n)+)", logs.buffer.read_text())
    taken = ["app: take(unsigned long)", "app: void model::load<unsigned long>(unsigned long)", "app: main"]
    if not has_runtime:
        taken[:2] = ["app: _Z4takem", "app: _ZN5model4loadImEEvT_"]
    assert [[line.strip() for line in text.splitlines()][:3] for text in stacks[:2]] == [taken] * 2
    assert re.fullmatch(r"    app\(\+0x[0-9a-f]+\)", stacks[2].splitlines()[0])
    assert stacks[2].splitlines()[1] == "    app: main"
    lines = re.findall(r"Stack trace:\n((?:  .*\n)+)", logs.stack.read_text())[0].splitlines()
    for line, name in zip(lines, ["app: _Z4takem", "app: _ZN5model4loadImEEvT_", "app: main"]):
        assert re.fullmatch("  " + name.replace(": ", " : ") + r"\+0x[0-9a-f]+", line)
    # The command shows names as people wrote them.
    text = ttmem("analyze", logs.buffer).stdout
    assert "void model::load<unsigned long>(unsigned long)" in text and "take(unsigned long)" in text


PART = "a_part_of_a_model_with_a_name_that_says_everything_about_it"
LONG = "\n".join(f"struct {PART}_{n} {{}};" for n in range(40))
LONG += """
template <typename A, typename B> struct both {};
#include <ttmem/ttmem.h>
template <typename T> __attribute__((noinline)) void load(T, uint64_t address)
{
	ttmem_alloc(0, TTMEM_DRAM, address, 64, 0);
	__asm__ volatile("");
}
int main(void)
{
	load(%s{}, 0x1000);
	return 0;
}
"""


def test_long_names(compiled, track, logs, ttmem):  # noqa: F811
    """A name of thousands of bytes is whole in the logs, and decoded and bounded in the report."""
    nested = f"{PART}_0"
    for n in range(1, 40):
        nested = f"both<{PART}_{n}, {nested} >"
    run(compiled(LONG % nested, "-rdynamic", compiler="g++"), {**track, **logs.settings()})
    symbol = re.search(r"    app: (_Z4load\w+)\n    app: main\n", logs.buffer.read_text())[1]
    assert len(symbol) > 2000 and symbol.endswith("EvT_m")
    assert f"  app : {symbol}+0x" in logs.stack.read_text()
    for log in (logs.buffer, logs.stack):
        document = json.loads(ttmem("analyze", "--json", log).stdout)
        frames = document["leaks"][0]["stack"]
        assert frames[0].startswith(("app: void load<", "app : void load<"))
        assert nested.replace("> >", ">>")[:2000] in frames[0].replace("> >", ">>")
        assert "main" in frames[1]
        text = ttmem("analyze", log).stdout
        assert "void load<both<" in text and max(map(len, text.splitlines())) < 500


# Its functions say where they are called; malloc() must not be called where this says so.
CAREFUL = r"""
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#define PLACE __attribute__((noinline)) void
#define TAKE(address) (ttmem_alloc(0, TTMEM_DRAM, address, 64, 0), (void)*(volatile char *)"")

static volatile bool is_forbidden, is_watched;
static void meanwhile();

static void called()
{
	if (is_forbidden)
		_exit(9);
	if (is_watched) {
		is_watched = false;
		meanwhile();
	}
}

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);
pid_t _Fork(void);

void *malloc(size_t size) { called(); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { called(); return __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { called(); return __libc_realloc(memory, size); }
void free(void *memory) { called(); __libc_free(memory); }
}

PLACE plain(long) { TAKE(0x1000); }
PLACE holding_nothing(long) { TAKE(0x2000); }
PLACE other_thread(long) { TAKE(0x3000); }
PLACE in_handler(long) { TAKE(0x4000); }
PLACE in_handler_on_its_stack(long) { TAKE(0x5000); }
PLACE on_small_stack(long) { TAKE(0x6000); }
PLACE in_child(long) { TAKE(0x7000); }
PLACE in_bare_child(long) { TAKE(0x8000); }
PLACE deep_in_handler(long) { TAKE(0x9000); }

/* More frames than are searched for a handler. */
PLACE descend(int frames)
{
	frames ? descend(frames - 1) : deep_in_handler(0);
	__asm__ volatile("");
}

static void handle(int number)
{
	is_forbidden = true;
	number == SIGUSR1 ? in_handler(0) : in_handler_on_its_stack(0);
	descend(1000);
	is_forbidden = false;
}

static void *thread(void *argument)
{
	other_thread(0);
	return argument;
}

static void meanwhile()
{
	pthread_t other;

	pthread_create(&other, 0, thread, 0);
	pthread_join(other, 0);
}

static void *small(void *argument)
{
	is_forbidden = true;
	on_small_stack(0);
	is_forbidden = false;
	return argument;
}

static void *wait_for_end(void *)
{
	for (;;)
		pause();
}

int main(int argc, char **)
{
	struct sigaction action = {};
	static char space[65536];
	stack_t stack = {};
	pthread_attr_t attributes;
	pthread_t other;

	is_forbidden = argc > 1;
	plain(0);
	is_forbidden = false;
	is_watched = argc == 1;
	holding_nothing(0);
	stack.ss_sp = space;
	stack.ss_size = sizeof(space);
	sigaltstack(&stack, 0);
	action.sa_handler = handle;
	sigaction(SIGUSR1, &action, 0);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, 0);
	raise(SIGUSR1);
	raise(SIGUSR2);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	pthread_create(&other, &attributes, small, 0);
	pthread_join(other, 0);
	pthread_create(&other, 0, wait_for_end, 0);
	if (fork() == 0) {
		is_forbidden = true;
		in_child(0);
		_exit(0);
	}
	if (_Fork() == 0) {
		is_forbidden = true;
		in_bare_child(0);
		_exit(0);
	}
	for (int i = 0, status; i < 2; i++) {
		if (wait(&status) < 0 || status != 0)
			return 8;
	}
	return is_watched;
}
"""


def innermost(log):
    """{address: the function of its record}"""
    form = r"Address: (0x\w+) .*\n(?:\w.*\n)*?Call Stack:\n    app: (.*)\n"
    return {int(address, 16): name for address, name in re.findall(form, log.read_text())}


@pytest.mark.parametrize("how", ["auto", "fp"])
def test_names_are_decoded_only_where_memory_may_be_allocated(compiled, track, logs, how):  # noqa: F811
    """libstdc++ allocates: not in a handler or forked child, nor with a small stack, nor holding a lock of ours."""
    app = compiled(CAREFUL, *RUNTIME, "-pthread", compiler="g++")
    done = subprocess.run([app, *["forbidden"][: how == "fp"]], timeout=LIMIT,
                          env={**track, **logs.settings(), "TTMEM_STACKS": how})
    assert done.returncode == 0
    sure = ["plain", "holding_nothing", "other_thread"]
    rest = ["in_handler", "in_handler_on_its_stack", "on_small_stack", "in_child", "in_bare_child", "deep_in_handler"]
    decoded = {0x1000 * n: f"{name}(long)" for n, name in enumerate(sure, 1)}
    others = {0x1000 * n: f"_Z{len(name)}{name}l" for n, name in enumerate(sure + rest, 1)}
    expected = {**others, **decoded}
    if how == "fp":
        # They do not show where a stack ends. Handlers have none, and malloc() did not start the other thread.
        expected = {n: others[n] for n in (0x1000, 0x2000, 0x6000, 0x7000, 0x8000, 0x9000)}
    assert innermost(logs.buffer) == expected


def test_call_stacks_of_a_forked_child_are_its_own(compiled, track, logs):  # noqa: F811
    run(compiled(THREADS, "-rdynamic"), {**track, **logs.settings()})
    stacks = re.findall(r"Call Stack:\n((?:    .*\n)*)", logs.buffer.read_text())
    assert len(stacks) == 2 * 4 * (200 + 150)
    # One call takes and one gives back; each has its own place in the program, in both processes.
    assert len({text.splitlines()[0] for text in stacks}) == 2
    assert all(re.match(r"    app\(\+0x[0-9a-f]+\)\n", text) for text in stacks)
