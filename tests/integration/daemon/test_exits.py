# SPDX-License-Identifier: Apache-2.0
"""How processes ended, as ttmemd learns it from the kernel: in leak reports, or not at all."""

import os
import platform
import re
import signal
import subprocess

import pytest

from ttmemd import get
from world import wait_for

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static void *leave(void *none)
{
	(void)none;
	_exit(6);
}

/* Waits for a line, then ends as it was told. */
int main(int argc, char **argv)
{
	const char *how = argv[argc - 1];
	char byte;

	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 100, "left");
	if (write(1, "\n", 1) != 1 || read(0, &byte, 1) != 1)
		abort();
	if (strcmp(how, "thread") == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, leave, NULL);
		pthread_exit(NULL);
	}
	if (strcmp(how, "exec") == 0)
		execlp("sleep", "sleep", "1000", NULL);
	if (*how == '-') {
		signal(atoi(how + 1), SIG_DFL);
		raise(atoi(how + 1));
	}
	if (*how == '+')
		exit(atoi(how + 1)); /* the library says goodbye */
	_exit(atoi(how));
}
"""

# What the kernel tells of a process that its parent has waited for.
TELLS_LATER = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (6, 15)



def hears_exits():
    """Whether the process connector tells us anything."""
    return os.geteuid() == 0 and os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"


@pytest.fixture
def begin(ttmemd, compile_c):
    """Call as begin("3"): a process that the daemon knows, and that ends so when it gets a line."""
    program = compile_c(PROGRAM, "ender")

    def start(how, before=()):
        process = subprocess.Popen(
            [*before, program, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**ttmemd.env, "TTMEM": "1"}
        )
        ttmemd.others.append(process)
        assert process.stdout.readline() == b"\n"
        wait_for(lambda: ttmemd.json("status")["books"], "the book")
        return process

    return start


def end(process):
    process.stdin.write(b"\n")
    process.stdin.flush()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def signalled(number):
    return {"code": None, "signal": number, "name": signal.Signals(number).name}


def exited(code):
    return {"code": code, "signal": None, "name": None}


@pytest.mark.parametrize(
    "how, expected, text",
    [
        ("3", exited(3), "exit code 3"),
        ("0", exited(0), "exit code 0"),
        ("+255", exited(255), "exit code 255"),
        ("thread", exited(6), "exit code 6"),
        ("-9", signalled(signal.SIGKILL), "killed by signal 9 (SIGKILL)"),
        ("-11", signalled(signal.SIGSEGV), "killed by signal 11 (SIGSEGV)"),
        ("-40", {"code": None, "signal": 40, "name": None}, "killed by signal 40,"),
    ],
)
def test_how_a_process_ended_is_told(ttmemd, begin, how, expected, text):
    """Its parent has not waited for it, so every kernel knows."""
    ttmemd.start()
    process = begin(how)
    end(process)
    leak = ttmemd.wait_for_leak(process.pid)
    assert leak["exit"] == expected
    assert leak["how"] == ("closed" if how == "+255" else "died")
    shown = ttmemd.run("leaks", "--pid", process.pid).stdout
    assert f"pid {process.pid} (ender)" in shown and f"ago: {text}" in shown


@pytest.mark.skipif(not TELLS_LATER, reason="a kernel before 6.15 forgets how a process ended once it was waited for")
def test_how_one_ended_that_was_waited_for_at_once(ttmemd, begin):
    """The daemon stands still meanwhile, so it cannot have looked before."""
    ttmemd.start()
    process = begin("-9")
    ttmemd.process.send_signal(signal.SIGSTOP)
    end(process)
    assert process.wait() == -9
    ttmemd.process.send_signal(signal.SIGCONT)
    assert ttmemd.wait_for_leak(process.pid)["exit"] == signalled(signal.SIGKILL)


@pytest.mark.parametrize("how", ["-9", "3", "thread"])
def test_an_older_kernel_needs_the_connector_for_one_that_was_waited_for(ttmemd, begin, how):
    """The daemon believes to run on one. Without the connector, as in a container, it is not known."""
    ttmemd.start(before=("setarch", "--uname-2.6"))
    process = begin(how)
    ttmemd.process.send_signal(signal.SIGSTOP)
    end(process)
    process.wait()
    ttmemd.process.send_signal(signal.SIGCONT)
    told = ttmemd.wait_for_leak(process.pid)["exit"]
    if not hears_exits():
        assert told is None
    elif how == "thread":
        assert told is None  # its first thread had exited before, with another status
    else:
        assert told == (signalled(9) if how == "-9" else exited(3))


def test_what_became_another_program_has_no_exit(ttmemd, begin):
    ttmemd.start()
    process = begin("exec")
    process.stdin.write(b"\n")
    process.stdin.flush()
    leak = ttmemd.wait_for_leak(process.pid)
    assert (leak["exec"], leak["exit"]) == (True, None)


def test_the_same_over_http(ttmemd, begin):
    ttmemd.start("--http", "127.0.0.1:0")
    process = begin("3")
    end(process)
    ttmemd.wait_for_leak(process.pid)
    (leak,) = get(ttmemd, f"/api/v1/leaks?pid={process.pid}")["processes"]
    assert leak["exit"] == exited(3)


def test_what_ended_while_no_daemon_ran_is_not_guessed(ttmemd, begin):
    """Its book was kept; its pidfd was not."""
    ttmemd.start()
    process = begin("3")
    ttmemd.kill()
    end(process)
    process.wait()
    ttmemd.start()
    assert ttmemd.wait_for_leak(process.pid)["exit"] is None
