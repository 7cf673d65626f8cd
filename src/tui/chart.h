/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bars and charts drawn with characters. A chart is a filled area over time: with braille a column
 * has two points and a row has four steps; without it a column is one point, and its top is one of
 * three marks.
 */

#include <stddef.h>
#include <stdint.h>

#include "tui/grid.h"

#define CHART_POINTS_MAX (2 * GRID_SIDE_MAX)
#define CHART_NOTHING UINT64_MAX /* no data for this point */

/* Usage at which a warning and an alarm are shown, as a share of the capacity. */
#define CHART_WARNING 0.75
#define CHART_BAD 0.90

/* The style for this usage. */
enum grid_style chart_style(double share);

/* @share from 0 to 1 as a bar of @width columns. */
void chart_bar(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
	       double share);

/* The number of points in a chart with that many columns. */
size_t chart_points(const struct grid *grid, unsigned int columns);

/*
 * Fills @area. @points: chart_points() of them, oldest first. @top: the value at the upper edge.
 * Any value above zero is visible. @is_whole: the upper edge is the capacity, so points near it are
 * coloured as a warning.
 */
void chart_draw(struct grid *grid, const struct grid_area *area, const uint64_t *points,
		uint64_t top, bool is_whole);

/* A chart with its title, its scale on the left and its time below. */
struct chart_frame {
	const char *title;
	const uint64_t *points; /* chart_points(chart_inner(area).columns) */
	uint64_t now;           /* bytes, in the title */
	uint64_t capacity;      /* 0 = unknown: then the scale ends at the largest point */
	uint32_t seconds;       /* from the left edge to the right one */
};

/* The area for the points. */
struct grid_area chart_inner(const struct grid_area *area);

void chart_frame_draw(struct grid *grid, const struct grid_area *area,
		      const struct chart_frame *frame);
