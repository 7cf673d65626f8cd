/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A table on the screen: columns, order, filter, a row that is chosen, and one row that may be unfolded into
 * further lines. It keeps no rows: what there is is numbered, and asked for by number when it is drawn,
 * so that a hundred thousand rows cost as little as those that are seen. The chosen row is known by its
 * key, so it stays the same one when the order changes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/grid.h"
#include "tui/keys.h"

#define LIST_FILTER_SIZE 64
#define LIST_CELL_SIZE 512
#define LIST_COLUMNS_MAX 16u
#define LIST_PLENTY 100u /* columns */
#define LIST_WHEEL 3u    /* rows that a turn of the wheel moves */

struct list_column {
	const char *title;
	unsigned int width; /* without the blank behind it; the least, if it grows */
	bool right;         /* numbers: to the right, and the largest first when sorted by it */
	bool grows;         /* takes what is left over */
	bool fixed;         /* nothing to sort by */
	unsigned int wide;  /* the width if there is plenty; 0 = the same */
	unsigned int least; /* shown only if there are so many columns; 0 = always */
};

/* What the rows are; @context is the view's. */
struct list_rows {
	const struct list_column *columns;
	size_t column_count;
	const char *none; /* what is said if there is nothing to show */

	/* Text of anybody into @text, LIST_CELL_SIZE; the style if it is not plain. */
	void (*cell)(const void *context, size_t item, size_t column, char *text,
		     enum grid_style *style);
	/* Less than 0: a comes first when sorted upwards. NULL: they stay in their order. */
	int (*compare)(const void *context, size_t a, size_t b, size_t column);
	/* Tells rows apart, from one time to the next. Never 0. */
	uint64_t (*key)(const void *context, size_t item);
	/* Whether it is shown at all; @filter may be "". NULL: all are. */
	bool (*wants)(const void *context, size_t item, const char *filter);
	/* Draws over its cell, if it is one of those. NULL: none is. */
	void (*paint)(const void *context, size_t item, size_t column, struct grid *grid,
		      const struct grid_area *area);
	/* Of the unfolded row: how many lines, and each of them. NULL: rows have none. */
	size_t (*line_count)(const void *context, size_t item);
	void (*line)(const void *context, size_t item, size_t line, char *text);
};

struct list {
	size_t sort; /* column */
	bool falling;
	bool sorts; /* somebody has chosen the order above */
	char filter[LIST_FILTER_SIZE];
	uint64_t chosen; /* key; 0 = none yet */
	uint64_t open;   /* key of the unfolded row; 0 = none */

	/* Of the last list_update() and list_draw(). */
	uint32_t *order; /* items that are shown, first to last */
	size_t count, capacity;
	size_t place;      /* of the chosen one in @order */
	size_t top;        /* the line at the upper edge; rows and lines of the open one count */
	size_t open_place; /* SIZE_MAX = none is */
	size_t open_lines; /* below it */
	struct grid_area area;                  /* as last drawn, with the titles */
	unsigned int offsets[LIST_COLUMNS_MAX]; /* of the columns, likewise */
	unsigned int widths[LIST_COLUMNS_MAX];  /* 0 = not shown */
};

void list_deinit(struct list *list);

/* What is there has changed: filters and sorts anew. 0 or -ENOMEM. */
int list_update(struct list *list, const struct list_rows *rows, const void *context, size_t items);

void list_draw(struct list *list, const struct list_rows *rows, const void *context,
	       struct grid *grid, const struct grid_area *area);

enum list_outcome {
	LIST_NOT_MINE = 0,
	LIST_MOVED = 1,  /* to be drawn again */
	LIST_SORTED = 2, /* to be updated and drawn again */
	LIST_ENTERED = 3 /* the chosen row was clicked on once more */
};

/* Moves, sorts: the keys that mean the same in every list. Return: enum list_outcome. */
int list_key(struct list *list, const struct list_rows *rows, const void *context,
	     const struct keys_event *event);

/* The item of the chosen row; false: there is none. */
bool list_chosen(const struct list *list, size_t *ret_item);

/* Unfolds the chosen row, or folds it; folds whichever is unfolded. */
void list_toggle(struct list *list, const struct list_rows *rows, const void *context);
bool list_fold(struct list *list); /* Return: whether one was */

/* Whether @text has @part in it, in any case of letters. "" is in everything. */
bool list_has(const char *text, const char *part);
