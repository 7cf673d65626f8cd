/* SPDX-License-Identifier: Apache-2.0 */

/* Who stands below whom, whatever /proc says. */

#include "tui/tree.h"

#include "base/testing/unit.h"
#include "model/snapshot.h"

static uint32_t parents[2000];

static uint32_t parent_of(void *context, uint32_t pid)
{
	(void)context;
	return parents[pid];
}

static struct snapshot *start(uint32_t first, uint32_t count)
{
	struct snapshot *snapshot = snapshot_new(1000);

	assert(snapshot);
	for (uint32_t i = 0; i < count; i++) {
		const struct snapshot_process process = {.id.pid = first + i,
							 .id.start_ticks = 1,
							 .comm = "x",
							 .user = "x",
							 .source = "book",
							 .alive = true};
		uint32_t index;

		assert(snapshot_add_process(snapshot, &process, &index) == 0);
	}
	return snapshot;
}

UNIT(a_process_stands_below_its_nearest_ancestor_in_the_list)
{
	struct snapshot *snapshot = start(100, 4);
	struct tree tree = {.is_on = true};
	size_t a = 3, b = 2;

	parents[101] = 50; /* a shell, which holds nothing */
	parents[50] = 100;
	parents[102] = 101;
	parents[103] = 100;
	tree_read(&tree, snapshot, parent_of, NULL);
	assert(tree_depth(&tree, 0) == 0 && tree_depth(&tree, 1) == 1);
	assert(tree_depth(&tree, 2) == 2 && tree_depth(&tree, 3) == 1);
	/* 103 and 102 are compared as 103 and 101 are. */
	assert(tree_siblings(&tree, &a, &b) == 0 && a == 3 && b == 1);
	a = 2, b = 0;
	assert(tree_siblings(&tree, &a, &b) > 0);
	a = 1, b = 2;
	assert(tree_siblings(&tree, &a, &b) < 0);
	tree.is_on = false;
	assert(tree_depth(&tree, 2) == 0);
	tree_deinit(&tree);
	snapshot_free(snapshot);
}

UNIT(circles_and_long_chains_end)
{
	struct snapshot *snapshot = start(1000, 100);
	struct tree tree = {.is_on = true};

	parents[1000] = 1001;
	for (uint32_t i = 1; i < 100; i++)
		parents[1000 + i] = 1000 + i - 1;
	tree_read(&tree, snapshot, parent_of, NULL);
	for (size_t i = 0; i < 100; i++) {
		size_t a = i, b = 99 - i;

		assert(tree_depth(&tree, i) < TREE_DEPTH_MAX);
		(void)tree_siblings(&tree, &a, &b); /* ends */
	}
	tree_deinit(&tree);
	snapshot_free(snapshot);
}
