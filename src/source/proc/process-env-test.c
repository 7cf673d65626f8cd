/* SPDX-License-Identifier: Apache-2.0 */

/* What a process's files in /proc say about its tracking. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "source/proc/process-env.h"

static enum process_env_wish wish(const char *bytes, size_t length)
{
	struct process_env inside = {0};

	process_env_parse_environment(bytes, length, &inside);
	return inside.tracking;
}

#define WISH(text) wish(text, sizeof(text) - 1)

UNIT(environment_says_on_or_off)
{
	assert(WISH("") == PROCESS_ENV_UNSAID);
	assert(WISH("TTMEM=1\0") == PROCESS_ENV_ON);
	assert(WISH("A=B\0TT_ALLOC_TRACKING_ENABLED=1\0C=D\0") == PROCESS_ENV_ON);
	assert(WISH("TT_BUFFER_DEBUG_LOG=1") == PROCESS_ENV_ON);
	/* Off wins over everything else, and only these exact words count. */
	assert(WISH("TTMEM=0\0TT_ALLOC_TRACKING_ENABLED=1\0") == PROCESS_ENV_OFF);
	assert(WISH("TTMEM=true\0TTMEM=10\0TT_ALLOC_TRACKING_ENABLED=yes\0XTTMEM=1\0") ==
	       PROCESS_ENV_UNSAID);
}

UNIT(environment_says_stacks_and_socket)
{
	static const char some[] = "TTMEM_STACKS=fp\0TTMEM_SOCKET=none";
	static const char none[] = "TTMEM_STACKS=Off\0TTMEM_SOCKET=/run/x";
	static const char empty[] = "TTMEM_STACKS=";
	static const char other[] = "XTTMEM_STACKS=fp\0TTMEM_STACK_DEPTH=3";
	struct process_env inside = {0};

	process_env_parse_environment(empty, sizeof(empty), &inside);
	assert(inside.stacks == PROCESS_ENV_OFF);
	inside = (struct process_env){0};
	process_env_parse_environment(other, sizeof(other), &inside);
	assert(inside.stacks == PROCESS_ENV_UNSAID);
	process_env_parse_environment(some, sizeof(some), &inside);
	assert(inside.stacks == PROCESS_ENV_ON && inside.daemon_unwanted);
	inside = (struct process_env){0};
	process_env_parse_environment(none, sizeof(none), &inside);
	assert(inside.stacks == PROCESS_ENV_OFF && !inside.daemon_unwanted);
}

UNIT(mappings_tell_library_and_book)
{
	struct process_env inside = {0};

	process_env_parse_mapping("7f00-7f01 r-xp 00000000 08:01 4711   /usr/lib/libttmem.so.0.1.0",
				  &inside);
	assert(strcmp(inside.library, "/usr/lib/libttmem.so.0.1.0") == 0);
	assert(!inside.library_replaced && inside.book == 0 && !inside.has_metal);
	process_env_parse_mapping(
		"7f00-7f01 r-xp 00000000 08:01 4711   /a b/libttmem.so.0 (deleted)", &inside);
	assert(strcmp(inside.library, "/a b/libttmem.so.0") == 0 && inside.library_replaced);
	process_env_parse_mapping("7f00-7f01 rw-s 00000000 00:01 99 /memfd:ttmem-book (deleted)",
				  &inside);
	assert(inside.book == 99);
	process_env_parse_mapping("7f00-7f01 r-xp 00000000 08:01 12 /opt/tt/libtt_metal.so",
				  &inside);
	assert(inside.has_metal);
}

UNIT(odd_mappings_are_passed_over)
{
	static const char *const lines[] = {"",
					    "x",
					    "7f00-7f01 rw-p 00000000 00:00 0 ",
					    "7f00-7f01 rw-p 00000000 00:00 0 [heap]",
					    "7f00-7f01 r-xp 00000000 08:01 12 /",
					    "7f00-7f01 r-xp 00000000 08:01 12 /libttmem-metal.so"};
	struct process_env inside = {0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		process_env_parse_mapping(lines[i], &inside);
	assert(!*inside.library && inside.book == 0);
}

UNIT(a_long_path_is_cut)
{
	char line[4096] = "7f00-7f01 r-xp 00000000 08:01 12 /";
	struct process_env inside = {0};

	memset(line + strlen(line), 'd', 3000);
	memcpy(line + strlen(line), "/libttmem.so", sizeof("/libttmem.so"));
	process_env_parse_mapping(line, &inside);
	assert(strlen(inside.library) == sizeof(inside.library) - 1);
}

UNIT(limits_are_numbers_or_none)
{
	struct process_env inside = {0};

	process_env_parse_limits(
		"Limit   Soft Limit  Hard Limit  Units\n"
		"Max file size             4096     unlimited            bytes\n"
		"Max address space         unlimited            unlimited            bytes\n",
		&inside);
	assert(inside.file_limit == 4096 && inside.address_limit == UINT64_MAX);
	process_env_parse_limits("", &inside);
	assert(inside.file_limit == UINT64_MAX);
}

UNIT(facts_of_this_process_are_read)
{
	struct rlimit limit = {.rlim_cur = 1 << 30, .rlim_max = RLIM_INFINITY};
	struct process_env inside;
	struct proc proc;

	assert(proc_open(&proc) == 0);
	assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	assert(process_env_read(&proc, (uint32_t)getpid(), &inside) == 0);
	assert(inside.environment_seen && inside.maps_seen);
	assert(inside.file_limit == 1 << 30);
	assert(process_env_read(&proc, 0x7ffffff0, &inside) < 0);
	proc_close(&proc);
}
