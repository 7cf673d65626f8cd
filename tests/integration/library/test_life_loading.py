# SPDX-License-Identifier: Apache-2.0
"""How the library is loaded into a process and unloaded: early, late, twice, and under sanitizers."""

import os
import shutil
import stat
import subprocess
import sys

import pytest

from common import shared_folder
from conftest import LIMIT, ROOT
from life import PAUSE, device, listener, start, track  # noqa: F401 (fixtures)

EARLY_AND_LATE = r"""
#include <stdlib.h>
#include <ttmem/ttmem.h>

__attribute__((constructor(101))) static void before_main(void)
{
	ttmem_phase_push("before main");
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, "constructor");
	ttmem_phase_pop();
}

static void at_exit(void) { ttmem_alloc(0, TTMEM_DRAM, 3, 4, "atexit"); }

__attribute__((destructor(101))) static void after_main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 4, 8, "destructor");
}

int main(void)
{
	atexit(at_exit);
	ttmem_alloc(0, TTMEM_DRAM, 2, 2, "main");
	return 0;
}
"""

# Does not know the library at link time, so nothing says in which order they end.
LATE_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
__attribute__((destructor)) static void late(void)
{
	void (*alloc)(uint32_t, uint32_t, uint64_t, uint64_t, const char *) =
		(void (*)(uint32_t, uint32_t, uint64_t, uint64_t, const char *))
			dlsym(RTLD_DEFAULT, "ttmem_alloc");
	if (alloc)
		alloc(0, 0, 5, 16, "another library's destructor");
}
void late_is_needed(void) {}
"""

LOADED = (
    "#define _GNU_SOURCE\n"
    + PAUSE
    + r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*alloc_function)(uint32_t, uint32_t, uint64_t, uint64_t, const char *);

static alloc_function load(const char *path, int new_namespace, void **handle)
{
	*handle = new_namespace ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
				: dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return (alloc_function)dlsym(*handle, "ttmem_alloc");
}

/* Each argument: a library, with "new:" before it for one in a namespace of its own. */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int is_new = strncmp(argv[i], "new:", 4) == 0;
		void *handle;

		load(argv[i] + 4 * is_new, is_new, &handle)(0, 0, (uint64_t)i, (uint64_t)i, "loaded");
		if (!is_new)
			dlclose(handle);
	}
	ready();
	return 0;
}
"""
)

SANITIZED = r"""
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static void on_alarm(int number)
{
	int saved = errno;
	ttmem_alloc(1, TTMEM_L1, 1, 1, "in a handler");
	ttmem_free(1, TTMEM_L1, 1);
	errno = saved;
}

/* In several threads at once, so that a race detector would see what it takes for a race. */
static void rare(const char *name, uint64_t address)
{
	struct ttmem_device_args device = {
		.struct_size = sizeof(device), .device = 2, .arch = name, .card = name};
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .device = 2, .type = TTMEM_CB,
					.address = address, .size = 8, .owner = address % 7 + 1,
					.banks = (uint32_t)address % 5, .name = name};

	ttmem_phase_push(name);
	ttmem_mark(name);
	ttmem_phase_pop();
	ttmem_phase_process(name);
	ttmem_device(&device);
	for (int i = 0; i < 100; i++, args.address++)
		ttmem_alloc_ex(&args);
	ttmem_free_all(2, TTMEM_ANY, args.owner);
	ttmem_free(2, TTMEM_CB, args.address - 1);
	ttmem_free(2, TTMEM_CB, UINT64_MAX - address);
	ttmem_alloc(3, TTMEM_DRAM, 1, address % 9 + 1, name);
	ttmem_alloc_failed(2, TTMEM_L1, address, TTMEM_UNKNOWN);
	ttmem_reset_peak(2, TTMEM_ANY);
	ttmem_device_close(2);
}

static void *work(void *context)
{
	char *name = malloc(32);

	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t address = (uint64_t)(uintptr_t)context << 32 | i;

		snprintf(name, 32, "buffer %d", (int)(i % 100));
		ttmem_alloc(0, TTMEM_DRAM, address, 64, name);
		if (i % 2)
			ttmem_free(0, TTMEM_DRAM, address);
		if (i % 100 == 0)
			rare(name, address);
	}
	free(name);
	return NULL;
}

int main(void)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .device = 5000};
	pthread_t threads[4];
	struct ttmem_stats stats;
	char long_name[1000];

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	signal(SIGALRM, on_alarm);
	ualarm(1000, 1000);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ualarm(0, 0);
	ttmem_alloc_ex(&args);
	ttmem_alloc_ex(NULL);
	ttmem_alloc(0, TTMEM_DRAM, 7, UINT64_MAX, long_name);
	ttmem_alloc(0, TTMEM_L1, 7, 1, long_name);
	if (fork() == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, long_name);
		_exit(ttmem_stats(0, TTMEM_DRAM, &stats) == 0 && stats.buffers == 1 ? 0 : 1);
	}
	int status;
	wait(&status);
	if (status || ttmem_stats(0, TTMEM_DRAM, &stats) < 0 || stats.buffers != 40000 ||
	    stats.allocs != 80000)
		return 1;
	puts("fine");
	return 0;
}
"""


def library(build):
    return build / "src" / "lib" / "libttmem.so.0"


def names(book):
    return {row["name"] for row in device(book)["rows"]}


def test_before_main_and_after_exit(compile_c, track, listener):  # noqa: F811
    program = compile_c(EARLY_AND_LATE)
    subprocess.run([program], env=track, check=True, timeout=LIMIT)
    book = listener.book()
    assert names(book) == {"constructor", "main", "atexit", "destructor"}
    assert [row["phase"] for row in device(book)["rows"] if row["address"] == 1] == ["before main"]
    assert book["state"] == 2


@pytest.mark.parametrize("first", ["late", "ttmem"])
def test_after_our_own_destructor(build, compile_c, tmp_path, track, listener, first):  # noqa: F811
    source = tmp_path / "late.c"
    source.write_text(LATE_LIBRARY)
    late = tmp_path / "liblate.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", late, source], check=True, timeout=LIMIT)
    libraries = [str(late), f"-L{build / 'src' / 'lib'}", "-lttmem"]
    if first == "ttmem":
        libraries = libraries[1:] + libraries[:1]
    program = compile_c(EARLY_AND_LATE, flags=["-Wl,--no-as-needed", *libraries])
    subprocess.run([program], env=track, check=True, timeout=LIMIT)
    book = listener.book()
    assert "another library's destructor" in names(book)
    assert device(book)["types"][0]["bytes"] == 31


@pytest.fixture
def loader(compile_c):
    # Linked with the library only in name: nothing of it is used.
    return compile_c(LOADED, flags=["-Wl,--as-needed", "-ldl"])


def test_loaded_at_run_time(build, loader, start):  # noqa: F811
    path = library(build)
    app = start(loader, path, path, path)
    # dlclose() does not end it: one book, and all three calls in it.
    assert [row["size"] for row in device(app.book())["rows"]] == [1, 2, 3]
    app.finish()


def test_several_copies(build, loader, start, tmp_path):  # noqa: F811
    copy = tmp_path / "another.so"
    shutil.copy(library(build), copy)
    app = start(loader, library(build), copy, f"new:{library(build)}")
    books = app.books()
    assert len(books) == 3
    assert {book["pid"] for book in books} == {app.process.pid}
    assert sorted(device(book)["types"][0]["bytes"] for book in books) == [1, 2, 3]
    app.finish()


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_application_with_sanitizer(compile_c, track, sanitizer):  # noqa: F811
    try:
        program = compile_c(SANITIZED, flags=[f"-fsanitize={sanitizer}"])
    except subprocess.CalledProcessError:
        pytest.skip(f"the compiler has no -fsanitize={sanitizer}")
    command = [program]
    # TSan's shadow does not fit where the kernel shuffles too many address bits.
    still = ["setarch", os.uname().machine, "-R"]
    if sanitizer == "thread" and subprocess.run([*still, "true"]).returncode == 0:
        command = [*still, program]
    result = subprocess.run(command, env=track, capture_output=True, text=True, timeout=LIMIT)
    if "unexpected memory mapping" in result.stderr:
        pytest.skip("TSan does not work here")
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr
    assert "Sanitizer" not in result.stderr


@pytest.mark.other_user
def test_set_user_id_program_is_not_told_what_to_do(compile_c):
    """secure_getenv: whoever starts such a program must not be able to have it tracked."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-user-id program")
    source = '#include <stdio.h>\n#include <ttmem/ttmem.h>\nint main(void){printf("%d\\n", '
    source += "ttmem_enabled());return 0;}"
    with shared_folder() as folder:
        program = folder / "program"
        shutil.copy(compile_c(source), program)

        def run():
            environment = {"TTMEM": "1", "TTMEM_SOCKET": "none"}
            return subprocess.run([program], env=environment, user=65534, group=65534,
                                  extra_groups=[], capture_output=True, text=True, timeout=LIMIT)

        os.chmod(program, 0o755)
        result = run()
        assert result.stdout == "1\n", result.stderr
        os.chmod(program, 0o4755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip("set-user-id does not work in that folder")
        assert stat.S_IMODE(program.stat().st_mode) == 0o4755
        assert run().stdout == "0\n"
