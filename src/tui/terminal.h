/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The terminal: puts a picture on it, only what has changed, and hears keys and the mouse. The one file
 * that knows curses. There is one terminal, and one thread that uses it.
 */

#include <stdbool.h>

struct grid;
struct keys_event;

enum terminal_outcome {
	TERMINAL_NONE = 1, /* standard output or input is no terminal */
	TERMINAL_DUMB = 2, /* it cannot place text, or is not known */
};

/* 0, a terminal_outcome, or a negative errno. */
int terminal_open(bool colours);
void terminal_close(void);

/* Whether it shows more than ASCII, by the locale. */
bool terminal_is_utf8(void);

void terminal_size(unsigned int *ret_rows, unsigned int *ret_columns);

void terminal_show(const struct grid *grid);

/* The next key that has been pressed; KEYS_NONE = none is left. */
void terminal_key(struct keys_event *ret_event);
