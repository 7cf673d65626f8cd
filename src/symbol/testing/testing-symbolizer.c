/* SPDX-License-Identifier: Apache-2.0 */

/* Reads /proc about the symbol process, and lets the test program act as that process. */

#undef NDEBUG

#include "symbol/testing/testing-symbolizer.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbol/symbolizer-process.h"
#include "symbol/testing/symbol-testing.h"

/* glibc passes constructors the arguments of main(). */
__attribute__((constructor)) static void main_or_process(int argc, char **argv)
{
	if (symbolizer_process_is_meant(argc, argv))
		_exit(symbolizer_process_main(argc, argv));
}

struct symbolizer_module testing_symbolizer_module(const char *name)
{
	return (struct symbolizer_module){.path = testing_path(name), .user = geteuid()};
}

void testing_symbolizer_build_id(const char *name, struct symbolizer_module *module)
{
	char command[4096], digit[3] = "";
	FILE *pipe;

	(void)snprintf(command, sizeof(command), "readelf -n '%s' | sed -n 's/.*Build ID: //p'",
		       testing_path(name));
	pipe = popen(command, "re");
	assert(pipe);
	while (fscanf(pipe, "%2[0-9a-f]", digit) == 1)
		module->build_id[module->build_id_length++] = (uint8_t)strtoul(digit, NULL, 16);
	assert(pclose(pipe) == 0 && module->build_id_length == 20);
}

static bool is_process(long pid)
{
	char path[64], name[64] = "", state = 0;
	CLEANUP_FCLOSE FILE *file = NULL;
	int found;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "re");
	found = file ? fscanf(file, "%*d (%63[^)]) %c", name, &state) : 0;
	return found == 2 && strcmp(name, SYMBOLIZER_PROCESS_NAME) == 0 && state != 'Z';
}

/* Children belong to the thread that started them. */
static pid_t find_child(const char *task)
{
	char path[320], word[32];
	CLEANUP_FCLOSE FILE *file = NULL;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%s/children", task);
	file = fopen(path, "re");
	while (file && fscanf(file, "%31s", word) == 1) {
		long child = strtol(word, NULL, 10);

		if (is_process(child))
			return (pid_t)child;
	}
	return 0;
}

pid_t testing_symbolizer_pid(void)
{
	pid_t pid = 0;

	/* The test runner's time-out is the deadline. */
	while (pid == 0) {
		CLEANUP_CLOSEDIR DIR *tasks = opendir("/proc/self/task");
		struct dirent *entry;

		assert(tasks);
		while (pid == 0 && (entry = readdir(tasks)))
			pid = find_child(entry->d_name);
	}
	return pid;
}

uint64_t testing_symbolizer_status(pid_t pid, const char *key, int base)
{
	char path[64], line[256];
	CLEANUP_FCLOSE FILE *file = NULL;
	size_t length = strlen(key);

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert(file);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return strtoull(line + length + 1, NULL, base);
	}
	abort(); /* every kernel has these lines */
}

int testing_symbolizer_lives(pid_t pid)
{
	return kill(pid, 0) == 0;
}
