/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A table on the screen: columns, order, filter, a selected row, and one row that may be unfolded
 * into further lines. It stores no rows: items are numbered, and fetched by number when they are
 * drawn, so that a hundred thousand rows cost as little as the visible ones. The selected row is
 * identified by its key, so it stays the same when the order changes.
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
#define LIST_WHEEL 3u    /* rows per turn of the wheel */

struct list_column {
	const char *title;
	unsigned int width; /* without the blank after it; the minimum, if it grows */
	bool right;         /* numbers: aligned right, and sorted with the largest first */
	bool grows;         /* takes the remaining space */
	bool fixed;         /* cannot be sorted by */
	unsigned int wide;  /* the width if there is plenty of space; 0 = the same */
	unsigned int least; /* shown only with at least this many columns; 0 = always */
};

/* Describes the rows; @context belongs to the view. */
struct list_rows {
	const struct list_column *columns;
	size_t column_count;
	const char *none; /* text if there is nothing to show */

	/* Untrusted text into @text, LIST_CELL_SIZE; the style if it is not plain. */
	void (*cell)(const void *context, size_t item, size_t column, char *text,
		     enum grid_style *style);
	/* Less than 0: a comes first in ascending order. NULL: rows keep their order. */
	int (*compare)(const void *context, size_t a, size_t b, size_t column);
	/* Identifies a row from one update to the next. Never 0. */
	uint64_t (*key)(const void *context, size_t item);
	/* Whether the row is shown; @filter may be "". NULL: all are. */
	bool (*wants)(const void *context, size_t item, const char *filter);
	/* Draws over its cell, if the column has a picture. NULL: none has. */
	void (*paint)(const void *context, size_t item, size_t column, struct grid *grid,
		      const struct grid_area *area);
	/* The unfolded row: number of lines, and each of them. NULL: rows have none. */
	size_t (*line_count)(const void *context, size_t item);
	void (*line)(const void *context, size_t item, size_t line, char *text);
};

struct list {
	size_t sort; /* column */
	bool falling;
	bool sorts; /* the user has chosen the order above */
	char filter[LIST_FILTER_SIZE];
	uint64_t chosen; /* key; 0 = none yet */
	uint64_t open;   /* key of the unfolded row; 0 = none */

	/* From the last list_update() and list_draw(). */
	uint32_t *order; /* items that are shown, first to last */
	size_t count, capacity;
	size_t place;          /* of the selected one in @order */
	size_t top;            /* the first visible line; rows and unfolded lines count */
	size_t open_place;     /* SIZE_MAX = none */
	size_t open_lines;     /* below it */
	struct grid_area area; /* as last drawn, with the titles */
	unsigned int offsets[LIST_COLUMNS_MAX]; /* of the columns, likewise */
	unsigned int widths[LIST_COLUMNS_MAX];  /* 0 = not shown */
};

void list_deinit(struct list *list);

/* The data has changed: filters and sorts again. 0 or -ENOMEM. */
int list_update(struct list *list, const struct list_rows *rows, const void *context, size_t items);

void list_draw(struct list *list, const struct list_rows *rows, const void *context,
	       struct grid *grid, const struct grid_area *area);

enum list_outcome {
	LIST_NOT_MINE = 0,
	LIST_MOVED = 1,  /* must be drawn again */
	LIST_SORTED = 2, /* must be updated and drawn again */
	LIST_ENTERED = 3 /* the selected row was clicked again */
};

/* Moving and sorting: keys with the same meaning in every list. Return: enum list_outcome. */
int list_key(struct list *list, const struct list_rows *rows, const void *context,
	     const struct keys_event *event);

/* The item of the selected row; false: there is none. */
bool list_chosen(const struct list *list, size_t *ret_item);

/* Unfolds or folds the selected row; list_fold() folds whichever is unfolded. */
void list_toggle(struct list *list, const struct list_rows *rows, const void *context);
bool list_fold(struct list *list); /* Return: whether one was */

/* Whether @text contains @part, ignoring case. "" is in everything. */
bool list_has(const char *text, const char *part);
