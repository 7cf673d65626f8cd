/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The surroundings of a case: made before it, checked and removed after it. Failures here are
 * printed to stderr and otherwise ignored: they must not hide the result of the case itself.
 */

#include "base/testing/unit-sweep.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char *unit_sweep_folder_new(void)
{
	const char *parent = getenv("TMPDIR");
	char *folder;

	if (asprintf(&folder, "%s/ttmem-unit-XXXXXX", parent && *parent ? parent : "/tmp") < 0)
		return NULL;
	if (!mkdtemp(folder)) {
		free(folder);
		return NULL;
	}

	return folder;
}

static int unit_sweep_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	if (remove(path) < 0)
		fprintf(stderr, "cannot remove %s: %m\n", path);
	return 0;
}

char *unit_sweep_folder_free(char *folder)
{
	if (folder)
		(void)nftw(folder, unit_sweep_remove, 16, FTW_DEPTH | FTW_PHYS); /* printed above */
	free(folder);
	return NULL;
}

/* Settings of tests themselves; everything else named TTMEM* would change what is tested. */
static bool unit_sweep_keeps(const char *variable)
{
	static const char *const ours[] = {
		"TTMEM_SOAK", "TTMEM_SEED", "TTMEM_BUILD", "TTMEM_UNIT_", "TTMEM_TEST_",
	};

	if (strncmp(variable, "TTMEM", 5) != 0 && strncmp(variable, "TT_ALLOC", 8) != 0)
		return true;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strncmp(variable, ours[i], strlen(ours[i])) == 0)
			return true;

	return false;
}

void unit_sweep_environment(const char *folder)
{
	char name[NAME_MAX];
	char **variable = environ;

	while (variable && *variable) {
		size_t length = strcspn(*variable, "=");

		if (unit_sweep_keeps(*variable) || length >= sizeof(name)) {
			variable++;
			continue;
		}
		memcpy(name, *variable, length);
		name[length] = '\0';
		unsetenv(name); /* closes the gap: the next one is now at the same place */
		variable = environ;
	}

	if (folder && (setenv("TMPDIR", folder, 1) < 0 || setenv("XDG_RUNTIME_DIR", folder, 1) < 0))
		fprintf(stderr, "cannot set TMPDIR: %m\n");
}

int unit_sweep_output_new(const char *folder)
{
	char path[PATH_MAX];
	int fd;

	if (!folder)
		return -1;
	snprintf(path, sizeof(path), "%s/output-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC | O_APPEND);
	if (fd >= 0)
		unlink(path);

	return fd;
}

void unit_sweep_show(int output)
{
	bool at_start = true;
	char chunk[4096];
	off_t offset = 0;
	ssize_t n;

	while ((n = pread(output, chunk, sizeof(chunk), offset)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (at_start)
				fputs("     | ", stdout);
			at_start = chunk[i] == '\n';
			putchar(chunk[i]);
		}
		offset += n;
	}
	if (!at_start)
		putchar('\n');
}

void unit_sweep_last_line(int output, char *ret_line, size_t size)
{
	char tail[512];
	off_t end = lseek(output, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(tail) - 1 ? end - (off_t)sizeof(tail) + 1 : 0;
	ssize_t n = pread(output, tail, sizeof(tail) - 1, from);
	char *line;

	while (n > 0 && tail[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	tail[n] = '\0';
	line = strrchr(tail, '\n');
	snprintf(ret_line, size, "%s", line ? line + 1 : tail);
}

/* The runner has no children except the case's, so every child that the kernel lists is killed. */
static void unit_sweep_kill_children(void)
{
	char path[64], list[4096] = "", *at, *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* a kernel without the list: only the group can be reached */
	n = read(fd, list, sizeof(list) - 1);
	close(fd);
	list[n > 0 ? n : 0] = '\0';
	for (at = list;; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at || (*end != ' ' && *end != '\0'))
			return;
		if (*end == ' ' && pid > 1) /* a number cut by the buffer has no space after it */
			kill((pid_t)pid, SIGKILL);
	}
}

void unit_sweep_children(pid_t group)
{
	struct timespec pause = {.tv_nsec = 1000000};

	kill(-group, SIGKILL);
	/* Killing a parent hands its children to us, so look again until there are none. */
	for (;;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return;
		if (pid > 0)
			continue;
		unit_sweep_kill_children();
		nanosleep(&pause, NULL);
	}
}
