/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Buffers added up by what they have in common. A call site is a type, a name and a stack; buffers
 * without a name are distinguished by the phase they were allocated in. A label is a call site
 * without its stack: it stays the same when source lines move.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

#define GROUP_AGES 4u

enum group_kind {
	GROUP_NAME,
	GROUP_PHASE,
	GROUP_SITE,
	GROUP_THREAD,
	GROUP_LABEL, /* not on the command line */
};

/* Fields that are not part of the key are 0 or NULL. */
struct group {
	uint32_t process; /* index; set for threads, or if groups are per process */
	uint32_t thread;
	uint32_t type;
	const char *name;
	const char *phase;
	const char *stack;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t oldest_ns;
	/* Allocated in each quarter of their process's life: leaked buffers are of all ages. */
	uint64_t ages[GROUP_AGES];
};

/*
 * The groups of all buffers, largest first; the caller owns the array. @per_process keeps equal
 * keys of different processes apart. 0 or -ENOMEM.
 */
int group_buffers(const struct snapshot *snapshot, enum group_kind kind, bool per_process,
		  struct group **ret_groups, size_t *ret_count);

/* Kinds as named on the command line: "name", "phase", "site", "thread". -EINVAL. */
int group_parse(const char *text, enum group_kind *ret_kind);

/* The key for users and scripts, truncated to @size; NULL for buffers that have none. */
const char *group_key(const struct snapshot *snapshot, enum group_kind kind,
		      const struct group *group, char *buffer, size_t size);
