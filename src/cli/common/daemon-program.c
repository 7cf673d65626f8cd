/* SPDX-License-Identifier: Apache-2.0 */

/* Never in PATH: a program of the same version is meant. */

#include "cli/common/daemon-program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"

bool daemon_program_find(char ret_path[DAEMON_PROGRAM_SIZE])
{
	static const char *const places[] = {"ttmemd", "../daemon/ttmemd", "../sbin/ttmemd"};
	char self[DAEMON_PROGRAM_SIZE / 2];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length < 0)
		return false;
	self[length] = '\0';
	*(strrchr(self, '/') + 1) = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		(void)snprintf(ret_path, DAEMON_PROGRAM_SIZE, "%s%s", self, places[i]); /* fits */
		if (access(ret_path, X_OK) == 0)
			return true;
	}
	return false;
}
