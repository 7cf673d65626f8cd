/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel says of the mappings, and what a frozen process does not do. */

#include "base/process/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/freeze.h"
#include "base/testing/unit.h"

/* Whether the mapping at @memory has the flag, as in /proc/self/smaps. */
static bool has_flag(const void *memory, const char *flag)
{
	CLEANUP_FCLOSE FILE *file = fopen("/proc/self/smaps", "re");
	char line[512];
	bool is_it = false;

	assert(file);
	while (fgets(line, sizeof(line), file)) {
		uintptr_t begin, end;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
			is_it = begin <= (uintptr_t)memory && (uintptr_t)memory < end;
		else if (is_it && strncmp(line, "VmFlags:", 8) == 0)
			return strstr(line, flag) != NULL;
	}
	return false;
}

UNIT(memory_is_zeroed_and_out_of_children_and_dumps)
{
	unsigned char in_memory;
	char *memory;
	int status;
	pid_t pid;

	errno = EDOM;
	memory = private_map(4096);
	assert(memory && errno == EDOM && memory[0] == 0 && memory[4095] == 0);
	memory[0] = 1;
	assert(has_flag(memory, " dc ") && has_flag(memory, " dd "));
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		_exit(mincore(memory, 4096, &in_memory) < 0 && errno == ENOMEM ? 7 : 1);
	assert(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	errno = EDOM;
	private_unmap(memory, 4096);
	assert(errno == EDOM && mincore(memory, 4096, &in_memory) < 0 && errno == ENOMEM);
	private_unmap(NULL, 4096);
}

/* Each is the smallest or largest of its kind. */
UNIT(mappings_of_medium_size_have_no_huge_pages)
{
	static const struct {
		size_t size;
		bool is_medium;
	} sizes[] = {
		{(128 << 10) - 4096, false},
		{128 << 10, true},
		{(8 << 20) - 4096, true},
		{8 << 20, false},
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* Neighbours with other flags are never merged with it. */
		void *memory = private_map(sizes[i].size);

		assert(memory && has_flag(memory, " nh ") == sizes[i].is_medium);
		private_unmap(memory, sizes[i].size);
	}
}

UNIT(what_cannot_be_mapped_is_told_without_errno)
{
	errno = EDOM;
	assert(!private_map(SIZE_MAX / 2) && errno == EDOM);
}

UNIT(a_frozen_process_maps_and_unmaps_nothing)
{
	unsigned char in_memory;
	void *memory = private_map(4096);

	assert(memory);
	freeze_flag = true;
	assert(!private_map(4096));
	private_unmap(memory, 4096);
	assert(mincore(memory, 4096, &in_memory) == 0);
	freeze_flag = false;
	private_unmap(memory, 4096);
	assert(mincore(memory, 4096, &in_memory) < 0);
}
