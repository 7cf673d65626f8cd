# SPDX-License-Identifier: Apache-2.0
"""The C++ header, the drop-in for the old client, and the plain C example.

Everything is compiled against an installed tree with the flags of pkg-config, then run.
"""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import threading

import pytest

from conftest import LIMIT, ROOT
from cxx import WARNINGS, installed_tree, run

HEADER = r"""
#include <ttmem/ttmem.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

using ttmem::memory;

static_assert(std::is_nothrow_move_constructible_v<ttmem::buffer>);
static_assert(std::is_nothrow_move_assignable_v<ttmem::buffer>);
static_assert(!std::is_copy_constructible_v<ttmem::buffer>);
static_assert(!std::is_copy_assignable_v<ttmem::buffer>);
static_assert(!std::is_move_constructible_v<ttmem::phase>);
static_assert(!std::is_move_constructible_v<ttmem::pause>);
static_assert(std::is_nothrow_constructible_v<ttmem::buffer, std::uint32_t, memory, std::uint64_t,
	      std::uint64_t, const char *>);
static_assert(noexcept(ttmem::alloc_mesh(std::declval<std::vector<std::uint32_t> &>(),
	      memory::l1, 0, 0)));
static_assert(!std::is_constructible_v<ttmem::devices, std::vector<int>>);

static void say(const char *what)
{
	struct ttmem_stats all = {};

	for (std::uint32_t device = 0; device < 8; device++) {
		struct ttmem_stats one = ttmem::stats(device);

		all.bytes += one.bytes;
		all.buffers += one.buffers;
		all.allocs += one.allocs;
		all.frees += one.frees;
	}
	std::printf("%s %llu %llu %llu %llu\n", what, (unsigned long long)all.bytes,
		    (unsigned long long)all.buffers, (unsigned long long)all.allocs,
		    (unsigned long long)all.frees);
}

static void guards()
{
	ttmem::buffer empty;
	ttmem::buffer one(0, memory::dram, 0x1000, 100, "one");

	if (empty || !one || one.address() != 0x1000 || one.size() != 100 ||
	    one.type() != memory::dram || one.device() != 0)
		std::puts("wrong guard");
	say("made");
	ttmem::buffer two(std::move(one));
	say("moved");
	empty = std::move(two);
	ttmem::buffer &self = empty;
	empty = std::move(self);
	say("assigned");
	empty = ttmem::buffer(1, memory::l1, 0x1000, 7);
	say("replaced");
	empty.reset();
	empty.reset();
	say("reset");
	ttmem::buffer kept(0, memory::trace, 0x3000, 5);
	kept.release();
}

static void meshes()
{
	const std::uint32_t array[] = {0, 1};
	const std::array<std::uint32_t, 3> three = {0, 1, 2};
	std::vector<std::uint32_t> four = {0, 1, 2, 3};

	ttmem::alloc_mesh(array, memory::l1, 0x10, 1);
	ttmem::alloc_mesh(three, memory::l1, 0x20, 1);
	ttmem::alloc_mesh(four, memory::l1, 0x30, 1, "four");
	ttmem::alloc_mesh({0, 1, 2, 3, 4}, memory::l1, 0x40, 1);
#if __cplusplus >= 202002L
	ttmem::alloc_mesh(std::span(four).first(2), memory::l1, 0x50, 1);
#else
	ttmem::alloc_mesh(ttmem::devices(four.data(), 2), memory::l1, 0x50, 1);
#endif
	say("meshes");
	ttmem::free_mesh(array, memory::l1, 0x10);
	ttmem::free_mesh(three, memory::l1, 0x20);
	ttmem::free_mesh(four, memory::any, 0x30);
	ttmem::free_mesh({0, 1, 2, 3, 4}, memory::l1, 0x40);
	ttmem::free_mesh(ttmem::devices(four.data(), 2), memory::l1, 0x50);
	say("freed");
}

int main()
{
	std::printf("enabled %d\n", ttmem::enabled());
	guards();
	say("released");
	meshes();
	{
		ttmem::pause nothing;

		ttmem::alloc(0, memory::dram, 0x9000, 1);
	}
	say("paused");
	{
		ttmem::phase outer("layer");
		ttmem::phase inner(std::string("step"));

		ttmem::alloc(0, memory::dram, 0x7000, 11, "inside");
	}
	ttmem::alloc(0, memory::kernel, 0x8000, 13, "outside");
	ttmem::alloc_failed(0, memory::l1, 1 << 20);
	ttmem::mark("end");
	return 0;
}
"""

# Bytes, buffers, allocs and frees so far, over all devices.
HEADER_SAYS = """\
enabled 1
made 100 1 1 0
moved 100 1 1 0
assigned 100 1 1 0
replaced 7 1 2 1
reset 0 0 2 2
released 5 1 3 2
meshes 21 17 19 2
freed 5 1 19 18
paused 5 1 19 18
"""

# The documented interface of the old client, and nothing else.
OLD_CLIENT = r"""
#include <tt-metalium/allocation_client.hpp>

/* Old code may also keep a pointer to it. */
void (*const report)(int, uint64_t, uint8_t, uint64_t) =
	&tt::tt_metal::AllocationClient::report_allocation;

int main()
{
	using tt::tt_metal::AllocationClient;

	if (!AllocationClient::is_enabled())
		return 3;
	for (uint8_t type = 0; type <= 4; type++)
		report(0, 1000u + type, type, 0x1000u + type);
	AllocationClient::report_allocation(0, 9, 5, 0xbad5); /* no BufferType: refused */
	AllocationClient::report_allocation(-1, 9, 0, 0xbad1);
	AllocationClient::report_cb_allocation(0, 66, 0x1001); /* in the buffer that goes next */
	AllocationClient::report_deallocation(0, 0x1001);
	AllocationClient::report_deallocation(0, 0x1001);
	AllocationClient::report_cb_allocation(1, 64, 0x10);
	AllocationClient::report_cb_allocation(1, 65, 0x20);
	AllocationClient::report_cb_deallocation(1, 12345, 0x20);
	AllocationClient::report_kernel_load(2, 70, 0x1);
	AllocationClient::report_kernel_load(2, 71, 0x2, 1);
	AllocationClient::report_kernel_load(2, 72, 0x3, 2);
	AllocationClient::report_kernel_load(2, 73, 0x4, 99);
	AllocationClient::report_kernel_unload(2, 0, 0x2);
	return 0;
}
"""

OLD_CLIENT_LEFT = {
    (0, "DRAM", 1000), (0, "SYSTEM_MEMORY", 1002), (0, "L1_SMALL", 1003), (0, "TRACE", 1004),
    (0, "CB", 66), (1, "CB", 64), (2, "KERNEL", 70), (2, "KERNEL", 72), (2, "KERNEL", 73),
}  # fmt: skip

# Two snippets of the old documentation index, to the letter.
SNIPPET_QUERY = r"""
#include <allocation_client.hpp>
auto stats = query_device(0);
std::cout << "DRAM: " << stats.dram / 1e9 << " GB\n";
"""

SNIPPET_STEPS = r"""
// 1. Include client
#include <tt-metalium/allocation_client.hpp>

// 2. On allocation
if (AllocationClient::is_enabled()) {
    AllocationClient::report_allocation(
        device_id, size, buffer_type, address);
}

// 3. On deallocation
if (AllocationClient::is_enabled()) {
    AllocationClient::report_deallocation(device_id, address);
}
"""

QUERY = r"""
#include <allocation_client.hpp>

#include <dirent.h>

static int open_files()
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

int main(int, char **argv)
{
	const int device = atoi(argv[1]);

	AllocationClient::report_allocation(device, 1, 0, 0x10);
	AllocationClient::report_allocation(device, 20, 1, 0x20);
	AllocationClient::report_allocation(device, 300, 3, 0x30);
	AllocationClient::report_allocation(device, 4000, 4, 0x40);
	const int before = open_files();
	errno = 77;
	const auto stats = query_device(atoi(argv[2]));
	std::cout << stats.dram << ' ' << stats.l1 << ' ' << stats.l1_small << ' ' << stats.trace
		  << ' ' << stats.machine_wide << ' ' << open_files() - before << ' ' << errno << '\n';
	return 0;
}
"""


def function_of(snippet, before=""):
    """The snippet as a program: includes on top, the rest in main(); not a letter changed."""
    lines = snippet.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    rest = [line for line in lines if not line.startswith("#include")]
    return "\n".join([*includes, "int main()", "{", before, *rest, "return 0;", "}", ""])


@pytest.fixture(scope="module")
def installed(build_folder, tmp_path_factory):
    return installed_tree(build_folder, tmp_path_factory)


@pytest.fixture
def program(installed, tmp_path):
    """Call as program(source): compiled with the flags of ttmem-compat."""

    def compile_one(source, *flags, package="ttmem-compat", **options):
        file = tmp_path / "app.cpp"
        file.write_text(source)
        return installed.compile(file, tmp_path / "app", *flags, package=package, **options)

    return compile_one


@pytest.fixture(scope="module")
def query(installed, tmp_path_factory):
    """The program QUERY, compiled once."""
    folder = tmp_path_factory.mktemp("query")
    (folder / "query.cpp").write_text(QUERY)
    return installed.compile(folder / "query.cpp", folder / "query", "-std=c++17",
                             package="ttmem-compat")


@pytest.fixture
def left_behind(ttmem, tmp_path):
    """Call as left_behind(program, argument...): the live buffers at its end."""

    def look(*command, env=None):
        path = tmp_path / "run.json"
        done = ttmem("run", "--quiet", "--json", path, "--", *command, env=env)
        assert done.returncode == 0, done.stderr
        document = json.loads(path.read_text())
        return [b for p in document["processes"] for b in p["buffers"]], done.stdout

    return look


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", ["-std=c++17", "-std=c++20", "-std=c++17 -fno-exceptions -fno-rtti"])
def test_cxx_header_records_calls(program, left_behind, compiler, flags):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    app = program(HEADER, *flags.split(), compiler=compiler, package="ttmem")
    buffers, said = left_behind(app)
    assert said == HEADER_SAYS
    found = {(b["type"], b["size"]): (b["name"], b["phase"]) for b in buffers}
    assert found == {
        ("TRACE", 5): (None, None),
        ("DRAM", 11): ("inside", "layer/step"),
        ("KERNEL", 13): ("outside", None),
    }


def test_header_while_tracking_is_off(program, clean_env):
    app = program(HEADER, "-std=c++17", package="ttmem")
    said = run(app, env={**clean_env, "TTMEM": "0"})
    assert said.startswith("enabled 0\nmade 0 0 0 0\n")


@pytest.mark.parametrize("flags", ["-std=c++17", "-std=c++20 -fno-exceptions"])
def test_old_client_compiles_and_counts(program, left_behind, flags):
    buffers, _ = left_behind(program(OLD_CLIENT, *flags.split()))
    assert {(b["device"], b["type"], b["size"]) for b in buffers} == OLD_CLIENT_LEFT
    assert len(buffers) == len(OLD_CLIENT_LEFT)


def test_old_client_is_switched_by_the_old_variable(program, clean_env):
    app = program(OLD_CLIENT, "-std=c++17")
    for value, code in (("1", 0), ("0", 3), ("yes", 3)):
        env = {**clean_env, "TT_ALLOC_TRACKING_ENABLED": value}
        assert subprocess.run([app], env=env, timeout=LIMIT).returncode == code, value


def test_old_names_can_be_kept_out_of_the_global_namespace(program):
    program(
        "#define TTMEM_COMPAT_NO_GLOBAL_NAMES\n#include <allocation_client.hpp>\n"
        "class AllocationClient {};\nint query_device(int device) { return device; }\n"
        "int main() { return query_device(0) + tt::tt_metal::AllocationClient::is_enabled() * 0; }\n",
        "-std=c++17",
    )


def test_snippets_of_the_old_documents(program, clean_env, left_behind):
    quiet = {"TT_ALLOC_SERVER_SOCKET": "none"}
    app = program(function_of(SNIPPET_QUERY), "-std=c++17", "-Wno-conversion")
    assert run(app, env={**clean_env, **quiet}) == "DRAM: 0 GB\n"
    values = "int device_id = 0; uint64_t size = 8, address = 4096; uint8_t buffer_type = 1;"
    app = program(function_of(SNIPPET_STEPS, values), "-std=c++17")
    assert left_behind(app)[0] == []


def test_query_without_a_server(query, clean_env, tmp_path):
    env = {**clean_env, "TTMEM": "1"}
    for place in ("none", tmp_path / "nobody", "x" * 200):
        env["TT_ALLOC_SERVER_SOCKET"] = str(place)
        assert run(query, 0, 0, env=env) == "1 20 300 4000 0 0 77\n"
    assert run(query, 0, 7, env=env) == "0 0 0 0 0 0 77\n"
    assert run(query, 0, -1, env=env) == "0 0 0 0 0 0 77\n"


def test_query_asks_the_daemon(query, ttmemd):
    """Its answer is the whole machine's: another process's buffers are in it."""
    ttmemd.start()
    # A number that nobody else on the machine is likely to use.
    ttmemd.player("alloc 713 DRAM 0x1000 50000", "alloc 713 L1 0x1000 600000")
    env = {**ttmemd.env, "TTMEM": "1", "TT_ALLOC_SERVER_SOCKET": str(ttmemd.legacy)}
    assert run(query, 713, 713, env=env) == "50001 600020 300 4000 1 0 77\n"


@contextlib.contextmanager
def bad_server(path, answer):
    """Takes one connection, answers with these bytes, and holds the line until the end."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.settimeout(LIMIT / 2)
        listening.bind(str(path))
        listening.listen(1)
        peers = []

        def serve():
            peer, _ = listening.accept()
            peers.append(peer)
            peer.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join()
            for peer in peers:
                peer.close()
        assert peers, "nobody asked"


@pytest.mark.parametrize("answer", [b"", b"\4", b"\4" * 71, b"\5" + b"\1" * 71], ids=len)
def test_query_does_not_wait_for_a_bad_server(query, clean_env, tmp_path, answer):
    """Nothing, too little, something else: then this process's own figures."""
    path = tmp_path / "bad"
    env = {**clean_env, "TTMEM": "1", "TT_ALLOC_SERVER_SOCKET": str(path)}
    with bad_server(path, answer):
        assert run(query, 0, 0, env=env) == "1 20 300 4000 0 0 77\n"


def test_query_does_not_wait_in_a_queue(query, clean_env, tmp_path):
    """A server that no longer accepts, with a full queue."""
    path = tmp_path / "full"
    env = {**clean_env, "TTMEM": "1", "TT_ALLOC_SERVER_SOCKET": str(path)}
    with socket.socket(socket.AF_UNIX) as listening, contextlib.ExitStack() as others:
        listening.bind(str(path))
        listening.listen(0)
        while True:
            peer = others.enter_context(socket.socket(socket.AF_UNIX))
            peer.setblocking(False)
            try:
                peer.connect(str(path))
            except BlockingIOError:
                break
        assert run(query, 0, 0, env=env) == "1 20 300 4000 0 0 77\n"


def test_cmake_target_for_the_old_client(installed, tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    (tmp_path / "app.cpp").write_text(OLD_CLIENT)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(ttmem REQUIRED)\nadd_executable(app app.cpp)\n"
        "target_link_libraries(app ttmem::compat)\n"
    )
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "b",
        f"-DCMAKE_PREFIX_PATH={installed.prefix}")
    run("cmake", "--build", tmp_path / "b")


def test_cpp_of_the_document_compiles(installed, tmp_path):
    text = (ROOT / "docs" / "integrate.md").read_text()
    (block,) = re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)
    (tmp_path / "layer.cpp").write_text(block)
    run("g++", "-std=c++17", *WARNINGS, "-c", tmp_path / "layer.cpp", "-o", tmp_path / "layer.o",
        *installed.flags())


def test_plain_c_example(installed, tmp_path, left_behind):
    """examples/c: an allocator with three calls, which leaves one buffer behind on purpose."""
    source = ROOT / "examples" / "c" / "arena.c"
    app = tmp_path / "arena"
    run("cc", "-std=c99", *WARNINGS, source, "-o", app, *installed.flags())
    buffers, said = left_behind(app)
    assert said == "3 handed out, 2 given back, 1 refused\n"
    assert [(b["device"], b["type"], b["size"], b["name"]) for b in buffers] == [
        (0, "L1", 4096, "forgotten")
    ]
