/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A table on the screen: columns, order, filter, a selected row, and one row that may be unfolded
 * into further lines. It stores no rows: items are numbered, and fetched by number when they are
 * drawn, so that a hundred thousand rows cost as little as the visible ones. The selected row is
 * identified by its key, so it stays the same when the order changes.
 *
 * A column names a field of an answer (answers/fields.h): its text, its order and the filter come from there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "tui/grid.h"
#include "tui/keys.h"

#define LIST_FILTER_SIZE 64
#define LIST_CELL_SIZE 512
#define LIST_COLUMNS_MAX 16u
#define LIST_PLENTY 100u /* columns */
#define LIST_WHEEL 3u    /* rows per turn of the wheel */

/* What the functions of a column are called with. */
struct list_cell {
	const void *context; /* of the view */
	size_t item;
	uint32_t of;           /* tells columns with the same functions apart */
	enum grid_style style; /* of its text */
	char *text;            /* room for it, FIELDS_TEXT bytes */
};

struct list_column {
	const char *key;    /* of its field; NULL = it has functions instead */
	const char *title;  /* NULL = as the field has it, also on which side */
	const char *none;   /* faint, where there is no value; NULL = "-", plain */
	unsigned int width; /* without the blank after it; the minimum, if it grows */
	bool right;         /* numbers: aligned right, and sorted with the largest first */
	bool grows;         /* takes the remaining space */
	unsigned int wide;  /* the width if there is plenty of space; 0 = the same */
	unsigned int least; /* shown only with at least this many columns; 0 = always */

	/*
	 * For what fits no field. Untrusted text, NULL = no value; what the column is sorted by instead of its text;
	 * a picture over its cell, by which nothing can be sorted.
	 */
	const char *(*cell)(struct list_cell *cell);
	uint64_t (*value)(const struct list_cell *cell);
	void (*paint)(const struct list_cell *cell, struct grid *grid,
		      const struct grid_area *area);
	uint32_t of;
};

/* Describes the rows; @context belongs to the view. */
struct list_rows {
	const struct list_column *columns;
	size_t column_count;
	const char *none; /* text if there is nothing to show */

	/*
	 * The row that the fields describe; it may be made in @room, in which no text of it
	 * lies.
	 */
	const struct field *fields;
	const void *(*row)(const void *context, size_t item, struct fields_room *room);
	/* CLOCK_REALTIME as of the rows: a field's time is shown as so long ago. NULL: no column has one. */
	uint64_t (*now)(const void *context);
	/* The keys of the fields that the filter searches, and whether it is in something else. NULL: none. */
	const char *sought;
	bool (*finds)(const void *context, size_t item, const char *filter);
	/* Whether the row is shown at all. NULL: all are. */
	bool (*wants)(const void *context, size_t item);
	/* Less than 0: of two equal rows, a comes first in ascending order. NULL: the one that was read first. */
	int (*compare)(const void *context, size_t a, size_t b);
	/* In either order: what to compare instead of @a and @b, or what their order is. NULL: themselves. */
	int (*siblings)(const void *context, size_t *a, size_t *b);
	/* Identifies a row from one update to the next. Never 0. */
	uint64_t (*key)(const void *context, size_t item);
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
	union field_value *values; /* of all items, in the column that they are sorted by */
	size_t value_capacity;
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

/* The part of it that decides which items are shown, in which order. Makes no text for numbers. */
int list_arrange(struct list *list, const struct list_rows *rows, const void *context,
		 size_t items);

/* Of the column @at: its title and side; its text in a row. */
struct table_column list_title(const struct list_rows *rows, size_t at);
const char *list_cell_text(const struct list_rows *rows, size_t at, struct list_cell *cell);

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
