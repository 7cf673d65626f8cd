/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The self-test with real tensors: the three of the old debugging script, through ttnn on the first
 * device.
 */

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>

#include "base/clock.h"
#include "base/process/child.h"
#include "cli/selftest/selftest-daemon.h"
#include "cli/selftest/selftest.h"
#include "model/types.h"

#define SELFTEST_DEVICE_NS UINT64_C(120000000000) /* opening a device takes time */

/* Two bytes per element: half, two and eight MiB in L1. */
static const char selftest_tensors[] =
	"import time, ttnn\n"
	"device = ttnn.open_device(device_id=0)\n"
	"kept = [ttnn.ones((n, n), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,\n"
	"                  memory_config=ttnn.L1_MEMORY_CONFIG) for n in (512, 1024, 2048)]\n"
	"time.sleep(1000)\n";

static bool selftest_python(const char *program)
{
	const char *const words[] = {"python3", "-c", program, NULL};
	pid_t pid = selftest_spawn(words);

	return pid > 0 && child_reap(pid) == 0;
}

/* Bytes of L1 that ps shows for the process. */
static uint64_t selftest_l1(pid_t pid)
{
	json_t *document = selftest_ask("ps --json");
	json_t *process = selftest_of_pid(json_object_get(document, "processes"), (uint32_t)pid);
	json_t *devices = json_object_get(process, "devices");
	uint64_t bytes = 0;

	for (size_t i = 0; i < json_array_size(devices); i++) {
		json_t *memory = json_object_get(json_array_get(devices, i), "memory");
		json_t *one = json_object_get(memory, types_name(TTMEM_L1));

		bytes += (uint64_t)json_integer_value(json_object_get(one, "used"));
	}
	json_decref(document);
	return bytes;
}

const char *selftest_ttnn(const char **ret_skip)
{
	const char *const words[] = {"python3", "-c", selftest_tensors, NULL};
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SELFTEST_DEVICE_NS;
	uint64_t wanted = 0, seen = 0;
	pid_t pid;

	if (!selftest_python("import sys\nsys.stderr = None\nimport ttnn")) {
		*ret_skip = "python3 has no module ttnn";
		return NULL;
	}
	for (unsigned int i = 0; i < 3; i++)
		wanted += selftest_buffers[i].size;
	(void)setenv("TTMEM", "1", 1); /* fails only if out of memory */
	pid = selftest_spawn(words);
	if (pid < 0)
		return "cannot start a child";
	while (seen < wanted && clock_ns(CLOCK_MONOTONIC) < deadline &&
	       waitpid(pid, NULL, WNOHANG) == 0) {
		(void)poll(NULL, 0, 200); /* only waits */
		seen = selftest_l1(pid);
	}
	selftest_end(pid);
	return seen >= wanted ? NULL
			      : "ttmem ps does not show them: see \"ttmem doctor\", and "
				"docs/integrate-tt-metal.md for an unchanged tt-metal";
}
