/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A picture that is redrawn in place, each line over the old one, so that nothing flickers; and
 * keys, read one by one without blocking.
 */

#include <stdbool.h>
#include <stdio.h>

struct screen {
	char *picture; /* being drawn */
	size_t size;
	bool drawn; /* something is on the terminal */
};

#define SCREEN_NULL     \
	(struct screen) \
	{               \
		0       \
	}

/* A stream for the next picture, NULL if out of memory. */
FILE *screen_begin(struct screen *screen);

/* Closes the stream and draws as much of the picture as fits on the terminal. 0 or -ENOMEM. */
int screen_show(struct screen *screen, FILE *picture);

/* Restores the terminal. */
void screen_end(struct screen *screen);

/*
 * Delivers keys at once and without echo until screen_keys_end(). False if stdin is not a terminal, or
 * belongs to another job: then nothing is read of it, and nothing is changed.
 */
bool screen_keys_begin(void);
void screen_keys_end(void);

/* The next key pressed, 0 if none. */
char screen_key(void);

/* Waits between two rounds; a stop signal ends it early. True if "q" was pressed. */
bool screen_wait(unsigned int ms);
