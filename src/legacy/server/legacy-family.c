/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Children that go on using an inherited connection. They send a pid other than the socket's peer,
 * which the kernel must confirm. The search goes down from the peer through the lists of children,
 * which also works across pid namespaces, where pids differ. It is rare and bounded, because the
 * loop waits for it.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "legacy/server/legacy-private.h"

#define FAMILY_PROCESSES 64u /* checked per pid */
#define FAMILY_THREADS 16u   /* per process */
#define FAMILY_TEXT 4096u

struct family {
	const struct proc *proc;
	uint32_t pids[FAMILY_PROCESSES];
	size_t count;
};

static void family_add_text(struct family *family, const char *text)
{
	char *after;
	unsigned long pid = strtoul(text, &after, 10);

	while (after != text && pid > 0 && pid <= INT32_MAX && family->count < FAMILY_PROCESSES) {
		family->pids[family->count++] = (uint32_t)pid;
		text = after;
		pid = strtoul(text, &after, 10);
	}
}

static void family_add_thread(struct family *family, uint32_t pid, uint32_t thread)
{
	char path[64], text[FAMILY_TEXT];

	(void)snprintf(path, sizeof(path), "%u/task/%u/children", pid, thread);
	/* Unreadable: the process is exiting, or the kernel has no such file. */
	if (small_file_read(family->proc->root, path, text, sizeof(text)) > 0)
		family_add_text(family, text);
}

static void family_add_children(struct family *family, uint32_t pid)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	uint32_t thread, n = 0;
	char path[32];

	(void)snprintf(path, sizeof(path), "%u/task", pid);
	listing = proc_list(family->proc, path);
	if (!listing)
		return;
	while (n++ < FAMILY_THREADS && (thread = proc_next(listing)))
		family_add_thread(family, pid, thread);
}

int legacy_family_find(const struct proc *proc, const struct proc_facts *peer, uint32_t pid,
		       struct proc_facts *ret_facts)
{
	struct family family = {.proc = proc};
	struct proc_facts facts;

	if (peer->id.start_ticks == 0 || pid == 0)
		return -ESRCH;
	family_add_children(&family, peer->id.pid);
	for (size_t i = 0; i < family.count; i++) {
		if (proc_read(proc, family.pids[i], &facts) < 0)
			continue;
		if (facts.ns_pid == pid && facts.pid_namespace == peer->pid_namespace &&
		    facts.real_uid == peer->real_uid) {
			*ret_facts = facts;
			return 0;
		}
		family_add_children(&family, facts.id.pid);
	}
	return -ESRCH;
}
