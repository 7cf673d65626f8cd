/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Group keys live in a separate snapshot, which interns their texts like any other: equal keys from
 * different pages become equal pointers and are merged by sorting.
 */

#include "web/api/group-pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/buffers.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "web/server/web.h"

struct group_pages {
	enum group_kind kind;
	struct snapshot *all;     /* texts, processes and notes */
	struct call_site *groups; /* sorted by key after each page */
	size_t count, capacity;
	size_t lost; /* buffers in groups beyond the maximum */
};

static int group_pages_text(struct group_pages *group_pages, const char **text)
{
	if (!*text)
		return 0;
	*text = snapshot_text(group_pages->all, *text, strlen(*text));
	return *text ? 0 : -ENOMEM;
}

/* Rewrites a group to use only pointers that outlive the page. */
static int group_pages_move(struct group_pages *group_pages, const struct snapshot *page,
			    struct call_site *group)
{
	int r = group_pages_text(group_pages, &group->name);

	if (r == 0)
		r = group_pages_text(group_pages, &group->phase);
	if (r == 0 && group->stack) {
		group->stack = stack_copy(&group_pages->all->texts, group->stack);
		r = group->stack ? 0 : -ENOMEM;
	}
	if (r == 0 && group_pages->kind == GROUP_THREAD) {
		struct snapshot_process process = page->processes[group->process];

		process.comm = "";
		process.user = "";
		process.container = NULL;
		r = snapshot_add_process(group_pages->all, &process, &group->process);
	}
	return r;
}

/* Merges equal neighbours. */
static void group_pages_merge(struct group_pages *group_pages)
{
	size_t n = group_merge(group_pages->kind, group_pages->groups, group_pages->count);

	for (; n > GROUP_PAGES_GROUPS_MAX; n--)
		group_pages->lost += group_pages->groups[n - 1].buffers;
	group_pages->count = n;
}

static int group_pages_add_page(void *context, const struct snapshot *page)
{
	struct group_pages *group_pages = context;
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	int r = group_buffers(page, group_pages->kind, false, &list);
	/* Sites are added up again from their names. */
	struct call_site *groups = list.names ? list.names : list.groups;
	size_t count = list.names ? list.name_count : list.count;
	struct call_site *grown;

	if (r < 0)
		return r;
	grown = array_grow(group_pages->groups, &group_pages->capacity,
			   group_pages->count + count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	group_pages->groups = grown;
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = group_pages_move(group_pages, page, &groups[i]);
		group_pages->groups[group_pages->count++] = groups[i];
	}
	group_pages_merge(group_pages);
	group_pages->all->time_ns = page->time_ns;
	group_pages->all->moment = page->moment;
	group_pages->all->exact = group_pages->all->exact && page->exact;
	for (size_t i = 0; i < page->note_count; i++)
		snapshot_note(group_pages->all, "%s", page->notes[i]);
	return r;
}

int group_pages_each(const struct web_provider *provider, const struct snapshot_request *like,
		     int (*page)(void *context, const struct snapshot *page), void *context)
{
	struct snapshot_request request = *like;
	bool more = true;

	request.buffers = true;
	request.limit = GROUP_PAGES_PAGE;
	for (uint32_t pages = 0; more; pages++) {
		struct snapshot *snapshot = NULL;
		int r;

		if (pages == GROUP_PAGES_PAGES_MAX)
			return 1;
		r = provider->snapshot(provider->context, &request, &snapshot);
		if (r < 0)
			return r;
		r = page(context, snapshot);
		more = snapshot->has_next;
		request.after = snapshot->next;
		request.has_after = true;
		snapshot_free(snapshot);
		if (r < 0)
			return r;
	}
	return 0;
}

static int group_pages_walk(struct group_pages *group_pages, const struct web_provider *provider,
			    const struct snapshot_request *like)
{
	int r = group_pages_each(provider, like, group_pages_add_page, group_pages);

	if (r > 0) {
		group_pages->all->exact = false;
		snapshot_note(group_pages->all, "more buffers than can be added up: choose some");
	}
	return r < 0 ? r : 0;
}

int group_pages_write(const struct web_provider *provider, const struct snapshot_request *like,
		      enum group_kind kind, size_t limit, struct emit *json)
{
	struct group_pages group_pages = {.kind = kind, .all = snapshot_new(0)};
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	int r = group_pages.all ? group_pages_walk(&group_pages, provider, like) : -ENOMEM;

	if (r == 0) {
		r = group_list_consume(kind, group_pages.groups, group_pages.count, &list);
		group_pages.groups = NULL;
	}
	if (r == 0) {
		if (group_pages.lost) {
			group_pages.all->exact = false;
			snapshot_note(group_pages.all,
				      "%zu buffers are in more groups than are kept",
				      group_pages.lost);
		}
		if (list.count > limit)
			snapshot_note(group_pages.all, "the largest %zu of %zu groups", limit,
				      list.count);
		list.count = bits_min(list.count, limit);
		buffers_put_groups(json, group_pages.all, kind, &list);
	}
	free(group_pages.groups);
	snapshot_free(group_pages.all);
	return r;
}
