/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Everything around a view: the tabs and the totals at the top, the line for keys, notices and the
 * filter at the bottom, the help over all of it; and what each key does.
 */

#include "tui/grid.h"
#include "tui/keys.h"

struct model;

#define FRAME_ROWS_MIN 10u /* of a terminal; on smaller ones a message says so */
#define FRAME_COLUMNS_MIN 40u

/* Draws the whole screen into an empty grid. */
void frame_draw(struct model *model, struct grid *grid);

/* Handles a key or a click. */
void frame_key(struct model *model, const struct keys_event *event);
