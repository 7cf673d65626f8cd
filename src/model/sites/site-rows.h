/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Call sites of a list as people read them: the line of the user's own code and the function that it
 * called, "make_model (train.py:7) → cuda (torch/…/module.py:1097)". Where the user has no frame, the
 * one that stands for the stack.
 *
 * Names are short: without parameters and template arguments, files without folders. Rows that would
 * look the same get what tells them apart: the whole names and paths, else the callers in which they
 * differ, "scratch ← dram (app.c:11)", else the frame that stands for the stack. So the text of a row
 * depends on its list. All texts of commands come from here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/sites/site.h"

struct site_row;

struct site_rows {
	/* Private. */
	struct site_row *rows;
	size_t count, capacity;
	bool is_full; /* no memory: later rows have no text */
};

#define SITE_ROWS_NULL ((struct site_rows){.rows = NULL})

void site_rows_deinit(struct site_rows *rows);

/* Adds a row, by its stack (NULL = none) or by what was chosen, whose texts must live as long as @rows. */
void site_rows_add_stack(struct site_rows *rows, const struct stack *stack);
void site_rows_add(struct site_rows *rows, const struct site *site);

/* Makes the texts; after that nothing is added. */
void site_rows_finish(struct site_rows *rows);

/* The text of a row, by the order in which they were added; "" = it has no site. Lives as long as @rows. */
const char *site_rows_text(const struct site_rows *rows, size_t index);

/* The frame to look at: the caller, where the text names one, or else the first that it names. NULL = none. */
const struct frame *site_rows_place(const struct site_rows *rows, size_t index);

/*
 * What to add to TTMEM_SKIP_FRAMES where most rows have the same frame of the user's own, and only differ in
 * its callers: a pattern for it. NULL: there is no such frame. Returns @ret_text.
 */
const char *site_rows_wrapper(const struct site_rows *rows, char *ret_text, size_t size);

/* The text of a single stack. Returns @ret_text. */
const char *site_rows_single(const struct stack *stack, char *ret_text, size_t size);

/* The name of a function without parameters, template arguments and return type. Returns @ret_text. */
const char *site_rows_function(const char *function, char *ret_text, size_t size);
