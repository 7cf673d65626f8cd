/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keys of groups live in a snapshot of their own, whose texts are interned like those of any other:
 * equal keys of different pages become equal pointers there, and are merged by sorting.
 */

#include "web/api/group-pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/json/document.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "web/server/web.h"

struct sums {
	enum group_kind kind;
	struct snapshot *all; /* texts, processes and notes */
	struct group *groups; /* sorted by key after each page */
	size_t count, capacity;
	size_t lost; /* buffers in groups beyond the maximum */
};

static int sums_text(struct sums *sums, const char **text)
{
	if (!*text)
		return 0;
	*text = snapshot_text(sums->all, *text, strlen(*text));
	return *text ? 0 : -ENOMEM;
}

/* The same group, in terms of what outlives the page. */
static int sums_move(struct sums *sums, const struct snapshot *page, struct group *group)
{
	int r = sums_text(sums, &group->name);

	if (r == 0)
		r = sums_text(sums, &group->phase);
	if (r == 0)
		r = sums_text(sums, &group->stack);
	if (r == 0 && sums->kind == GROUP_THREAD) {
		struct snapshot_process process = page->processes[group->process];

		process.comm = "";
		process.user = "";
		process.container = NULL;
		r = snapshot_add_process(sums->all, &process, &group->process);
	}
	return r;
}

static int sums_compare(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	const uint64_t keys[][2] = {
		{a->process, b->process},
		{a->thread, b->thread},
		{a->type, b->type},
		{(uintptr_t)a->name, (uintptr_t)b->name},
		{(uintptr_t)a->phase, (uintptr_t)b->phase},
		{(uintptr_t)a->stack, (uintptr_t)b->stack},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	}
	return 0;
}

/* Equal neighbours become one. */
static void sums_merge(struct sums *sums)
{
	size_t n = 0;

	if (sums->count > 0)
		qsort(sums->groups, sums->count, sizeof(*sums->groups), sums_compare);
	for (size_t i = 0; i < sums->count; i++) {
		struct group *last = n ? &sums->groups[n - 1] : NULL;
		const struct group *group = &sums->groups[i];

		if (!last || sums_compare(last, group) != 0) {
			sums->groups[n++] = *group;
			continue;
		}
		last->bytes = merge_add(last->bytes, group->bytes);
		last->buffers += group->buffers;
		last->oldest_ns = bits_min(last->oldest_ns, group->oldest_ns);
	}
	for (; n > SUMS_GROUPS_MAX; n--)
		sums->lost += sums->groups[n - 1].buffers;
	sums->count = n;
}

static int sums_add_page(struct sums *sums, const struct snapshot *page)
{
	CLEANUP_FREE struct group *groups = NULL;
	struct group *grown;
	size_t count = 0;
	int r = group_buffers(page, sums->kind, false, &groups, &count);

	if (r < 0)
		return r;
	grown = array_grow(sums->groups, &sums->capacity, sums->count + count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	sums->groups = grown;
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = sums_move(sums, page, &groups[i]);
		sums->groups[sums->count++] = groups[i];
	}
	sums_merge(sums);
	sums->all->time_ns = page->time_ns;
	sums->all->exact = sums->all->exact && page->exact;
	for (size_t i = 0; i < page->note_count; i++)
		snapshot_note(sums->all, "%s", page->notes[i]);
	return r;
}

static int sums_walk(struct sums *sums, const struct web_provider *provider,
		     const struct filter *filter)
{
	struct snapshot_request request = {.buffers = true, .filter = *filter, .limit = SUMS_PAGE};
	bool more = true;

	for (uint32_t pages = 0; more; pages++) {
		struct snapshot *page = NULL;
		int r;

		if (pages == SUMS_PAGES_MAX) {
			sums->all->exact = false;
			snapshot_note(sums->all, "more buffers than can be added up: choose some");
			return 0;
		}
		r = provider->snapshot(provider->context, &request, &page);
		if (r < 0)
			return r;
		r = sums_add_page(sums, page);
		more = page->has_next;
		request.after = page->next;
		request.has_after = true;
		snapshot_free(page);
		if (r < 0)
			return r;
	}
	return 0;
}

static int sums_compare_sizes(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->buffers != b->buffers)
		return a->buffers > b->buffers ? -1 : 1;
	return sums_compare(left, right);
}

int sums_write(const struct web_provider *provider, const struct filter *filter,
	       enum group_kind kind, size_t limit, struct emit *json)
{
	struct sums sums = {.kind = kind, .all = snapshot_new(0)};
	int r = sums.all ? sums_walk(&sums, provider, filter) : -ENOMEM;

	if (r == 0) {
		if (sums.count > 0)
			qsort(sums.groups, sums.count, sizeof(*sums.groups), sums_compare_sizes);
		if (sums.lost) {
			sums.all->exact = false;
			snapshot_note(sums.all, "%zu buffers are in more groups than are kept",
				      sums.lost);
		}
		if (sums.count > limit)
			snapshot_note(sums.all, "the largest %zu of %zu groups", limit, sums.count);
		document_groups(json, sums.all, kind, sums.groups, bits_min(sums.count, limit));
	}
	free(sums.groups);
	snapshot_free(sums.all);
	return r;
}
