/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bars and charts out of characters. A chart is a filled area over time: braille gives two points to a
 * column and four to a row; without it a column is one point, and its top is one of three marks.
 */

#include <stddef.h>
#include <stdint.h>

#include "tui/grid.h"

#define CHART_POINTS_MAX (2 * GRID_SIDE_MAX)
#define CHART_NOTHING UINT64_MAX /* a point at which nothing is known */

/* Where use becomes worth a look, and a worry; of the whole. */
#define CHART_WARNING 0.75
#define CHART_BAD 0.90

/* The style of that much use. */
enum grid_style chart_style(double share);

/* @share from 0 to 1 as a bar of @width columns. */
void chart_bar(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
	       double share);

/* How many points a chart of that many columns has. */
size_t chart_points(const struct grid *grid, unsigned int columns);

/*
 * Fills @area. @points: chart_points() of them, oldest first. @top: what reaches the upper edge. What is
 * more than nothing is always seen. @is_whole: the upper edge is all there is, so that points near it are
 * coloured as a warning.
 */
void chart_draw(struct grid *grid, const struct grid_area *area, const uint64_t *points,
		uint64_t top, bool is_whole);

/* What a chart looks like with its title, its scale on the left and its time below. */
struct chart_frame {
	const char *title;
	const uint64_t *points; /* chart_points(chart_inner(area).columns) */
	uint64_t now;           /* bytes, in the title */
	uint64_t capacity;      /* 0 = not known: then the scale is the largest point */
	uint32_t seconds;       /* from the left edge to the right one */
};

/* Where the points go. */
struct grid_area chart_inner(const struct grid_area *area);

void chart_frame_draw(struct grid *grid, const struct grid_area *area,
		      const struct chart_frame *frame);
