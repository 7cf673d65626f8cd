/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel module tells, less what the roster has. */

#include "daemon/outsiders.h"

#include "daemon/registry.h"
#include "daemon/tracked.h"
#include "source/kernel.h"

static bool outsiders_is(const struct tracked *tracked, const struct kernel_holder *book)
{
	return tracked->inode == (ino_t)book->id && tracked->device == book->device;
}

/* The first of the roster, which is in the order of pids, whose pid is not below. */
static size_t outsiders_from(const struct roster *roster, uint32_t pid)
{
	size_t from = 0, to = roster->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (roster->list[middle]->pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* There are thousands of both, perhaps, and nearly all of them are found at once. */
static bool outsiders_knows(const void *context, const struct kernel_holder *book)
{
	const struct roster *roster = context;

	for (size_t i = outsiders_from(roster, book->pid);
	     i < roster->count && roster->list[i]->pid == book->pid; i++) {
		if (outsiders_is(roster->list[i], book))
			return true;
	}
	for (size_t i = 0; i < roster->count; i++) {
		if (outsiders_is(roster->list[i], book))
			return true;
	}
	return false;
}

int outsiders_collect(const struct registry *registry, const struct roster *roster,
		      struct snapshot *snapshot)
{
	return kernel_collect(registry_proc(registry), outsiders_knows, roster, snapshot);
}
