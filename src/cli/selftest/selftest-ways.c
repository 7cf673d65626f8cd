/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The self-test with a daemon: the known buffers are reported in every way there is (the library,
 * the old socket, Python) and must appear everywhere: in ps, smi, buffers, HTTP, the log and, once
 * their process was killed, as a leak.
 */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process/child.h"
#include "cli/common/legacy-parts.h"
#include "cli/selftest/selftest-daemon.h"
#include "cli/selftest/selftest.h"
#include "model/types.h"

#define SELFTEST_WAY_NS UINT64_C(15000000000)

static struct selftest_daemon selftest_server;

/* Starts a child that reports the buffers; they are visible at once or shortly after. */
typedef pid_t selftest_way(void);

static pid_t selftest_by_library(void)
{
	static const char *const words[] = {"/proc/self/exe", "selftest", "--play", NULL};

	return selftest_spawn(words);
}

static pid_t selftest_by_old_socket(void)
{
	static const char *const words[] = {"/proc/self/exe", "selftest", "--play-old", NULL};

	return selftest_spawn(words);
}

static pid_t selftest_by_python(void)
{
	char program[4096];
	const char *const words[] = {"python3", "-c", program, NULL};
	size_t at = (size_t)snprintf(program, sizeof(program), "import time, ttmem\n");

	for (unsigned int i = 0; i < selftest_count; i++)
		at += (size_t)snprintf(program + at, sizeof(program) - at,
				       "ttmem.alloc(%u, \"%s\", 0x%" PRIx64 ", %" PRIu64
				       ", \"%s\")\n",
				       SELFTEST_DEVICE, types_name(selftest_buffers[i].type),
				       selftest_buffers[i].address, selftest_buffers[i].size,
				       selftest_buffers[i].name);
	snprintf(program + at, sizeof(program) - at, "time.sleep(1000)\n");
	return selftest_spawn(words);
}

_Noreturn void selftest_play_old(void)
{
	const char *path = getenv("TT_ALLOC_SERVER_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!legacy_parts_allocate || !path || strlen(path) >= sizeof(address.sun_path) || fd < 0)
		_exit(1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		_exit(1);
	for (unsigned int i = 0; i < selftest_count; i++) {
		const struct selftest_buffer *buffer = &selftest_buffers[i];

		if (!legacy_parts_allocate(fd, SELFTEST_DEVICE, buffer->type, buffer->address,
					   buffer->size))
			_exit(1);
	}
	for (;;)
		(void)pause();
}

static const char *selftest_http(uint32_t pid)
{
	CLEANUP_FREE char *text = selftest_daemon_get(&selftest_server, "/api/v1/ps");
	json_t *document = text ? json_loads(text, 0, NULL) : NULL;
	const char *wrong = document ? selftest_memory(document, pid) : "no answer over HTTP";

	json_decref(document);
	return wrong;
}

/*
 * The three lines that the old guide tells people to look for. Only the server for old clients
 * writes them.
 */
static const char *selftest_log(uint32_t pid)
{
	CLEANUP_FREE char *log = selftest_daemon_log(&selftest_server);

	for (unsigned int i = 0; legacy_parts_allocate && i < 3; i++) {
		char line[160];

		snprintf(line, sizeof(line),
			 "✓ [PID %" PRIu32 "] Allocated %" PRIu64
			 " bytes of L1 on device %u (buffer_id=0x%" PRIx64,
			 pid, selftest_buffers[i].size, SELFTEST_DEVICE,
			 selftest_buffers[i].address);
		if (!log || !strstr(log, line))
			return "the log does not have the three lines of L1";
	}
	return NULL;
}

static const char *selftest_leak(uint32_t pid)
{
	char words[64];
	uint64_t all = 0, buffers;
	json_t *document, *process;
	bool good;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		all += selftest_bytes(type, &buffers);
	snprintf(words, sizeof(words), "leaks --json --pid %" PRIu32, pid);
	document = selftest_ask(words);
	process = json_array_get(json_object_get(document, "processes"), 0);
	good = (uint64_t)json_integer_value(json_object_get(process, "bytes")) == all;
	json_decref(document);
	return good ? NULL : "ttmem leaks does not report it";
}

/* The daemon learns of changes with a delay, so a check may fail at first. */
static const char *selftest_until(selftest_check *check, pid_t pid)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SELFTEST_WAY_NS;
	const char *wrong = check((uint32_t)pid);

	while (wrong && clock_ns(CLOCK_MONOTONIC) < deadline) {
		(void)poll(NULL, 0, 50); /* only waits */
		wrong = check((uint32_t)pid);
	}
	return wrong;
}

static bool selftest_one_way(const char *what, selftest_way *start)
{
	static selftest_check *const checks[] = {selftest_ps, selftest_smi, selftest_places,
						 selftest_http, selftest_log};
	const char *wrong = NULL;
	pid_t pid = start();

	if (pid < 0)
		return selftest_report(what, "cannot start a child");
	for (size_t i = 0; !wrong && i < ARRAY_SIZE(checks); i++)
		wrong = selftest_until(checks[i], pid);
	selftest_end(pid);
	if (!wrong)
		wrong = selftest_until(selftest_leak, pid);
	return selftest_report(what, wrong);
}

/* Whether Python has the package. The copy beside this program comes first in its path. */
static bool selftest_has_python(void)
{
	static const char *const words[] = {"python3", "-c",
					    "import sys\n"
					    "sys.stderr = None\n"
					    "import ttmem",
					    NULL};
	static const char *const places[] = {"../lib/python", "../../python"};
	char self[2048], path[8192] = "";
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *before = getenv("PYTHONPATH");
	pid_t pid;

	if (length > 0) {
		self[length] = '\0';
		*(strrchr(self, '/') + 1) = '\0';
		snprintf(path, sizeof(path), "%s%s:%s%s%s%s", self, places[0], self, places[1],
			 before ? ":" : "", before ? before : "");
		(void)setenv("PYTHONPATH", path, 1); /* on failure only an installed one is found */
	}
	pid = selftest_spawn(words);
	return pid > 0 && child_reap(pid) == 0;
}

static bool selftest_all_ways(void)
{
	bool good =
		selftest_one_way("the library, through ttmemd to every tool", selftest_by_library);

	if (legacy_parts_allocate)
		good &= selftest_one_way("the old socket, likewise", selftest_by_old_socket);
	else
		puts("skip the old socket: this build has nothing for the old system");
	if (selftest_has_python())
		good &= selftest_one_way("Python, likewise", selftest_by_python);
	else
		puts("skip Python: python3 has no module ttmem");
	return good;
}

bool selftest_with_daemon(void)
{
	const char *wrong = selftest_daemon_start(&selftest_server);
	bool good;

	if (wrong && !selftest_server.folder[0]) {
		printf("skip with the daemon: %s\n", wrong);
		return true;
	}
	good = selftest_report("a ttmemd of our own comes up", wrong);
	if (good) {
		/* For the commands and children from here on. */
		(void)setenv("TTMEM_SOCKET", selftest_server.socket, 1);
		(void)setenv("TT_ALLOC_SERVER_SOCKET", selftest_server.legacy, 1);
		(void)setenv("TTMEM", "1", 1);
		good = selftest_all_ways();
	}
	selftest_daemon_stop(&selftest_server);
	return good;
}
