/* SPDX-License-Identifier: Apache-2.0 */

/* The terminal, through ncurses. */

#define NCURSES_WIDECHAR 1

#include "tui/terminal.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/bits.h"
#include "tui/grid.h"
#include "tui/keys.h"

/* How long to wait whether an escape character begins a key sequence. Enough for a slow line. */
#define TERMINAL_ESCAPE_MS 50

/* Presses and releases, but not clicks, for which ncurses would keep presses back. */
#define TERMINAL_BUTTON(n) (BUTTON##n##_PRESSED | BUTTON##n##_RELEASED)
#define TERMINAL_MOUSE                                                                       \
	(TERMINAL_BUTTON(1) | TERMINAL_BUTTON(2) | TERMINAL_BUTTON(3) | TERMINAL_BUTTON(4) | \
	 TERMINAL_BUTTON(5) | REPORT_MOUSE_POSITION)

static SCREEN *terminal_screen;
static bool terminal_colours;
static bool terminal_utf8;

/* Of the mouse, the oldest last. ncurses keeps no more. */
static struct keys_event terminal_events[8];
static size_t terminal_pending;

/* Pairs are numbered from 1. */
enum terminal_pair {
	PAIR_GOOD = 1,
	PAIR_WARNING,
	PAIR_BAD,
	PAIR_BAR,
	PAIR_TAB,
	PAIR_HEAD,
	PAIR_NOTICE,
};

static void terminal_start_colours(void)
{
	if (!terminal_colours || start_color() == ERR || !has_colors()) {
		terminal_colours = false;
		return;
	}
	(void)use_default_colors(); /* if it fails the background is black */
	init_pair(PAIR_GOOD, COLOR_GREEN, -1);
	init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
	init_pair(PAIR_BAD, COLOR_RED, -1);
	init_pair(PAIR_BAR, COLOR_WHITE, COLOR_BLUE);
	init_pair(PAIR_TAB, COLOR_BLACK, COLOR_CYAN);
	init_pair(PAIR_HEAD, COLOR_CYAN, -1);
	init_pair(PAIR_NOTICE, COLOR_BLACK, COLOR_YELLOW);
}

/* Without colours all styles must still be distinguishable. */
static void terminal_style(enum grid_style style, attr_t *ret_attributes, short *ret_pair)
{
	static const struct {
		attr_t with, without;
		short pair;
	} styles[GRID_STYLES] = {
		[GRID_PLAIN] = {A_NORMAL, A_NORMAL, 0},
		[GRID_STRONG] = {A_BOLD, A_BOLD, 0},
		[GRID_FAINT] = {A_DIM, A_DIM, 0},
		[GRID_BAR] = {A_NORMAL, A_REVERSE, PAIR_BAR},
		[GRID_TAB] = {A_BOLD, A_BOLD, PAIR_TAB},
		[GRID_HEAD] = {A_BOLD, A_BOLD | A_UNDERLINE, PAIR_HEAD},
		[GRID_CHOSEN] = {A_REVERSE, A_REVERSE, 0},
		[GRID_GOOD] = {A_NORMAL, A_NORMAL, PAIR_GOOD},
		[GRID_WARNING] = {A_NORMAL, A_BOLD, PAIR_WARNING},
		[GRID_BAD] = {A_BOLD, A_BOLD, PAIR_BAD},
		[GRID_NOTICE] = {A_BOLD, A_BOLD | A_REVERSE, PAIR_NOTICE},
	};

	*ret_attributes = terminal_colours ? styles[style].with : styles[style].without;
	*ret_pair = terminal_colours ? styles[style].pair : 0;
}

static bool terminal_can(const char *capability)
{
	const char *text = tigetstr(capability);

	return text && text != (const char *)-1 && *text;
}

void terminal_close(void)
{
	if (!terminal_screen)
		return;
	endwin();
	delscreen(terminal_screen);
	terminal_screen = NULL;
}

int terminal_open(bool colours)
{
	if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
		return TERMINAL_NONE;
	/* Only LC_CTYPE: numbers are formatted as everywhere else. */
	terminal_utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	terminal_screen = newterm(NULL, stdout, stdin);
	if (!terminal_screen)
		return TERMINAL_DUMB;
	/* newterm() also accepts terminals that cannot position text, and would draw garbage. */
	if (!terminal_can("cup") || !terminal_can("ed")) {
		terminal_close();
		return TERMINAL_DUMB;
	}
	terminal_colours = colours;
	cbreak(); /* Ctrl-C stays a signal */
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(TERMINAL_ESCAPE_MS);
	terminal_start_colours();
	/*
	 * All that a terminal may report, though only presses have a meaning here: after an event that
	 * is not in the mask, ncurses waits for the next key, even with nodelay().
	 */
	mousemask(TERMINAL_MOUSE, NULL);
	mouseinterval(0); /* report a press as a click at once */
	return 0;
}

bool terminal_is_utf8(void)
{
	return terminal_utf8;
}

void terminal_size(unsigned int *ret_rows, unsigned int *ret_columns)
{
	*ret_rows = LINES > 0 ? (unsigned int)LINES : 0;
	*ret_columns = COLS > 0 ? (unsigned int)COLS : 0;
}

/*
 * Draws one cell. If the C library's width of a character differs from ours, the rest of the line
 * would shift: then a mark is drawn instead.
 */
static void terminal_put(const struct grid_cell *cell, unsigned int row, unsigned int column)
{
	wchar_t text[2] = {(wchar_t)cell->character, L'\0'};
	attr_t attributes;
	short pair;
	cchar_t shown;

	terminal_style((enum grid_style)cell->style, &attributes, &pair);
	if (cell->character >= 0x80 &&
	    (!terminal_utf8 || wcwidth((wchar_t)cell->character) != cell->columns)) {
		text[0] = L'?';
		if (cell->columns == 2 && setcchar(&shown, text, attributes, pair, NULL) == OK)
			mvadd_wch((int)row, (int)column + 1, &shown);
	}
	if (setcchar(&shown, text, attributes, pair, NULL) == OK)
		mvadd_wch((int)row, (int)column, &shown);
}

void terminal_show(const struct grid *grid)
{
	erase();
	for (unsigned int row = 0; row < grid->rows; row++) {
		for (unsigned int column = 0; column < grid->columns; column++) {
			const struct grid_cell *cell =
				&grid->cells[(size_t)row * grid->columns + column];

			/* Empty cells are already erased. */
			if (cell->columns > 0 &&
			    (cell->character != ' ' || cell->style != GRID_PLAIN))
				terminal_put(cell, row, column);
		}
	}
	refresh();
}

static uint32_t terminal_special(int key)
{
	static const struct {
		int from;
		uint32_t to;
	} keys[] = {
		{KEY_UP, KEYS_UP},       {KEY_DOWN, KEYS_DOWN},     {KEY_LEFT, KEYS_LEFT},
		{KEY_RIGHT, KEYS_RIGHT}, {KEY_PPAGE, KEYS_PAGE_UP}, {KEY_NPAGE, KEYS_PAGE_DOWN},
		{KEY_HOME, KEYS_HOME},   {KEY_END, KEYS_END},       {KEY_BACKSPACE, KEYS_BACKSPACE},
		{KEY_ENTER, KEYS_ENTER}, {KEY_RESIZE, KEYS_RESIZE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].from == key)
			return keys[i].to;
	}
	return KEYS_RESIZE; /* a key without a meaning here */
}

static struct keys_event terminal_mouse(const MEVENT *mouse)
{
	struct keys_event event = {.key = KEYS_RESIZE}; /* without a meaning here */

	if (mouse->x < 0 || mouse->y < 0)
		return event;
	if (mouse->bstate & BUTTON4_PRESSED)
		event.key = KEYS_WHEEL_UP;
	else if (mouse->bstate & BUTTON5_PRESSED)
		event.key = KEYS_WHEEL_DOWN;
	else if (mouse->bstate & BUTTON1_PRESSED)
		event.key = KEYS_CLICK;
	event.row = (unsigned int)mouse->y;
	event.column = (unsigned int)mouse->x;
	return event;
}

/* A press and a release that arrive together are one key to ncurses, and getmouse() has the newest first. */
static void terminal_read_mouse(void)
{
	MEVENT mouse;

	while (terminal_pending < ARRAY_SIZE(terminal_events) && getmouse(&mouse) == OK)
		terminal_events[terminal_pending++] = terminal_mouse(&mouse);
}

void terminal_key(struct keys_event *ret_event)
{
	wint_t key;
	int r;

	if (terminal_pending > 0) {
		*ret_event = terminal_events[--terminal_pending];
		return;
	}
	*ret_event = (struct keys_event){.key = KEYS_NONE};
	r = get_wch(&key);
	if (r == KEY_CODE_YES && key == KEY_MOUSE) {
		terminal_read_mouse();
		ret_event->key = KEYS_RESIZE;
	} else if (r == KEY_CODE_YES) {
		ret_event->key = terminal_special((int)key);
	} else if (r == OK) {
		ret_event->key = key == 0x7f || key == '\b' ? KEYS_BACKSPACE : (uint32_t)key;
	}
}
