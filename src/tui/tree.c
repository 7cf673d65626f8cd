/* SPDX-License-Identifier: Apache-2.0 */

/* Processes as a tree. */

#include "tui/tree.h"

#include <stdlib.h>

#include "base/bits.h"
#include "model/snapshot.h"

void tree_deinit(struct tree *tree)
{
	free(tree->parents);
	tree->parents = NULL;
	tree->count = 0;
}

struct tree_pid {
	uint32_t pid, item;
};

static int tree_compare(const void *a, const void *b)
{
	const struct tree_pid *x = a, *y = b;

	return bits_compare(x->pid, y->pid);
}

static unsigned int tree_length(const struct tree *tree, size_t item)
{
	unsigned int length = 0;

	while (tree->parents[item] != TREE_NONE && length < TREE_DEPTH_MAX) {
		item = tree->parents[item];
		length++;
	}
	return length;
}

void tree_read(struct tree *tree, const struct snapshot *snapshot,
	       uint32_t (*parent_of)(void *context, uint32_t pid), void *context)
{
	size_t count = snapshot->process_count, living = 0;
	struct tree_pid *pids = calloc(count + 1, sizeof(*pids));

	tree_deinit(tree);
	tree->parents = calloc(count + 1, sizeof(*tree->parents));
	for (size_t i = 0; pids && i < count; i++) {
		if (snapshot->processes[i].alive)
			pids[living++] =
				(struct tree_pid){snapshot->processes[i].id.pid, (uint32_t)i};
	}
	if (!pids || !tree->parents) {
		free(pids);
		tree_deinit(tree);
		return;
	}
	qsort(pids, living, sizeof(*pids), tree_compare);
	tree->count = count;
	for (size_t i = 0; i < count; i++) {
		struct tree_pid key = {snapshot->processes[i].id.pid, 0};
		const struct tree_pid *found = NULL;

		tree->parents[i] = TREE_NONE;
		for (unsigned int step = 0;
		     snapshot->processes[i].alive && !found && key.pid && step < TREE_STEPS_MAX;
		     step++) {
			key.pid = parent_of(context, key.pid);
			found = bsearch(&key, pids, living, sizeof(*pids), tree_compare);
		}
		/* Processes come and go meanwhile, so that a reused pid may close a circle. */
		if (found && found->item != i)
			tree->parents[i] = found->item;
	}
	free(pids);
	for (size_t i = 0; i < count; i++) {
		if (tree_length(tree, i) >= TREE_DEPTH_MAX)
			tree->parents[i] = TREE_NONE;
	}
}

static uint32_t tree_parent(const struct tree *tree, size_t item)
{
	return tree->is_on && item < tree->count ? tree->parents[item] : TREE_NONE;
}

unsigned int tree_depth(const struct tree *tree, size_t item)
{
	return tree->is_on && item < tree->count ? tree_length(tree, item) : 0;
}

/* The ancestor of @item that has @depth ancestors. */
static size_t tree_ancestor(const struct tree *tree, size_t item, unsigned int depth)
{
	for (unsigned int at = tree_depth(tree, item); at > depth; at--)
		item = tree_parent(tree, item);
	return item;
}

int tree_siblings(const struct tree *tree, size_t *a, size_t *b)
{
	unsigned int x = tree_depth(tree, *a), y = tree_depth(tree, *b), common = x < y ? x : y;

	*a = tree_ancestor(tree, *a, common);
	*b = tree_ancestor(tree, *b, common);
	if (*a == *b)
		return bits_compare(x, y);
	while (common > 0 && tree_parent(tree, *a) != tree_parent(tree, *b)) {
		*a = tree_parent(tree, *a);
		*b = tree_parent(tree, *b);
		common--;
	}
	return 0;
}
