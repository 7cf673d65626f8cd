/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The terminal: draws the parts of a picture that have changed, and reads keys and the mouse. The
 * only file that knows curses. There is one terminal, used by one thread.
 */

#include <stdbool.h>

struct grid;
struct keys_event;

enum terminal_outcome {
	TERMINAL_NONE = 1, /* standard output or input is not a terminal */
	TERMINAL_DUMB = 2, /* it cannot position text, or is unknown */
};

/* 0, a terminal_outcome, or a negative errno. */
int terminal_open(bool colours);
void terminal_close(void);

/* Whether the locale allows more than ASCII. */
bool terminal_is_utf8(void);

void terminal_size(unsigned int *ret_rows, unsigned int *ret_columns);

void terminal_show(const struct grid *grid);

/* The next pressed key; KEYS_NONE = none is left. */
void terminal_key(struct keys_event *ret_event);
