/* SPDX-License-Identifier: Apache-2.0 */

/* Tables on the screen: order, filter, selection, unfolding, and where things are drawn. */

#include "tui/list.h"

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "tui/testing/testing-grid.h"

struct fruit {
	const char *name;
	uint64_t weight;
};

struct basket {
	struct fruit fruits[200];
	size_t count;
};

static void cell(const void *context, size_t item, size_t column, char *text,
		 enum grid_style *style)
{
	const struct basket *basket = context;

	(void)style;
	if (column == 0)
		snprintf(text, LIST_CELL_SIZE, "%s", basket->fruits[item].name);
	else
		snprintf(text, LIST_CELL_SIZE, "%" PRIu64, basket->fruits[item].weight);
}

static int compare(const void *context, size_t a, size_t b, size_t column)
{
	const struct fruit *fruits = ((const struct basket *)context)->fruits;

	if (column == 0)
		return strcmp(fruits[a].name, fruits[b].name);
	return (fruits[a].weight > fruits[b].weight) - (fruits[a].weight < fruits[b].weight);
}

static uint64_t key(const void *context, size_t item)
{
	const struct fruit *fruit = &((const struct basket *)context)->fruits[item];

	return (uint64_t)(unsigned char)fruit->name[0] << 32 | fruit->weight;
}

static bool wants(const void *context, size_t item, const char *filter)
{
	return list_has(((const struct basket *)context)->fruits[item].name, filter);
}

static size_t line_count(const void *context, size_t item)
{
	(void)context;
	return item == 1 ? 2 : 1;
}

static void line(const void *context, size_t item, size_t number, char *text)
{
	(void)context;
	snprintf(text, LIST_CELL_SIZE, "line %zu of item %zu", number, item);
}

static const struct list_column columns[] = {
	{.title = "NAME", .width = 6, .grows = true},
	{.title = "GRAMS", .width = 6, .right = true},
	{.title = "SAME", .width = 4, .right = true, .least = 40},
};

static const struct list_rows rows = {
	.columns = columns,
	.column_count = ARRAY_SIZE(columns),
	.none = "no fruit",
	.cell = cell,
	.compare = compare,
	.key = key,
	.wants = wants,
	.line_count = line_count,
	.line = line,
};

static const struct basket basket = {
	.fruits = {{"banana", 120}, {"Apple", 80}, {"cherry", 5}, {"apricot", 40}},
	.count = 4,
};

static const struct list fresh = {.open_place = SIZE_MAX};

static int press(struct list *list, const struct basket *from, uint32_t pressed)
{
	const struct keys_event event = {.key = pressed};

	return list_key(list, &rows, from, &event);
}

static int click(struct list *list, unsigned int row, unsigned int column)
{
	const struct keys_event event = {.key = KEYS_CLICK, .row = row, .column = column};

	return list_key(list, &rows, &basket, &event);
}

static void update(struct list *list, const struct basket *from)
{
	assert(list_update(list, &rows, from, from->count) == 0);
}

/* Draws below one empty line, and compares if @expected is given. */
static void draw(struct list *list, const struct basket *from, unsigned int height,
		 const char *expected)
{
	struct grid grid = GRID_NULL;
	const struct grid_area area = {1, 0, height, 24};

	assert(grid_begin(&grid, height + 1, 24) == 0);
	grid.ascii = true;
	list_draw(list, &rows, from, &grid, &area);
	testing_grid_is(&grid, expected);
}

UNIT(sorts_by_any_column)
{
	struct list list = fresh;

	update(&list, &basket);
	draw(&list, &basket, 5,
	     "\n NAME^            GRAMS\n>Apple               80\n apricot             40\n"
	     " banana             120\n cherry               5\n");
	/* Numbers start with the largest. */
	assert(press(&list, &basket, '>') == LIST_SORTED);
	update(&list, &basket);
	draw(&list, &basket, 5,
	     "\n NAME            GRAMSv\n>banana             120\n Apple               80\n"
	     " apricot             40\n cherry               5\n");
	assert(press(&list, &basket, 'r') == LIST_SORTED);
	update(&list, &basket);
	assert(list.order[0] == 2);
	/* The third is not shown, so the first follows. */
	assert(press(&list, &basket, '>') == LIST_SORTED && list.sort == 0 && !list.falling);
	assert(press(&list, &basket, '<') == LIST_SORTED && list.sort == 1);
	list_deinit(&list);
}

UNIT(filters_in_any_case)
{
	struct list list = fresh;

	strcpy(list.filter, "AP");
	update(&list, &basket);
	draw(&list, &basket, 4,
	     "\n NAME^            GRAMS\n>Apple               80\n apricot             40\n\n");
	strcpy(list.filter, "x");
	update(&list, &basket);
	draw(&list, &basket, 4, "\n NAME^            GRAMS\n\n  nothing matches the f~\n\n");
	assert(press(&list, &basket, KEYS_DOWN) == LIST_MOVED);
	list.filter[0] = '\0';
	assert(list_update(&list, &rows, &basket, 0) == 0);
	draw(&list, &basket, 4, "\n NAME^            GRAMS\n\n  no fruit\n\n");
	list_deinit(&list);
}

UNIT(the_chosen_row_stays_the_same_one)
{
	struct list list = fresh;
	struct basket other = basket;
	size_t item;

	update(&list, &basket);
	/* Before any move: the first row, whichever it is. */
	assert(list_chosen(&list, &item) && item == 1);
	draw(&list, &basket, 5, NULL);
	press(&list, &basket, KEYS_DOWN);
	press(&list, &basket, KEYS_DOWN);
	draw(&list, &basket, 5, NULL);
	assert(list_chosen(&list, &item) && item == 0);
	/* A different order, and other rows before it. */
	list.falling = true;
	other.fruits[1].name = "zebra";
	update(&list, &other);
	assert(list_chosen(&list, &item) && item == 0);
	/* The selected row disappears: the row in its place is selected. */
	other.fruits[0] = (struct fruit){"bread", 1};
	update(&list, &other);
	assert(list_chosen(&list, &item) && item == 0);
	assert(list_update(&list, &rows, &other, 0) == 0);
	assert(!list_chosen(&list, &item));
	list_deinit(&list);
}

UNIT(scrolls_so_that_the_chosen_row_is_seen)
{
	static struct basket many;
	struct list list = fresh;

	for (many.count = 0; many.count < 200; many.count++)
		many.fruits[many.count] = (struct fruit){"pear", many.count};
	list.sort = 1;
	update(&list, &many);
	for (size_t i = 0; i < 300; i++) {
		press(&list, &many, i < 250 ? KEYS_DOWN : KEYS_UP);
		draw(&list, &many, 11, NULL);
		assert(list.place >= list.top && list.place < list.top + 10);
		assert(list.top + 10 <= 200);
	}
	press(&list, &many, KEYS_END);
	draw(&list, &many, 11, NULL);
	assert(list.place == 199 && list.top == 190);
	press(&list, &many, KEYS_PAGE_UP);
	assert(list.place == 190);
	press(&list, &many, KEYS_WHEEL_UP);
	assert(list.place == 187);
	press(&list, &many, KEYS_HOME);
	draw(&list, &many, 11, NULL);
	assert(list.place == 0 && list.top == 0);
	press(&list, &many, KEYS_WHEEL_UP);
	assert(list.place == 0);
	list_deinit(&list);
}

UNIT(unfolds_one_row)
{
	struct list list = fresh;
	size_t item;

	update(&list, &basket);
	list_toggle(&list, &rows, &basket);
	draw(&list, &basket, 7,
	     "\n NAME^            GRAMS\n>Apple               80\n  line 0 of item 1\n"
	     "  line 1 of item 1\n apricot             40\n banana             120\n"
	     " cherry               5\n");
	/* Rows below it are found where they are drawn. */
	assert(click(&list, 5, 3) == LIST_MOVED && list_chosen(&list, &item) && item == 3);
	assert(click(&list, 3, 3) == LIST_MOVED && list_chosen(&list, &item) && item == 3);
	/* It stays unfolded in a different order. */
	list.falling = true;
	update(&list, &basket);
	draw(&list, &basket, 7,
	     "\n NAMEv            GRAMS\n cherry               5\n banana             120\n"
	     ">apricot             40\n Apple               80\n  line 0 of item 1\n"
	     "  line 1 of item 1\n");
	/* A small window shows the unfolded lines of the selected row. */
	press(&list, &basket, KEYS_DOWN);
	draw(&list, &basket, 4,
	     "\n NAMEv            GRAMS\n>Apple               80\n  line 0 of item 1\n"
	     "  line 1 of item 1\n");
	assert(list_fold(&list) && !list_fold(&list));
	update(&list, &basket);
	draw(&list, &basket, 6, NULL);
	list_deinit(&list);
}

UNIT(clicks_choose_enter_and_sort)
{
	struct list list = fresh;
	size_t item;

	update(&list, &basket);
	draw(&list, &basket, 5, NULL);
	assert(click(&list, 0, 3) == LIST_NOT_MINE);
	assert(click(&list, 3, 40) == LIST_NOT_MINE);
	assert(click(&list, 3, 3) == LIST_MOVED);
	draw(&list, &basket, 5, NULL);
	assert(list_chosen(&list, &item) && item == 3);
	assert(click(&list, 3, 3) == LIST_ENTERED);
	assert(click(&list, 1, 20) == LIST_SORTED && list.sort == 1 && list.falling);
	assert(click(&list, 1, 20) == LIST_SORTED && !list.falling);
	assert(press(&list, &basket, 'x') == LIST_NOT_MINE);
	list_deinit(&list);
}
