/* SPDX-License-Identifier: Apache-2.0 */

/* The text of /proc/PID/cgroup. */

#include "base/process/memory-cgroup.h"

#include <string.h>

/* Whether one of the names between commas up to @end is "memory". */
static bool memory_cgroup_lists_memory(const char *names, const char *end)
{
	static const char memory[] = "memory";
	const size_t length = sizeof(memory) - 1;

	while (names < end) {
		size_t n = strcspn(names, ",:\n");

		if (n == length && memcmp(names, memory, length) == 0)
			return true;
		names += n + 1;
	}
	return false;
}

char *memory_cgroup_path(char *text, bool *ret_is_v1)
{
	char *unified = NULL;

	*ret_is_v1 = false;
	for (char *line = text, *next; line && *line; line = next) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		/* In a truncated or malformed line the colons are in a later line or missing. */
		if (!path || (next && path >= next))
			continue;
		*ret_is_v1 = memory_cgroup_lists_memory(names + 1, path);
		if (*ret_is_v1)
			return path + 1;
		if (names + 1 == path)
			unified = path + 1;
	}
	return unified;
}
