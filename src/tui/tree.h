/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes below those that started them: the nearest ancestor that is in the list. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

#define TREE_NONE UINT32_MAX
#define TREE_DEPTH_MAX 16u /* of the list; deeper ones stand on their own */
#define TREE_STEPS_MAX 64u /* from a process to its ancestor, through those that hold nothing */

struct tree {
	bool is_on;
	uint32_t *parents; /* of each process of the snapshot its parent there; NULL = not known */
	size_t count;
};

void tree_deinit(struct tree *tree);

/*
 * Finds the parents of all processes. @parent_of: the pid of a process's parent, 0 = none. Without memory
 * for it, there is no tree.
 */
void tree_read(struct tree *tree, const struct snapshot *snapshot,
	       uint32_t (*parent_of)(void *context, uint32_t pid), void *context);

/* How many ancestors of a process are in the list; 0 without a tree. */
unsigned int tree_depth(const struct tree *tree, size_t item);

/*
 * What to compare for the order of @a and @b: themselves, or their ancestors that are siblings. If one is
 * an ancestor of the other, both become equal, and the return value is their order, else 0.
 */
int tree_siblings(const struct tree *tree, size_t *a, size_t *b);
