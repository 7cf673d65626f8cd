/* SPDX-License-Identifier: Apache-2.0 */

/* The parsers of /proc/PID/stat, status and cgroup. */

#include "source/proc/proc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define PROC_ID_LENGTH 64 /* hexadecimal digits of a container's id */

int proc_parse_stat(const char *text, struct proc_facts *ret_facts)
{
	/*
	 * "pid (comm) state ...": comm may contain blanks and parentheses, so it ends at the last
	 * one.
	 */
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');
	uint64_t start;
	uint32_t parent;
	size_t length;
	char state;

	if (!open || !close || close < open)
		return -EBADMSG;
	/* Fields 3, 4 and 22. */
	if (sscanf(close + 1,
		   " %c %" SCNu32
		   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%" SCNu64,
		   &state, &parent, &start) != 3)
		return -EBADMSG;
	length = bits_min((size_t)(close - open - 1), sizeof(ret_facts->comm) - 1);
	memcpy(ret_facts->comm, open + 1, length);
	ret_facts->comm[length] = '\0';
	ret_facts->state = state;
	ret_facts->parent = parent;
	ret_facts->id.start_ticks = start;
	return 0;
}

/*
 * The line of status that begins with @key. The first line holds the name of the process, in which
 * the kernel escapes newlines: no line can be forged.
 */
static const char *proc_line(const char *text, const char *key)
{
	size_t length = strlen(key);

	while (text && strncmp(text, key, length) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + length : NULL;
}

int proc_parse_status(const char *text, struct proc_facts *ret_facts)
{
	const char *uids = proc_line(text, "Uid:");
	const char *pids = proc_line(text, "NSpid:");
	const char *end;
	uint32_t real, saved;

	if (!uids || sscanf(uids, " %" SCNu32 " %*s %" SCNu32, &real, &saved) != 2)
		return -EBADMSG;
	ret_facts->real_uid = real;
	ret_facts->saved_uid = saved;
	if (!pids)
		return 0; /* a kernel without pid namespaces */
	end = strchrnul(pids, '\n');
	while (pids < end) {
		char *after;
		unsigned long pid = strtoul(pids, &after, 10);

		if (after == pids || after > end)
			break;
		if (pid == 0 || pid > INT32_MAX)
			return -EBADMSG;
		ret_facts->ns_pid = (uint32_t)pid;
		pids = after;
	}
	return 0;
}

static size_t proc_hex_run(const char *text)
{
	size_t n = 0;

	while (isdigit((unsigned char)text[n]) || (text[n] >= 'a' && text[n] <= 'f'))
		n++;
	return n;
}

/* The name that follows @key, up to the next slash. */
static bool proc_name_after(const char *text, const char *key, char ret_id[PROC_CONTAINER_SIZE])
{
	const char *found = strstr(text, key);
	size_t length;

	if (!found)
		return false;
	found += strlen(key);
	length = bits_min(strcspn(found, "/\n"), PROC_CONTAINER_SIZE - 1);
	memcpy(ret_id, found, length);
	ret_id[length] = '\0';
	return length > 0;
}

/*
 * Container managers name the control group after the container: Docker, containerd, CRI-O, podman
 * by 64 hexadecimal digits somewhere in the path, LXC by name.
 */
void proc_parse_cgroup(const char *text, char ret_id[PROC_CONTAINER_SIZE])
{
	ret_id[0] = '\0';
	for (const char *at = text; *at;) {
		size_t run = proc_hex_run(at);

		if (run == PROC_ID_LENGTH) {
			memcpy(ret_id, at, run);
			ret_id[run] = '\0';
			return;
		}
		at += run ? run : 1;
	}
	if (!proc_name_after(text, "/lxc.payload.", ret_id))
		(void)proc_name_after(text, "/lxc/", ret_id); /* neither: in no container */
}
