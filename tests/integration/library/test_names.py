# SPDX-License-Identifier: Apache-2.0
"""Names of native frames, wherever a stack is shown: which file they come from, and which process resolves them."""

import ctypes.util
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

from conftest import ROOT
from cxx import run
from test_stacks import (  # noqa: F401
    C_SOURCE,
    compiled,
    expected_c,
    frames,
    line_of,
    offsets,
    start,
)
from ttmemd import get
from world import check_schema, wait_for


def modules(row):
    """The modules of the frames up to main."""
    return {frame["module"] for frame in row["stack"][: len(frames(row))]}


def test_each_frame_says_its_module(world, compiled):  # noqa: F811
    start(world, compiled(C_SOURCE))
    (row,) = world.json("buffers")["buffers"]
    assert modules(row) == {"app"}
    # What called main is in the C library.
    assert row["stack"][4]["module"].startswith("libc.so")
    (incident,) = world.json("incidents")["incidents"]
    for party in ("first", "second"):
        assert modules(incident[party]) == {"app"}
    (group,) = world.json("buffers", "--by", "site")["groups"]
    assert " @ app" not in group["key"]


def test_without_names_the_module_is_said_once(world, compiled):  # noqa: F811
    program = compiled(C_SOURCE)
    run("strip", program)
    start(world, program)
    (row,) = world.json("buffers")["buffers"]
    assert {frame["module"] for frame in row["stack"][:3]} == {"app"}
    lines = [line.strip() for line in world.text("buffers", "--stacks").splitlines()]
    assert lines.count("app (3 frames)") == 1


def start_for(daemon, program, *before, args=(), **settings):
    """The program as one that the daemon sees."""
    env = {**daemon.env, "TTMEM": "1", "TTMEM_STACKS": "fp", **settings}
    process = daemon.adopt(
        subprocess.Popen(
            [*before, program, *args], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    assert process.stdout.readline() == "ready\n"
    return process


def end(process):
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def dropped(line):
    """The stack of one of the frees."""
    return [("drop", line_of(C_SOURCE, "drop")), ("main", line_of(C_SOURCE, "again") + line)]


@pytest.mark.legacy
def test_answers_over_http_have_names(ttmemd, compiled):  # noqa: F811
    ttmemd.start("--http", "127.0.0.1:0")
    process = start_for(ttmemd, compiled(C_SOURCE))

    def buffers():
        page = check_schema(get(ttmemd, "/api/v1/buffers?limit=1"))
        return page["buffers"]

    (row,) = wait_for(buffers, "the buffer")
    assert row["pid"] == process.pid
    assert frames(row) == expected_c() and modules(row) == {"app"}
    (group,) = get(ttmemd, "/api/v1/buffers?by=site")["groups"]
    assert group["key"].endswith(":take")
    # The old report has names as far as they are known.
    assert f"app.c:{line_of(C_SOURCE, 'take')}:take\n" in ttmemd.run("dump").stdout
    (life,) = check_schema(get(ttmemd, "/api/v1/history?address=0x2000"))["buffers"]
    assert [event["op"] for event in life["events"]] == ["alloc", "free", "double_free"]
    assert [frames(event) for event in life["events"][1:]] == [dropped(-1), dropped(0)]
    (incident,) = wait_for(
        lambda: check_schema(get(ttmemd, "/api/v1/incidents"))["incidents"], "the incident"
    )
    assert frames(incident["first"]) == dropped(-1)
    assert frames(incident["second"]) == dropped(0)


def test_history_has_the_stack_of_each_event(world, compiled):  # noqa: F811
    program = compiled(C_SOURCE)
    start(world, program)
    (life,) = world.json("history", "0x2000")["buffers"]
    taken = [("take", line_of(C_SOURCE, "take")), ("main", line_of(C_SOURCE, "twice"))]
    assert [frames(event) for event in life["events"]] == [taken, dropped(-1), dropped(0)]
    lines = world.text("history", "0x2000", "--stacks").splitlines()
    at = [i for i, line in enumerate(lines) if "DOUBLE FREE" in line][0]
    assert lines[at + 1].strip() == f"drop ({program}.c:{line_of(C_SOURCE, 'drop')})"
    assert "app.c" not in world.text("history", "0x2000")


@pytest.mark.parametrize("form", ["json", "text"])
def test_watch_shows_stacks(world, compiled, form):  # noqa: F811
    program = compiled(C_SOURCE)
    watch = world.watch("--stacks", "--format", form)
    process = start(world, program)
    name, number = dropped(0)[0]
    if form == "text":
        lines = iter(watch.stdout.readline, "")
        assert any("double_free" in line for line in lines)
        assert watch.stdout.readline().strip() == f"{name} ({program}.c:{number})"
        assert watch.stdout.readline().strip() == f"main ({program}.c:{dropped(0)[1][1]})"
    else:
        events = []
        while not events or events[-1]["op"] != "double_free":
            events.append(check_schema(json.loads(watch.stdout.readline())))
        assert frames(events[-1]) == dropped(0)
        assert frames([e for e in events if e["op"] == "alloc"][0]) == expected_c()
    assert process.poll() is None


@pytest.fixture
def elsewhere(tmp_path):
    """Command words that run a program where nobody else has it: below a mount of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    script = 'mount -t tmpfs none "$0" && cp "$1" "$0/app" && exec "$0/app"'
    return ("unshare", "--mount", "sh", "-c", script, str(folder))


def test_files_of_another_mount_namespace(world, compiled, elsewhere):  # noqa: F811
    process = start_for(world, compiled(C_SOURCE), *elsewhere)
    world.show(process.pid)
    assert not os.listdir(elsewhere[-1])
    (row,) = world.json("buffers")["buffers"]
    assert frames(row) == expected_c()


def test_over_http_too(ttmemd, compiled, elsewhere):  # noqa: F811
    ttmemd.start("--http", "127.0.0.1:0")
    start_for(ttmemd, compiled(C_SOURCE), *elsewhere)
    (row,) = wait_for(lambda: get(ttmemd, "/api/v1/buffers")["buffers"], "the buffer")
    assert frames(row) == expected_c()


def test_a_container_that_has_ended_has_the_names_it_had(ttmemd, compiled, elsewhere):  # noqa: F811
    """Nobody has asked: the daemon has learnt them by itself, after a while."""
    ttmemd.start()
    program = compiled(C_SOURCE)
    lives = (2**i for i in itertools.count())  # twice as long each time: the machine may be busy

    def named():
        process = start_for(ttmemd, program, *elsewhere)
        time.sleep(next(lives))
        end(process)
        (row,) = ttmemd.wait_for_leak(process.pid)["buffers"]
        if frames(row) == expected_c():
            return True
        assert len(offsets(row, "app")) == 3  # and nothing else
        return False

    wait_for(named, "names")


def away(program, how):
    """The file of a running program is deleted, or replaced by one that would give other names."""
    os.unlink(program)
    if how == "replaced":
        text = program.with_name("other.c")
        text.write_text("int take, wrap, load;\nint main(void) { return 0; }\n")
        run("gcc", "-g", "-Wl,--build-id", text, "-o", program)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_program_whose_file_is_gone(world, compiled, how):  # noqa: F811
    program = compiled(C_SOURCE)
    process = start(world, program)
    away(program, how)
    (row,) = world.json("buffers")["buffers"]
    assert frames(row) == expected_c() and modules(row) == {"app"}
    assert f"app.c:{line_of(C_SOURCE, 'take')}" in world.text("buffers", "--stacks")
    end(process)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_the_daemon_finds_it_too(ttmemd, compiled, how):  # noqa: F811
    program = compiled(C_SOURCE)
    ttmemd.start("--http", "127.0.0.1:0")
    start_for(ttmemd, program, TTMEM_STACKS="fp")
    away(program, how)
    (row,) = wait_for(lambda: get(ttmemd, "/api/v1/buffers")["buffers"], "the buffer")
    assert frames(row) == expected_c() and modules(row) == {"app"}


def link_debug(program):
    """The program as distributions have it: stripped, with a link to the file that has the rest."""
    debug = program.with_name("app.debug")
    run("objcopy", "--only-keep-debug", program, debug)
    run("strip", program)
    run("objcopy", f"--add-gnu-debuglink={debug}", program)


@pytest.mark.parametrize("how", ["whole", "linked", "stripped", "deleted", "replaced"])
def test_command_and_daemon_give_the_same_names(ttmemd, compiled, how):  # noqa: F811
    program = compiled(C_SOURCE)
    if how == "linked":
        link_debug(program)
    elif how == "stripped":
        run("strip", program)
    ttmemd.start("--http", "127.0.0.1:0")
    process = start_for(ttmemd, program)
    if how in ("deleted", "replaced"):
        away(program, how)
    (theirs,) = wait_for(lambda: get(ttmemd, "/api/v1/buffers")["buffers"], "the buffer")
    (ours,) = ttmemd.json("buffers")["buffers"]
    assert ours["pid"] == theirs["pid"] == process.pid
    assert ours["stack"] == theirs["stack"]
    if how == "stripped":
        assert len(offsets(ours, "app")) == 3
    else:
        assert frames(ours) == expected_c()


LIBRARY = """\
#include <ttmem/ttmem.h>
void take(int n)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, 0); /* take */
	__asm__ volatile("");
}
"""
CALLER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*take)(int) = (void (*)(int))dlsym(library, "take");

	take(1);
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
"""


@pytest.mark.needs_root
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_library_whose_file_is_gone(world, compiled, tmp_path, how):  # noqa: F811
    """Loaded by a link, so that its name tells nothing of the file."""
    library, link = tmp_path / "libmodel.so.1", tmp_path / "libmodel.so"
    (tmp_path / "model.c").write_text(LIBRARY)
    run("gcc", "-g", "-O1", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-Wl,--build-id",
        "-I", ROOT / "include", tmp_path / "model.c", "-o", library)
    link.symlink_to(library)
    process = start_for(world, compiled(CALLER, "-Wl,--no-as-needed"), args=[link])
    world.show(process.pid)
    away(library, how)
    try:
        with open("/proc/self/maps") as maps:
            mapped = next(line.split()[0] for line in maps if "/" in line)
        start_end = "-".join(part.lstrip("0") for part in mapped.split("-"))
        os.readlink(f"/proc/self/map_files/{start_end}")
    except PermissionError:
        pytest.skip("may not look at mapped files")
    (row,) = world.json("buffers")["buffers"]
    assert frames(row)[0] == ("take", line_of(LIBRARY, "take"))


@pytest.fixture
def split(compiled, tmp_path):  # noqa: F811
    """A program without debug information, the file that has it, and the id of both."""
    program = compiled(C_SOURCE)
    run("objcopy", "--only-keep-debug", program, tmp_path / "app.debug")
    notes = run("readelf", "-n", program)
    run("strip", program)
    (build_id,) = re.findall(r"Build ID: ([0-9a-f]+)", notes)
    return program, tmp_path / "app.debug", build_id


def test_debug_information_below_usr_lib_debug(world, split, tmp_path):
    if os.geteuid() != 0 or not os.path.isdir("/usr/lib/debug"):
        pytest.skip("needs root, and the folder")
    program, debug, build_id = split
    folder = tmp_path / "debug" / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    start(world, program)

    def look():
        script = 'mount --bind "$0" /usr/lib/debug && exec "$@"'
        text = run("unshare", "--mount", "sh", "-c", script, tmp_path / "debug", world.program,
                   "buffers", "--json", env=world.env)
        return json.loads(text)["buffers"][0]

    assert len(offsets(look(), "app")) == 3
    # A file that does not belong to it is not used.
    other = folder / f"{build_id[2:]}.debug"
    shutil.copy("/bin/true", other)
    assert len(offsets(look(), "app")) == 3
    shutil.copy(debug, other)
    assert frames(look()) == expected_c()
    # It is enough, by its id.
    os.unlink(program)
    assert frames(look()) == expected_c()


@pytest.fixture
def server(split):
    """A debuginfod that knows one program; what it was asked for is in .asked."""
    _, debug, build_id = split

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            known = self.path == f"/buildid/{build_id}/debuginfo"
            body = debug.read_bytes() if known else b""
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("gone", [False, True], ids=["stripped", "gone"])
def test_debug_information_from_a_server(world, split, server, tmp_path, gone):
    if not ctypes.util.find_library("debuginfod"):
        pytest.skip("no libdebuginfod")
    program, _, build_id = split
    start(world, program)
    if gone:
        os.unlink(program)
    env = {
        **world.env,
        "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}/",
        "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"),
        "no_proxy": "127.0.0.1",
    }
    (row,) = world.json("buffers", env=env)["buffers"]
    assert frames(row) == expected_c()
    assert server.asked.count(f"/buildid/{build_id}/debuginfo") == 1
    # The next time it is in the cache.
    (row,) = world.json("buffers", env=env)["buffers"]
    assert frames(row) == expected_c()
    assert server.asked.count(f"/buildid/{build_id}/debuginfo") == 1
    # Only servers that were named are asked.
    (row,) = world.json("buffers", env={**env, "DEBUGINFOD_URLS": ""})["buffers"]
    assert len(offsets(row, "app")) == 3


def test_records_of_the_daemon_get_names_from_a_server_when_they_are_read(ttmemd, split, server, tmp_path):
    """The daemon asks no server, whatever its environment says: who reads its records does, by build id."""
    if not ctypes.util.find_library("debuginfod"):
        pytest.skip("no libdebuginfod")
    program, _, build_id = split
    env = {
        "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}/",
        "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"),
        "no_proxy": "127.0.0.1",
    }
    ttmemd.start("--http", "127.0.0.1:0", env=env)
    process = ttmemd.adopt(
        subprocess.Popen(
            [program], env={**ttmemd.env, "TTMEM": "1", "TTMEM_STACKS": "fp"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    os.unlink(program)
    process.kill()
    process.communicate()

    def leaks(**env):
        env = {**ttmemd.env, "DEBUGINFOD_URLS": "", **env}
        return check_schema(json.loads(ttmemd.run("leaks", "--json", env=env).stdout))["processes"]

    (leak,) = wait_for(leaks, "the report")
    (site,) = leak["sites"]
    assert len(offsets(site, "app")) == 3 and site["site"]["function"].startswith("app+0x")
    assert {frame["build_id"] for frame in site["stack"] if frame["module"] == "app"} == {build_id}
    assert server.asked == []
    (leak,) = leaks(**env)
    assert frames(leak["sites"][0]) == frames(leak["buffers"][0]) == expected_c()
    assert leak["sites"][0]["site"]["file"].endswith("app.c")
    assert not [frame for frame in leak["sites"][0]["stack"] if frame["module"] == "app" and "build_id" in frame]
    assert server.asked.count(f"/buildid/{build_id}/debuginfo") == 1
    text = ttmemd.run("leaks", env={**ttmemd.env, **env}).stdout
    assert f", at {leak['sites'][0]['site']['function']} (app.c:" in text and "app+0x" not in text


SITES = 500
LEVELS = 6
EACH = 20


def many_sites():
    """A program with 500 ways to allocate, each through functions of its own, 20 times each."""
    lines = ["#include <stdio.h>", "#include <ttmem/ttmem.h>", "typedef unsigned long word;"]
    for i in range(SITES):
        call = "ttmem_alloc(0, TTMEM_DRAM, address, 64, 0)"
        for level in range(LEVELS):
            name = f"site_{i}_{level}"
            lines.append(f"__attribute__((noinline)) void {name}(word address)")
            lines.append(f'{{ {call}; __asm__ volatile(""); }}')
            call = f"{name}(address)"
    lines.append("static void (*const sites[])(word) = {")
    lines += [f"site_{i}_{LEVELS - 1}," for i in range(SITES)]
    lines.append("};\nint main(void) {")
    lines.append(f"for (word i = 0; i < {SITES * EACH}; i++) sites[i % {SITES}]((i + 1) * 4096);")
    lines.append('puts("ready"); fflush(stdout); return getchar() == 120; }')
    return "\n".join(lines)


def test_many_buffers_of_some_stacks(world, compiled):  # noqa: F811
    """docs/performance.md has how long this takes."""
    start(world, compiled(many_sites()))
    # Checking so many rows against the schema would take longer than all the rest.
    rows = json.loads(world.text("buffers", "--json"))["buffers"]
    assert len(rows) == SITES * EACH
    for row in rows:
        site = (int(row["address"], 16) // 4096 - 1) % SITES
        names = [frame["function"] for frame in row["stack"][: LEVELS + 1]]
        assert names == [*(f"site_{site}_{level}" for level in range(LEVELS)), "main"]
    groups = world.json("buffers", "--by", "site")["groups"]
    assert len(groups) == SITES and {group["buffers"] for group in groups} == {EACH}
