/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Buffers added up by what they have in common: their call site, or less, such as their name alone. The names
 * of a call site's buffers are a second level under it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/sites/call-site.h"

struct snapshot;

#define GROUP_NAMES_LISTED 16u /* names of a site in documents; more are only counted */

enum group_kind {
	GROUP_NAME,
	GROUP_PHASE,
	GROUP_SITE,
	GROUP_THREAD,
};

/* The groups of all buffers, largest first. */
struct group_list {
	struct call_site *groups;
	size_t count;
	struct call_site *names; /* of sites: what each of their names has, largest first */
	size_t name_count;
};

#define GROUP_LIST_NULL ((struct group_list){.groups = NULL})

/*
 * @per_process keeps equal keys of different processes apart. The caller deinits the list. 0 or
 * -ENOMEM.
 */
int group_buffers(const struct snapshot *snapshot, enum group_kind kind, bool per_process,
		  struct group_list *ret_list);

struct snapshot_peak;

/* The same of what was live at a peak. */
int group_peak(const struct snapshot *snapshot, const struct snapshot_peak *peak,
	       enum group_kind kind, struct group_list *ret_list);

/*
 * Makes a list of groups that may have equal keys, such as those of several pages, with their names
 * in place of sites. Takes @groups over, even if it fails: 0 or -ENOMEM.
 */
int group_list_consume(enum group_kind kind, struct call_site *groups, size_t count,
		       struct group_list *ret_list);

/*
 * One group for each buffer, those of a site of a process together and in order of birth (oldest_ns).
 * The caller owns the array. 0 or -ENOMEM.
 */
int group_births(const struct snapshot *snapshot, struct call_site **ret_groups);

/* Merges groups with equal keys, and for sites equal names, in place. Returns how many are left. */
size_t group_merge(enum group_kind kind, struct call_site *groups, size_t count);

void group_list_deinit(struct group_list *list);

/* The key for users and scripts, truncated to @size; NULL for buffers that have none. */
const char *group_key(const struct snapshot *snapshot, enum group_kind kind,
		      const struct call_site *group, char *buffer, size_t size);
