/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Buffers added up by what they have in common. A call site is a type and a stack; the names of its
 * buffers are a second level under it. Buffers without a stack are told apart by their name without
 * its numbers (model/sites/name-stem.h), and without a name by the phase they were allocated in.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

#define GROUP_AGES 4u
#define GROUP_NAMES_LISTED 16u /* names of a site in documents; more are only counted */

enum group_kind {
	GROUP_NAME,
	GROUP_PHASE,
	GROUP_SITE,
	GROUP_THREAD,
};

/* Fields that are not part of the key are 0 or NULL. */
struct group {
	uint32_t process; /* index; set for threads, or if groups are per process */
	uint32_t thread;
	uint32_t type;
	const char *name;  /* of a site: the one with the most bytes */
	const char *phase; /* of a site: only without a name */
	const char *stack;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t oldest_ns;
	/* Allocated in each quarter of their process's life: leaked buffers are of all ages. */
	uint64_t ages[GROUP_AGES];
	size_t first_name, names; /* of a site: its part of the list's names */
};

/* The groups of all buffers, largest first. */
struct group_list {
	struct group *groups;
	size_t count;
	struct group *names; /* of sites: what each of their names has, largest first */
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
int group_list_consume(enum group_kind kind, struct group *groups, size_t count,
		       struct group_list *ret_list);

/*
 * One group for each buffer, those of a site of a process together and in order of birth (oldest_ns).
 * The caller owns the array. 0 or -ENOMEM.
 */
int group_births(const struct snapshot *snapshot, struct group **ret_groups);

/* Merges groups with equal keys, and for sites equal names, in place. Returns how many are left. */
size_t group_merge(enum group_kind kind, struct group *groups, size_t count);

void group_list_deinit(struct group_list *list);

/* Kinds as named on the command line: "name", "phase", "site", "thread". -EINVAL. */
int group_parse(const char *text, enum group_kind *ret_kind);

/* Whether all is the same but the names' numbers: @a and @b belong to one site. */
bool group_is_same_site(const struct group *a, const struct group *b);

/* The key for users and scripts, truncated to @size; NULL for buffers that have none. */
const char *group_key(const struct snapshot *snapshot, enum group_kind kind,
		      const struct group *group, char *buffer, size_t size);

/* "NAME", "3 names", without a stack their stem; "in PHASE" without a name, else "". */
#define GROUP_NAMES_TEXT 4096u /* room for the longest */
const char *group_names_text(const struct group *site, char *buffer, size_t size);

/* Its names, and " at " the frame that stands for its stack; "" = neither. For people. */
const char *group_place(const struct group *site, char *buffer, size_t size);

/* What a site is called without its stack: its type and its names, for people. */
const char *group_label(const struct group *site, char *buffer, size_t size);
