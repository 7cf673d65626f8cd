/* SPDX-License-Identifier: Apache-2.0 */

/* Replaces both streams by files for the time of a call. */

#include "cli/common/testing/testing-printed.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/testing/unit.h"

const char *testing_printed(int stream, void (*fn)(void *context), void *context)
{
	static const char *const names[] = {"printed-out", "printed-error"};
	static char text[65536];
	int saved[2], files[2];
	ssize_t got;

	assert(stream == STDOUT_FILENO || stream == STDERR_FILENO);
	assert(fflush(NULL) == 0);
	for (int i = 0; i < 2; i++) {
		saved[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		files[i] = open(unit_path(names[i]), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert(saved[i] >= 0 && files[i] >= 0);
		assert(dup2(files[i], STDOUT_FILENO + i) == STDOUT_FILENO + i);
	}
	fn(context);
	assert(fflush(NULL) == 0);
	got = pread(files[stream - STDOUT_FILENO], text, sizeof(text) - 1, 0);
	for (int i = 0; i < 2; i++) {
		assert(dup2(saved[i], STDOUT_FILENO + i) == STDOUT_FILENO + i);
		assert(close(saved[i]) == 0 && close(files[i]) == 0);
	}
	assert(got >= 0);
	text[got] = '\0';
	return text;
}
