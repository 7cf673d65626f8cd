/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The stacks of an export as a tree: most formats have tables of texts, frames and callers, and name
 * them by number. All numbers begin with 1 and are given in order, so that a format can write what is
 * new as it comes; 0 is none.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"

struct stack;

struct export_frame {
	uint32_t function, file, module; /* texts; 0 = not known, but a function has always one */
	uint32_t line;                   /* 0 = not known */
};

struct export_node {
	uint32_t parent; /* the caller; 0 = none */
	uint32_t frame;
};

struct export_stacks {
	struct pool pool;
	struct map text_index, frame_index, node_index, stack_index;
	const char **texts; /* entry n - 1 is number n; likewise the others */
	size_t text_capacity;
	struct export_frame *frames;
	size_t frame_capacity;
	struct export_node *nodes;
	size_t node_capacity;
	uint32_t *stacks; /* the node of each stack that was added */
	size_t stack_capacity;
};

#define EXPORT_STACKS_NULL ((struct export_stacks){.texts = NULL})

void export_stacks_deinit(struct export_stacks *stacks);

/*
 * The node of the innermost frame of @stack, as in a snapshot_buffer; @root if there are no frames. The
 * outermost frame is called by @root.
 */
uint32_t export_stacks_add(struct export_stacks *stacks, uint32_t root, const struct stack *stack);

/* A frame that only has a name, such as a type of memory. */
uint32_t export_stacks_label(struct export_stacks *stacks, uint32_t parent, const char *text);

/*
 * Where a buffer comes from: its stack, else what stands for it, a frame "[no stack] NAME" with the name's
 * stem.
 */
uint32_t export_stacks_site(struct export_stacks *stacks, uint32_t root, const struct stack *stack,
			    const char *name);

/* A text that can be shown anywhere: it has no control characters. */
uint32_t export_stacks_text(struct export_stacks *stacks, const char *text);

/* The text of a number; "" for 0. */
const char *export_stacks_string(const struct export_stacks *stacks, uint32_t number);

/* The nodes from the outermost to @node: at most @max, the innermost ones. Returns how many. */
size_t export_stacks_path(const struct export_stacks *stacks, uint32_t node, uint32_t *ret_nodes,
			  size_t max);

#define EXPORT_STACK_DEPTH 512u /* more than a book's stacks have */
#define EXPORT_LABEL_SIZE 4096u

/* "function (file:line)", the file without folders; the module if there is no file. Returns @ret_text. */
const char *export_stacks_label_of(const struct export_stacks *stacks, uint32_t frame,
				   char ret_text[EXPORT_LABEL_SIZE]);
