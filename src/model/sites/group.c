/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Grouping: every buffer becomes a key, keys are sorted, and equal neighbours are added up. A
 * snapshot's texts are interned, so keys are compared by pointer.
 */

#include "model/sites/group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "model/merge.h"
#include "model/sites/name-stem.h"
#include "model/sites/stack.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"
#include "model/types.h"

/* In which part of its process's life so far it was allocated, 0 to CALL_SITE_AGES - 1. */
static uint32_t group_age(const struct snapshot *snapshot, const struct snapshot_buffer *buffer)
{
	uint64_t start = snapshot->processes[buffer->process].start_ns;
	uint64_t life = snapshot->time_ns > start ? snapshot->time_ns - start : 1;
	uint64_t at = buffer->born_ns > start ? buffer->born_ns - start : 0;

	return (uint32_t)bits_min(at / (life / CALL_SITE_AGES + 1), CALL_SITE_AGES - 1);
}

/* What identifies the buffer's group, and its sums. */
static struct call_site group_of(const struct snapshot *snapshot,
				 const struct snapshot_buffer *buffer, enum group_kind kind,
				 bool per_process)
{
	struct call_site site = call_site_of(buffer);
	struct call_site group = {
		.bytes = site.bytes, .buffers = site.buffers, .oldest_ns = site.oldest_ns};

	if (kind == GROUP_SITE)
		group = site;
	if (kind == GROUP_NAME)
		group.name = buffer->name;
	if (kind == GROUP_PHASE)
		group.phase = buffer->phase;
	if (kind == GROUP_THREAD)
		group.thread = buffer->thread;
	if (per_process || kind == GROUP_THREAD)
		group.process = buffer->process;
	group.ages[group_age(snapshot, buffer)] = group.buffers;
	return group;
}

/* For the other kinds, which have few fields, and may have very many names. */
static int group_compare_plain(const void *left, const void *right)
{
	const struct call_site *a = left, *b = right;
	int r = bits_compare(a->process, b->process);

	if (r == 0)
		r = bits_compare(a->thread, b->thread);
	if (r == 0)
		r = bits_compare((uintptr_t)a->name, (uintptr_t)b->name);
	return r ? r : bits_compare((uintptr_t)a->phase, (uintptr_t)b->phase);
}

/* The names of a site together, the largest first. */
static int group_compare_names(const void *left, const void *right)
{
	int r = call_site_compare(left, right);

	return r ? r : call_site_compare_sizes(left, right);
}

size_t group_merge(enum group_kind kind, struct call_site *groups, size_t count)
{
	int (*compare)(const void *, const void *) =
		kind == GROUP_SITE ? call_site_compare_names : group_compare_plain;
	size_t n = 0;

	if (count > 0)
		qsort(groups, count, sizeof(*groups), compare);
	for (size_t i = 0; i < count; i++) {
		if (n && compare(&groups[n - 1], &groups[i]) == 0)
			call_site_add(&groups[n - 1], &groups[i]);
		else
			groups[n++] = groups[i];
	}
	return n;
}

/* Adds the names of a list up to sites. */
static int group_list_sites(struct group_list *list)
{
	struct call_site *site = NULL;

	list->groups = calloc(list->name_count + 1, sizeof(*list->groups));
	if (!list->groups)
		return -ENOMEM;
	qsort(list->names, list->name_count, sizeof(*list->names), group_compare_names);
	for (size_t i = 0; i < list->name_count; i++) {
		if (site && call_site_compare(site, &list->names[i]) == 0) {
			call_site_add(site, &list->names[i]);
		} else {
			site = &list->groups[list->count++];
			*site = list->names[i];
			site->first_name = i;
			site->names = 0;
		}
		site->names++;
	}
	return 0;
}

int group_list_consume(enum group_kind kind, struct call_site *groups, size_t count,
		       struct group_list *ret_list)
{
	struct group_list list = GROUP_LIST_NULL;
	int r = 0;

	count = group_merge(kind, groups, count);
	if (kind == GROUP_SITE && count > 0) {
		list.names = groups;
		list.name_count = count;
		r = group_list_sites(&list);
	} else {
		list.groups = groups;
		list.count = count;
	}
	if (r < 0) {
		group_list_deinit(&list);
		return r;
	}
	if (list.count > 0)
		qsort(list.groups, list.count, sizeof(*list.groups), call_site_compare_sizes);
	*ret_list = list;
	return 0;
}

void group_list_deinit(struct group_list *list)
{
	free(list->groups);
	free(list->names);
	*list = GROUP_LIST_NULL;
}

int group_buffers(const struct snapshot *snapshot, enum group_kind kind, bool per_process,
		  struct group_list *ret_list)
{
	struct call_site *groups = calloc(snapshot->buffer_count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[i], kind, per_process);
	return group_list_consume(kind, groups, snapshot->buffer_count, ret_list);
}

int group_peak(const struct snapshot *snapshot, const struct snapshot_peak *peak,
	       enum group_kind kind, struct group_list *ret_list)
{
	struct call_site *groups = calloc(peak->count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < peak->count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[peak->first + i], kind, false);
	return group_list_consume(kind, groups, peak->count, ret_list);
}

static int group_compare_births(const void *left, const void *right)
{
	const struct call_site *a = left, *b = right;
	int r = call_site_compare(a, b);

	return r ? r : bits_compare(a->oldest_ns, b->oldest_ns);
}

int group_births(const struct snapshot *snapshot, struct call_site **ret_groups)
{
	struct call_site *groups = calloc(snapshot->buffer_count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[i], GROUP_SITE, true);
	qsort(groups, snapshot->buffer_count, sizeof(*groups), group_compare_births);
	*ret_groups = groups;
	return 0;
}

const char *group_key(const struct snapshot *snapshot, enum group_kind kind,
		      const struct call_site *group, char *buffer, size_t size)
{
	char plain[STACK_LINE];

	switch (kind) {
	case GROUP_NAME:
		return group->name;
	case GROUP_PHASE:
		return group->phase;
	case GROUP_SITE:
		if (!group->stack)
			return call_site_label(group, buffer, size);
		snprintf(buffer, size, "%s: %s", types_name(group->type),
			 stack_plain(group->stack, false, plain, sizeof(plain)));
		return buffer;
	case GROUP_THREAD:
		snprintf(buffer, size, "%" PRIu32 "/%" PRIu32,
			 snapshot->processes[group->process].id.pid, group->thread);
		return buffer;
	}
	return NULL;
}
