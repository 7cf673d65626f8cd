/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Grouping: every buffer becomes a key, keys are sorted, and equal neighbours are added up. A
 * snapshot's texts are interned, so keys are compared by pointer.
 */

#include "model/group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "model/frames.h"
#include "model/merge.h"
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
	case GROUP_LABEL:
		group.type = buffer->type;
		group.name = buffer->name;
		group.phase = buffer->name ? NULL : buffer->phase;
		group.stack = kind == GROUP_SITE ? buffer->stack : NULL;
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

static int group_compare_keys(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int r = group_compare_words(a->process, b->process);

	if (r == 0)
		r = group_compare_words(a->thread, b->thread);
	if (r == 0)
		r = group_compare_words(a->type, b->type);
	if (r == 0)
		r = group_compare_words((uintptr_t)a->name, (uintptr_t)b->name);
	if (r == 0)
		r = group_compare_words((uintptr_t)a->phase, (uintptr_t)b->phase);
	if (r == 0)
		r = group_compare_words((uintptr_t)a->stack, (uintptr_t)b->stack);
	return r;
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

int group_buffers(const struct snapshot *snapshot, enum group_kind kind, bool per_process,
		  struct group **ret_groups, size_t *ret_count)
{
	CLEANUP_FREE struct group *groups = calloc(snapshot->buffer_count + 1, sizeof(*groups));
	size_t n = 0;

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		groups[i] = group_of(snapshot, &snapshot->buffers[i], kind, per_process);
	qsort(groups, snapshot->buffer_count, sizeof(*groups), group_compare_keys);
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		struct group *last = n ? &groups[n - 1] : NULL;

		if (!last || group_compare_keys(last, &groups[i]) != 0) {
			groups[n++] = groups[i];
			continue;
		}
		last->bytes = merge_add(last->bytes, groups[i].bytes);
		last->buffers++;
		last->oldest_ns = bits_min(last->oldest_ns, groups[i].oldest_ns);
		for (uint32_t age = 0; age < GROUP_AGES; age++)
			last->ages[age] += groups[i].ages[age];
	}
	qsort(groups, n, sizeof(*groups), group_compare_sizes);
	*ret_groups = cleanup_steal(groups);
	*ret_count = n;
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
	case GROUP_LABEL:
		snprintf(buffer, size, "%s%s%s%s%s", types_name(group->type),
			 group->name    ? " "
			 : group->phase ? " in "
					: "",
			 group->name    ? group->name
			 : group->phase ? group->phase
					: "",
			 group->stack ? ": " : "",
			 group->stack ? frames_plain(group->stack, plain, sizeof(plain)) : "");
		return buffer;
	case GROUP_THREAD:
		snprintf(buffer, size, "%" PRIu32 "/%" PRIu32,
			 snapshot->processes[group->process].pid, group->thread);
		return buffer;
	}
	return NULL;
}
