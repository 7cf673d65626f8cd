/* SPDX-License-Identifier: Apache-2.0 */

/* Draws bars and charts into a grid. */

#include "tui/chart.h"

#include <inttypes.h>

#include "base/bits.h"
#include "base/text.h"

#define CHART_SCALE 10u /* columns of "1023.9 KiB" */

#define CHART_BRAILLE 0x2800u
#define CHART_FULL 0x2588u
#define CHART_EMPTY 0x2591u
#define CHART_LINE_SIDE 0x2502u
#define CHART_LINE_LOW 0x2500u
#define CHART_LINE_CORNER 0x2514u

enum grid_style chart_style(double share)
{
	if (share >= CHART_BAD)
		return GRID_BAD;
	return share >= CHART_WARNING ? GRID_WARNING : GRID_GOOD;
}

void chart_bar(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
	       double share)
{
	enum grid_style style = chart_style(share);

	for (unsigned int i = 0; i < width; i++) {
		bool is_full = share * width >= i + 0.5;

		if (is_full)
			grid_put(grid, row, column + i, style, grid->ascii ? '#' : CHART_FULL);
		else
			grid_put(grid, row, column + i, GRID_FAINT,
				 grid->ascii ? '.' : CHART_EMPTY);
	}
}

size_t chart_points(const struct grid *grid, unsigned int columns)
{
	return bits_min(grid->ascii ? columns : 2 * (size_t)columns, CHART_POINTS_MAX);
}

/* The height of a point in @steps; at least one if it is not zero. */
static unsigned int chart_height(uint64_t point, uint64_t top, unsigned int steps)
{
	unsigned int height;

	if (point == CHART_NOTHING || point == 0 || top == 0)
		return 0;
	if (point >= top)
		return steps;
	height = (unsigned int)((double)point / (double)top * steps + 0.5);
	return height ? height : 1;
}

/* One cell in braille: @left and @right are heights above the lower edge of the row, 0 to 4. */
static uint32_t chart_braille(unsigned int left, unsigned int right)
{
	/* Dots from the bottom up. */
	static const uint8_t left_dots[] = {0, 0x40, 0x44, 0x46, 0x47};
	static const uint8_t right_dots[] = {0, 0x80, 0xa0, 0xb0, 0xb8};

	return CHART_BRAILLE | left_dots[bits_min(left, 4)] | right_dots[bits_min(right, 4)];
}

static unsigned int chart_within(unsigned int height, unsigned int row, unsigned int steps)
{
	if (height <= row * steps)
		return 0;
	return (unsigned int)bits_min(height - row * steps, steps);
}

static void chart_column(struct grid *grid, const struct grid_area *area, unsigned int column,
			 const uint64_t *points, uint64_t top, bool is_whole)
{
	static const char marks[] = {' ', '.', ':', '#'};
	unsigned int steps = grid->ascii ? 3 : 4;
	unsigned int per_column = grid->ascii ? 1 : 2;
	unsigned int left = chart_height(points[0], top, area->rows * steps);
	unsigned int right =
		per_column == 2 ? chart_height(points[1], top, area->rows * steps) : left;

	for (unsigned int row = 0; row < area->rows; row++) {
		unsigned int a = chart_within(left, row, steps),
			     b = chart_within(right, row, steps);
		/* Coloured by height, like usage: the upper part of a full chart is red. */
		enum grid_style style =
			is_whole ? chart_style((row + 0.5) / area->rows) : GRID_GOOD;

		if (a == 0 && b == 0)
			break;
		grid_put(grid, area->row + area->rows - 1 - row, area->column + column, style,
			 grid->ascii ? (uint32_t)marks[bits_min(a, 3)] : chart_braille(a, b));
	}
}

void chart_draw(struct grid *grid, const struct grid_area *area, const uint64_t *points,
		uint64_t top, bool is_whole)
{
	size_t count = chart_points(grid, area->columns), per_column = grid->ascii ? 1 : 2;

	for (size_t i = 0; i + per_column <= count; i += per_column)
		chart_column(grid, area, (unsigned int)(i / per_column), points + i, top, is_whole);
}

struct grid_area chart_inner(const struct grid_area *area)
{
	struct grid_area inner = *area;

	if (area->rows < 4 || area->columns < CHART_SCALE + 12) {
		inner.rows = inner.columns = 0;
		return inner;
	}
	inner.row += 1;
	inner.rows -= 3; /* title, line, time */
	inner.column += CHART_SCALE + 1;
	inner.columns -= CHART_SCALE + 1;
	return inner;
}

static uint64_t chart_largest(const uint64_t *points, size_t count)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < count; i++) {
		if (points[i] != CHART_NOTHING)
			largest = bits_max(largest, points[i]);
	}
	return largest;
}

static void chart_title(struct grid *grid, const struct grid_area *area,
			const struct chart_frame *frame)
{
	char now[TEXT_NUMBER_SIZE], all[TEXT_NUMBER_SIZE], text[128];
	double share = frame->capacity ? (double)frame->now / (double)frame->capacity : 0;
	unsigned int taken = grid_text(grid, area->row, area->column + CHART_SCALE + 1,
				       area->columns - CHART_SCALE - 1, GRID_STRONG, frame->title);

	if (frame->capacity)
		snprintf(text, sizeof(text), " %s of %s", text_size(frame->now, now),
			 text_size(frame->capacity, all));
	else
		snprintf(text, sizeof(text), " %s", text_size(frame->now, now));
	grid_text(grid, area->row, area->column + CHART_SCALE + 1 + taken,
		  area->columns - CHART_SCALE - 1 - taken, chart_style(share), text);
}

/* The time axis below, and the scale on the left. */
static void chart_axes(struct grid *grid, const struct grid_area *area,
		       const struct grid_area *inner, uint64_t top, uint32_t seconds)
{
	unsigned int low = inner->row + inner->rows, side = inner->column - 1;
	char number[TEXT_NUMBER_SIZE], ago[32];

	for (unsigned int i = 0; i < inner->rows; i++)
		grid_put(grid, inner->row + i, side, GRID_FAINT,
			 grid->ascii ? '|' : CHART_LINE_SIDE);
	grid_put(grid, low, side, GRID_FAINT, grid->ascii ? '+' : CHART_LINE_CORNER);
	for (unsigned int i = 0; i < inner->columns; i++)
		grid_put(grid, low, inner->column + i, GRID_FAINT,
			 grid->ascii ? '-' : CHART_LINE_LOW);
	if (top)
		grid_right(grid, inner->row, area->column, CHART_SCALE, GRID_FAINT,
			   text_size(top, number));
	if (top && inner->rows >= 5)
		grid_right(grid, inner->row + inner->rows / 2, area->column, CHART_SCALE,
			   GRID_FAINT, text_size(top / 2, number));
	grid_right(grid, low, area->column, CHART_SCALE, GRID_FAINT, "0");
	snprintf(ago, sizeof(ago), "%" PRIu32 " s ago", seconds);
	grid_text(grid, low + 1, inner->column, inner->columns, GRID_FAINT, ago);
	grid_right(grid, low + 1, inner->column, inner->columns, GRID_FAINT, "now");
}

void chart_frame_draw(struct grid *grid, const struct grid_area *area,
		      const struct chart_frame *frame)
{
	struct grid_area inner = chart_inner(area);
	uint64_t top;

	if (inner.rows == 0)
		return;
	/* A process may report more than the capacity. */
	top = bits_max(frame->capacity,
		       chart_largest(frame->points, chart_points(grid, inner.columns)));
	chart_title(grid, area, frame);
	chart_axes(grid, area, &inner, top, frame->seconds);
	chart_draw(grid, &inner, frame->points, top, frame->capacity > 0);
}
