/* SPDX-License-Identifier: Apache-2.0 */

/* Bars and charts, compared with pictures. */

#include "tui/chart.h"

#include <string.h>

#include "base/testing/unit.h"
#include "tui/testing/testing-grid.h"

static struct grid blank(unsigned int rows, unsigned int columns, bool ascii)
{
	struct grid grid = GRID_NULL;

	assert(grid_begin(&grid, rows, columns) == 0);
	grid.ascii = ascii;
	return grid;
}

static void bar(double share, bool ascii, const char *expected)
{
	struct grid grid = blank(1, 10, ascii);

	chart_bar(&grid, 0, 0, 10, share);
	testing_grid_is(&grid, expected);
}

UNIT(bars_round_to_the_nearest_column)
{
	bar(0, true, "..........\n");
	bar(0.04, true, "..........\n");
	bar(0.05, true, "#.........\n");
	bar(0.5, true, "#####.....\n");
	bar(0.949, true, "#########.\n");
	bar(1, true, "##########\n");
	bar(7, true, "##########\n");
	bar(0.3, false, "███░░░░░░░\n");
}

UNIT(colours_begin_at_75_and_90_percent)
{
	assert(chart_style(0.7499) == GRID_GOOD);
	assert(chart_style(0.75) == GRID_WARNING);
	assert(chart_style(0.8999) == GRID_WARNING);
	assert(chart_style(0.90) == GRID_BAD);
}

UNIT(braille_has_two_points_a_column_and_four_a_row)
{
	static const uint64_t points[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, CHART_NOTHING};
	struct grid grid = blank(2, 5, false);
	const struct grid_area area = {0, 0, 2, 5};

	assert(chart_points(&grid, 5) == 10);
	chart_draw(&grid, &area, points, 8, true);
	testing_grid_is(&grid, "  \u2880\u28f4\u2847\n"
			       "\u2880\u28f4\u28ff\u28ff\u2847\n");
}

UNIT(letters_have_three_steps_a_row)
{
	static const uint64_t points[] = {0, 1, 2, 3, 4, 5, 6};
	struct grid grid = blank(2, 7, true);
	const struct grid_area area = {0, 0, 2, 7};

	assert(chart_points(&grid, 7) == 7);
	chart_draw(&grid, &area, points, 6, true);
	testing_grid_is(&grid, "    .:#\n .:####\n");
}

UNIT(little_is_seen_and_much_stays_inside)
{
	static const uint64_t points[] = {1, UINT64_MAX - 1, 0, CHART_NOTHING};
	struct grid grid = blank(2, 4, true);
	const struct grid_area area = {0, 0, 2, 4};

	chart_draw(&grid, &area, points, 1000000, true);
	testing_grid_is(&grid, " #\n.#\n");
}

UNIT(only_the_upper_part_of_the_whole_is_a_warning)
{
	static const uint64_t points[] = {10, 10};
	struct grid grid = blank(20, 2, true);
	const struct grid_area left = {0, 0, 20, 1}, right = {0, 1, 20, 1};

	chart_draw(&grid, &left, points, 10, true);
	chart_draw(&grid, &right, points, 10, false);
	for (unsigned int row = 0; row < 20; row++) {
		enum grid_style expected = row < 2 ? GRID_BAD : row < 5 ? GRID_WARNING : GRID_GOOD;

		assert(grid.cells[row * 2].style == expected);
		assert(grid.cells[row * 2 + 1].style == GRID_GOOD);
	}
	grid_deinit(&grid);
}

UNIT(a_chart_without_area_draws_nothing)
{
	static const uint64_t points[] = {0, 0, 0, 0};
	struct grid grid = blank(1, 4, true);
	const struct grid_area area = {0, 0, 1, 4};

	chart_draw(&grid, &area, points, 0, true);
	testing_grid_is(&grid, "\n");
}

UNIT(a_frame_has_title_scale_and_time)
{
	uint64_t points[CHART_POINTS_MAX];
	struct grid grid = blank(8, 41, true);
	const struct grid_area area = {0, 0, 8, 41};
	const struct chart_frame frame = {
		.title = "Device 0 DRAM",
		.points = points,
		.now = 512,
		.capacity = 1024,
		.seconds = 60,
	};

	for (size_t i = 0; i < CHART_POINTS_MAX; i++)
		points[i] = i < 28 ? CHART_NOTHING : 512;
	chart_frame_draw(&grid, &area, &frame);
	testing_grid_is(&grid, "           Device 0 DRAM 512 B of 1.0 KiB\n"
			       "   1.0 KiB|\n"
			       "          |\n"
			       "     512 B|                            ::\n"
			       "          |                            ##\n"
			       "          |                            ##\n"
			       "         0+------------------------------\n"
			       "           60 s ago                   now\n");
}

UNIT(more_than_there_is_makes_the_scale_larger)
{
	uint64_t points[CHART_POINTS_MAX] = {4096};
	struct grid grid = blank(4, 30, true);
	const struct grid_area area = {0, 0, 4, 30};
	const struct chart_frame frame = {.title = "x", .points = points, .capacity = 1024};

	chart_frame_draw(&grid, &area, &frame);
	testing_grid_is(&grid, "           x 0 B of 1.0 KiB\n"
			       "   4.0 KiB|#\n"
			       "         0+-------------------\n"
			       "           0 s ago         now\n");
}

UNIT(too_small_an_area_has_no_chart)
{
	uint64_t points[CHART_POINTS_MAX] = {1};
	const struct chart_frame frame = {.title = "x", .points = points};

	for (unsigned int rows = 0; rows < 5; rows++) {
		for (unsigned int columns = 0; columns < 40; columns++) {
			struct grid grid = blank(5, 40, false);
			const struct grid_area area = {1, 1, rows, columns};

			chart_frame_draw(&grid, &area, &frame);
			grid_deinit(&grid);
		}
	}
}

UNIT(hostile_names_are_escaped_and_stay_in_their_columns)
{
	struct grid grid = blank(4, 12, false);

	grid_text(&grid, 0, 0, 12, GRID_PLAIN, "\033[2J\xe2\x80\xae!");
	assert(grid_text(&grid, 1, 0, 4, GRID_PLAIN, "重み重み") == 3);
	grid_right(&grid, 2, 0, 12, GRID_PLAIN, "重み");
	grid_text(&grid, 3, 10, 40, GRID_PLAIN, "beyond the edge");
	grid_text(&grid, 9, 0, 12, GRID_PLAIN, "below");
	testing_grid_is(&grid, "\\x1b[2J~\n重~\n        重み\n          be\n");
}

UNIT(half_of_a_wide_letter_does_not_stay)
{
	struct grid grid = blank(1, 6, false);

	grid_text(&grid, 0, 0, 6, GRID_PLAIN, "重み重");
	grid_put(&grid, 0, 1, GRID_PLAIN, 'x');
	grid_put(&grid, 0, 2, GRID_PLAIN, 'y');
	grid_put(&grid, 0, 5, GRID_PLAIN, 0x91cd); /* its right half would be outside */
	testing_grid_is(&grid, " xy 重\n");
}
