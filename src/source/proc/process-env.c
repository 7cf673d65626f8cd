/* SPDX-License-Identifier: Apache-2.0 */

/* Reads environ, maps and limits of a process. */

#include "source/proc/process-env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/keyword.h"
#include "base/text.h"

#define PROCESS_ENV_ENVIRONMENT_MAX \
	(UINT32_C(2) << 20)           /* as much as the kernel passes to a program */
#define PROCESS_ENV_LINES_MAX 200000u /* of maps; above the kernel's usual limit */

static FILE *process_env_open(const struct proc *proc, uint32_t pid, const char *name)
{
	char path[48];

	snprintf(path, sizeof(path), "%" PRIu32 "/%s", pid, name);
	return small_file_stream(proc->root, path);
}

static bool process_env_is(const char *word, size_t length, const char *wanted)
{
	return strlen(wanted) == length && memcmp(word, wanted, length) == 0;
}

void process_env_parse_environment(const char *bytes, size_t length, struct process_env *inside)
{
	bool on = false, off = false;

	while (length > 0) {
		size_t n = strnlen(bytes, length);

		on |= process_env_is(bytes, n, "TTMEM=1") ||
		      process_env_is(bytes, n, "TT_ALLOC_TRACKING_ENABLED=1") ||
		      process_env_is(bytes, n, "TT_BUFFER_DEBUG_LOG=1");
		off |= process_env_is(bytes, n, "TTMEM=0");
		if (process_env_is(bytes, n, "TTMEM_SOCKET=none"))
			inside->daemon_unwanted = true;
		if (n >= 13 && memcmp(bytes, "TTMEM_STACKS=", 13) == 0)
			inside->stacks = keyword_is_no(bytes + 13, n - 13) ? PROCESS_ENV_OFF
									   : PROCESS_ENV_ON;
		n = n < length ? n + 1 : n;
		bytes += n;
		length -= n;
	}
	inside->tracking = off ? PROCESS_ENV_OFF : on ? PROCESS_ENV_ON : PROCESS_ENV_UNSAID;
}

/* All of it, to be freed. NULL: not visible. */
static char *process_env_bytes(const struct proc *proc, uint32_t pid, size_t *ret_length)
{
	CLEANUP_FCLOSE FILE *file = process_env_open(proc, pid, "environ");
	CLEANUP_FREE char *bytes = NULL;
	size_t n;

	if (!file)
		return NULL;
	bytes = malloc(PROCESS_ENV_ENVIRONMENT_MAX);
	if (!bytes)
		return NULL;
	n = fread(bytes, 1, PROCESS_ENV_ENVIRONMENT_MAX, file);
	/* Anybody can open it but not read it; and it is empty while a process exits. */
	if (ferror(file) || n == 0)
		return NULL;
	*ret_length = n;
	return cleanup_steal(bytes);
}

bool process_env_find(const struct proc *proc, uint32_t pid, const char *name, char *ret_value,
		      size_t size)
{
	size_t left = 0, prefix = strlen(name);
	CLEANUP_FREE char *bytes = process_env_bytes(proc, pid, &left);

	for (const char *word = bytes; word && left > 0;) {
		size_t n = strnlen(word, left);

		if (n > prefix && n - prefix - 1 < size && word[prefix] == '=' &&
		    memcmp(word, name, prefix) == 0) {
			memcpy(ret_value, word + prefix + 1, n - prefix - 1);
			ret_value[n - prefix - 1] = '\0';
			return true;
		}
		n = n < left ? n + 1 : n;
		word += n;
		left -= n;
	}
	return false;
}

static void process_env_read_environment(const struct proc *proc, uint32_t pid,
					 struct process_env *inside)
{
	size_t length = 0;
	CLEANUP_FREE char *bytes = process_env_bytes(proc, pid, &length);

	if (!bytes)
		return;
	inside->environment_seen = true;
	process_env_parse_environment(bytes, length, inside);
}

/* Whether @name is libttmem.so, libttmem.so.0, libttmem.so.0.2.0, ... */
static bool process_env_is_library(const char *name)
{
	static const char library[] = "libttmem.so";

	return strncmp(name, library, sizeof(library) - 1) == 0;
}

void process_env_parse_mapping(const char *line, struct process_env *inside)
{
	static const char deleted[] = " (deleted)";
	const char *path, *name;
	uint64_t inode;
	size_t length;
	int at = 0;

	if (sscanf(line, "%*s %*s %*s %*s %" SCNu64 " %n", &inode, &at) != 1 || at == 0)
		return;
	path = line + at;
	if (strncmp(path, "/memfd:ttmem-book", 17) == 0) {
		inside->book = (ino_t)inode;
		return;
	}
	if (*path != '/')
		return;
	name = strrchr(path, '/') + 1;
	if (strncmp(name, "libtt_metal.so", 14) == 0)
		inside->has_metal = true;
	if (strncmp(name, "libttmem-metal.so", 17) == 0)
		inside->has_metal_front = true;
	if (!process_env_is_library(name))
		return;
	length = strlen(path);
	if (length > sizeof(deleted) &&
	    strcmp(path + length - (sizeof(deleted) - 1), deleted) == 0) {
		inside->library_replaced = true;
		length -= sizeof(deleted) - 1;
	}
	length = (size_t)bits_min(length, sizeof(inside->library) - 1);
	memcpy(inside->library, path, length);
	inside->library[length] = '\0';
}

static void process_env_read_maps(const struct proc *proc, uint32_t pid, struct process_env *inside)
{
	CLEANUP_FCLOSE FILE *file = process_env_open(proc, pid, "maps");
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;
	ssize_t n;

	if (!file)
		return;
	for (uint32_t i = 0; i < PROCESS_ENV_LINES_MAX && (n = getline(&line, &size, file)) > 0;
	     i++) {
		inside->maps_seen = true;
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		process_env_parse_mapping(line, inside);
	}
}

static uint64_t process_env_limit(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	uint64_t value;

	if (!line || sscanf(line + strlen(name), " %" SCNu64, &value) != 1)
		return UINT64_MAX; /* "unlimited" */
	return value;
}

void process_env_parse_limits(const char *text, struct process_env *inside)
{
	inside->file_limit = process_env_limit(text, "Max file size");
	inside->address_limit = process_env_limit(text, "Max address space");
}

static void process_env_read_limits(const struct proc *proc, uint32_t pid,
				    struct process_env *inside)
{
	CLEANUP_FCLOSE FILE *file = process_env_open(proc, pid, "limits");
	char text[4096] = "";
	size_t n;

	if (!file)
		return;
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	process_env_parse_limits(text, inside);
}

int process_env_read(const struct proc *proc, uint32_t pid, struct process_env *ret_inside)
{
	struct process_env inside = {.file_limit = UINT64_MAX, .address_limit = UINT64_MAX};

	if (proc_start_ticks(proc, pid) == 0)
		return -ESRCH;
	process_env_read_environment(proc, pid, &inside);
	process_env_read_maps(proc, pid, &inside);
	process_env_read_limits(proc, pid, &inside);
	*ret_inside = inside;
	return 0;
}
