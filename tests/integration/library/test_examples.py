# SPDX-License-Identifier: Apache-2.0
"""examples/: a monitor, a pytest fixture, a profile, and PyTorch's allocator do what they say."""

import re
import subprocess

import pytest

from conftest import LIMIT, ROOT
from cxx import WARNINGS, installed_tree, run

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def installed(build_folder, tmp_path_factory):
    return installed_tree(build_folder, tmp_path_factory)


@pytest.fixture
def python_env(installed, clean_env):
    if not (installed.prefix / "lib" / "python" / "ttmem").exists():
        pytest.skip("the Python package is not built")
    return {**clean_env, "PYTHONPATH": f"{installed.prefix}/lib/python", "LD_LIBRARY_PATH": f"{installed.prefix}/lib"}


HOLDER = """\
#include <stdio.h>
#include <ttmem/ttmem.h>
int main(void)
{
	struct ttmem_device_args device = {.struct_size = sizeof(device), .device = 0, .card = "n300"};

	ttmem_device(&device);
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 3 << 20, "weights");
	ttmem_alloc(0, TTMEM_DRAM, 0x800000, 1 << 20, "cache");
	ttmem_alloc(0, TTMEM_L1, 0x1000, 1 << 19, "tile");
	puts("ready");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}
"""


@pytest.fixture
def holder(compile_c, clean_env):
    """A process that holds 4 MiB of DRAM and 512 KiB of L1."""
    process = subprocess.Popen([compile_c(HOLDER, "holder")], env={**clean_env, "TTMEM": "1"},
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    with process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def test_monitor_lists_devices_and_processes(installed, holder, clean_env, tmp_path):
    monitor = installed.compile(EXAMPLES / "monitor/monitor.cpp", tmp_path / "monitor", "-std=c++17",
                                package="ttmem-query")  # fmt: skip
    assert run(monitor, env=clean_env) == (
        "device 0 n300: DRAM 4.0 MiB, L1 0.5 MiB, 1 processes\n"
        f"  pid {holder.pid} holder, device 0: DRAM 4.0 MiB in 2 buffers, L1 0.5 MiB\n"
    )


def test_the_reader_needs_only_libc(installed):
    needed = run("readelf", "-d", installed.prefix / "lib/libttmem-query.so")
    assert set(re.findall(r"NEEDED.*\[(.*)\]", needed)) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def test_pytest_fixture_fails_the_test_that_leaks(python_env):
    done = subprocess.run(["/usr/bin/python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLES / "pytest"],
                          env={**python_env, "TTMEM": "1"}, capture_output=True, text=True, timeout=LIMIT)  # fmt: skip
    assert "2 passed, 1 error" in done.stdout
    assert "device memory was left behind, in bytes: {'DRAM': 65536}" in done.stdout


def test_profile_shows_the_peak_of_each_phase(python_env):
    said = run("/usr/bin/python3", "-B", EXAMPLES / "profile/phases.py", env={**python_env, "TTMEM": "1"})
    assert said == "load: peak 64.0 MiB, left 64.0 MiB, 1 allocations\ndecode: peak 8.0 MiB, left 0.0 MiB, 4 allocations\n"


# Stands for the CUDA runtime, and for PyTorch, which calls the two functions by their names.
CUDA = """\
#include <stddef.h>
#include <stdlib.h>
int cudaMalloc(void **ret_address, size_t size) { return size > 1 << 20 ? 2 : !(*ret_address = malloc(size)); }
int cudaFree(void *address) { free(address); return 0; }
"""
TRAINING = """\
import ctypes, os, subprocess, sys
import ttmem
cuda = ctypes.CDLL(sys.argv[1] + "/libcudart.so", ctypes.RTLD_GLOBAL)
allocator = ctypes.CDLL(sys.argv[1] + "/allocator.so")
malloc, free = allocator.tracked_malloc, allocator.tracked_free
malloc.restype = ctypes.c_void_p
malloc.argtypes = ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
free.argtypes = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
def forward():
    return malloc(4096, 0, None)
kept, freed = forward(), malloc(8192, 0, None)
free(freed, 8192, 0, None)
assert malloc(2 << 20, 0, None) is None
print(subprocess.run([sys.argv[2], "buffers", "--stacks", "--pid", str(os.getpid())], text=True, stdout=-1).stdout)
print(subprocess.run([sys.argv[2], "incidents", "--pid", str(os.getpid())], text=True, stdout=-1).stdout)
"""


def test_pytorch_allocator_reports_every_buffer_with_its_line(installed, python_env, tmp_path):
    (tmp_path / "cuda.c").write_text(CUDA)
    (tmp_path / "training.py").write_text(TRAINING)
    run("cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so", tmp_path / "cuda.c", "-o", tmp_path / "libcudart.so")
    run("cc", "-shared", "-fPIC", *WARNINGS, EXAMPLES / "pytorch/allocator.c", "-o", tmp_path / "allocator.so",
        f"-L{tmp_path}", "-lcudart", *installed.flags())  # fmt: skip
    said = run("/usr/bin/python3", "-B", tmp_path / "training.py", tmp_path, installed.prefix / "bin/ttmem",
               env={**python_env, "TTMEM": "1"})  # fmt: skip
    assert said.split("alloc_failed")[0].count("4.0 KiB") == 1 and "8.0 KiB" not in said
    assert "forward (" in said and "training.py:10)" in said
    assert "alloc_failed" in said and "2.0 MiB" in said


# What data/nvtop uses of nvtop, in our own words: nvtop itself is not in this repository. docs/nvtop.md says with
# which version it was tried.
NVTOP = """\
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
struct list_head { struct list_head *next; };
static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->next = NULL;
	while (head->next)
		head = head->next;
	head->next = entry;
}
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define SET_VALID(field, valid) ((valid)[(field) / CHAR_BIT] |= (unsigned char)(1 << (field) % CHAR_BIT))
#define RESET_ALL(valid) memset(valid, 0, sizeof(valid))
#define SET_GPUINFO_DYNAMIC(info, field, value) ((info)->field = (value))
#define SET_GPUINFO_PROCESS(info, field, value) ((info)->field = (value))
#define PDEV_LEN 16
enum { gpuinfo_device_name_valid, gpu_process_compute };
struct gpuinfo_static_info { char device_name[128]; unsigned char valid[1]; };
struct gpuinfo_dynamic_info { unsigned mem_util_rate; unsigned long long total_memory, free_memory, used_memory; unsigned char valid[1]; };
struct gpu_process { int type; pid_t pid; unsigned long long gpu_memory_usage; };
struct gpu_info;
struct gpu_vendor {
	bool (*init)(void);
	void (*shutdown)(void);
	const char *(*last_error_string)(void);
	bool (*get_device_handles)(struct list_head *devices, unsigned *count);
	void (*populate_static_info)(struct gpu_info *);
	void (*refresh_dynamic_info)(struct gpu_info *);
	void (*refresh_running_processes)(struct gpu_info *);
	char *name;
};
struct gpu_info {
	struct list_head list;
	struct gpu_vendor *vendor;
	struct gpuinfo_static_info static_info;
	struct gpuinfo_dynamic_info dynamic_info;
	unsigned processes_count, processes_array_size;
	struct gpu_process *processes;
	char pdev[PDEV_LEN];
};
void register_gpu_vendor(struct gpu_vendor *vendor);
"""
# Shows everything again for each line that it reads. Its clock runs fast, so that every round looks at the machine.
NVTOP_MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "nvtop/extract_gpuinfo_common.h"
static struct gpu_vendor *vendor;
void register_gpu_vendor(struct gpu_vendor *registered) { vendor = registered; }
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static time_t seconds;

	(void)clock;
	*now = (struct timespec){.tv_sec = ++seconds};
	return 0;
}
static void show(struct gpu_info *info)
{
	struct gpuinfo_dynamic_info *memory = &info->dynamic_info;

	vendor->refresh_dynamic_info(info);
	vendor->refresh_running_processes(info);
	printf("%s: %s %llu/%llu %u%%", info->pdev, info->static_info.device_name, memory->used_memory,
	       memory->total_memory, memory->mem_util_rate);
	for (unsigned i = 0; i < info->processes_count; i++)
		printf(", %d: %llu", (int)info->processes[i].pid, info->processes[i].gpu_memory_usage);
	puts("");
}
int main(void)
{
	struct list_head devices = {0};
	unsigned count;

	if (!vendor->init() || !vendor->get_device_handles(&devices, &count))
		return 1;
	for (struct list_head *at = devices.next; at; at = at->next)
		vendor->populate_static_info((struct gpu_info *)at);
	do {
		for (struct list_head *at = devices.next; at; at = at->next)
			show((struct gpu_info *)at);
		puts("shown");
		fflush(stdout);
	} while (getchar() != EOF);
	for (struct list_head *at = devices.next; at; at = at->next)
		free(((struct gpu_info *)at)->processes);
	vendor->shutdown();
	return 0;
}
"""


@pytest.fixture
def nvtop(installed, clean_env, tmp_path):
    """Rows of devices as nvtop shows them; each call looks again. It must end without an error."""
    (tmp_path / "nvtop").mkdir()
    (tmp_path / "nvtop" / "extract_gpuinfo_common.h").write_text(NVTOP)
    (tmp_path / "main.c").write_text(NVTOP_MAIN)
    run("cc", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{tmp_path}", tmp_path / "main.c",
        ROOT / "data/nvtop/extract_gpuinfo_ttmem.c", "-o", tmp_path / "shown", "-Wl,--wrap=clock_gettime",
        *installed.flags("ttmem-query"))  # fmt: skip
    started = []

    def shown():
        if started:
            started[0].stdin.write("\n")
            started[0].stdin.flush()
        else:
            started.append(subprocess.Popen([tmp_path / "shown"], env=clean_env, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True))  # fmt: skip
        return [row.strip() for row in iter(started[0].stdout.readline, "shown\n") if row or pytest.fail("it ended")]

    yield shown
    with started[0] as process:
        process.stdin.close()
        assert process.wait(LIMIT) == 0


def test_nvtop_shows_devices_and_processes(nvtop, holder):
    assert nvtop() == [f"ttmem 0: Tenstorrent n300 #0 {4 << 20}/{12 << 30} 0%, {holder.pid}: {4 << 20}"]


NVTOP_CARD = """\
#include <stdio.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>
int main(int argc, char **argv)
{
	struct ttmem_device_args device = {.struct_size = sizeof(device), .device = (uint32_t)atoi(argv[1])};

	ttmem_alloc(device.device, TTMEM_DRAM, 0x1000, (uint64_t)atoi(argv[2]) << 20, "weights");
	device.unique_id = (uint64_t)atoi(argv[3]);
	device.card = argc > 4 ? argv[4] : NULL;
	device.memory[TTMEM_DRAM].capacity = 4 << 20;
	for (;;) {
		puts("ready");
		fflush(stdout);
		if (getchar() == EOF)
			return 0;
		ttmem_device(&device);
	}
}
"""


@pytest.fixture
def card(compile_c, clean_env):
    """A function that starts a process with some MiB of a device; it declares the id and the card when asked to."""
    program = compile_c(NVTOP_CARD, "card")
    started = []

    def start(*words):
        process = subprocess.Popen([program, *map(str, words)], env={**clean_env, "TTMEM": "1"},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def declare(process):
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"


def test_nvtop_gives_cards_of_the_same_number_their_own_processes(nvtop, card):
    first, second = card(0, 1, 17, 'n300"\\\x1b[2Jwith a long name'), card(0, 3, 34, "n300")
    declare(first), declare(second)
    shown = [f"ttmem 0: Tenstorrent n300???[2Jw #0 {1 << 20}/{4 << 20} 25%, {first.pid}: {1 << 20}",
             f"ttmem 0: Tenstorrent n300 #0 {3 << 20}/{4 << 20} 75%, {second.pid}: {3 << 20}"]  # fmt: skip
    assert nvtop() == shown
    first.kill()
    first.wait()
    assert nvtop() == [f"ttmem 0: Tenstorrent n300???[2Jw #0 0/{4 << 20} 0%", shown[1]]


def test_nvtop_follows_a_device_that_is_declared_later(nvtop, card):
    late, full = card(0, 1, 17), card(3, 8, 34)
    assert nvtop() == [f"ttmem 0: Tenstorrent #0 {1 << 20}/0 0%, {late.pid}: {1 << 20}",
                       f"ttmem 3: Tenstorrent #3 {8 << 20}/0 0%, {full.pid}: {8 << 20}"]  # fmt: skip
    declare(late), declare(full)
    assert nvtop() == [f"ttmem 0: Tenstorrent #0 {1 << 20}/{4 << 20} 25%, {late.pid}: {1 << 20}",
                       f"ttmem 3: Tenstorrent #3 {8 << 20}/{4 << 20} 100%, {full.pid}: {8 << 20}"]  # fmt: skip


def test_every_example_is_tested():
    tested = "".join(path.read_text() for path in (ROOT / "tests/integration").glob("library/*.py"))
    for folder in EXAMPLES.iterdir():
        assert folder.name in tested, folder


