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
#include "base/cleanup.h"
#include "base/text.h"
#include "model/merge.h"
#include "model/sites/frames.h"
#include "model/sites/name-stem.h"
#include "model/sites/site.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"
#include "model/types.h"

/* In which part of its process's life so far it was allocated, 0 to GROUP_AGES - 1. */
static uint32_t group_age(const struct snapshot *snapshot, const struct snapshot_buffer *buffer)
{
	uint64_t start = snapshot->processes[buffer->process].start_ns;
	uint64_t life = snapshot->time_ns > start ? snapshot->time_ns - start : 1;
	uint64_t at = buffer->born_ns > start ? buffer->born_ns - start : 0;

	return (uint32_t)bits_min(at / (life / GROUP_AGES + 1), GROUP_AGES - 1);
}

static struct group group_of(const struct snapshot *snapshot, const struct snapshot_buffer *buffer,
			     enum group_kind kind, bool per_process)
{
	struct group group = {
		.bytes = snapshot_buffer_bytes(buffer),
		.buffers = 1,
		.oldest_ns = buffer->born_ns,
	};

	group.ages[group_age(snapshot, buffer)] = 1;
	if (per_process || kind == GROUP_THREAD)
		group.process = buffer->process;
	switch (kind) {
	case GROUP_NAME:
		group.name = buffer->name;
		break;
	case GROUP_PHASE:
		group.phase = buffer->phase;
		break;
	case GROUP_SITE:
		group.type = buffer->type;
		group.name = buffer->name;
		group.phase = buffer->name ? NULL : buffer->phase;
		group.stack = buffer->stack;
		break;
	case GROUP_THREAD:
		group.thread = buffer->thread;
		break;
	}
	return group;
}

static int group_compare_words(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* For the other kinds, which have few fields, and may have very many names. */
static int group_compare_plain(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int r = group_compare_words(a->process, b->process);

	if (r == 0)
		r = group_compare_words(a->thread, b->thread);
	if (r == 0)
		r = group_compare_words((uintptr_t)a->name, (uintptr_t)b->name);
	return r ? r : group_compare_words((uintptr_t)a->phase, (uintptr_t)b->phase);
}

/* The order of call sites: their names only count without a stack. */
static int group_compare_sites(const struct group *a, const struct group *b)
{
	int r = group_compare_words(a->process, b->process);

	if (r == 0)
		r = group_compare_words(a->thread, b->thread);
	if (r == 0)
		r = group_compare_words(a->type, b->type);
	if (r == 0)
		r = group_compare_words((uintptr_t)a->stack, (uintptr_t)b->stack);
	if (r || a->stack)
		return r;
	r = name_stem_compare(a->name, b->name);
	return r ? r : group_compare_words((uintptr_t)a->phase, (uintptr_t)b->phase);
}

bool group_is_same_site(const struct group *a, const struct group *b)
{
	return group_compare_sites(a, b) == 0;
}

/* Likewise, and by name within a site. */
static int group_compare_keys(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int r = group_compare_sites(a, b);

	if (r == 0)
		r = group_compare_words((uintptr_t)a->name, (uintptr_t)b->name);
	return r ? r : group_compare_words((uintptr_t)a->phase, (uintptr_t)b->phase);
}

static int group_compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Largest first; then by key, so that the same state always has the same order. */
static int group_compare_sizes(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int r = group_compare_words(b->bytes, a->bytes);

	if (r == 0)
		r = group_compare_words(b->buffers, a->buffers);
	if (r == 0)
		r = group_compare_text(a->name, b->name);
	if (r == 0)
		r = group_compare_text(a->phase, b->phase);
	if (r == 0)
		r = group_compare_text(a->stack, b->stack);
	return r ? r : group_compare_keys(left, right);
}

/* The names of a site together, the largest first. */
static int group_compare_names(const void *left, const void *right)
{
	int r = group_compare_sites(left, right);

	return r ? r : group_compare_sizes(left, right);
}

static void group_add(struct group *sum, const struct group *more)
{
	sum->bytes = merge_add(sum->bytes, more->bytes);
	sum->buffers += more->buffers;
	sum->oldest_ns = bits_min(sum->oldest_ns, more->oldest_ns);
	for (uint32_t age = 0; age < GROUP_AGES; age++)
		sum->ages[age] += more->ages[age];
}

size_t group_merge(enum group_kind kind, struct group *groups, size_t count)
{
	int (*compare)(const void *, const void *) =
		kind == GROUP_SITE ? group_compare_keys : group_compare_plain;
	size_t n = 0;

	if (count > 0)
		qsort(groups, count, sizeof(*groups), compare);
	for (size_t i = 0; i < count; i++) {
		if (n && compare(&groups[n - 1], &groups[i]) == 0)
			group_add(&groups[n - 1], &groups[i]);
		else
			groups[n++] = groups[i];
	}
	return n;
}

/* Adds the names of a list up to sites. */
static int group_list_sites(struct group_list *list)
{
	struct group *site = NULL;

	list->groups = calloc(list->name_count + 1, sizeof(*list->groups));
	if (!list->groups)
		return -ENOMEM;
	qsort(list->names, list->name_count, sizeof(*list->names), group_compare_names);
	for (size_t i = 0; i < list->name_count; i++) {
		if (site && group_compare_sites(site, &list->names[i]) == 0) {
			group_add(site, &list->names[i]);
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

int group_list_consume(enum group_kind kind, struct group *groups, size_t count,
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
		qsort(list.groups, list.count, sizeof(*list.groups), group_compare_sizes);
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
	struct group *groups = calloc(snapshot->buffer_count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[i], kind, per_process);
	return group_list_consume(kind, groups, snapshot->buffer_count, ret_list);
}

int group_peak(const struct snapshot *snapshot, const struct snapshot_peak *peak,
	       enum group_kind kind, struct group_list *ret_list)
{
	struct group *groups = calloc(peak->count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < peak->count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[peak->first + i], kind, false);
	return group_list_consume(kind, groups, peak->count, ret_list);
}

static int group_compare_births(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int r = group_compare_sites(a, b);

	return r ? r : group_compare_words(a->oldest_ns, b->oldest_ns);
}

int group_births(const struct snapshot *snapshot, struct group **ret_groups)
{
	struct group *groups = calloc(snapshot->buffer_count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[i], GROUP_SITE, true);
	qsort(groups, snapshot->buffer_count, sizeof(*groups), group_compare_births);
	*ret_groups = groups;
	return 0;
}

int group_parse(const char *text, enum group_kind *ret_kind)
{
	static const char *const names[] = {
		[GROUP_NAME] = "name",
		[GROUP_PHASE] = "phase",
		[GROUP_SITE] = "site",
		[GROUP_THREAD] = "thread",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret_kind = (enum group_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *group_names_text(const struct group *site, char *buffer, size_t size)
{
	buffer[0] = '\0';
	if (site->names > 1 && site->stack)
		snprintf(buffer, size, "%zu names", site->names);
	else if (site->names > 1)
		name_stem(site->name, buffer, size);
	else if (site->name)
		snprintf(buffer, size, "%s", site->name);
	else if (site->phase)
		snprintf(buffer, size, "in %s", site->phase);
	return buffer;
}

const char *group_place(const struct group *site, char *buffer, size_t size)
{
	char names[GROUP_NAMES_TEXT], frame[GROUP_NAMES_TEXT];

	group_names_text(site, names, sizeof(names));
	site_text(site->stack, frame, sizeof(frame));
	snprintf(buffer, size, "%s%s%s", names, *names && *frame ? " at " : "", frame);
	return buffer;
}

const char *group_label(const struct group *site, char *buffer, size_t size)
{
	char names[GROUP_NAMES_TEXT];

	group_names_text(site, names, sizeof(names));
	snprintf(buffer, size, "%s%s%s", types_name(site->type), *names ? " " : "", names);
	return buffer;
}

const char *group_key(const struct snapshot *snapshot, enum group_kind kind,
		      const struct group *group, char *buffer, size_t size)
{
	char plain[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];

	switch (kind) {
	case GROUP_NAME:
		return group->name;
	case GROUP_PHASE:
		return group->phase;
	case GROUP_SITE:
		if (!group->stack)
			return group_label(group, buffer, size);
		snprintf(buffer, size, "%s: %s", types_name(group->type),
			 frames_plain(group->stack, plain, sizeof(plain)));
		return buffer;
	case GROUP_THREAD:
		snprintf(buffer, size, "%" PRIu32 "/%" PRIu32,
			 snapshot->processes[group->process].pid, group->thread);
		return buffer;
	}
	return NULL;
}
