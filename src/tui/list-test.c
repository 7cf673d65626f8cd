/* SPDX-License-Identifier: Apache-2.0 */

/* Tables on the screen: order, filter, selection, unfolding, and where things are drawn. */

#include "tui/list.h"

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

#define ROW struct fruit

static const struct field fields[] = {
	FIELD_OR_NULL("name", TEXT, name, .column = {"NAME"}),
	FIELD("weight", NUMBER, weight, .column = {"GRAMS", true}),
	FIELD_END,
};

static const void *row(const void *context, size_t item, struct fields_room *room)
{
	(void)room;
	return &((const struct basket *)context)->fruits[item];
}

static uint64_t key(const void *context, size_t item)
{
	const struct fruit *fruit = &((const struct basket *)context)->fruits[item];

	return (uint64_t)(unsigned char)fruit->name[0] << 32 | fruit->weight;
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
	{"name", .width = 6, .grows = true},
	{"weight", .width = 6},
	{"weight", "SAME", .width = 4, .right = true, .least = 40},
};

static const struct list_rows rows = {
	.columns = columns,
	.column_count = ARRAY_SIZE(columns),
	.none = "no fruit",
	.fields = fields,
	.row = row,
	.sought = "name",
	.key = key,
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

struct event {
	const char *name;
	uint64_t time_ns, bytes;
};

#undef ROW
#define ROW struct event

static const struct field event_fields[] = {
	FIELD_OR_NULL("name", TEXT, name, .column = {"NAME"}),
	FIELD_OR_NULL("time_ns", TIME, time_ns),
	FIELD_OR_NULL("bytes", BYTES, bytes, .column = {"SIZE", true}),
	FIELD_END,
};

static const void *event_row(const void *context, size_t item, struct fields_room *room)
{
	(void)room;
	return &((const struct event *)context)[item];
}

static uint64_t event_now(const void *context)
{
	(void)context;
	return UINT64_C(10000000000);
}

static const char *event_flags(struct list_cell *cell)
{
	const struct event *event = event_row(cell->context, cell->item, NULL);

	return !event->name ? NULL : *event->name == 'b' ? "a" : "b";
}

static uint64_t event_length(const struct list_cell *cell)
{
	const struct event *event = event_row(cell->context, cell->item, NULL);

	return (event->name ? strlen(event->name) : 0) + cell->of;
}

static const struct list_column event_columns[] = {
	{"name", .width = 6, .none = "none"},
	{"time_ns", "AGO", .width = 6, .right = true},
	{"bytes", .width = 8},
	{.title = "FLAG", .width = 5, .cell = event_flags},
	{.title = "LEN", .width = 5, .right = true, .value = event_length, .of = 1},
};

static const struct list_rows event_rows = {
	.columns = event_columns,
	.column_count = ARRAY_SIZE(event_columns),
	.fields = event_fields,
	.row = event_row,
	.now = event_now,
	.sought = "name,bytes",
};

UNIT(shows_and_sorts_by_values_of_every_kind)
{
	static const struct event events[] = {
		{"boot", UINT64_C(7000000000), 2048},
		{"at", UINT64_C(9000000000), 512},
		{NULL, 0, 0},
	};
	static const uint32_t orders[][3] = {{2, 1, 0}, {1, 0, 2}, {2, 1, 0}, {2, 0, 1}, {2, 1, 0}};
	const struct grid_area area = {0, 0, 4, 37};
	struct grid grid = GRID_NULL;
	struct list list = fresh;

	for (list.sort = 0; list.sort < ARRAY_SIZE(orders); list.sort++) {
		assert(list_update(&list, &event_rows, events, 3) == 0);
		assert(memcmp(list.order, orders[list.sort], sizeof(orders[0])) == 0);
	}
	list.sort = 1;
	assert(list_update(&list, &event_rows, events, 3) == 0);
	assert(grid_begin(&grid, 4, 37) == 0);
	grid.ascii = true;
	list_draw(&list, &event_rows, events, &grid, &area);
	testing_grid_is(
		&grid,
		" NAME     AGO^     SIZE FLAG    LEN\n>at        1 s    512 B b         3\n"
		" boot      3 s  2.0 KiB a         5\n none        -        - -         1\n");
	/* What stands for no value is not found. */
	strcpy(list.filter, "-");
	assert(list_update(&list, &event_rows, events, 3) == 0 && list.count == 0);
	strcpy(list.filter, "kib");
	assert(list_update(&list, &event_rows, events, 3) == 0 && list.count == 1);
	list_deinit(&list);
}
